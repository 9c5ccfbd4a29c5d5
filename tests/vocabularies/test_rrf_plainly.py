"""The reader of MRCONSO against a plain one that looks at a line after the other."""

import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io import reading as files
from spacy_sapbert.vocabularies.concepts import Concept, clean_name, has_letter_or_digit
from spacy_sapbert.vocabularies.ids import CUI
from spacy_sapbert.vocabularies.registry import read_vocabulary
from spacy_sapbert.vocabularies.report import Report
from spacy_sapbert.vocabularies.rrf.tables import COLUMNS

COLUMN = {name: place for place, name in enumerate(COLUMNS["MRCONSO"])}
FIELDS = "a wrong number of fields"
# on both sides of the lengths at which the reader takes another way
LONG_LANGUAGE, LONG_SOURCE, LONG_NAME = "LATINLATIN", "SNOMEDCT_US_2024", "long " * 30
ROW = st.fixed_dictionaries(
    {
        "CUI": st.sampled_from(
            ["C0000001", "C0000002", "C0000002b", "C0000002-" + "x" * 9, "C03", ""]
        ),
        "LAT": st.sampled_from(["ENG", "ENG", "FIN", "SWEDISH", LONG_LANGUAGE, ""]),
        "TS": st.sampled_from("PS"),
        "STT": st.sampled_from(["PF", "VO"]),
        "ISPREF": st.sampled_from("YN"),
        "SAB": st.sampled_from(["A", "MSH", LONG_SOURCE, "é", ""]),
        "TTY": st.sampled_from(["PT", "SY"]),
        "CODE": st.sampled_from(["", "NOCODE", "1", "2"]),
        "STR": st.one_of(
            st.sampled_from(["a", "b", " a ", "a  b", "--", "", "\u3000a\u2028b"]),
            st.sampled_from([LONG_NAME, LONG_NAME.strip(), "сердце", "\x07a", "\xe9"]),
            st.text("a \t\u00a0\u0085\u2003-é", max_size=4),
        ),
        "SUPPRESS": st.sampled_from(["N", "N", "N", "O"]),
    }
)
# a row may be broken: with a bar too many or too few, not UTF-8, blank
BREAKS = ["", "", "", "", "", "", "", "more", "less", "letters", "blank"]
# rows with all that a filter may name, so that it is there
LAST = [
    {"CUI": "C9999999", "LAT": language, "SAB": source, "STR": "x", "SUPPRESS": "N"}
    for language in ("ENG", "FIN", LONG_LANGUAGE)
    for source in ("A", LONG_SOURCE)
]


def make_line(values: dict[str, str], broken: str) -> bytes:
    """A line of MRCONSO, whole or broken."""
    line = "".join(f"{values.get(column, '')}|" for column in COLUMN).encode()
    changes = {"more": line + b"|", "less": line[:-1], "blank": b""}
    fields = line.split(b"|")
    fields[COLUMN["STR"]] += b"\xff"
    changes["letters"] = b"|".join(fields)
    return changes.get(broken, line) + b"\n"


def fail(concepts: Iterator[Concept]) -> str:
    """The text of the error that reading ends with."""
    with pytest.raises(SapbertError) as caught:
        list(concepts)
    return str(caught.value)


def read_plainly(
    lines: list[bytes],
    languages: list[str],
    sources: list[str],
    source_rank: list[str],
    suppressed: bool,
    cui_pattern: str,
) -> tuple[list[Concept], dict[str, int], dict[str, int]]:
    """Read lines one by one, and skip what is bad.

    Returns:
        The concepts; how many rows each rule dropped; the first line that each kind of
        error is in.
    """
    dropped, errors = Counter(), {}
    kept: dict[str, list[tuple[Any, ...]]] = {}
    last = ""
    for number, line in enumerate(lines, 1):
        fields = line[:-1].split(b"|")
        if line == b"\n":
            dropped["blank lines"] += 1
            continue
        if len(fields) != len(COLUMN) + 1 or fields[-1]:
            dropped[f"rows of MRCONSO with {FIELDS}"] += 1
            errors.setdefault("E117", number)
            continue
        row = dict(zip(COLUMN, fields[:-1], strict=True))
        if languages and row["LAT"].decode() not in languages:
            dropped["rows in other languages"] += 1
        elif sources and row["SAB"].decode() not in sources:
            dropped["rows of other sources"] += 1
        elif not suppressed and row["SUPPRESS"] != b"N":
            dropped["suppressed rows"] += 1
        elif b"\xff" in line:
            dropped["rows of MRCONSO that are not UTF-8"] += 1
            errors.setdefault("E009", number)
        elif not has_letter_or_digit(name := clean_name(row["STR"].decode())):
            dropped["names without a letter or digit"] += 1
        elif not re.fullmatch(cui_pattern, cui := row["CUI"].decode()):
            dropped["rows with a malformed id"] += 1
            errors.setdefault("E117", number)
        else:
            if cui < last or (cui != last and cui in kept):
                errors.setdefault("E104", number)
            last = cui
            lat, sab, code = (row[key].decode() for key in ("LAT", "SAB", "CODE"))
            order = languages or ["ENG"]
            rank = (
                order.index(lat)
                if lat in order and len(languages) != 1
                else len(order),
                row["TS"] != b"P",
                row["STT"] != b"PF",
                row["ISPREF"] != b"Y",
                [*source_rank, sab].index(sab),
            )
            kept.setdefault(cui, []).append((rank, name, lat, sab, code))
    concepts = []
    for cui, atoms in kept.items():
        preferred = min(atoms, key=lambda atom: atom[0])[1]
        aliases = list(dict.fromkeys([preferred, *(atom[1] for atom in atoms)]))
        dropped["repeated names"] += len(atoms) - len(aliases)
        concept = Concept(cui, aliases)
        for _, name, lat, sab, _ in atoms:
            place = aliases.index(name)
            for grouped, key in ((concept.languages, lat), (concept.sources, sab)):
                if key:
                    grouped[key] = sorted({*grouped.get(key, []), place})
        coded = [atom[3:] for atom in atoms if atom[4] not in ("", "NOCODE")]
        ranked = sorted(atoms, key=lambda atom: atom[0])  # stable
        concept.codes = {
            source: list(
                dict.fromkeys(a[4] for a in ranked if a[3:] in coded and a[3] == source)
            )
            for source in dict.fromkeys(sab for sab, _ in coded)
        }
        concepts.append(concept)
    return concepts, {rule: n for rule, n in dropped.items() if n}, errors


@given(
    st.lists(st.tuples(ROW, st.sampled_from(BREAKS)), max_size=12),
    st.booleans(),
    st.fixed_dictionaries(
        {
            "languages": st.sampled_from(
                [[], ["ENG"], ["FIN", "ENG"], [LONG_LANGUAGE]]
            ),
            "sources": st.sampled_from([[], ["A"], [LONG_SOURCE, "A"]]),
            "source_rank": st.sampled_from([[], ["MSH", "A"]]),
            "suppressed": st.booleans(),
            "cui_pattern": st.sampled_from([CUI, r"C\d{7}.*"]),
        }
    ),
    st.sampled_from([1, 50, 400, files.BLOCK_BYTES]),
)
def test_read_rrf_equals_a_reader_of_single_lines(
    rows: list[tuple[dict[str, str], str]],
    in_order: bool,
    options: dict[str, Any],
    block_bytes: int,
) -> None:
    if in_order:
        rows.sort(key=lambda row: row[0]["CUI"])
    lines = [make_line(*row) for row in [*rows, *((row, "") for row in LAST)]]
    concepts, dropped, errors = read_plainly(lines, **options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "MRCONSO.RRF"
        path.write_bytes(b"".join(lines))
        report = Report()
        with patch.object(files, "BLOCK_BYTES", block_bytes):
            skipping = read_vocabulary(
                path, "rrf", on_error="skip", report=report, **options
            )
            if "E104" in errors:
                assert fail(skipping).startswith(f"[E104] {path}:{errors['E104']}: ")
            else:
                found = list(skipping)
                assert found == concepts
                # the order of sources is what a person sees
                assert [list(each.codes) for each in found] == [
                    list(each.codes) for each in concepts
                ]
                names = sum(len(each.aliases) for each in concepts)
                assert report.to_json()["dropped"] == dict(sorted(dropped.items()))
                assert report.rows == {"MRCONSO.RRF": len(lines)}
                assert (report.concepts, report.names) == (len(concepts), names)
                assert report.rows_kept == names + dropped.get("repeated names", 0)
        with patch.object(files, "BLOCK_BYTES", block_bytes):
            failing = read_vocabulary(path, "rrf", **options)
            if errors:
                code = min(errors, key=errors.__getitem__)
                assert fail(failing).startswith(f"[{code}] {path}:{errors[code]}: ")
            else:
                assert list(failing) == concepts
