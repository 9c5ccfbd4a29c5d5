"""One self-contained HTML page of linked documents, for people.

What is only known at the end follows them; the style sheet places it beside them.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from tempfile import SpooledTemporaryFile
from types import MappingProxyType
from typing import IO

from ...io.html import load_templates
from ..entities import BY_ID, LinkedDoc, needs_text
from . import groups, markup
from .addresses import concept_url, merge_addresses
from .groups import NO_CONCEPT, OTHER, SHOWN, Group
from .markup import UNSURE, entity_group, is_unsure, shorten

INDEX_BYTES = 1 << 20  # of the index in memory; more is in a temporary file
CAPTION = 120  # characters of an id in the index
KINDS = {
    NO_CONCEPT.key: NO_CONCEPT.name,
    UNSURE: "Not sure: check it",
    "tie": "Tie that only ids break",
}


def count_words(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def summarize(counts: Counter[str]) -> str:
    """Format counts: "25 entities, 2 NIL, 3 not sure, 1 tie"."""
    total = count_words(counts["entities"], "entity", "entities")
    if not counts["entities"]:
        return "no entities"
    parts = [total]
    if counts[NO_CONCEPT.key]:
        parts.append(f"{counts[NO_CONCEPT.key]:,} NIL")
    if counts[UNSURE]:
        parts.append(f"{counts[UNSURE]:,} not sure")
    if counts["tie"]:
        parts.append(count_words(counts["tie"], "tie", "ties"))
    return ", ".join(parts)


def count_doc(doc: LinkedDoc) -> Counter[str]:
    """Count the entities of a document, by group and by what a reader should check."""
    counts = Counter(entity_group(entity).key for entity in doc.entities)
    counts["entities"] = len(doc.entities)
    counts["tie"] = sum(entity["tie"] == BY_ID for entity in doc.entities)
    counts[UNSURE] = sum(map(is_unsure, doc.entities))
    return counts


def list_groups(total: Counter[str]) -> list[tuple[Group, int]]:
    counts = [(group, total[group.key]) for group in (*SHOWN.values(), OTHER)]
    return sorted((pair for pair in counts if pair[1]), key=lambda pair: -pair[1])


def write_docs(
    docs: Iterable[LinkedDoc],
    file: IO[bytes],
    *,
    include_text: bool = True,
    links: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write a page of linked documents; `links` come before `ADDRESSES`."""
    if not include_text:
        raise needs_text(format="html")
    total: Counter[str] = Counter()
    with SpooledTemporaryFile(INDEX_BYTES, "w+") as index:

        def iter_docs() -> Iterator[tuple[str, LinkedDoc, str]]:
            for number, doc in enumerate(docs, 1):
                counts = count_doc(doc)
                total.update(counts, documents=1)
                id, summary = f"d{number}", summarize(counts)
                yield id, doc, summary
                line = json.dumps((id, shorten(str(doc.id), CAPTION), summary))
                index.write(f"{line}\n")

        def read_index() -> Iterator[tuple[str, str, str]]:
            index.seek(0)
            yield from map(json.loads, index)

        def summarize_all() -> str:
            documents = count_words(total["documents"], "document", "documents")
            return f"{documents}, {summarize(total)}"

        template = load_templates(__package__).get_template("page.html")
        page = template.stream(
            concept_url=concept_url,
            docs=iter_docs(),
            groups=groups,
            kinds=KINDS,
            links=merge_addresses(links),
            list_groups=lambda: list_groups(total),
            markup=markup,
            read_index=read_index,
            summarize_all=summarize_all,
            total=total,
        )
        page.dump(file, "utf8", "replace")  # an id may have a surrogate
