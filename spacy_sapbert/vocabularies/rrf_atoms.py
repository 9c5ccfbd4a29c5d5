"""Atoms of MRCONSO: which are kept, which is preferred, and the concepts they make."""

import re
from itertools import compress, islice
from operator import lt
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, NamedTuple, Sequence, Tuple

import numpy as np

from ..concepts import Concept
from ..errors import Errors, SapbertError
from .names import clean_name, has_letter_or_digit
from .report import Report
from .rrf_files import name_parts
from .rrf_filters import Filter, Ranking, drop_rows, find_best
from .rrf_rows import BAR, Rows, drop_undecodable, read_rows

NO_CODE = "NOCODE"  # what UMLS writes where a source has no codes
SPACE = ord(" ")
LETTERS_AND_DIGITS = np.array([chr(code).isalnum() for code in range(128)])
# how white space beyond ASCII begins in UTF-8: U+0085, U+00A0, U+1680, U+2000 to U+206F
# and U+3000 with its neighbours
SPACES = np.array([0xC285, 0xC2A0, 0xE19A, 0xE280, 0xE281, 0xE380])


class Atoms(NamedTuple):
    """What is taken out of rows of MRCONSO; all lists but the last two are parallel.

    rows (Rows): The rows.
    sources (List[str]): Their sources.
    codes (List[str]): Their codes there; empty where there is none.
    names (List[str]): Their names, cleaned.
    starts (np.ndarray): The first row of each concept, int64. Shape: (concepts,).
    cuis (List[str]): The id of each concept.
    """

    rows: Rows
    sources: List[str]
    codes: List[str]
    names: List[str]
    starts: np.ndarray
    cuis: List[str]


def read_atoms(
    parts: List[Path],
    *,
    filters: Sequence[Filter],
    ranking: Ranking,
    pattern: re.Pattern[str],
    on_error: str,
    report: Report,
) -> Iterator[Tuple[Concept, Rows, int, int]]:
    """Read MRCONSO, and make concepts of the atoms that the filters keep.

    parts (List[Path]): The file, or its parts.
    filters (Sequence[Filter]): The rules.
    ranking (Ranking): Columns, and the values in them that are preferred.
    pattern (re.Pattern[str]): What an id looks like.
    on_error (str): "fail", or "skip".
    report (Report): Counts the rows.
    YIELDS (Tuple[Concept, Rows, int, int]): A concept with names and codes, and where
        its atoms are: some rows, the first and the one after the last.
    RAISES (SapbertError): If an id is malformed, or not greater than the one before,
        or a row that is kept is not UTF-8.
    """
    last, path = "", name_parts(parts, "MRCONSO")
    # what the filters drop is never decoded
    blocks = read_rows(
        parts, "MRCONSO", on_error=on_error, report=report, whole="CUI", decodable=False
    )
    for block in blocks:
        rows = drop_rows(block, filters, report)
        try:
            atoms = take_atoms(rows)
        except UnicodeDecodeError:
            rows = drop_undecodable(rows, path, on_error, report)
            atoms = take_atoms(rows)
        report.dropped["names without a letter or digit"] += len(rows) - len(atoms.rows)
        if not all(map(pattern.fullmatch, atoms.cuis)):
            rows = drop_malformed(atoms.rows, pattern, path, on_error, report)
            atoms = take_atoms(rows)
        rows, sources, codes, names, starts, cuis = atoms
        if not all(map(lt, [last, *cuis], cuis)):
            raise SapbertError(not_sorted(rows, starts, [last, *cuis], path))
        if not cuis:
            continue
        last = cuis[-1]
        best = find_best(rows, starts, ranking).tolist()
        bounds = [*starts.tolist(), len(rows)]
        pairs = zip(sources, codes)  # noqa: B905
        distinct = 0
        for cui, start, end, first in zip(cuis, bounds, bounds[1:], best):  # noqa: B905
            if end - start == 1:
                source, code = next(pairs)
                by_source = {source: [code]} if code else {}
                aliases = [names[start]]
                distinct += 1
            else:
                by_source = group_codes(islice(pairs, end - start))
                aliases = names[start:end]
                if first != start:
                    aliases.insert(0, names[first])
                if len(set(aliases)) < len(aliases):
                    aliases = list(dict.fromkeys(aliases))
                distinct += len(aliases)
            concept = Concept(cui, aliases, [], by_source, [], None, [])
            # one by one: a list of them would cost Python's garbage collector dear
            yield concept, rows, start, end
        report.rows_kept += len(rows)
        report.dropped["repeated names"] += len(rows) - distinct


def take_atoms(rows: Rows) -> Atoms:
    """Take out what is needed of rows, and leave out names that say nothing.

    rows (Rows): Rows of MRCONSO.
    RETURNS (Atoms): The atoms that are left.
    RAISES (UnicodeDecodeError): If a row is not UTF-8.
    """
    rows, sources, codes, names = take_names(rows)
    starts = rows.changes("CUI")
    return Atoms(rows, sources, codes, names, starts, rows[starts].texts("CUI"))


def take_names(rows: Rows) -> Tuple[Rows, List[str], List[str], List[str]]:
    """Take out source, code and cleaned name of atoms.

    Almost every name is clean, so numpy looks for those that may not be: two spaces or
    bars together, control characters, white space beyond ASCII, a sign at the start.

    rows (Rows): Rows of MRCONSO.
    RETURNS (Tuple[Rows, List[str], List[str], List[str]]): The rows whose names say
        something; their sources, codes and names.
    """
    if not len(rows):
        return rows, [], [], []
    joined = b"|".join([*rows.spans("SAB", "STR"), b""])
    fields = joined.decode("utf8").split("|")
    # SAB, TTY, CODE, STR
    sources, codes, names = fields[:-1:4], fields[2::4], fields[3::4]
    if NO_CODE in codes:
        codes = [code if code != NO_CODE else "" for code in codes]
    letters = np.frombuffer(joined, dtype=np.uint8)
    bars = np.flatnonzero(letters == BAR).reshape(len(rows), 4)
    edges = (letters == SPACE) | (letters == BAR)
    odd = letters < SPACE
    odd[1:] |= edges[1:] & edges[:-1]
    places = [np.flatnonzero(odd)]
    if not joined.isascii():
        # the last letter is a bar, so each of these has one behind it
        leads = np.flatnonzero((letters == 0xC2) | (letters - 0xE1 <= 2))
        pairs = letters[leads].astype(np.int64) << 8 | letters[leads + 1]
        places.append(leads[np.isin(pairs, SPACES)])
    for row in set(np.searchsorted(bars[:, 3], np.concatenate(places)).tolist()):
        names[row] = clean_name(names[row])
    firsts = letters[bars[:, 2] + 1]
    signs = (firsts > 127) | ~LETTERS_AND_DIGITS[firsts & 127]
    good = np.ones(len(rows), dtype=bool)
    for row in np.flatnonzero(signs).tolist():
        good[row] = has_letter_or_digit(names[row])
    if not good.all():
        rows, kept = rows[good], good.tolist()
        sources, codes, names = (
            list(compress(column, kept)) for column in (sources, codes, names)
        )
    return rows, sources, codes, names


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


def not_sorted(rows: Rows, starts: np.ndarray, cuis: List[str], path: Path) -> str:
    """Say where an id is not greater than the one before.

    rows (Rows): Rows of MRCONSO.
    starts (np.ndarray): The first row of each concept.
    cuis (List[str]): The last id before these rows, and their ids.
    path (Path): The file.
    RETURNS (str): The text of the error.
    """
    place = next(n for n in range(len(starts)) if cuis[n] >= cuis[n + 1])
    return Errors.E104.format(
        path=path,
        line=rows.numbers[starts[place]],
        cui=cuis[place + 1][:40],
        last=cuis[place][:40],
    )


def group_codes(pairs: Iterable[Tuple[str, str]]) -> Dict[str, List[str]]:
    """Put codes together by their sources, each once.

    pairs (Iterable[Tuple[str, str]]): Sources and codes; a code may be empty.
    RETURNS (Dict[str, List[str]]): Codes by source.
    """
    grouped: Dict[str, List[str]] = {}
    for source, code in pairs:
        if source in grouped:
            known = grouped[source]
            # most concepts have a handful: looking through it is faster than a set
            if code and code not in known:
                known.append(code)
        elif code:
            grouped[source] = [code]
    return grouped
