"""Files that `link` wrote → `LinkedDoc`s, to write them with other concepts.

Of formats for people nothing is read. Of PubTator, brat and BioC offsets, labels and
ids are read; JSON lines and tables come back whole.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ..errors import SapbertError, unexpected_line
from ..io.tables.files import open_rows
from ..io.tables.formulas import undefuse
from .corpus import detect_corpus, open_corpus
from .documents import raise_error
from .entities import COLUMNS, RUN_COLUMNS, LinkedDoc, LinkedEntity, describe_mention
from .format_table import file_ending, list_formats, load_function
from .gold import GoldDocument
from .inputs.rows import COLUMNS as DOCUMENT
from .inputs.rows import Columns, read_json_rows, to_plain

JSON_LINES, DOCBIN, ENTITIES = "jsonl", "spacy", "entities"
TO_CORRECT = ("doccano", "labelstudio")  # what is written for annotation tools
NEEDED = ("start", "end", "cui")  # columns of a table of mentions
NESTED = ("types", "codes", "candidates")  # columns that are JSON in CSV


def detect_linked(path: Path) -> str | None:
    """Return the format of linked documents; None if the file is a table of others."""
    format = detect_corpus(path)
    if format == JSON_LINES:
        rows = read_json_rows(path, DOCUMENT, on_error=raise_error)
        return format if ENTITIES in next(rows, (0, {}))[1] else None
    if format == "tsv":
        return None
    if format in list_formats("rows"):
        written = file_ending(path) in list_formats()[format].suffixes
        return format if written and {*NEEDED} <= {*read_columns(path)} else None
    if format in TO_CORRECT:
        raise SapbertError(
            "E110",
            f"{path}: Expected what `link` has written, but got documents of {format}, "
            "in which people correct ids. Link them again with the new release.",
        )
    return format if format == DOCBIN or list_formats()[format].write else None


def read_columns(path: Path) -> list[str]:
    """Return the names of the columns of a table."""
    return next(open_rows(path), (1, list[str]()))[1]


def open_linked(
    path: Path, format: str, encoding: str = "utf-8"
) -> tuple[Iterator[LinkedDoc], dict[str, Any]]:
    """Open the linked documents of a file.

    Returns:
        The documents, of a table one for each row; and the options with which the
        `Writer` of the format writes the same members or columns.
    """
    if format == JSON_LINES:
        rows = read_json_rows(path, DOCUMENT, on_error=raise_error, encoding=encoding)
        return make_documents(path, rows, lambda *row: read_line(path, *row))
    if format in list_formats("rows"):
        names = tuple(read_columns(path))
        rows = load_function(format, "rows")(
            path, Columns("cui", keep=names), on_error=raise_error, encoding=encoding
        )
        read = partial(read_mention, packed=format == "csv")
        return make_documents(path, rows, lambda _, row: read(row))
    return (read_gold(path, document) for document in open_corpus(path, format)), {}


def make_documents(
    path: Path,
    rows: Iterator[tuple[int, Mapping[str, Any]]],
    read: Callable[[int, Mapping[str, Any]], LinkedDoc],
) -> tuple[Iterator[LinkedDoc], dict[str, Any]]:
    """Return the document of each row, and what the first row has."""
    rows = ((number, to_plain(row)) for number, row in rows)  # without NaN
    first = [*islice(rows, 1)]
    names = {name: None for row in first for name in row[1]}
    keep = [name for row in first for name in read(*row).fields]

    def read_all() -> Iterator[LinkedDoc]:
        for number, row in chain(first, rows):
            document = read(number, row)
            if not document.fields.keys() <= {*keep}:
                expected = "the members of the first line"
                raise unexpected_line(path=path, line=number, expected=expected)
            yield document

    return read_all(), {"include_text": "text" in names, "keep": keep}


def read_line(path: Path, number: int, row: Mapping[str, Any]) -> LinkedDoc:
    """Return a line of JSON as a document, with all of its members."""
    entities, text = row.get(ENTITIES), row.get("text") or ""
    is_list = isinstance(entities, list) and all(isinstance(e, dict) for e in entities)
    if not is_list or not isinstance(text, str):
        expected = "a document with `entities`, as `link` writes it"
        raise unexpected_line(path=path, line=number, expected=expected)
    own = ("id", "text", ENTITIES, "error")
    fields = {name: value for name, value in row.items() if name not in own}
    error = str(row.get("error") or "")
    return LinkedDoc(row.get("id"), text, entities or [], fields, error=error)


def read_mention(row: Mapping[str, Any], *, packed: bool) -> LinkedDoc:
    """Return a row of a table as a document; `packed` columns are JSON."""
    plain = (
        row
        if not packed
        else {
            undefuse(name): undefuse(value) if isinstance(value, str) else value
            for name, value in row.items()
        }
    )
    fields = {n: v for n, v in plain.items() if n not in (*COLUMNS, *RUN_COLUMNS)}
    if error := plain.get("error"):
        return LinkedDoc(plain.get("id"), "", [], fields, error=error)
    entity: Any = {name: plain[name] for name in COLUMNS[1:] if name in plain}
    for name in NESTED:
        if packed and entity.get(name):
            entity[name] = unpack(entity[name])
    if not packed:  # a map of Arrow is a list of pairs
        entity["codes"] = dict(entity.get("codes") or ())
        for candidate in entity.get("candidates") or ():
            candidate["codes"] = dict(candidate.get("codes") or ())
    return LinkedDoc(plain.get("id"), "", [entity], fields)


def unpack(cell: str) -> Any:
    """Return the value of a cell of JSON; one that a person changed stays a text."""
    try:
        return to_plain(json.loads(cell))
    except (ValueError, RecursionError):
        return cell


def read_gold(path: Path, document: GoldDocument) -> LinkedDoc:
    """Return an annotated document, whose mentions have one id and no gap."""
    entities: list[LinkedEntity] = []
    for mention in document.mentions:
        ids = [id for part in mention.parts for id in part]
        written = document.text[mention.start : mention.end]
        if len(ids) > 1 or written.split() != mention.mention.split():
            raise SapbertError(
                "E117",
                f"{path}: Expected mentions with one id each and without gaps, as "
                f"`link` writes them, but document {document.id!r} has others. Leave "
                "them out.",
            )
        place = mention.start, mention.end, written, mention.type
        entities.append(describe_mention(*place, next(iter(ids), None)))
    return LinkedDoc(document.id, document.text, entities)
