"""Linked files of an old release → the same files with the ids of a new one.

documents   of any format that `link` writes, and `.spacy`     formats.linked_docs
OMOP        the rows of `note_nlp`
tables      of `map` and `verify`, SSSOM, and those whose columns are named
"""

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, TypeVar

from ..errors import SapbertError
from ..formats import omop
from ..formats.docbin import read_docbin
from ..formats.documents import raise_error
from ..formats.entities import LinkedDoc, LinkedEntity, describe_entities
from ..formats.format_table import file_ending, list_formats, load_writer, open_target
from ..formats.gold import NIL, is_no_id
from ..formats.inputs.rows import Columns, read_csv_rows
from ..formats.linked_docs import DOCBIN, detect_linked, open_linked
from ..formats.mention_tables import CHOSEN, TERM
from ..io.progress import show_progress
from ..io.tables.files import (
    find_kind,
    is_sssom,
    read_cell,
    read_header,
    read_rows,
    write_table,
)
from ..io.tables.headers import find_columns
from ..io.tables.spreadsheets import Cell
from ..io.writing import write_atomically
from ..kb.knowledge_base import KnowledgeBase
from ..linking.candidates import CANDIDATES
from ..vocabularies.sssom import (
    CLAIM,
    NOTHING,
    PERSON,
    check_sssom,
    make_curie,
    read_curie,
    says_same,
    write_again,
)
from .updates import KEPT, Link, Update, Updater
from .verdicts import expand
from .verified_tables import PairColumns

STATUS = "update"  # the column, or the member of an entity, with the status
MADE_BY = "mapping_justification"
REPORT = ("place", "text", "old", "old_name", "status", "new", "new_name", "other",
          "other_name", "why")  # fmt: skip
AT_ONCE = 1_000  # rows, or documents
CONCEPTS_KEPT = 10_000  # whose types and codes are kept, about 1 KB each
SCORED = ("score", "probability")
# Columns of texts, ids and names of tables that this package writes
USUAL = (
    PairColumns(TERM, "match_id", "match_name"),
    PairColumns("subject_label", "object_id", "object_label"),
    PairColumns("text", "cui", "name"),
)
# Data of a Doc, by the attributes of the linker
OF_DOCS = {
    "cui": "cui",
    "candidates": "candidates",
    "link_note": "note",
    "codes": "codes",
}

Item = TypeVar("Item")


@dataclass
class UpdateResult:
    """What was done: links by status, and how many texts were linked again."""

    counts: Counter[str] = field(default_factory=Counter)
    linked: int = 0


def update_file(
    old: KnowledgeBase,
    new: KnowledgeBase,
    path: Path,
    output: Path,
    columns: PairColumns | None = None,
    *,
    by_people: bool = False,
    report: Path | None = None,
    encoding: str = "utf-8",
    progress: bool = False,
) -> UpdateResult:
    """Write a linked file with the ids of a new release, and return what changed.

    Args:
        columns: Of texts, ids and their names in a table that people wrote. None = a
            file of `link`, `map` or SSSOM.
        by_people: People chose all ids: they change only to those for which they were
            retired.
        report: A table to write, of what changed or must be decided.
    """
    format = detect_linked(path) if columns is None else None
    check_output(path, output, format)
    updater = Updater(old, new)
    with TemporaryFile("w+", encoding="ascii") as rows:
        update = FileUpdate(updater, rows, by_people or columns is not None)
        if format == DOCBIN:
            update.update_docbin(path, output)
        elif format is not None:
            update.update_documents(path, output, format, encoding, progress)
        else:
            update.update_table(path, output, columns, encoding, progress)
        if report is not None:
            rows.seek(0)
            write_table(report, REPORT, map(json.loads, rows))
    update.result.linked = updater.linked
    return update.result


def check_output(path: Path, output: Path, format: str | None) -> None:
    """Raise an error if an output cannot have the format of the input."""
    if format is None:
        find_kind(output)
        check_sssom(path, output)
    elif not path.is_dir() and file_ending(path) != file_ending(output):
        raise SapbertError(
            "E110",
            f"Expected an output that ends with {file_ending(path)}, as the input, but "
            f"got {output}. Rename it.",
        )


class FileUpdate:
    """Updates the links of a file, counts them, and writes the rows of the report."""

    def __init__(self, updater: Updater, rows: IO[str], by_people: bool) -> None:
        self.updater, self.rows, self.by_people = updater, rows, by_people
        self.result = UpdateResult()
        self.describe = lru_cache(CONCEPTS_KEPT)(self.read_concept)

    def read_concept(self, cui: str) -> Mapping[str, Any]:
        """Return name, types and codes of a concept of the new release."""
        store = self.updater.new.store
        return {
            "name": store.names_of_cuis([cui]).get(cui),
            "types": store.types([cui]).get(cui, []),
            "codes": store.codes([cui]).get(cui, {}),
        }

    def update_all(
        self, items: Iterator[Item], read: Callable[[Item], Sequence[Link]]
    ) -> Iterator[tuple[Item, list[tuple[Link, Update]]]]:
        """Yield items with their links, and what becomes of each."""
        while batch := [*islice(items, AT_ONCE)]:
            links = [[*read(item)] for item in batch]
            updates = iter(self.updater.update([*chain(*links)]))
            for item, some in zip(batch, links, strict=True):
                yield item, [(link, next(updates)) for link in some]

    def add(self, place: str, link: Link, name: str | None, update: Update) -> None:
        """Count a link, and report it if there is something to say."""
        self.result.counts[update.status] += 1
        if update.why:
            row = [place, link.text, link.cui, name, update.status]
            row += [update.cui, update.name, update.other, update.other_name]
            self.rows.write(json.dumps([*row, update.why]) + "\n")

    def update_documents(
        self, path: Path, output: Path, format: str, encoding: str, progress: bool
    ) -> None:
        """Write documents in the format that they have."""
        docs, options = open_linked(path, format, encoding)
        takes = list_formats()[format].takes
        whole = bool(options)  # nothing is lost that the format has
        if whole and format != "jsonl" and STATUS not in options["keep"]:
            options["keep"].append(STATUS)
        if "kb_digest" in takes:
            options["kb_digest"] = self.updater.new.manifest.digest
        bar = show_progress(docs, unit="documents", quiet=not progress)
        with open_target(output, format) as target:
            changed = self.change_documents(iter(bar), whole=whole)
            load_writer(format)(changed, target, **options)

    def change_documents(
        self, docs: Iterator[LinkedDoc], *, whole: bool
    ) -> Iterator[LinkedDoc]:
        """Yield documents with updated entities; `whole` ones have all their fields."""

        def read(document: LinkedDoc) -> list[Link]:
            return [self.read_entity(document, each) for each in document.entities]

        for document, links in self.update_all(docs, read):
            for entity, (link, update) in zip(document.entities, links, strict=True):
                place = f"{document.id}:{entity.get('start')}"
                self.add(place, link, entity.get("name"), update)
                if whole:
                    self.change_entity(entity, update)
                elif update.cui is not None or entity["cui"] is not None:
                    entity["cui"] = update.cui
                    entity |= self.describe(update.cui or "")  # type: ignore[typeddict-item]
            yield document

    def read_entity(self, document: LinkedDoc, entity: LinkedEntity) -> Link:
        """Return the text that was linked, and its concept."""
        text, mention = document.text, entity.get("text")
        start, end = entity.get("start"), entity.get("end")
        if mention is None and isinstance(start, int) and isinstance(end, int):
            mention = text[start:end]
        mention = str(mention or "")
        cui = str(entity.get("cui") or "") or None
        return Link(expand(mention, text) if text else mention, cui, self.by_people)

    def change_entity(self, entity: Any, update: Update) -> None:
        """Write the new link to an entity; one that is as it was stays whole."""
        if update.status == KEPT:
            return
        before = entity.get("cui")
        entity[STATUS] = update.status
        if update.cui == before:
            return
        facts: dict[str, Any] = {"cui": update.cui, "name": None}
        facts |= {"types": [], "codes": {}}
        facts |= self.describe(update.cui) if update.cui else {}
        linked = update.linked
        if linked is not None and linked.cui == update.cui:
            first: Mapping[str, Any] = next(iter(linked.accepted), {})
            facts |= {name: first.get(name) for name in SCORED}
            facts["tie"] = next((c["tie"] for c in linked.candidates), None)
            most = max(CANDIDATES, len(entity.get("candidates") or ()))
            facts |= {"candidates": linked.candidates[:most], "note": linked.note}
        elif isinstance(candidates := entity.get("candidates"), list):
            for candidate in candidates:
                if candidate.get("cui") == before:
                    candidate |= facts
        entity |= {name: facts[name] for name in facts if name in entity}
        entity |= {"cui": update.cui, "name": update.name}

    def update_docbin(self, path: Path, output: Path) -> None:
        """Write Docs with updated entities, and what the linker said of them."""
        from spacy.tokens import DocBin, Span

        found = [*read_docbin(path, path.name, None)]
        bin = DocBin(store_user_data=True)
        linked = (
            LinkedDoc(each.id, each.text, describe_entities(each.doc))
            for each in found
            if each.doc is not None
        )
        for each, changed in zip(
            found, self.change_documents(linked, whole=True), strict=True
        ):
            doc, spans = each.doc, []
            assert doc is not None
            data: dict[Any, Any] = doc.user_data
            for span, entity in zip(doc.ents, changed.entities, strict=True):
                id = entity["cui"] or (NIL if span.kb_id_ else "")
                new = Span(doc, span.start, span.end, span.label, kb_id=id)
                new.id_ = span.id_
                spans.append(new)
                for name, known in OF_DOCS.items():
                    key = ("._.", name, span.start_char, span.end_char)
                    if key in data and STATUS in entity:
                        data[key] = entity[known]  # type: ignore[literal-required]
            doc.set_ents(spans, default="unmodified")
            bin.add(doc)
        with write_atomically(output) as file:
            file.write(bin.to_bytes())

    def update_table(
        self,
        path: Path,
        output: Path,
        columns: PairColumns | None,
        encoding: str,
        progress: bool,
    ) -> None:
        """Write a table with updated ids, and a column for the status."""
        rows = read_rows(path, encoding=encoding)
        header = read_header(rows)
        if columns is None and header == [*omop.COLUMNS]:
            self.update_omop(path, output, progress)
            return
        changed = self.change_rows(path, header, rows, columns)
        bar = show_progress(changed, unit="rows", quiet=not progress)
        columns_written = header if STATUS in header else [*header, STATUS]
        write_again(path, output, columns_written, bar, encoding)

    def update_omop(self, path: Path, output: Path, progress: bool) -> None:
        """Write rows of `note_nlp`, which has no column for the status."""
        columns = Columns(omop.TERM, omop.COLUMNS[0])
        found = read_csv_rows(path, columns, on_error=raise_error)
        rows = (({**row}, omop.read_modifiers(row)) for _, row in found)

        def read(item: tuple[Any, dict[str, str]]) -> list[Link]:
            row, modifiers = item
            return [Link(row[omop.TERM], modifiers.get("cui"), self.by_people)]

        changed = self.update_all(rows, read)
        bar = show_progress(changed, unit="rows", quiet=not progress)
        with write_atomically(output) as file:
            text = TextIOWrapper(file, "utf8", newline="", write_through=True)
            writer = csv.writer(text)
            writer.writerow(omop.COLUMNS)
            for (row, modifiers), ((link, update),) in bar:
                self.add(row[omop.COLUMNS[0]], link, None, update)
                if update.status != KEPT:
                    codes = self.describe(update.cui)["codes"] if update.cui else {}
                    linked = update.linked
                    if linked is not None and linked.cui == update.cui:
                        first: Any = next(iter(linked.accepted), {})
                        modifiers |= {name: first.get(name) for name in SCORED}
                    modifiers |= {"cui": update.cui or "", STATUS: update.status}
                    omop.change_row(row, codes, modifiers)
                writer.writerow(row.values())
            text.detach()

    def change_rows(
        self,
        path: Path,
        header: list[str],
        rows: Iterator[list[Cell]],
        columns: PairColumns | None,
    ) -> Iterator[list[Cell]]:
        """Yield the rows of a table with their status."""
        usual = next((u for u in USUAL if {u.text, u.id} <= {*header}), None)
        chosen = columns or usual
        if chosen is None:
            raise SapbertError(
                "E410",
                f"{path}: Expected a file of `link` or `map`, or SSSOM, but got other "
                "columns. Pass `--column` and `--id`.",
            )
        text, id, label = find_columns(path, header, chosen[:3])
        assert text is not None
        assert id is not None
        place_of = {name: place for place, name in enumerate(header)}
        by_hand, status = place_of.get(CHOSEN), place_of.get(STATUS)
        made_by = place_of.get(MADE_BY)
        has_curies = is_sssom(path)
        claim = [place_of[name] for name in CLAIM if has_curies and name in place_of]
        like = next(iter(self.updater.new), "")

        def find_id(row: Sequence[Cell]) -> int:
            """Return the place of the id that holds: what a person chose is first."""
            chosen = by_hand is not None and read_cell(row[by_hand]).strip()
            return by_hand if chosen and by_hand is not None else id

        def read(row: Sequence[Cell]) -> list[Link]:
            cui = read_cell(row[find_id(row)]).strip()
            if has_curies:
                cui = read_curie(cui, like)
            person = bool(
                self.by_people
                or find_id(row) != id
                or (made_by is not None and read_cell(row[made_by]) == PERSON)
                or (claim and not says_same(*(read_cell(row[p]) for p in claim)))
            )
            none = is_no_id(cui) or cui == NOTHING
            return [Link(read_cell(row[text]), None if none else cui, person)]

        for number, (row, ((link, update),)) in enumerate(
            self.update_all(rows, read), 2
        ):
            name = None if label is None else read_cell(row[label])
            self.add(str(number), link, name, update)
            cells = [*row] if status is not None else [*row, ""]
            if update.status != KEPT:
                cells[-1 if status is None else status] = update.status
            if update.cui != link.cui:
                cui = update.cui or ""
                if has_curies:
                    cui = make_curie(cui) if cui else NOTHING
                cells[find_id(row)] = cui
            if update.status != KEPT and label is not None and update.name is not None:
                cells[label] = update.name
            yield cells
