"""Atoms of MRCONSO: which are kept, and which of a concept's is preferred."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from operator import lt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import Errors, SapbertError
from ..system.reading import LINE_FEED
from .clean import clean_name, has_letter_or_digit
from .report import Report
from .rrf_files import name_parts
from .rrf_filters import Filter, Ranking, drop_rows, find_best
from .rrf_reading import drop_undecodable, read_rows
from .rrf_rows import BAR, Rows, key_to_text

CUI_PATTERN = r"C\d{7}"
CUIS = re.compile(rf"({CUI_PATTERN}\|)*")
MOST_SHARED = 10_000  # texts held at once: many times what UMLS has
NO_CODE = "NOCODE"  # what UMLS writes where a source has no codes
SPACE = ord(" ")
LETTERS_AND_DIGITS = np.array([chr(code).isalnum() for code in range(128)])
# how white space beyond ASCII begins in UTF-8: U+0085, U+00A0, U+1680, U+2000 to U+206F
# and U+3000 with its neighbours
SPACES = np.array([0xC285, 0xC2A0, 0xE19A, 0xE280, 0xE281, 0xE380])


class Atoms(NamedTuple):
    """What is taken out of rows of MRCONSO.

    rows (Rows): The rows.
    languages (list[str]): Their languages.
    sources (list[str]): Their sources.
    codes (list[str]): Their codes there; empty where there is none.
    names (list[str]): Their names, cleaned.
    cuis (list[str]): The id of each concept.
    bounds (list[int]): The first row of each concept, and the one after the last row.
    best (list[int]): The row of each concept whose name is preferred.
    """

    rows: Rows
    languages: list[str]
    sources: list[str]
    codes: list[str]
    names: list[str]
    cuis: list[str]
    bounds: list[int]
    best: list[int]


class Shared(dict[Any, str]):
    """Texts that come again and again, each made once to save time and memory.

    make (Callable[[Any], str]): Makes the text of a key.
    """

    def __init__(self, make: Callable[[Any], str]) -> None:
        super().__init__()
        self.make = make

    def __missing__(self, key: Any) -> str:
        if len(self) >= MOST_SHARED:
            self.clear()
        text = self[key] = self.make(key)
        return text


def read_atoms(
    parts: list[Path],
    *,
    filters: Sequence[Filter],
    ranking: Ranking,
    pattern: re.Pattern[str],
    on_error: str,
    report: Report,
) -> Iterator[Atoms]:
    """Read MRCONSO, and take out the atoms that the filters keep.

    parts (list[Path]): The file, or its parts.
    filters (Sequence[Filter]): The rules.
    ranking (Ranking): Columns, and the values in them that are preferred.
    pattern (re.Pattern[str]): What an id looks like.
    on_error (str): "fail", or "skip".
    report (Report): Counts the rows.
    YIELDS (Atoms): The atoms of some concepts, sorted by their ids.
    RAISES (SapbertError): If an id is malformed, or not greater than the one before,
        or a row that is kept is not UTF-8.
    """
    last, path = "", name_parts(parts, "MRCONSO")
    languages, sources = Shared(key_to_text), Shared(first_line)
    # what the filters drop is never decoded
    blocks = read_rows(
        parts, "MRCONSO", on_error=on_error, report=report, whole="CUI", decodable=False
    )
    for block in blocks:
        rows = drop_rows(block, filters, report)
        try:
            atoms = take_atoms(rows, ranking, languages, sources)
        except UnicodeDecodeError:
            rows = drop_undecodable(rows, path, on_error, report)
            atoms = take_atoms(rows, ranking, languages, sources)
        report.dropped["names without a letter or digit"] += len(rows) - len(atoms.rows)
        if not are_ids(atoms.cuis, pattern):
            rows = drop_malformed(atoms.rows, pattern, path, on_error, report)
            atoms = take_atoms(rows, ranking, languages, sources)
        cuis = atoms.cuis
        if not all(map(lt, [last, *cuis], cuis)):
            raise SapbertError(not_sorted(atoms, last, path))
        if not cuis:
            continue
        last = cuis[-1]
        yield atoms
        report.rows_kept += len(atoms.rows)


def take_atoms(
    rows: Rows, ranking: Ranking, languages: Shared, sources: Shared
) -> Atoms:
    """Take out what is needed of rows, and leave out names that say nothing.

    rows (Rows): Rows of MRCONSO.
    ranking (Ranking): See `read_atoms`.
    languages (Shared): Known languages, by `Rows.keys`.
    sources (Shared): Known sources, by lines of source and term type.
    RETURNS (Atoms): The atoms that are left.
    RAISES (UnicodeDecodeError): If a row is not UTF-8.
    """
    rows, origins, codes, names = take_names(rows)
    if not names:
        return Atoms(rows, [], [], [], [], [], [0], [])
    keys = rows.keys("LAT")
    if keys is None:
        spoken = rows.texts("LAT")
    elif (keys == keys[0]).all():
        spoken = [languages[int(keys[0])]] * len(keys)
    else:
        spoken = list(map(languages.__getitem__, keys.tolist()))
    starts = rows.changes("CUI")
    return Atoms(
        rows,
        languages=spoken,
        sources=list(map(sources.__getitem__, origins)),
        codes=codes,
        names=names,
        cuis=rows[starts].texts("CUI"),
        bounds=[*starts.tolist(), len(rows)],
        best=find_best(rows, starts, ranking).tolist(),
    )


def first_line(text: str) -> str:
    """Return the first line of a text."""
    return text.partition("\n")[0]


def take_names(rows: Rows) -> tuple[Rows, list[str], list[str], list[str]]:
    """Take out source, term type, code and cleaned name of atoms.

    rows (Rows): Rows of MRCONSO.
    RETURNS (tuple[Rows, list[str], list[str], list[str]]): The rows whose names say
        something; two lines of source and term type; codes; names.
    RAISES (UnicodeDecodeError): If a row is not UTF-8.
    """
    if not len(rows):
        return rows, [], [], []
    letters = rows.letters("SAB", "STR")
    begins, ends = rows.bounds("SAB")[0], rows.bounds("STR")[1]
    behind = np.cumsum(ends + 1 - begins)
    odd = find_odd_spaces(letters)
    # no field has a line feed; the term type makes no text of its own then
    letters[behind - 1 - ends + rows.bounds("SAB")[1]] = LINE_FEED
    fields = str(letters.data, "utf8").split("|")
    origins, codes, names = fields[:-1:3], fields[1::3], fields[2::3]
    if NO_CODE in codes:
        codes = [code if code != NO_CODE else "" for code in codes]
    for row in set(np.searchsorted(behind, odd, "right").tolist()):
        names[row] = clean_name(names[row])
    firsts = letters[behind - 1 - ends + rows.bounds("STR")[0]]
    signs = np.flatnonzero((firsts > 127) | ~LETTERS_AND_DIGITS[firsts & 127])
    bad = [row for row in signs.tolist() if not has_letter_or_digit(names[row])]
    if bad:
        good = np.ones(len(rows), dtype=bool)
        good[bad] = False
        rows, kept = rows[good], good.tolist()
        origins, codes, names = (
            list(compress(column, kept)) for column in (origins, codes, names)
        )
    return rows, origins, codes, names


def find_odd_spaces(letters: np.ndarray) -> np.ndarray:
    """Find where names may be that are not clean: almost every name is.

    letters (np.ndarray): Fields, each with a bar behind it, UTF-8. Shape: (letters,).
    RETURNS (np.ndarray): Places of control characters, of white space beyond ASCII, and
        of a second space or bar after another, int64. Shape: (found,).
    """
    edges = (letters == SPACE) | (letters == BAR)
    odd = letters < SPACE
    odd[1:] |= edges[1:] & edges[:-1]
    found = np.flatnonzero(odd)
    if letters.max() <= 127:
        return found
    # the last letter is a bar, so each of these has one behind it
    leads = np.flatnonzero((letters == 0xC2) | (letters - 0xE1 <= 2))
    pairs = letters[leads].astype(np.int64) << 8 | letters[leads + 1]
    return np.concatenate((found, leads[np.isin(pairs, SPACES)]))


def are_ids(cuis: list[str], pattern: re.Pattern[str]) -> bool:
    """Return whether ids look like ids.

    cuis (list[str]): The ids, without bars in them.
    pattern (re.Pattern[str]): What each has to match as a whole.
    RETURNS (bool): Whether all of them do.
    """
    if pattern.pattern == CUI_PATTERN:
        # it matches no bar, so that all of them can be matched at once
        return CUIS.fullmatch("|".join([*cuis, ""])) is not None
    return all(map(pattern.fullmatch, cuis))


def drop_malformed(
    rows: Rows, pattern: re.Pattern[str], path: Path, on_error: str, report: Report
) -> Rows:
    """Leave out rows whose ids do not look like ids, or fail at the first.

    rows (Rows): Rows of MRCONSO.
    pattern (re.Pattern[str]): What an id looks like.
    path (Path): The file, for the error.
    on_error (str): "fail", or "skip" to count them.
    report (Report): Counts them.
    RETURNS (Rows): The other rows.
    RAISES (SapbertError): With file and line, if they are not to be skipped.
    """
    cuis = rows.texts("CUI")
    good = np.array([bool(pattern.fullmatch(cui)) for cui in cuis])
    first = int(np.argmin(good))
    if on_error == "fail":
        raise SapbertError(
            Errors.E103.format(
                path=path,
                line=rows.numbers[first],
                pattern=pattern.pattern,
                cui=cuis[first][:40],
            )
        )
    report.dropped["rows with a malformed id"] += int(np.count_nonzero(~good))
    return rows[good]


def not_sorted(atoms: Atoms, last: str, path: Path) -> str:
    """Say where an id is not greater than the one before.

    atoms (Atoms): Atoms that are not sorted.
    last (str): The id before them.
    path (Path): The file.
    RETURNS (str): The text of the error.
    """
    cuis = [last, *atoms.cuis]
    place = next(n for n in range(len(cuis)) if cuis[n] >= cuis[n + 1])
    return Errors.E104.format(
        path=path,
        line=atoms.rows.numbers[atoms.bounds[place]],
        cui=cuis[place + 1][:40],
        last=cuis[place][:40],
    )
