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
    languages (List[str]): Their languages; none if all have the same.
    sources (List[str]): Their sources.
    codes (List[str]): Their codes there; empty where there is none.
    names (List[str]): Their names, cleaned.
    starts (np.ndarray): The first row of each concept, int64. Shape: (concepts,).
    cuis (List[str]): The id of each concept.
    """

    rows: Rows
    languages: List[str]
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
    chosen = [each.values for each in filters if each.column == "LAT"]
    language = chosen[0][0] if chosen and len(chosen[0]) == 1 else ""
    # what the filters drop is never decoded
    blocks = read_rows(
        parts, "MRCONSO", on_error=on_error, report=report, whole="CUI", decodable=False
    )
    for block in blocks:
        rows = drop_rows(block, filters, report)
        try:
            atoms = take_atoms(rows, language)
        except UnicodeDecodeError:
            rows = drop_undecodable(rows, path, on_error, report)
            atoms = take_atoms(rows, language)
        report.dropped["names without a letter or digit"] += len(rows) - len(atoms.rows)
        if not all(map(pattern.fullmatch, atoms.cuis)):
            rows = drop_malformed(atoms.rows, pattern, path, on_error, report)
            atoms = take_atoms(rows, language)
        rows, languages, sources, codes, names, starts, cuis = atoms
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
            places: Sequence[int] = ()
            if end - start == 1:
                source, code = next(pairs)
                by_source = {source: [code]} if code else {}
                origins = {source: [0]}
                aliases = [names[start]]
            else:
                said = aliases = names[start:end]
                if first != start:
                    aliases = [names[first], *said]
                if len(set(aliases)) < len(aliases):
                    aliases = list(dict.fromkeys(aliases))
                    where = {name: place for place, name in enumerate(aliases)}
                    places = [where[name] for name in said]
                by_source, origins = group_atoms(islice(pairs, end - start), places)
            distinct += len(aliases)
            if language:
                spoken = {language: list(range(len(aliases)))}
            else:
                spoken = group_languages(languages[start:end], places, len(aliases))
            concept = Concept(
                cui, aliases, [], by_source, [], None, [], spoken, origins
            )
            # one by one: a list of them would cost Python's garbage collector dear
            yield concept, rows, start, end
        report.rows_kept += len(rows)
        report.dropped["repeated names"] += len(rows) - distinct


def take_atoms(rows: Rows, language: str) -> Atoms:
    """Take out what is needed of rows, and leave out names that say nothing.

    rows (Rows): Rows of MRCONSO.
    language (str): The language of all of them; empty: there may be several.
    RETURNS (Atoms): The atoms that are left.
    RAISES (UnicodeDecodeError): If a row is not UTF-8.
    """
    rows, sources, codes, names = take_names(rows)
    languages = [] if language else rows.texts("LAT")
    starts = rows.changes("CUI")
    cuis = rows[starts].texts("CUI")
    return Atoms(rows, languages, sources, codes, names, starts, cuis)


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


def group_atoms(
    pairs: Iterable[Tuple[str, str]], places: Sequence[int]
) -> Tuple[Dict[str, List[str]], Dict[str, List[int]]]:
    """Put codes and places of names together by their sources, each once.

    pairs (Iterable[Tuple[str, str]]): Sources and codes; a code may be empty.
    places (Sequence[int]): Where the names are among those of the concept; empty: in
        the same order.
    RETURNS (Tuple[Dict[str, List[str]], Dict[str, List[int]]]): Codes and places by
        source.
    """
    codes: Dict[str, List[str]] = {}
    origins: Dict[str, List[int]] = {}
    for place, (source, code) in enumerate(pairs):
        if source not in origins:
            origins[source] = [place]
            if code:
                codes[source] = [code]
        else:
            origins[source].append(place)
            if code:
                known = codes.get(source)
                if known is None:
                    codes[source] = [code]
                # most concepts have a handful: looking through it beats a set
                elif code not in known:
                    known.append(code)
    if places:
        order_places(origins, places)
    return codes, origins


def group_languages(
    languages: List[str], places: Sequence[int], count: int
) -> Dict[str, List[int]]:
    """Put places of names together by their languages, each once.

    languages (List[str]): Of the atoms of a concept.
    places (Sequence[int]): See `group_atoms`.
    count (int): How many names there are.
    RETURNS (Dict[str, List[int]]): Places by language.
    """
    if languages.count(languages[0]) == len(languages):
        return {languages[0]: list(range(count))}
    grouped: Dict[str, List[int]] = {}
    for place, language in enumerate(languages):
        if language in grouped:
            grouped[language].append(place)
        else:
            grouped[language] = [place]
    if places:
        order_places(grouped, places)
    return grouped


def order_places(grouped: Dict[str, List[int]], places: Sequence[int]) -> None:
    """Put the places of names in the concept for those of its atoms, sorted.

    grouped (Dict[str, List[int]]): By language or source, changed in place.
    places (Sequence[int]): Where the name of each atom is; one may come twice.
    """
    for found in grouped.values():
        if len(found) == 1:
            found[0] = places[found[0]]
        else:
            found[:] = sorted({places[atom] for atom in found})
