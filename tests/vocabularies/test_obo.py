import gzip
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept
from spacy_sapbert.vocabularies.obo import read_obo
from spacy_sapbert.vocabularies.report import Report

UBERON_CONCEPTS = 13_080


def make_term(id: str, *lines: str) -> str:
    """A stanza of a term, with a name unless the lines give one."""
    named = any(line.startswith("name:") for line in lines)
    name = [] if named else [f"name: name of {id}"]
    return "\n".join(["[Term]", f"id: {id}", *name, *lines, ""])


def write_obo(folder: Path, *terms: str) -> Path:
    path = folder / "vocabulary.obo"
    path.write_text("\n".join(["format-version: 1.2", "", *terms]), "utf8")
    return path


def read(path: Path, **options: Any) -> tuple[list[Concept], Report]:
    report = Report()
    return list(read_obo(path, report=report, **options)), report


def read_one(folder: Path, *lines: str, **options: Any) -> Concept:
    """The concept of a file with a term of these lines."""
    (concept,), _ = read(write_obo(folder, make_term("X:1", *lines)), **options)
    return concept


def fail(path: Path, **options: Any) -> str:
    with pytest.raises(SapbertError) as caught:
        read(path, **options)
    return str(caught.value)


def test_read_obo_term_becomes_a_concept(tmp_path: Path) -> None:
    lines = [
        "name: chikungunya",
        'synonym: "Chikungunya fever" EXACT []',
        'def: "A fever." [url:http\\://example.org]',
        "xref: ICD10CM:A92.0",
        "xref: UMLS_CUI:C0008055",
        "alt_id: X:9",
        "is_a: X:2 ! fever",
    ]
    path = write_obo(tmp_path, make_term("X:1", *lines), make_term("X:2"))
    assert read(path)[0][0] == Concept(
        "X:1",
        ["chikungunya", "Chikungunya fever"],
        codes={"X": ["1"], "ICD10CM": ["A92.0"], "UMLS_CUI": ["C0008055"]},
        parents=["X:2"],
        definition="A fever.",
        retired=["X:9"],
        sources={"X": [0, 1]},
    )


def test_read_obo_concepts_are_sorted_by_id(tmp_path: Path) -> None:
    path = write_obo(tmp_path, *map(make_term, ("X:2", "X:10", "X:1")))
    assert [concept.cui for concept in read(path)[0]] == ["X:1", "X:10", "X:2"]


def test_read_obo_terms_with_the_same_id_become_one_concept(tmp_path: Path) -> None:
    terms = [make_term("X:1", "name: a"), make_term("X:1", "name: b")]
    ((concept,), _) = read(write_obo(tmp_path, *terms))
    assert concept.aliases == ["a", "b"]


def test_read_obo_other_stanzas_are_ignored(tmp_path: Path) -> None:
    stanza = "[Typedef]\nid: part_of\nname: part of\nis_transitive: true\n"
    path = write_obo(tmp_path, stanza, make_term("X:1"), stanza)
    assert [concept.cui for concept in read(path)[0]] == ["X:1"]


def test_read_obo_term_of_a_type_gives_the_type_to_all(tmp_path: Path) -> None:
    assert read_one(tmp_path, type="T047").types == ["T047"]


def test_read_obo_compressed_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.obo.gz"
    path.write_bytes(gzip.compress(make_term("X:1").encode()))
    assert len(read(path)[0]) == 1


def test_read_obo_line_ends_of_any_system_are_read(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.obo"
    text = "\ufeff" + make_term("X:1", "name: a").replace("\n", "\r\n")
    path.write_bytes(text.rstrip().encode())
    expected = Concept("X:1", ["a"], codes={"X": ["1"]}, sources={"X": [0]})
    assert read(path)[0] == [expected]


@pytest.mark.parametrize("id", ["fever", "X:", ":1", "http://example.org/1"])
def test_read_obo_id_without_a_prefix_has_no_source(tmp_path: Path, id: str) -> None:
    path = write_obo(tmp_path, make_term(id, "name: a"))
    assert read(path)[0][0].sources == {}


def test_read_obo_names_under_a_foreign_id_are_of_the_ontology(tmp_path: Path) -> None:
    lines = ["name: a", 'synonym: "b" EXACT []', "xref: UMLS:C0000001"]
    terms = [make_term("X:1", *lines), make_term("Y:1", "name: b", lines[2])]
    (concept,) = read(write_obo(tmp_path, *terms), ids="xref")[0]
    assert concept.sources == {"X": [0, 1], "Y": [1]}


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("name: fever\\, acute", "fever, acute"),
        ("name: a\\nb\\tc\\Wd", "a b c d"),
        ("name: 5\\: \\(x\\) \\[y\\] \\{z\\} \\!", "5: (x) [y] {z} !"),
        ("name: back\\\\slash", "back\\slash"),
        ("name: what: a colon", "what: a colon"),
        ("name:tight", "tight"),
        ("name:   Fi\u00e8vre \u2028 \u982d\u75db  ", "Fi\u00e8vre \u982d\u75db"),
    ],
)
def test_read_obo_name_is_unescaped(tmp_path: Path, line: str, name: str) -> None:
    assert read_one(tmp_path, line).name == name


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ('"say \\"ah\\"" EXACT []', 'say "ah"'),
        ('"a" EXACT []', "a"),
        ('"a" EXACT abbreviation [PMID:1]', "a"),
        ('"a" exact [] {source="x"} ! comment', "a"),
        ('"a b ! c {d}" EXACT []', "a b ! c {d}"),
    ],
)
def test_read_obo_synonym_is_the_quoted_text(
    tmp_path: Path, value: str, name: str
) -> None:
    assert read_one(tmp_path, f"synonym: {value}").aliases[1:] == [name]


@pytest.mark.parametrize(
    ("value", "parent"),
    [
        ("X:2", "X:2"),
        ("X:2 ! a comment", "X:2"),
        ('X:2 {source="a ! b"}', "X:2"),
        ('X:2 {source="a"} ! {x} comment', "X:2"),
    ],
)
def test_read_obo_comment_and_modifiers_are_no_part_of_an_id(
    tmp_path: Path, value: str, parent: str
) -> None:
    terms = [make_term("X:1 ! c", f"is_a: {value}"), make_term("X:2")]
    concepts, _ = read(write_obo(tmp_path, *terms))
    assert (concepts[0].cui, concepts[0].parents) == ("X:1", [parent])


def test_read_obo_xref_may_have_a_description(tmp_path: Path) -> None:
    concept = read_one(tmp_path, 'xref: MSH:D1 "what it is" {a="b"}')
    assert concept.codes == {"X": ["1"], "MSH": ["D1"]}


def test_read_obo_parent_that_is_not_there_and_the_term_itself_are_no_parents(
    tmp_path: Path,
) -> None:
    assert read_one(tmp_path, "is_a: X:3", "is_a: X:1").parents == []


# --- scopes ---

SYNONYMS = [
    'synonym: "e" EXACT []',
    'synonym: "n" NARROW []',
    'synonym: "b" BROAD []',
    'synonym: "r" RELATED []',
    'synonym: "none" []',
]


@pytest.mark.parametrize(
    ("scopes", "names"),
    [
        (("EXACT",), ["e"]),
        (("exact", "narrow"), ["e", "n"]),
        (("RELATED",), ["r", "none"]),
        ((), ["e", "n", "b", "r", "none"]),
    ],
)
def test_read_obo_scopes_choose_synonyms_and_the_others_are_counted(
    tmp_path: Path, scopes: tuple[str, ...], names: list[str]
) -> None:
    path = write_obo(tmp_path, make_term("X:1", "name: x", *SYNONYMS))
    (concept,), report = read(path, scopes=scopes)
    assert concept.aliases == ["x", *names]
    assert report.dropped["synonyms of other scopes"] == 5 - len(names)


def test_read_obo_repeated_and_empty_names_are_counted(tmp_path: Path) -> None:
    lines = ["name: x", *(f'synonym: "{name}" EXACT []' for name in ("x", "", "--"))]
    (concept,), report = read(write_obo(tmp_path, make_term("X:1", *lines)))
    assert concept.aliases == ["x"]
    assert report.dropped["repeated names"] == 1
    assert report.dropped["names without a letter or digit"] == 2


def test_read_obo_term_without_a_name_is_counted(tmp_path: Path) -> None:
    path = write_obo(tmp_path, make_term("X:1", "name: -"), make_term("X:2"))
    concepts, report = read(path)
    assert [concept.cui for concept in concepts] == ["X:2"]
    assert report.dropped["terms without a name"] == 1


# --- ids of another vocabulary ---


@pytest.mark.parametrize("prefix", ["UMLS", "UMLS_CUI", "umls"])
def test_read_obo_xref_ids_replace_own_ones(tmp_path: Path, prefix: str) -> None:
    concept = read_one(tmp_path, f"xref: {prefix}:C0000001", ids="xref")
    assert concept.cui == "C0000001"
    assert concept.codes == {"X": ["1"]}


def test_read_obo_parents_are_xref_ids_too(tmp_path: Path) -> None:
    terms = [
        make_term("X:1", "xref: UMLS:C0000001", "is_a: X:2"),
        make_term("X:2", "xref: UMLS:C0000002"),
    ]
    concepts, _ = read(write_obo(tmp_path, *terms), ids="xref")
    assert [concept.parents for concept in concepts] == [["C0000002"], []]


def test_read_obo_term_without_an_xref_id_is_counted(tmp_path: Path) -> None:
    terms = [make_term("X:1", "xref: UMLS:C0000001"), make_term("X:2", "xref: MSH:D1")]
    concepts, report = read(write_obo(tmp_path, *terms), ids="xref")
    assert len(concepts) == 1
    assert report.dropped["terms without a UMLS id"] == 1


def test_read_obo_malformed_xref_id_is_counted(tmp_path: Path) -> None:
    terms = [make_term("X:1", "xref: UMLS:C1"), make_term("X:2", "xref: UMLS:C0000001")]
    concepts, report = read(write_obo(tmp_path, *terms), ids="xref")
    assert [concept.cui for concept in concepts] == ["C0000001"]
    assert report.dropped["terms with malformed ids"] == 1


def test_read_obo_own_ids_may_have_a_pattern(tmp_path: Path) -> None:
    path = write_obo(tmp_path, make_term("X:1"), make_term("Y:1"))
    concepts, report = read(path, cui_pattern=r"X:\d+")
    assert [concept.cui for concept in concepts] == ["X:1"]
    assert report.dropped["terms with malformed ids"] == 1


def test_read_obo_other_prefixes_take_any_id(tmp_path: Path) -> None:
    concept = read_one(tmp_path, "xref: MSH:D1", ids="xref", xref_prefix="MSH")
    assert concept.cui == "D1"


TWO_XREFS = ["name: x", "xref: UMLS:C0000002", "xref: UMLS_CUI:C0000001"]


def test_read_obo_term_with_several_xref_ids_is_dropped_and_counted(
    tmp_path: Path,
) -> None:
    terms = [make_term("X:1", *TWO_XREFS), make_term("X:2", "xref: UMLS:C0000003")]
    concepts, report = read(write_obo(tmp_path, *terms), ids="xref")
    assert [concept.cui for concept in concepts] == ["C0000003"]
    assert report.dropped["terms with several UMLS ids"] == 1


def test_read_obo_term_with_several_xref_ids_may_name_all_of_them(
    tmp_path: Path,
) -> None:
    path = write_obo(tmp_path, make_term("X:1", *TWO_XREFS))
    concepts, _ = read(path, ids="xref", multi_xref="all")
    named = [(concept.cui, concept.aliases) for concept in concepts]
    assert named == [("C0000001", ["x"]), ("C0000002", ["x"])]


# --- obsolete terms and retired ids ---


def test_read_obo_obsolete_term_is_dropped_and_counted(tmp_path: Path) -> None:
    terms = [make_term("X:1", "is_obsolete: true"), make_term("X:2")]
    concepts, report = read(write_obo(tmp_path, *terms))
    assert [concept.cui for concept in concepts] == ["X:2"]
    assert report.dropped["obsolete terms"] == 1


def test_read_obo_obsolete_term_may_be_kept(tmp_path: Path) -> None:
    assert read_one(tmp_path, "is_obsolete: true", obsolete=True).cui == "X:1"


def test_read_obo_replaced_id_retires_to_the_new_one(tmp_path: Path) -> None:
    old = make_term("X:1", "is_obsolete: true", "replaced_by: X:2 ! new")
    concepts, _ = read(write_obo(tmp_path, old, make_term("X:2", "alt_id: X:3")))
    assert concepts[0].retired in (["X:1", "X:3"], ["X:3", "X:1"])


def test_read_obo_id_replaced_by_several_leads_nowhere(tmp_path: Path) -> None:
    lines = ["is_obsolete: true", "replaced_by: X:2", "replaced_by: X:3"]
    terms = [make_term("X:1", *lines), make_term("X:2"), make_term("X:3")]
    concepts, _ = read(write_obo(tmp_path, *terms))
    assert [concept.retired for concept in concepts] == [[], []]


def test_read_obo_xref_ids_have_no_retired_ones(tmp_path: Path) -> None:
    lines = ["xref: UMLS:C0000001", "alt_id: X:9"]
    assert read_one(tmp_path, *lines, ids="xref").retired == []


# --- errors ---

BAD_LINES = [
    ("nonsense", "a tag and a colon"),
    ("synonym: fever EXACT []", "a text in double quotes"),
    ('synonym: "fever EXACT []', "a text in double quotes"),
    ("def: none", "a text in double quotes"),
    ("is_a:", "an id"),
    ("alt_id: ", "an id"),
    ("id: X:7", "one id in a term"),
]


@pytest.mark.parametrize(("line", "expected"), BAD_LINES)
def test_read_obo_invalid_line_is_an_error_with_file_and_line(
    tmp_path: Path, line: str, expected: str
) -> None:
    path = write_obo(tmp_path, make_term("X:1", line))
    error = fail(path)
    assert error.startswith(f"[E117] {path}:6: Expected {expected}")
    assert "fever" not in error


@pytest.mark.parametrize(("line", "expected"), BAD_LINES)
def test_read_obo_invalid_line_is_counted_when_skipped(
    tmp_path: Path, line: str, expected: str
) -> None:
    path = write_obo(tmp_path, make_term("X:1", line))
    concepts, report = read(path, on_error="skip")
    assert [concept.cui for concept in concepts] == ["X:1"]
    assert report.dropped["bad lines"] == 1


def test_read_obo_invalid_utf8_is_an_error_with_line_and_offset(tmp_path: Path) -> None:
    path = write_obo(tmp_path, make_term("X:1", "name: %"))
    path.write_bytes(path.read_bytes().replace(b"%", b"\xff"))
    assert f"{path}:5: " in fail(path)
    assert "offset 6 " in fail(path)


def test_read_obo_no_concept_left_is_an_error_with_the_counts(tmp_path: Path) -> None:
    path = write_obo(tmp_path, make_term("X:1", "is_obsolete: true"))
    assert "[E106]" in fail(path)
    assert "1 obsolete terms" in fail(path)


def test_read_obo_truncated_gzip_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.obo.gz"
    path.write_bytes(gzip.compress(make_term("X:1").encode())[:-9])
    assert "[E008]" in fail(path)


def test_read_obo_missing_file_is_an_error(tmp_path: Path) -> None:
    assert "[E001]" in fail(tmp_path / "vocabulary.obo")


@pytest.mark.parametrize(
    ("option", "value"),
    [("ids", "mine"), ("multi_xref", "best"), ("scopes", ("EXACTLY",))],
)
def test_read_obo_option_of_an_unknown_value_is_an_error(
    tmp_path: Path, option: str, value: Any
) -> None:
    path = write_obo(tmp_path, make_term("X:1"))
    error = fail(path, **{option: value})
    assert error.startswith(f"[E115] Expected `--{option.replace('_', '-')}`")


@pytest.mark.parametrize("piece", [" ", " {", " !", "{}", '\\"'])
def test_read_obo_long_line_takes_no_longer_than_its_length(
    tmp_path: Path, piece: str
) -> None:
    long = piece * 100_000
    lines = [f"is_a: X:2{long}x", f"xref: M:1{long}x", f'synonym: "{long}x" EXACT []']
    assert read_one(tmp_path, *lines).cui == "X:1"


# --- properties and real files ---

PIECES = st.one_of(
    st.sampled_from(["[Term]\n", "id: X:1\n", "id: X:2\n", "name: a\n", "\\", '"']),
    st.sampled_from(['synonym: "', 'def: "', "is_a: ", "xref: UMLS:", " ! ", " {"]),
    st.sampled_from(["alt_id: ", "replaced_by: ", "is_obsolete: true\n", "\n", "\r"]),
    st.text(max_size=10),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(PIECES, max_size=20), st.sampled_from(["fail", "skip"]))
def test_read_obo_any_text_gives_concepts_or_a_sapbert_error(
    pieces: list[str], on_error: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vocabulary.obo"
        path.write_bytes("".join(["[Term]\nid: X:1\nname: a\n", *pieces]).encode())
        with suppress(SapbertError):
            concepts, _ = read(path, on_error=on_error)
            assert concepts
            assert all(concept.cui and concept.aliases for concept in concepts)


def test_read_obo_real_ontologies_read_every_concept(data_folder: Path) -> None:
    counts = {}
    for path in sorted((data_folder / "sources").glob("*.obo.gz")):
        concepts, report = read(path)
        counts[path.name] = len(concepts)
        assert report.concepts == len(concepts) > 0
        assert report.names == sum(len(concept.aliases) for concept in concepts)
    assert counts["uberon-craft.obo.gz"] == UBERON_CONCEPTS
