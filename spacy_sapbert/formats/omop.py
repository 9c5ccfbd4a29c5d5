"""OMOP: the rows of the table `note_nlp` of the Common Data Model 5.4, as CSV.

SOURCE: https://ohdsi.github.io/CommonDataModel/cdm54.html#note_nlp
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from io import TextIOWrapper
from typing import IO, Any

from ..errors import SapbertError
from ..io.version import __version__
from .entities import LinkedDoc, blank_breaks, needs_text

COLUMNS = (
    "note_nlp_id",
    "note_id",
    "section_concept_id",
    "snippet",
    "offset",
    "lexical_variant",
    "note_nlp_concept_id",
    "note_nlp_source_concept_id",
    "nlp_system",
    "nlp_date",
    "nlp_datetime",
    "term_exists",
    "term_temporal",
    "term_modifiers",
)
MODIFIERS = ("cui", "score", "probability")  # that have no column
CONCEPT = "note_nlp_concept_id"
TERM = "lexical_variant"  # the column of mentions
SOURCE = "OMOP"  # of the codes that are ids of OMOP concepts
NO_CONCEPT = "0"  # as everywhere in OMOP
LONGEST = 250  # characters of a snippet, a term and the name of the system
AROUND = 80  # characters of a snippet before the term
MAX_NOTE = 2**63 - 1  # large sites have ids of notes with 64 bits
MAX_ROW = 2**31 - 1  # `note_nlp_id` is an integer of 32 bits


def write_docs(
    docs: Iterable[LinkedDoc],
    file: IO[bytes],
    *,
    include_text: bool = True,
    system: str = f"spacy-sapbert {__version__}",
    first_id: int = 1,
) -> None:
    """Write a row for each mention; `system` is the value of `nlp_system`.

    The `note_nlp_id`s are `first_id` and those that follow it, of at most 32 bits.
    """
    if not include_text:
        raise needs_text(format="omop")
    now = datetime.now(UTC)
    text = TextIOWrapper(file, "utf8", newline="", write_through=True)
    try:
        writer = csv.writer(text)
        writer.writerow(COLUMNS)
        for doc in docs:
            if doc.error:  # a row is a mention
                continue
            note = parse_note_id(doc.id)
            for entity in doc.entities:
                fields: Mapping[str, Any] = entity
                if first_id > MAX_ROW:
                    raise SapbertError(
                        "E007",
                        f"Expected at most {MAX_ROW:,} as a `note_nlp_id`, which is "
                        "an integer of 32 bits in OMOP, but got more mentions. Pass "
                        "a lower `--first-id`, or empty the table.",
                    )
                writer.writerow(
                    [
                        first_id,
                        note,
                        "",
                        cut_snippet(doc.text, entity["start"]),
                        entity["start"],
                        clean_text(entity.get("text", "")),
                        find_concept_id(entity["codes"]),
                        NO_CONCEPT,
                        system[:LONGEST],
                        now.date().isoformat(),
                        now.strftime("%Y-%m-%d %H:%M:%S"),
                        "",
                        "",
                        format_modifiers({n: fields[n] for n in MODIFIERS}),
                    ]
                )
                first_id += 1
    finally:
        text.detach()  # else the file would be closed with it


def parse_note_id(id: Any) -> int:
    """Return the id of a note, a whole number; the error does not quote it."""
    text = str(id)
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 19:
        raise wrong_note_id(limit=MAX_NOTE)
    if not -MAX_NOTE <= int(text) <= MAX_NOTE:
        raise wrong_note_id(limit=MAX_NOTE)
    return int(text)


def cut_snippet(text: str, start: int) -> str:
    """Return the text around a term, without line ends."""
    first = max(0, start - AROUND)
    return clean_text(text[first : first + LONGEST])


def clean_text(text: str) -> str:
    """Return a text as a column can have it: short, without line ends and NUL."""
    return blank_breaks(text[:LONGEST]).replace("\0", " ")


def find_concept_id(codes: Mapping[str, Sequence[str]]) -> str:
    known = codes.get(SOURCE) or [NO_CONCEPT]
    return known[0] if known[0].isdecimal() else NO_CONCEPT


def format_modifiers(values: Mapping[str, Any]) -> str:
    """Return values as they are written in `term_modifiers`, without empty ones."""
    return ",".join(f"{k}={v}" for k, v in values.items() if v not in (None, ""))


def read_modifiers(row: Mapping[str, str]) -> dict[str, Any]:
    """Return what `format_modifiers` wrote."""
    pairs = (pair.partition("=") for pair in row[COLUMNS[-1]].split(","))
    return {name: value for name, equal, value in pairs if equal}


def change_row(
    row: dict[str, str],
    codes: Mapping[str, Sequence[str]],
    modifiers: Mapping[str, Any],
) -> None:
    """Set the concept of a row, in place."""
    row[CONCEPT] = find_concept_id(codes)
    row[COLUMNS[-1]] = format_modifiers(modifiers)


def wrong_note_id(*, limit: int) -> SapbertError:
    return SapbertError(
        "E378",
        "Expected the id of each document to be the `note_id` of OMOP, a whole "
        f"number of at most {limit:,}, but got another. Pass the column of the ids as "
        "`--id`.",
    )
