"""Linked files of an old release → the same files with the ids of a new one.

Files are the documents of `link` as JSON lines, and tables: of `link`, `map` and
`verify`, SSSOM, and those whose columns are named.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any

from ..errors import SapbertError, unexpected_line
from ..formats.gold import NIL
from ..formats.mention_tables import CHOSEN, TERM
from ..io.excel import Cell, text_of
from ..io.progress import show_progress
from ..io.reading import check_file, read_lines
from ..io.writing import write_atomically
from ..kb.edits.diff import compare_kbs
from ..kb.knowledge_base import KnowledgeBase
from ..kb.verification.update import KEPT, Link, Update, Updater
from ..kb.verification.verify import expand
from ..vocabularies.readers.sssom import COMMENT, NOTHING
from .sssom import PERSON, make_curie
from .tables import (
    SSSOM_ENDINGS,
    TSV,
    find_columns,
    find_kind,
    read_rows,
    write_table,
    write_text,
)
from .verify import PairColumns, read_curie

STATUS = "update"  # the column, or the member of an entity, with the status
MADE_BY = "mapping_justification"
REPORT = ("place", "text", "old", "old_name", "status", "new", "new_name", "other",
          "other_name", "why")  # fmt: skip
AT_ONCE = 1_000  # rows, or documents
# Columns of texts, ids and names of tables that this package writes
USUAL = (
    PairColumns(TERM, "match_id", "match_name"),
    PairColumns("subject_label", "object_id", "object_label"),
    PairColumns("text", "cui", "name"),
)


@dataclass
class UpdateResult:
    """What was done: links by status, and rows of the report."""

    counts: Counter[str] = field(default_factory=Counter)
    rows: list[list[Cell]] = field(default_factory=list)
    linked: int = 0  # distinct texts that were linked again

    def add(self, place: object, link: Link, old: str | None, update: Update) -> None:
        """Count a link, and report it if there is something to say."""
        self.counts[update.status] += 1
        if update.why:
            new = (update.cui, update.name, update.other, update.other_name)
            row: list[Cell] = [str(place), link.text, link.cui, old, update.status]
            self.rows.append([*row, *new, update.why])


def update_file(
    old: KnowledgeBase,
    new: KnowledgeBase,
    path: Path,
    output: Path,
    columns: PairColumns | None = None,
    *,
    encoding: str = "utf-8",
    progress: bool = False,
) -> UpdateResult:
    """Write a linked file with the ids of a new release, and return what changed.

    Args:
        columns: Of texts, ids and their names in a table that people wrote: its ids
            change only to those for which they were retired. None = a file of `link`,
            `map` or SSSOM.
    """
    check_file(path)
    updater = Updater(old, new, compare_kbs(old, new))
    result = UpdateResult()
    if columns is None and has_documents(path):
        lines = update_documents(updater, path, result)
        bar = show_progress(lines, unit="documents", quiet=not progress)
        with write_atomically(output) as file:
            for line in bar:
                file.write(line.encode("utf8", "replace"))
    else:
        header, rows = update_rows(updater, path, columns, encoding, result)
        bar = show_progress(rows, unit="rows", quiet=not progress)
        if output.name.lower().endswith(SSSOM_ENDINGS):
            with write_atomically(output) as file:
                write_sssom(file, path, [header], bar)
        else:
            write_table(output, header, bar)
    result.linked = updater.linked
    return result


def has_documents(path: Path) -> bool:
    """Return whether a file has documents with entities, as `link` writes JSONL."""
    if ".jsonl" not in path.name.lower():
        find_kind(path)
        return False
    first = next((line for _, line in read_lines(path) if line.strip()), "")
    return '"entities"' in first


def update_documents(
    updater: Updater, path: Path, result: UpdateResult
) -> Iterator[str]:
    """Yield the lines of documents with updated entities."""
    lines = (pair for pair in read_lines(path) if pair[1].strip())
    while batch := [*islice(lines, AT_ONCE)]:
        documents = [read_document(path, *pair) for pair in batch]
        entities = [
            (document, entity)
            for document in documents
            for entity in document["entities"]
        ]
        links = [read_entity(*pair) for pair in entities]
        for (document, entity), link, update in zip(
            entities, links, updater.update(links), strict=True
        ):
            place = f"{document.get('id')}:{entity.get('start')}"
            result.add(place, link, entity.get("name"), update)
            change_entity(entity, update)
        yield from (json.dumps(one, ensure_ascii=False) + "\n" for one in documents)


def read_document(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        document = json.loads(line)
        entities = document["entities"]
        if all(isinstance(entity, dict) for entity in entities):
            return dict(document)
    except (ValueError, TypeError, KeyError):
        pass
    expected = "a document with `entities`, as `link` writes it"
    raise unexpected_line(path=path, line=number, expected=expected)


def read_entity(document: dict[str, Any], entity: dict[str, Any]) -> Link:
    """Return the text that was linked, and its concept."""
    text = str(document.get("text") or "")
    start, end = entity.get("start"), entity.get("end")
    mention = entity.get("text")
    if mention is None and isinstance(start, int) and isinstance(end, int):
        mention = text[start:end]
    mention = str(mention or "")
    return Link(expand(mention, text) if text else mention, entity.get("cui") or None)


def change_entity(entity: dict[str, Any], update: Update) -> None:
    """Write the new link to an entity; one that is as it was stays whole."""
    if update.status == KEPT:
        return
    entity[STATUS] = update.status
    linked = update.linked
    entity |= {"cui": update.cui, "name": update.name}
    if linked is not None and linked.cui == update.cui:
        first = linked.candidates[0] if linked.candidates else {}
        names = ("score", "probability", "types", "codes", "tie")
        entity |= {name: first.get(name) for name in names if name in entity}
        entity |= {"candidates": linked.candidates, "note": linked.note}


def update_rows(
    updater: Updater,
    path: Path,
    columns: PairColumns | None,
    encoding: str,
    result: UpdateResult,
) -> tuple[list[str], Iterator[list[Cell]]]:
    """Return the columns, with one for the status, and the rows of a table."""
    rows = read_rows(path, encoding=encoding)
    header = [*map(text_of, next(rows, []))]
    usual = next((u for u in USUAL if {u.text, u.id} <= {*header}), None)
    chosen = columns or usual
    if chosen is None:
        raise SapbertError(
            "E410",
            f"{path}: Expected a file of `link` or `map`, or SSSOM, but got other "
            "columns. Pass `--text` and `--id`.",
        )
    text, id, label = find_columns(path, header, chosen[:3])
    assert text is not None
    assert id is not None
    place_of = {name: place for place, name in enumerate(header)}
    by_hand, status = place_of.get(CHOSEN), place_of.get(STATUS)
    made_by = place_of.get(MADE_BY)
    is_sssom = path.name.lower().endswith(SSSOM_ENDINGS)
    like = next(iter(updater.new), "")

    def find_id(row: Sequence[Cell]) -> int:
        """Return the place of the id that holds: what a person chose comes first."""
        return id if by_hand is None or not text_of(row[by_hand]).strip() else by_hand

    def read(row: Sequence[Cell]) -> Link:
        cui = text_of(row[find_id(row)]).strip()
        if is_sssom:
            cui = read_curie(cui, like)
        person = (
            columns is not None
            or find_id(row) != id
            or (made_by is not None and text_of(row[made_by]) == PERSON)
        )
        none = cui in ("", NIL, NOTHING)
        return Link(text_of(row[text]), None if none else cui, person)

    def change() -> Iterator[list[Cell]]:
        number = 1
        while batch := [*islice(rows, AT_ONCE)]:
            links = [read(row) for row in batch]
            for row, link, update in zip(
                batch, links, updater.update(links), strict=True
            ):
                number += 1
                name = None if label is None else text_of(row[label])
                result.add(number, link, name, update)
                cells = [*row] if status is not None else [*row, ""]
                if update.status != KEPT:
                    cells[-1 if status is None else status] = update.status
                    cui = update.cui or ""
                    if is_sssom:
                        cui = make_curie(cui) if cui else NOTHING
                    cells[find_id(row)] = cui
                    if label is not None and update.name is not None:
                        cells[label] = update.name
                yield cells

    return header if status is not None else [*header, STATUS], change()


def write_sssom(
    file: IO[bytes], path: Path, header: Iterable[Sequence[Cell]], rows: Iterable[Any]
) -> None:
    """Write mappings below the metadata of the file that they are from."""
    for _, line in read_lines(path):
        if not line.startswith(COMMENT):
            break
        file.write(f"{line}\n".encode())
    write_text(file, header, TSV)
    write_text(file, rows, TSV)
