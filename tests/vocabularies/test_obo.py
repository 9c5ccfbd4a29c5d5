from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept
from tests.vocabularies import whole

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


read = partial(whole.read, format="obo")


def read_one(folder: Path, *lines: str, **options: Any) -> Concept:
    """The concept of a file with a term of these lines."""
    (concept,), _ = read(write_obo(folder, make_term("X:1", *lines)), **options)
    return concept


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


def test_read_obo_other_stanzas_are_ignored(tmp_path: Path) -> None:
    stanza = "[Typedef]\nid: part_of\nname: part of\nis_transitive: true\n"
    path = write_obo(tmp_path, stanza, make_term("X:1"), stanza)
    assert [concept.cui for concept in read(path)[0]] == ["X:1"]


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
        ('name: blue fever {xref="MONDO:1", source="x"} ! old', "blue fever"),
        ("name: alpha-{beta} fever {NOS}", "alpha-{beta} fever {NOS}"),
        ("name: alpha ! a remark", "alpha"),
        ("name: alpha \\! beta", "alpha ! beta"),
        ('synonym: "say \\"ah\\"" EXACT []', 'say "ah"'),
        ('synonym: "a" EXACT []', "a"),
        ('synonym: "a" EXACT abbreviation [PMID:1]', "a"),
        ('synonym: "a" exact [] {source="x"} ! comment', "a"),
        ('synonym: "a b ! c {d}" EXACT []', "a b ! c {d}"),
        # quotes that nobody escaped
        ('synonym: "3,3\',3"-phosphane" EXACT []', "3,3',3\"-phosphane"),
        ('synonym: "5\'-3" end" EXACT [X:1 "a "b""]', "5'-3\" end"),
    ],
)
def test_read_obo_name_or_synonym_is_unescaped(
    tmp_path: Path, line: str, name: str
) -> None:
    assert read_one(tmp_path, line).aliases[-1] == name


@pytest.mark.parametrize(
    ("lines", "codes"),
    [
        (['xref: MSH:D1 "what it is" {a="b"}'], {"MSH": ["D1"]}),
        (["xref: xref (ILX:0770149)"], {"ILX": ["0770149"]}),
        # how MONDO says it
        (
            [
                'xref: MESH:D1 {source="MONDO:equivalentTo", source="DOID:1"}',
                'xref: MESH:D2 {source="MONDO:relatedTo"}',
                'xref: OMIM:3 {source="MONDO:mondoIsBroaderThanSource"}',
                'xref: NCIT:C4 {source="DOID:1"}',
            ],
            {"MESH": ["D1"], "NCIT": ["C4"]},
        ),
    ],
)
def test_read_obo_reference_is_a_code(
    tmp_path: Path, lines: list[str], codes: dict[str, list[str]]
) -> None:
    assert read_one(tmp_path, *lines).codes == {"X": ["1"], **codes}


@pytest.mark.parametrize(
    ("value", "parent"),
    [
        ("X:2", "X:2"),
        ("X:2 ! a comment", "X:2"),
        ('X:2 {source="a ! b"}', "X:2"),
        ('X:2 {source="a"} ! {x} comment', "X:2"),
    ],
)
def test_read_obo_comment_and_modifiers_are_not_part_of_an_id(
    tmp_path: Path, value: str, parent: str
) -> None:
    terms = [make_term("X:1 ! c", f"is_a: {value}"), make_term("X:2")]
    concepts, _ = read(write_obo(tmp_path, *terms))
    assert (concepts[0].cui, concepts[0].parents) == ("X:1", [parent])


def test_read_obo_unknown_parent_and_the_term_itself_are_not_parents(
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


XREFS = ["xref: UMLS:C0000002", "xref: UMLS_CUI:C0000001"]


@pytest.mark.parametrize(
    ("options", "lines", "rule"),
    [
        ({}, ["name: -"], "concepts without a name"),
        ({}, ["is_obsolete: true"], "obsolete terms"),
        ({"cui_pattern": r"X:\d"}, [], "terms with malformed ids"),
        ({"ids": "xref"}, ["xref: MSH:D1"], "terms without a UMLS id"),
        ({"ids": "xref"}, ["xref: UMLS:C1"], "terms with malformed ids"),
        ({"ids": "xref"}, XREFS, "terms with several UMLS ids"),
    ],
)
def test_read_obo_dropped_term_is_counted(
    tmp_path: Path, options: dict[str, Any], lines: list[str], rule: str
) -> None:
    terms = [make_term("X:99", *lines), make_term("X:1", "xref: UMLS:C0000003")]
    concepts, report = read(write_obo(tmp_path, *terms), **options)
    assert [c.cui for c in concepts] == ["C0000003" if "ids" in options else "X:1"]
    assert report.dropped[rule] == 1


@pytest.mark.parametrize(
    ("options", "lines", "cuis"),
    [
        ({"obsolete": True}, ["is_obsolete: true"], ["X:1"]),
        ({"ids": "xref", "xref_prefix": "MSH"}, ["xref: MSH:D1"], ["D1"]),
        ({"ids": "xref", "multi_xref": "all"}, XREFS, ["C0000001", "C0000002"]),
    ],
)
def test_read_obo_option_keeps_a_term(
    tmp_path: Path, options: dict[str, Any], lines: list[str], cuis: list[str]
) -> None:
    path = write_obo(tmp_path, make_term("X:1", *lines))
    concepts, _ = read(path, type="T047", **options)
    assert [concept.cui for concept in concepts] == cuis
    assert all(concept.types == ["T047"] for concept in concepts)


# --- ids of another vocabulary ---


@pytest.mark.parametrize("prefix", ["UMLS", "UMLS_CUI", "umls"])
def test_read_obo_xref_ids_replace_own_ones(tmp_path: Path, prefix: str) -> None:
    lines = [f"xref: {prefix}:C0000001", "alt_id: X:9"]
    concept = read_one(tmp_path, *lines, ids="xref")
    assert (concept.cui, concept.retired) == ("C0000001", [])
    assert concept.codes == {"X": ["1"]}


def test_read_obo_parents_are_xref_ids_too(tmp_path: Path) -> None:
    terms = [
        make_term("X:1", "xref: UMLS:C0000001", "is_a: X:2"),
        make_term("X:2", "xref: UMLS:C0000002"),
    ]
    concepts, _ = read(write_obo(tmp_path, *terms), ids="xref")
    assert [concept.parents for concept in concepts] == [["C0000002"], []]


# --- obsolete terms and retired ids ---


def test_read_obo_replaced_id_retires_to_the_new_one(tmp_path: Path) -> None:
    old = make_term("X:1", "is_obsolete: true", "replaced_by: X:2 ! new")
    concepts, _ = read(write_obo(tmp_path, old, make_term("X:2", "alt_id: X:3")))
    assert concepts[0].retired in (["X:1", "X:3"], ["X:3", "X:1"])


def test_read_obo_id_replaced_by_several_is_not_retired(tmp_path: Path) -> None:
    lines = ["is_obsolete: true", "replaced_by: X:2", "replaced_by: X:3"]
    terms = [make_term("X:1", *lines), make_term("X:2"), make_term("X:3")]
    concepts, _ = read(write_obo(tmp_path, *terms))
    assert [concept.retired for concept in concepts] == [[], []]


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
def test_read_obo_invalid_line_is_an_error_or_counted(
    tmp_path: Path, line: str, expected: str
) -> None:
    path = write_obo(tmp_path, make_term("X:1", line))
    with pytest.raises(SapbertError, match=f"E117.*:6: Expected {expected}") as error:
        read(path)
    assert "fever" not in str(error.value)
    concepts, report = read(path, on_error="skip")
    assert [concept.cui for concept in concepts] == ["X:1"]
    assert report.dropped["bad lines"] == 1


@pytest.mark.parametrize(
    ("option", "value"),
    [("ids", "mine"), ("multi_xref", "best"), ("scopes", ("EXACTLY",))],
)
def test_read_obo_option_of_an_unknown_value_is_an_error(
    tmp_path: Path, option: str, value: Any
) -> None:
    path = write_obo(tmp_path, make_term("X:1"))
    name = option.replace("_", "-")
    with pytest.raises(SapbertError, match=f"E331.*Expected `--{name}`"):
        read(path, **{option: value})


@pytest.mark.parametrize("piece", [" ", " {", " !", "{}", '\\"'])
def test_read_obo_long_line_takes_no_longer_than_its_length(
    tmp_path: Path, piece: str
) -> None:
    long = piece * 100_000
    lines = [f"is_a: X:2{long}x", f"xref: M:1{long}x", f'synonym: "{long}x" EXACT []']
    assert read_one(tmp_path, *lines).cui == "X:1"


# --- real files ---


@pytest.mark.slow
def test_read_obo_real_ontologies_read_every_concept(data_folder: Path) -> None:
    counts = {}
    for path in sorted((data_folder / "sources").glob("*.obo.gz")):
        concepts, report = read(path)
        counts[path.name] = len(concepts)
        assert report.concepts == len(concepts) > 0
        assert report.names == sum(len(concept.aliases) for concept in concepts)
    assert counts["uberon-craft.obo.gz"] == UBERON_CONCEPTS


def xrefs_of(folder: Path, *lines: str) -> list[str]:
    """The MeSH ids of a term, from its codes."""
    return read_one(folder, *lines).codes.get("MESH", [])


def test_read_obo_leaves_out_references_that_are_no_exact_matches(
    tmp_path: Path,
) -> None:
    lines = ["xref: MESH:D1", "xref: MESH:D2", "xref: OMIM:3", "xref: MESH:D4"]
    matches = [
        "property_value: skos:narrowMatch MESH:D2",
        'property_value: skos:broadMatch "OMIM:3" xsd:string',
    ]
    concept = read_one(tmp_path, *lines, *matches)
    assert concept.codes == {"X": ["1"], "MESH": ["D1", "D4"]}
    # where the file says which match exactly, the others do not
    exact = r"property_value: exactMatch http\://identifiers.org/mesh/D1"
    assert xrefs_of(tmp_path, *lines, *matches, exact) == ["D1"]
    assert xrefs_of(
        tmp_path, 'property_value: skos:exactMatch "MESH:D9" xsd:string'
    ) == ["D9"]


def test_read_obo_keeps_what_a_mapping_means(tmp_path: Path) -> None:
    """The modifiers are those of MONDO."""
    concept = read_one(
        tmp_path,
        "xref: MESH:D1",
        "property_value: skos:closeMatch MESH:D1",
        'xref: ICD10CM:A1 {source="MONDO:mondoIsNarrowerThanSource"}',
        'xref: ICD10CM:A2 {source="MONDO:mondoIsBroaderThanSource"}',
        'xref: DOID:5 {source="MONDO:equivalentTo", source="x"}',
    )
    assert concept.codes == {"X": ["1"], "DOID": ["5"]}
    assert concept.related_codes == {
        "related": {"MESH": ["D1"]},
        "broader": {"ICD10CM": ["A1"]},
        "narrower": {"ICD10CM": ["A2"]},
    }


def test_read_obo_finds_ids_under_any_prefix_of_a_vocabulary(tmp_path: Path) -> None:
    for xref in ("MESH:D1", "MSH:D1", "SNOMEDCT_US_2018_03_01:1"):
        prefix = "SNOMEDCT" if "SNOMED" in xref else "MSH"
        concept = read_one(tmp_path, f"xref: {xref}", ids="xref", xref_prefix=prefix)
        assert concept.cui == xref.partition(":")[2]
