"""How fast links move to a new release, and whether the answers are right.

The new release is a copy of a knowledge base in which some concepts have lost a name,
gained one, have another id, or are gone. Links are the names of the old release.
"""

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import NamedTuple

import typer

from benchmarks.harness import machine_line, print_table, run_cli
from benchmarks.linking_side import peak_megabytes
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.kb.edits.change import (
    add_concepts,
    publish_edits,
    read_edits,
    remove_concepts,
)
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.verification.updated_files import update_file
from spacy_sapbert.verification.updates import Updater
from spacy_sapbert.vocabularies.concepts import Concept

SEED = 3
A_DOCUMENT = 10  # links of a document
SAMPLE = 1_000  # names that are linked with both releases
AT_ONCE = 5_000  # rows that are read


class OldName(NamedTuple):
    """A name, and its concepts."""

    text: str
    cuis: frozenset[str]


def iter_names(kb: KnowledgeBase) -> Iterator[OldName]:
    """Yield a name of each row with its concepts, in an order as good as random."""
    rows = kb.store.rows_by_key(kb.rows)
    for start in range(0, len(rows), AT_ONCE):
        entries = kb.entries(rows[start : start + AT_ONCE])
        for row in rows[start : start + AT_ONCE]:
            if names := entries.get(row):
                cuis = frozenset(entry.cui for entry in names)
                yield OldName(names[0].alias, cuis)


def change_release(kb: KnowledgeBase, folder: Path, share: float) -> KnowledgeBase:
    """Write a copy in which a share of the concepts is changed, and open it."""
    random = Random(SEED)
    cuis = sorted(kb)
    chosen = random.sample(cuis, int(share * len(cuis)))
    quarter = len(chosen) // 4
    gone, moved, lose, gain = (
        chosen[start : start + quarter] for start in range(0, 4 * quarter, quarter)
    )
    shutil.copytree(kb.folder, folder)
    new = remove_concepts(load_kb(folder), [*gone, *moved])
    added = [
        Concept(f"NEW:{number}", kb[cui].aliases, retired=[cui])
        for number, cui in enumerate(moved)
    ]
    added += [
        Concept(cui, [f"{kb[cui].name} {random.choice(('complex', 'sequence'))}"])
        for cui in gain
    ]
    new = add_concepts(new, added)
    edits = read_edits(new)
    for cui in lose:  # one version for all
        if len(aliases := kb[cui].aliases) > 1:
            edits.removed[cui] = {aliases[-1]}
    return publish_edits(new, edits)


def write_links(path: Path, links: Sequence[tuple[str, str]], count: int) -> None:
    """Write documents with links, as `link` does."""
    stream = islice(cycle(links), count)
    with path.open("w", encoding="utf8") as file:
        number = 0
        while some := [*islice(stream, A_DOCUMENT)]:
            entities = [
                {"start": 0, "end": 0, "text": text, "cui": cui, "name": None}
                for text, cui in some
            ]
            document = {"id": number, "text": "", "entities": entities}
            file.write(json.dumps(document) + "\n")
            number += 1


def main(
    kb: Path = typer.Argument(..., help="Knowledge base, of which a copy is changed."),
    folder: Path = typer.Argument(..., help="For what is written."),
    links: int = typer.Option(1_000_000, min=1, help="Number of links."),
    share: float = typer.Option(0.02, help="Of the concepts, which are changed."),
) -> None:
    """kb/ -> time, what was linked again, and answers equal to linking all again"""
    old = load_kb(kb)
    folder.mkdir(parents=True, exist_ok=True)
    new = change_release(old, folder / "new", share)
    names = [(name.text, min(name.cuis)) for name in iter_names(old)]
    write_links(folder / "links.jsonl", names, links)
    before_megabytes = peak_megabytes()
    start = time.process_time()
    result = update_file(old, new, folder / "links.jsonl", folder / "moved.jsonl")
    seconds = time.process_time() - start
    current = new.store.current_cuis({cui for _, cui in names})
    of_retired = sum(cui in current for _, cui in islice(cycle(names), links))
    sample = Random(SEED).sample(names, min(SAMPLE, len(names)))
    texts = [text for text, _ in sample]
    before, after = (base.link(texts) for base in (old, new))
    pairs = [(t, linked.cui) for t, linked in zip(texts, before, strict=True)]
    updates = Updater(old, new).update(pairs)
    equal = sum(u.cui == a.cui for u, a in zip(updates, after, strict=True))
    msg.text(f"{machine_line()}; {old.rows:,} names, {share:.0%} of concepts changed.")
    rows = [
        ["seconds of one core", f"{seconds:.0f}"],
        ["peak memory, MB", f"{peak_megabytes():,.0f}"],
        ["of which before", f"{before_megabytes:,.0f}"],
        ["links", f"{links:,}"],
        *([status, f"{count:,}"] for status, count in sorted(result.counts.items())),
        ["links of ids with a replacement", f"{of_retired:,}"],
        ["texts linked again", f"{result.linked:,} of {len(names):,}"],
        ["as linking all again", f"{equal:,} of {len(texts):,}"],
    ]
    print_table(["", ""], rows)


if __name__ == "__main__":
    run_cli(main)
