import gzip
import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.io import reading
from spacy_sapbert.vocabularies.concepts import Concept, clean_name, has_letter_or_digit
from spacy_sapbert.vocabularies.registry import read_vocabulary
from spacy_sapbert.vocabularies.report import Report
from spacy_sapbert.vocabularies.rrf.tables import COLUMNS
from tests.vocabularies import whole

SAMPLE = Path(__file__).parents[2] / "assets" / "sample"
HEART, FEVER, PAIN = "C0000001", "C0000002", "C0000003"
ATORVASTATIN = "C0286651"
ORIGIN: Any = {"languages": {"ENG": [0]}, "sources": {"SRC": [0]}}  # of one `atom`
NO_WORD = "names without a letter or digit"
ODD_NAMES = [
    "lone\rreturn",
    "line\u2028separator",
    "next\u0085line",
    "Se\u0301gou NFD",
    "zero\u200bwidth",
    "soft\u00adhyphen",
    "\u202bright to left \u05d0",
    "smile \U0001f600",
    'unbalanced "quote',
    '"quote',
    "caf\u00e9 NFC",
    "hot,\tcold; 'tab'",
]


def make_row(table: str, **values: str) -> str:
    """A line of a table, by the names of its columns; the others are empty."""
    assert set(values) <= set(COLUMNS[table])
    return "".join(f"{values.get(column, '')}|" for column in COLUMNS[table])


def atom(cui: str, name: str, **values: str) -> str:
    """A line of MRCONSO; not suppressed, English, and nowhere preferred."""
    defaults = {"LAT": "ENG", "TS": "S", "STT": "VO", "ISPREF": "N", "SAB": "SRC"}
    defaults |= {"TTY": "PT", "CODE": "NOCODE", "SUPPRESS": "N"}
    return make_row("MRCONSO", **{**defaults, "CUI": cui, "STR": name, **values})


def relation(cui1: str, cui2: str, **values: str) -> str:
    """A line of MRREL: what CUI2 is to CUI1."""
    defaults = {"REL": "RO", "SUPPRESS": "N"}
    return make_row("MRREL", **{**defaults, "CUI1": cui1, "CUI2": cui2, **values})


def definition(cui: str, text: str, **values: str) -> str:
    """A line of MRDEF that is of no atom in particular."""
    return make_row("MRDEF", **{"SUPPRESS": "N", "CUI": cui, "DEF": text, **values})


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


# --- atoms ---


def test_read_rrf_one_name_may_be_of_many_concepts(tmp_path: Path) -> None:
    write_conso(tmp_path, atom(HEART, "MI"), atom(FEVER, "MI"))
    assert names_of(tmp_path) == {HEART: ["MI"], FEVER: ["MI"]}


def test_read_rrf_names_without_a_letter_or_digit_are_counted_and_dropped(
    tmp_path: Path,
) -> None:
    names = ["", "  ", "--", "\u200b", "\u00a0", "\U0001f600", "Heart"]
    write_conso(tmp_path, *(atom(HEART, name) for name in names))
    (concept,), report = read(tmp_path)
    assert concept.aliases == ["Heart"]
    assert report.dropped[NO_WORD] == 6


@pytest.mark.parametrize("name", ODD_NAMES)
def test_read_rrf_odd_characters_stay_inside_a_name(tmp_path: Path, name: str) -> None:
    write_conso(tmp_path, atom(HEART, name), atom(FEVER, "Fever"))
    assert names_of(tmp_path) == {HEART: [clean_name(name)], FEVER: ["Fever"]}


def test_read_rrf_white_space_in_a_name_becomes_one_space(tmp_path: Path) -> None:
    write_conso(tmp_path, atom(HEART, " a \t b\u2028c\u0085d\u00a0e\rf "))
    assert names_of(tmp_path) == {HEART: ["a b c d e f"]}


@pytest.mark.parametrize("folder", ["", "META"])
@pytest.mark.parametrize("named", [False, True])
def test_read_rrf_finds_the_tables_of_a_file_or_a_folder(
    tmp_path: Path, folder: str, named: bool
) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    path = write_conso(tmp_path / folder, atom(HEART, "Heart"))
    write_table(tmp_path / folder, "MRSTY", make_row("MRSTY", CUI=HEART, TUI="T023"))
    expected = [Concept(HEART, ["Heart"], types=["T023"], **ORIGIN)]
    assert read(path if named else tmp_path)[0] == expected


# --- the preferred name ---


@pytest.mark.parametrize(
    "values", [{"TS": "P"}, {"STT": "PF"}, {"ISPREF": "Y"}, {"LAT": "ENG"}]
)
def test_read_rrf_preferred_atom_leads_and_the_others_keep_their_order(
    tmp_path: Path, values: dict[str, str]
) -> None:
    rows = [atom(HEART, name, LAT="SPA") for name in ("a", "b")]
    rows.append(atom(HEART, "c", **{"LAT": "SPA", **values}))
    write_conso(tmp_path, *rows)
    assert names_of(tmp_path, languages=()) == {HEART: ["c", "a", "b"]}


# --- filters ---


@pytest.mark.parametrize(
    ("options", "values", "rule"),
    [
        ({}, {"LAT": "SPA"}, "rows in other languages"),
        ({"sources": ("SRC",)}, {"SAB": "MSH"}, "rows of other sources"),
        ({"term_types": ("PT",)}, {"TTY": "SY"}, "rows of other term types"),
        ({"exclude_term_types": ("SY",)}, {"TTY": "SY"}, "rows of excluded term types"),
        ({}, {"SUPPRESS": "O"}, "suppressed rows"),
        ({}, {"SUPPRESS": "E"}, "suppressed rows"),
        ({}, {"SUPPRESS": "Y"}, "suppressed rows"),
    ],
)
def test_read_rrf_filter_drops_and_counts(
    tmp_path: Path, options: dict[str, Any], values: dict[str, str], rule: str
) -> None:
    write_conso(tmp_path, atom(HEART, "kept"), atom(HEART, "dropped", **values))
    (concept,), report = read(tmp_path, **options)
    assert concept.aliases == ["kept"]
    assert report.to_json()["dropped"] == {rule: 1}


def test_read_rrf_types_keep_concepts_with_one_of_them(tmp_path: Path) -> None:
    write_conso(tmp_path, *(atom(cui, "name") for cui in (HEART, FEVER, PAIN)))
    types = [(HEART, "T023"), (HEART, "T047"), (FEVER, "T184"), ("C0000009", "T099")]
    rows = [make_row("MRSTY", CUI=cui, TUI=tui) for cui, tui in types]
    write_table(tmp_path, "MRSTY", *rows)
    (concept,), report = read(tmp_path, types=("T047",))
    assert (concept.cui, concept.types) == (HEART, ["T023", "T047"])
    assert report.dropped["concepts of other types"] == 2


@pytest.mark.parametrize(
    ("options", "values", "asked", "near"),
    [
        ({"sources": ("SNOMED",)}, {"SAB": "SNOMEDCT_US"}, "SNOMED", "SNOMEDCT_US"),
        ({"sources": ("msh",)}, {"SAB": "MSH"}, "msh", "MSH"),
        ({"languages": ("EGN", "ENG")}, {}, "EGN", "ENG"),
        ({"term_types": ("PTT",)}, {"TTY": "PT"}, "PTT", "PT"),
        ({"exclude_term_types": ("OAPP",)}, {"TTY": "OAP"}, "OAPP", "OAP"),
    ],
)
def test_read_rrf_unknown_filter_value_is_an_error_with_suggestions(
    tmp_path: Path,
    options: dict[str, Any],
    values: dict[str, str],
    asked: str,
    near: str,
) -> None:
    write_conso(tmp_path, atom(HEART, "a"), atom(HEART, "b", **values))
    error = fail(tmp_path, **options)
    assert error.startswith("[E105]")
    assert f"but got {asked}." in error
    assert f"Did you mean {near}" in error


def test_read_rrf_unknown_type_is_an_error_with_a_suggestion(tmp_path: Path) -> None:
    write_conso(tmp_path, atom(HEART, "Heart"))
    write_table(tmp_path, "MRSTY", make_row("MRSTY", CUI=HEART, TUI="T023"))
    assert "Did you mean T023?" in fail(tmp_path, types=("T0233",))


def test_read_rrf_types_need_their_table(tmp_path: Path) -> None:
    write_conso(tmp_path, atom(HEART, "Heart"))
    assert "MRSTY.RRF" in fail(tmp_path, types=("T047",))


def test_read_rrf_no_concept_left_is_an_error_with_the_counts(tmp_path: Path) -> None:
    rows = [atom(HEART, "Corazón", LAT="SPA"), atom(HEART, "--")]
    write_conso(tmp_path, *rows, *[atom(FEVER, "old", SUPPRESS="O")] * 2)
    error = fail(tmp_path)
    assert error.startswith("[E106]")
    assert "1 rows in other languages" in error
    assert "2 suppressed rows" in error
    assert f"1 {NO_WORD}" in error


# --- tables beside MRCONSO ---


def test_read_rrf_absent_tables_are_noted_once(tmp_path: Path) -> None:
    write_conso(tmp_path, atom(HEART, "Heart"), atom(FEVER, "Fever"))
    concepts, report = read(tmp_path, trade_names=True)
    assert concepts[0] == Concept(HEART, ["Heart"], **ORIGIN)
    assert [note.split()[0] for note in report.notes] == [
        "MRSTY.RRF",
        "MRDEF.RRF",
        "MRREL.RRF",
        "MRCUI.RRF",
    ]


def test_read_rrf_types_are_sorted_and_a_concept_without_one_is_counted(
    tmp_path: Path,
) -> None:
    write_conso(tmp_path, atom(HEART, "Heart"), atom(FEVER, "Fever"))
    tuis = ("T047", "T023", "T047")
    rows = [make_row("MRSTY", CUI=HEART, TUI=tui) for tui in tuis]
    write_table(tmp_path, "MRSTY", *rows)
    concepts, report = read(tmp_path)
    assert [concept.types for concept in concepts] == [["T023", "T047"], []]
    assert report.counts["concepts without a type"] == 1


def test_read_rrf_type_of_an_unknown_concept_is_ignored(tmp_path: Path) -> None:
    write_conso(tmp_path, atom(FEVER, "Fever"))
    rows = [make_row("MRSTY", CUI=c, TUI=c) for c in (HEART, FEVER, PAIN)]
    write_table(tmp_path, "MRSTY", *rows)
    assert read(tmp_path)[0] == [Concept(FEVER, ["Fever"], types=[FEVER], **ORIGIN)]


def test_read_rrf_definition_is_the_first_of_the_best_source(tmp_path: Path) -> None:
    write_conso(tmp_path, atom(HEART, "Heart"))
    rows = [definition(HEART, text, SAB=text[:3]) for text in ("NCI", "MSH 1", "MSH 2")]
    write_table(tmp_path, "MRDEF", *rows)
    assert read(tmp_path)[0][0].definition == "NCI"
    assert read(tmp_path, source_rank=("MSH",))[0][0].definition == "MSH 1"


def test_read_rrf_suppressed_definitions_and_relations_are_dropped(
    tmp_path: Path,
) -> None:
    write_conso(tmp_path, atom(HEART, "Heart"))
    write_table(tmp_path, "MRDEF", definition(HEART, "old", SUPPRESS="O"))
    write_table(tmp_path, "MRREL", relation(HEART, FEVER, REL="PAR", SUPPRESS="O"))
    (concept,), report = read(tmp_path)
    assert (concept.definition, concept.parents) == (None, [])
    assert report.dropped["suppressed definitions"] == 1
    assert report.dropped["suppressed relations"] == 1
    (concept,), _ = read(tmp_path, suppressed=True)
    assert (concept.definition, concept.parents) == ("old", [FEVER])


def test_read_rrf_definition_is_dropped_with_its_atom(tmp_path: Path) -> None:
    rows = [atom(HEART, "Srdce", LAT="CZE", AUI="A1"), atom(HEART, "Heart", AUI="A2")]
    write_conso(tmp_path, *rows)
    rows = [definition(HEART, "sval", AUI="A1"), definition(HEART, "pump", AUI="A2")]
    write_table(tmp_path, "MRDEF", *rows)
    (concept,), report = read(tmp_path)
    assert concept.definition == "pump"
    assert report.dropped["definitions of atoms that were left out"] == 1


@pytest.mark.parametrize(
    ("child", "values"),
    [
        (HEART, {"REL": "PAR"}),
        (HEART, {"RELA": "inverse_isa"}),
        (HEART, {"REL": "PAR", "RELA": "inverse_isa"}),
        (FEVER, {"REL": "CHD"}),
        (FEVER, {"RELA": "isa"}),
        (FEVER, {"REL": "CHD", "RELA": "isa"}),
    ],
)
def test_read_rrf_relation_describes_the_second_concept(
    tmp_path: Path, child: str, values: dict[str, str]
) -> None:
    write_conso(tmp_path, atom(HEART, "Heart"), atom(FEVER, "Fever"))
    write_table(tmp_path, "MRREL", relation(HEART, FEVER, **values))
    parent = FEVER if child == HEART else HEART
    expected = {child: [parent], parent: []}
    assert {c.cui: c.parents for c in read(tmp_path)[0]} == expected


def test_read_rrf_parents_are_distinct_and_never_the_concept_itself(
    tmp_path: Path,
) -> None:
    write_conso(tmp_path, atom(HEART, "Heart"))
    rows = [relation(HEART, other, REL="PAR") for other in (PAIN, FEVER, FEVER, HEART)]
    write_table(tmp_path, "MRREL", *rows)
    (concept,), report = read(tmp_path)
    assert concept.parents == [FEVER, PAIN]
    assert report.dropped["relations of a concept to itself"] == 1


def test_read_rrf_brands_names_are_added_to_the_ingredient(tmp_path: Path) -> None:
    ids = ["C0000001", "C0000002", "C0000003"]
    rows = [atom(ids[0], "Panadol"), atom(ids[1], "paracetamol", CODE="1")]
    tylenol = [atom(ids[2], "Tylenol", SAB="B"), atom(ids[2], "Tylenol 500")]
    write_conso(tmp_path, *rows, *tylenol)
    write_table(
        tmp_path,
        "MRREL",
        relation(ids[1], ids[2], RELA="tradename_of"),
        relation(ids[0], ids[1], RELA="has_tradename"),
    )
    concepts, report = read(tmp_path, trade_names=True)
    assert [concept.aliases for concept in concepts] == [
        ["Panadol"],
        ["paracetamol", "Panadol", "Tylenol", "Tylenol 500"],
        ["Tylenol", "Tylenol 500"],
    ]
    assert concepts[1].languages == {"ENG": [0, 1, 2, 3]}
    assert concepts[1].sources == {"SRC": [0, 1, 3], "B": [2]}
    assert concepts[2].sources == {"B": [0], "SRC": [1]}
    assert report.counts["names of brands and ingredients"] == 3
    assert report.rows["MRCONSO.RRF"] == 4


def test_read_rrf_ingredients_names_are_added_to_their_brands(tmp_path: Path) -> None:
    """As the released notebook does, which lets Lipitor have atorvastatin's names."""
    ids = ["C0000001", "C0000002", "C0000003"]
    rows = [atom(ids[0], "Lipitor"), atom(ids[1], "atorvastatin", TTY="IN")]
    rows += [atom(ids[1], "atorvastatina", LAT="SPA"), atom(ids[2], "Caduet")]
    write_conso(tmp_path, *rows)
    write_table(  # of one pair of concepts a release has both rows
        tmp_path,
        "MRREL",
        relation(ids[0], ids[1], RELA="has_tradename"),
        relation(ids[1], ids[0], RELA="tradename_of"),
        relation(ids[1], ids[2], RELA="tradename_of"),
    )
    names = names_of(tmp_path, ingredient_names=True)
    assert names == {
        ids[0]: ["Lipitor", "atorvastatin"],
        ids[1]: ["atorvastatin"],
        ids[2]: ["Caduet", "atorvastatin"],
    }
    both, report = read(tmp_path, ingredient_names=True, trade_names=True)
    assert [concept.aliases for concept in both] == [
        ["Lipitor", "atorvastatin"],  # not Caduet's
        ["atorvastatin", "Lipitor", "Caduet"],
        ["Caduet", "atorvastatin"],
    ]
    assert report.counts["names of brands and ingredients"] == 4


def test_read_rrf_brands_stay_separate_by_default(tmp_path: Path) -> None:
    write_conso(tmp_path, atom(HEART, "paracetamol"), atom(FEVER, "Tylenol"))
    write_table(tmp_path, "MRREL", relation(HEART, FEVER, RELA="tradename_of"))
    assert names_of(tmp_path) == {HEART: ["paracetamol"], FEVER: ["Tylenol"]}


@pytest.mark.parametrize(
    "rela", ["", "tradename", "Tradename_of", "tradename_of_x", "not_tradename_of"]
)
def test_read_rrf_brands_are_those_of_the_exact_relation_alone(
    tmp_path: Path, rela: str
) -> None:
    write_conso(tmp_path, atom(HEART, "paracetamol"), atom(FEVER, "Tylenol"))
    write_table(tmp_path, "MRREL", relation(HEART, FEVER, RELA=rela))
    names = names_of(tmp_path, trade_names=True)
    assert names == {HEART: ["paracetamol"], FEVER: ["Tylenol"]}


def test_read_rrf_retired_ids_are_synonyms_alone_and_the_others_are_counted(
    tmp_path: Path,
) -> None:
    write_conso(tmp_path, atom(HEART, "Heart"))
    mapped = [("C9", "SY", HEART), ("C8", "SY", HEART), ("C7", "RB", HEART)]
    mapped += [("C6", "DEL", ""), ("C5", "DEL", ""), ("C4", "??", HEART)]
    rows = [make_row("MRCUI", CUI1=one, REL=rel, CUI2=two) for one, rel, two in mapped]
    write_table(tmp_path, "MRCUI", *rows)
    (concept,), report = read(tmp_path)
    assert concept.retired == ["C8", "C9"]
    assert report.to_json()["dropped"] == {
        "retired ids that map as DEL": 2,
        "retired ids that map as RB": 1,
        "retired ids that map as something else": 1,
    }


# --- compressed and split ---


@pytest.mark.parametrize("how", ["plain", "each", "whole"])
def test_read_rrf_joins_parts_cut_in_the_middle_of_a_line(
    tmp_path: Path, how: str
) -> None:
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


def test_read_rrf_lines_are_counted_through_the_parts(tmp_path: Path) -> None:
    path = write_conso(tmp_path, atom(HEART, "Heart"), atom(FEVER, "a|b"))
    data = path.read_bytes()
    path.unlink()
    (tmp_path / "MRCONSO.RRF.aa").write_bytes(data[:30])
    (tmp_path / "MRCONSO.RRF.ab").write_bytes(data[30:])
    assert "MRCONSO.RRF.*:2:" in fail(tmp_path)


def test_read_rrf_missing_part_is_an_error_that_names_it(tmp_path: Path) -> None:
    for letters in ("aa", "ac"):
        (tmp_path / f"MRCONSO.RRF.{letters}.gz").write_bytes(b"")
    error = fail(tmp_path)
    assert error.startswith("[E108]")
    assert "MRCONSO.RRF.ab.gz" in error


def test_read_rrf_line_without_end_is_an_error_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "RECORD_BYTES", 1 << 20)
    (tmp_path / "MRCONSO.RRF").write_bytes(b"x" * (3 << 20))
    assert fail(tmp_path).startswith("[E007]")
    assert "MRCONSO.RRF:1:" in fail(tmp_path)


# --- bad rows ---


def test_read_rrf_folder_without_mrconso_is_an_error(tmp_path: Path) -> None:
    assert fail(tmp_path).startswith("[E108]")
    (tmp_path / "MRCONSO.RRF").mkdir()
    assert fail(tmp_path).startswith("[E108]")


BAD_ROWS = [
    (atom(PAIN, "a|b").encode(), "E117", "a wrong number of fields"),
    (atom(PAIN, "Pain").encode()[:-5], "E117", "a wrong number of fields"),
    (b"Pain", "E117", "a wrong number of fields"),
    (atom(PAIN, "Pain")[:-2].encode() + b"|x", "E117", "a wrong number of fields"),
    (atom(PAIN, "P%").encode().replace(b"%", b"\xff"), "E009", "not UTF-8"),
    (atom(PAIN, "P%").encode().replace(b"%", b"\xed\xa0\x80"), "E009", "not UTF-8"),
    (atom("C03", "Pain").encode(), "E117", "malformed id"),
    (atom("", "Pain").encode(), "E117", "malformed id"),
]


@pytest.mark.parametrize(("row", "code", "rule"), BAD_ROWS)
def test_read_rrf_invalid_row_is_an_error_or_counted(
    tmp_path: Path, row: bytes, code: str, rule: str
) -> None:
    path = write_conso(tmp_path, atom(HEART, "Heart"), atom(FEVER, "Fever"))
    path.write_bytes(path.read_bytes() + row + b"\n" + atom(PAIN, "X").encode())
    error = fail(tmp_path)
    assert error.startswith(f"[{code}] {path}:3: ")
    assert "Pain" not in error
    concepts, report = read(path, on_error="skip")
    assert [concept.cui for concept in concepts] == [HEART, FEVER, PAIN]
    assert sum(report.dropped.values()) == 1
    assert [key for key, n in report.dropped.items() if n and rule in key]


def test_read_rrf_invalid_utf8_is_an_error_with_the_offset(tmp_path: Path) -> None:
    row = atom(HEART, "Heart%").encode()
    path = write_conso(tmp_path)
    path.write_bytes(row.replace(b"%", b"\xff") + b"\n")
    assert f"offset {row.index(b'%')} " in fail(tmp_path)


def test_read_rrf_invalid_utf8_in_a_row_that_a_filter_drops_does_not_matter(
    tmp_path: Path,
) -> None:
    rows = [atom(HEART, "Heart"), atom(HEART, "%", LAT="SPA")]
    path = write_conso(tmp_path, *rows)
    path.write_bytes(path.read_bytes().replace(b"%", b"\xff"))
    assert names_of(tmp_path) == {HEART: ["Heart"]}


def test_read_rrf_last_line_needs_no_line_feed_but_its_fields(tmp_path: Path) -> None:
    path = write_conso(tmp_path, atom(HEART, "Heart"), atom(FEVER, "Fever"))
    path.write_bytes(path.read_bytes()[:-1])
    assert list(names_of(tmp_path)) == [HEART, FEVER]
    path.write_bytes(path.read_bytes()[:-20])
    assert f"{path}:2: Expected 18 fields" in fail(tmp_path)


@pytest.mark.parametrize("table", ["MRSTY", "MRDEF", "MRREL", "MRCUI", "MRRANK"])
def test_read_rrf_invalid_row_beside_mrconso_is_an_error_or_counted(
    tmp_path: Path, table: str
) -> None:
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


@pytest.mark.parametrize("cuis", [(FEVER, HEART), (HEART, FEVER, HEART)])
def test_read_rrf_ids_out_of_order_are_an_error_with_the_command(
    tmp_path: Path, cuis: tuple[str, ...]
) -> None:
    path = write_conso(tmp_path, *(atom(cui, "name") for cui in cuis))
    error = fail(tmp_path)
    assert error.startswith(f"[E104] {path}:{len(cuis)}: ")
    assert "LC_ALL=C sort -t'|' -k1,1 -s" in error
    assert fail(tmp_path, on_error="skip") == error


def test_read_rrf_ids_of_another_vocabulary_need_their_pattern(tmp_path: Path) -> None:
    path = write_conso(tmp_path, atom("MESH:D006321", "Heart"))
    error = fail(tmp_path)
    assert error.startswith(f"[E117] {path}:1: ")
    assert "--cui-pattern" in error
    names = names_of(tmp_path, cui_pattern=r"MESH:[A-Z]\d+")
    assert names == {"MESH:D006321": ["Heart"]}


def test_read_rrf_pattern_that_is_invalid_is_an_error(tmp_path: Path) -> None:
    write_conso(tmp_path, atom(HEART, "Heart"))
    assert fail(tmp_path, cui_pattern="C(").startswith("[E331]")


# --- properties ---

NAMES = st.text(st.characters(exclude_characters="|\n", exclude_categories=["Cs"]))
# what cuts fields and lines, and halves of characters, between anything


@given(st.lists(st.lists(NAMES, min_size=1, max_size=4), min_size=1, max_size=5))
def test_read_rrf_any_names_are_read_unchanged(concepts: list[list[str]]) -> None:
    rows = [
        atom(f"C{number:07}", name)
        for number, names in enumerate(concepts)
        for name in names
    ]
    expected = {}
    for number, names in enumerate(concepts):
        said = [name for name in map(clean_name, names) if has_letter_or_digit(name)]
        if said:
            expected[f"C{number:07}"] = list(dict.fromkeys(said))
    with tempfile.TemporaryDirectory() as folder:
        path = write_conso(Path(folder), *rows)
        if expected:
            assert names_of(path) == expected
        else:
            assert "[E106]" in fail(path)


# --- real files ---


def test_read_rrf_sample_reads_every_concept() -> None:
    concepts, report = read(SAMPLE, languages=())
    assert len(concepts) == 248
    assert report.rows["MRCONSO.RRF"] == 1398
    assert report.dropped["suppressed rows"] == 45
    assert all(concept.types for concept in concepts)
    assert report.notes == []


def test_read_rrf_sample_has_brand_names_of_drugs() -> None:
    assert "Lipitor" not in names_of(SAMPLE)[ATORVASTATIN]
    assert "Lipitor" in names_of(SAMPLE, trade_names=True)[ATORVASTATIN]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["open-rrf", "mesh-rrf"])
def test_read_rrf_real_vocabulary_reads_to_its_counts(
    data_folder: Path, name: str
) -> None:
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


def test_read_rrf_codes_of_preferred_names_are_first(tmp_path: Path) -> None:
    rows = [
        atom(HEART, "Heart part", CODE="3", TTY="SY"),
        atom(HEART, "Cor", CODE="2", TTY="PT", ISPREF="Y"),
        atom(HEART, "Heart", CODE="1", TTY="SY", TS="P"),
        atom(HEART, "Heart organ", CODE="2", TTY="SY"),
        atom(HEART, "Old heart", CODE="0", TTY="OP"),
    ]
    write_conso(tmp_path, *rows)
    assert read(tmp_path)[0][0].codes == {"SRC": ["1", "2", "3", "0"]}
    ranks = [("0200", "SY"), ("0300", "PT"), ("0100", "OP"), ("x", "XX")]
    same = {"SAB": "SRC", "SUPPRESS": "N"}
    ranked = [make_row("MRRANK", RANK=rank, TTY=term, **same) for rank, term in ranks]
    write_table(tmp_path, "MRRANK", *ranked)
    concepts, report = read(tmp_path)
    assert concepts[0].codes == {"SRC": ["2", "1", "3", "0"]}
    assert concepts[0].name == "Heart"
    assert report.rows["MRRANK.RRF"] == 4
