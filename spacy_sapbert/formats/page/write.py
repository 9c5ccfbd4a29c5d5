"""One self-contained HTML page of linked documents, for people.

Documents are written one by one. What is only known at the end (totals, the groups in
use, the index of documents) follows them, and the style sheet places it beside them.
"""

from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from shutil import copyfileobj
from tempfile import SpooledTemporaryFile
from types import MappingProxyType
from typing import IO

from ...errors import Errors, SapbertError
from ..entities import BY_ID, LinkedDoc
from .addresses import merge_addresses
from .groups import NO_CONCEPT, OTHER, SHOWN, group_styles
from .markup import BROADER, LOW_SCORE, entity_group, shorten, text_markup

INDEX_BYTES = 1 << 20  # of the index in memory; more is in a temporary file
CAPTION = 120  # characters of an id in the index

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Linked entities</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>Linked entities</h1>
<p>Point at a marked mention, tap it, or reach it with the Tab key to see its concept,
its score and the other candidates. <a href="#overview">Overview of documents</a></p>
</header>
<main>
"""
OVERVIEW = """</main>
<aside aria-label="Overview">
<details id="overview" open>
<summary>{total}</summary>
<form id="filter">
<p class="scripted"><label>Filter by mention, name or id
<input type="search" id="words" autocomplete="off"></label></p>
<fieldset>
<legend>Groups</legend>
{groups}</fieldset>
<fieldset class="scripted">
<legend>Show only</legend>
{kinds}<div class="pair"><label><input type="checkbox" name="kind" value="low">
Score below</label> <input type="number" id="limit" min="-1" max="1" step="0.05"
value="{low}" aria-label="Score"></div>
</fieldset>
<p class="scripted"><output id="shown"></output>
<button type="reset" hidden>Show all</button></p>
</form>
<nav aria-label="Documents">
<h2>Documents</h2>
<ol>
"""
PAGE_END = """</ol>
</nav>
</details>
</aside>
<script>{script}</script>
</body>
</html>
"""
CHOICE = (
    '<label class="{key}"><input class="scripted" type="checkbox" name="{name}" '
    'value="{key}"> {swatch}{text} <span class="count">{count:,}</span></label>\n'
)


def read_part(name: str) -> str:
    """Return a file of this package."""
    return files(__package__).joinpath(name).read_text("utf8")


def hash_source(text: str) -> str:
    """Return the source of a Content-Security-Policy for an inline element."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def start_page(script: str) -> str:
    """Return what stands before the documents.

    The policy allows this style sheet and this script, and nothing from outside.
    """
    style = read_part("page.css") + group_styles()
    policy = (
        f"default-src 'none'; style-src {hash_source(style)}; "
        f"script-src {hash_source(script)}; base-uri 'none'; form-action 'none'"
    )
    return PAGE.format(policy=policy, style=style)


def count_words(count: int, one: str, many: str) -> str:
    """Return a number with the word for one or many."""
    return f"{count:,} {one if count == 1 else many}"


def summarize(counts: Counter[str]) -> str:
    """Format counts: "25 entities, 2 without a concept, 1 tie"."""
    total = count_words(counts["entities"], "entity", "entities")
    if not counts["entities"]:
        return "no entities"
    parts = [total]
    if counts[NO_CONCEPT.key]:
        parts.append(f"{counts[NO_CONCEPT.key]:,} NIL")
    if counts["tie"]:
        parts.append(count_words(counts["tie"], "tie", "ties"))
    if counts[BROADER]:
        parts.append(f"{counts[BROADER]:,} broader")
    return ", ".join(parts)


def count_doc(doc: LinkedDoc) -> Counter[str]:
    """Count the entities of a document, by group and by what a reader should check."""
    counts = Counter(entity_group(entity).key for entity in doc.entities)
    counts["entities"] = len(doc.entities)
    counts["tie"] = sum(entity["tie"] == BY_ID for entity in doc.entities)
    counts[BROADER] = sum(entity["note"] == BROADER for entity in doc.entities)
    return counts


def doc_markup(
    doc: LinkedDoc, links: Mapping[str, str], counts: Counter[str], *, id: str
) -> Iterator[str]:
    """Yield the markup of one document, in parts.

    Args:
        counts: From `count_doc`.
    """
    lang = f' lang="{escape(doc.lang)}"' if doc.lang else ""
    yield f'<article id="{id}"><h2 dir="auto">{escape(str(doc.id))}</h2>'
    yield f'<p class="count">{summarize(counts)}</p>\n'
    yield f'<div class="text" dir="auto"{lang}>'
    yield from text_markup(doc, links, id=id)
    yield "</div></article>\n"


def index_entry(doc: LinkedDoc, counts: Counter[str], *, id: str) -> str:
    """Return the line of a document in the index."""
    name = escape(shorten(str(doc.id), CAPTION))
    return (
        f'<li><a href="#{id}" dir="auto">{name}</a> '
        f'<span class="count">{summarize(counts)}</span></li>\n'
    )


def overview_markup(total: Counter[str]) -> str:
    """Return totals, groups and the filter.

    Args:
        total: Sum of `count_doc`, and "documents".
    """
    documents = count_words(total["documents"], "document", "documents")
    groups = [group for group in (*SHOWN.values(), OTHER) if total[group.key]]
    groups.sort(key=lambda group: -total[group.key])
    kinds = [
        (NO_CONCEPT.key, NO_CONCEPT.name),
        ("tie", "Tie that only ids break"),
        (BROADER, "Broader concept"),
    ]
    return OVERVIEW.format(
        total=f"{documents}, {summarize(total)}",
        groups="".join(
            CHOICE.format(
                key=group.key,
                name="group",
                swatch='<span class="swatch"></span>',
                text=group.name,
                count=total[group.key],
            )
            for group in groups
        ),
        kinds="".join(
            CHOICE.format(key=key, name="kind", swatch="", text=text, count=total[key])
            for key, text in kinds
            if total[key]
        ),
        low=f"{LOW_SCORE:.2f}",
    )


def write_docs(
    docs: Iterable[LinkedDoc],
    file: IO[bytes],
    *,
    include_text: bool = True,
    links: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write a page of linked documents; see `registry.Writer`.

    Args:
        links: More entries as in `ADDRESSES`, which are tried first.

    Raises:
        SapbertError: If the text is to be left out, or a link is invalid.
    """
    if not include_text:
        raise SapbertError(Errors.E503.format(format="html"))
    links = merge_addresses(links)
    script = read_part("page.js")

    def write(target: IO[bytes], markup: str) -> None:
        target.write(markup.encode("utf8", "replace"))  # an id may have a surrogate

    write(file, start_page(script))
    total: Counter[str] = Counter()
    with SpooledTemporaryFile(INDEX_BYTES) as index:
        for doc in docs:
            total["documents"] += 1
            counts = count_doc(doc)
            total.update(counts)
            id = f"d{total['documents']}"
            for part in doc_markup(doc, links, counts, id=id):
                write(file, part)
            write(index, index_entry(doc, counts, id=id))
        write(file, overview_markup(total))
        index.seek(0)
        copyfileobj(index, file)
    write(file, PAGE_END.format(script=script))
