import gzip
import json
import re
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io import reading
from spacy_sapbert.vocabularies.concepts import Concept, clean_name, has_letter_or_digit
from spacy_sapbert.vocabularies.ids import CUI
from spacy_sapbert.vocabularies.registry import read_vocabulary
from spacy_sapbert.vocabularies.report import Report
from spacy_sapbert.vocabularies.rrf.tables import COLUMNS
from tests.vocabularies import whole

SAMPLE = Path(__file__).parents[2] / "assets" / "sample"
HEART, FEVER, PAIN = "C0000001", "C0000002", "C0000003"


def make_row(table: str, **values: str) -> str:
    """A line of a table, by the names of its columns; the others are empty."""
    assert set(values) <= set(COLUMNS[table])
    return "".join(f"{values.get(column, '')}|" for column in COLUMNS[table])


def atom(cui: str, name: str, **values: str) -> str:
    """A line of MRCONSO; not suppressed, English, and nowhere preferred."""
    defaults = {"LAT": "ENG", "TS": "S", "STT": "VO", "ISPREF": "N", "SAB": "SRC"}
    defaults |= {"TTY": "PT", "CODE": "NOCODE", "SUPPRESS": "N"}
    return make_row("MRCONSO", **{**defaults, "CUI": cui, "STR": name, **values})


def write_table(folder: Path, table: str, *rows: str) -> Path:
    """Write a table, each row with a line feed behind it."""
    path = folder / f"{table}.RRF"
    path.write_bytes("".join(f"{row}\n" for row in rows).encode("utf8"))
    return path


def write_conso(folder: Path, *rows: str) -> Path:
    return write_table(folder, "MRCONSO", *rows)


read = partial(whole.read, format="rrf")


def names_of(path: Path, **options: Any) -> dict[str, list[str]]:
    """The names by the ids."""
    return {each.cui: each.aliases for each in read(path, **options)[0]}


fail = partial(whole.fail, format="rrf")


@pytest.mark.parametrize(
    ("options", "values", "asked", "near"),
    [
        ({"sources": ("SNOMED",)}, {"SAB": "SNOMEDCT_US"}, "SNOMED", "SNOMEDCT_US"),
        ({"languages": ("EGN", "ENG")}, {}, "EGN", "ENG"),
        ({"types": ("T0233",)}, {}, "T0233", "T023"),
    ],
)
def test_read_rrf_unknown_filter_value_is_an_error_with_suggestions(
    tmp_path, options, values, asked, near
):
    write_conso(tmp_path, atom(HEART, "a"), atom(HEART, "b", **values))
    assert "MRSTY.RRF" in fail(tmp_path, types=("T047",))
    assert fail(tmp_path, cui_pattern="(").startswith("[E331]")
    write_table(tmp_path, "MRSTY", make_row("MRSTY", CUI=HEART, TUI="T023"))
    error = fail(tmp_path, **options)
    assert error.startswith("[E105]")
    assert f"but got {asked}." in error
    assert f"Did you mean {near}" in error


@pytest.mark.parametrize("how", ["plain", "each", "whole"])
def test_read_rrf_joins_parts_cut_in_the_middle_of_a_line(tmp_path, how):
    path = write_conso(tmp_path, atom(HEART, "Heart"), atom(FEVER, "Fièvre"))
    data, ending = path.read_bytes(), "" if how == "plain" else ".gz"
    path.unlink()
    data = gzip.compress(data) if how == "whole" else data
    cut = data.find("è".encode()) + 1 if how != "whole" else len(data) // 2
    for letters, part in (("aa", data[:cut]), ("ab", data[cut:])):
        part = gzip.compress(part) if how == "each" else part
        (tmp_path / f"MRCONSO.RRF.{letters}{ending}").write_bytes(part)
    expected = {HEART: ["Heart"], FEVER: ["Fièvre"]}
    assert names_of(tmp_path) == expected
    assert names_of(tmp_path / f"MRCONSO.RRF.aa{ending}") == expected
    if how == "plain":  # lines are counted through the parts
        with (tmp_path / "MRCONSO.RRF.ab").open("a") as file:
            file.write(atom(PAIN, "a|b") + "\n")
    elif how == "each":
        last = gzip.compress((atom(PAIN, "a|b") + "\n").encode())
        (tmp_path / "MRCONSO.RRF.ac.gz").write_bytes(last)
    assert how == "whole" or f"MRCONSO.RRF.*{ending}:3:" in fail(tmp_path)


def test_read_rrf_missing_part_is_an_error_that_names_it(tmp_path):
    for letters in ("aa", "ac"):
        (tmp_path / f"MRCONSO.RRF.{letters}.gz").write_bytes(b"")
    error = fail(tmp_path)
    assert error.startswith("[E108]")
    assert "MRCONSO.RRF.ab.gz" in error


def test_read_rrf_line_without_end_is_an_error_in_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "RECORD_BYTES", 1 << 20)
    (tmp_path / "MRCONSO.RRF").write_bytes(b"x" * (3 << 20))
    assert fail(tmp_path).startswith("[E007]")
    assert "MRCONSO.RRF:1:" in fail(tmp_path)


def test_read_rrf_folder_without_mrconso_is_an_error(tmp_path):
    assert fail(tmp_path).startswith("[E108]")
    (tmp_path / "MRCONSO.RRF").mkdir()
    assert fail(tmp_path).startswith("[E108]")


def test_read_rrf_last_line_needs_no_line_feed_but_its_fields(tmp_path):
    path = write_conso(tmp_path, atom(HEART, "Heart"), atom(FEVER, "Fever"))
    path.write_bytes(path.read_bytes()[:-1])
    assert list(names_of(tmp_path)) == [HEART, FEVER]
    path.write_bytes(path.read_bytes()[:-20])
    assert f"{path}:2: Expected 18 fields" in fail(tmp_path)


@pytest.mark.parametrize("table", ["MRSTY", "MRDEF", "MRREL", "MRCUI", "MRRANK"])
def test_read_rrf_invalid_row_beside_mrconso_is_an_error_or_counted(tmp_path, table):
    write_conso(tmp_path, atom(HEART, "Heart"))
    path = write_table(tmp_path, table, make_row(table), f"{HEART}|x|")
    assert f"{path}:2: Expected" in fail(tmp_path)
    concepts, report = read(tmp_path, on_error="skip")
    assert concepts[0].aliases == ["Heart"]
    assert report.dropped[f"rows of {table} with a wrong number of fields"] == 1
    path.write_bytes(b"\xff" + make_row(table).encode())
    assert f"[E009] {path}:1:" in fail(tmp_path)
    _, report = read(tmp_path, on_error="skip")
    assert report.dropped[f"rows of {table} that are not UTF-8"] == 1


@pytest.mark.parametrize(("brands", "times"), [(False, 1), (True, 2)])
def test_read_rrf_reads_its_rows_twice_only_for_brands(brands, times):
    passed: Counter[str] = Counter()
    report = Report(progress=lambda name, count: passed.update({name: count}))
    options: Any = {"languages": (), "report": report, "trade_names": brands}
    concepts = list(read_vocabulary(SAMPLE, **options))
    assert all(concept.types for concept in concepts)
    assert (len(concepts), report.notes) == (248, [])
    assert report.dropped["suppressed rows"] == 45
    assert passed["MRCONSO.RRF"] == 1398 * times


def test_read_rrf_reports_that_an_empty_file_has_no_rows(tmp_path):
    report = Report()
    with pytest.raises(SapbertError, match="E105"):
        list(read_vocabulary(write_conso(tmp_path), report=report))
    assert report.rows == {"MRCONSO.RRF": 0}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["open-rrf", "mesh-rrf"])
def test_read_rrf_real_vocabulary_reads_to_its_counts(data_folder, name):
    total = json.loads((data_folder / name / "counts.json").read_text("utf8"))["total"]
    concepts = rows = typed = parents = 0
    report = Report()
    options: Any = {"languages": (), "cui_pattern": ".+", "report": report}
    for concept in read_vocabulary(data_folder / name, "rrf", **options):
        concepts += 1
        rows += len(concept.aliases)
        typed += bool(concept.types)
        parents += len(concept.parents)
    assert concepts == report.concepts == total["concepts"]
    assert report.rows["MRCONSO.RRF.gz"] == total["names"]
    assert rows == report.names == total["names"] - sum(report.dropped.values())
    assert typed == total["concepts with a semantic type"]
    assert parents == report.counts["parents"]


COLUMN = {name: place for place, name in enumerate(COLUMNS["MRCONSO"])}
FIELDS = "a wrong number of fields"
# The reader of MRCONSO against a plain one that looks at a line after the other:
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
    st.sampled_from([1, 50, 400, reading.BLOCK_BYTES]),
)
def test_read_rrf_equals_a_reader_of_single_lines(rows, in_order, options, block_bytes):
    if in_order:
        rows.sort(key=lambda row: row[0]["CUI"])
    lines = [make_line(*row) for row in [*rows, *((row, "") for row in LAST)]]
    concepts, dropped, errors = read_plainly(lines, **options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "MRCONSO.RRF"
        path.write_bytes(b"".join(lines))
        with patch.object(reading, "BLOCK_BYTES", block_bytes):
            if "E104" in errors:
                error = fail(path, on_error="skip", **options)
                assert error.startswith(f"[E104] {path}:{errors['E104']}: ")
            else:
                found, report = read(path, on_error="skip", **options)
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
            if errors:
                code = min(errors, key=errors.__getitem__)
                error = fail(path, **options)
                assert error.startswith(f"[{code}] {path}:{errors[code]}: ")
            else:
                assert read(path, **options)[0] == concepts
