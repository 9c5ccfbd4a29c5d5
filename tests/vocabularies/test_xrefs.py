from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from spacy_sapbert.vocabularies.registry import read_vocabularies, read_vocabulary
from spacy_sapbert.vocabularies.report import Report

LUNG = Concept("MESH:D1", ["Lung Neoplasms"], sources={"MSH": [0]})
SKIN = Concept("MESH:D2", ["Skin Neoplasms"], sources={"MSH": [0]})


def make_term(id: str, *lines: str) -> str:
    return "\n".join(["[Term]", f"id: {id}", *lines, ""])


def term(id: str, name: str, *xrefs: str) -> str:
    return make_term(id, f"name: {name}", *(f"xref: {xref}" for xref in xrefs))


def write_obo(folder: Path, *terms: str) -> Path:
    path = folder / "vocabulary.obo"
    path.write_text("\n".join(terms), "utf8")
    return path


def add_names(
    folder: Path, *terms: str, base: tuple[Concept, ...] = (LUNG, SKIN)
) -> tuple[list[Concept], Report]:
    """The concepts with the names of an ontology, and its report."""
    write_concepts(folder / "base.jsonl", base)
    reports = [Report(), Report()]
    xrefs = [write_obo(folder, *terms)]
    concepts = read_vocabularies([folder / "base.jsonl"], xrefs=xrefs, reports=reports)
    return list(concepts), reports[1]


@pytest.mark.parametrize("xref", ["MESH:D1", "MSH:D1"])
def test_xrefs_add_names_with_their_source(tmp_path: Path, xref: str) -> None:
    (lung, skin), report = add_names(tmp_path, term("DOID:1", "lung cancer", xref))
    assert lung == Concept(
        "MESH:D1",
        ["Lung Neoplasms", "lung cancer"],
        codes={"DOID": ["1"]},
        sources={"MSH": [0], "DOID": [1]},
    )
    assert skin == SKIN
    assert report.counts["concepts that are mapped"] == 1
    assert report.counts["names added"] == 1


def test_xrefs_of_the_vocabulary_to_the_other_count_too(tmp_path: Path) -> None:
    base = Concept("X:1", ["Lung Neoplasms"], codes={"DOID": ["1"]})
    (lung,), _ = add_names(tmp_path, term("DOID:1", "lung cancer"), base=(base,))
    assert lung.aliases == ["Lung Neoplasms", "lung cancer"]
    assert lung.codes == {"DOID": ["1"]}


def test_codes_that_both_have_are_no_mapping(tmp_path: Path) -> None:
    base = Concept("X:1", ["Lung Neoplasms"], codes={"ICD10CM": ["C34"]})
    with pytest.raises(SapbertError, match=r"E106.*'X:1'"):
        add_names(tmp_path, term("DOID:1", "lung cancer", "ICD10CM:C34"), base=(base,))


def test_xrefs_leave_out_names_that_would_be_ambiguous(tmp_path: Path) -> None:
    concepts, report = add_names(
        tmp_path,
        term("DOID:1", "skin neoplasms", "MESH:D1"),  # that of D2
        term("DOID:2", "Tumour", "MESH:D1"),
        term("DOID:3", "tumour", "MESH:D2"),
        term("DOID:4", "NSCL", "MESH:D1"),
        term("DOID:5", "lung neoplasms", "MESH:D1"),
    )
    assert [concept.aliases for concept in concepts] == [LUNG.aliases, SKIN.aliases]
    dropped = {
        "names of other concepts": 1,
        "names of several concepts": 2,
        "names of at most 4 characters": 1,
        "repeated names": 1,
    }
    assert {rule: report.dropped[rule] for rule in dropped} == dropped


def test_equal_name_of_both_vocabularies_gets_both_sources(tmp_path: Path) -> None:
    (lung, _), report = add_names(tmp_path, term("DOID:1", "Lung Neoplasms", "MESH:D1"))
    assert lung.aliases == ["Lung Neoplasms"]
    assert lung.sources == {"MSH": [0], "DOID": [0]}
    assert report.counts["names added"] == 0


def test_names_without_a_source_get_the_name_of_the_file(tmp_path: Path) -> None:
    write_concepts(tmp_path / "base.jsonl", [LUNG])
    other = Concept(
        "L1", ["lung cancer"], codes={"MSH": ["D1"]}, languages={"ENG": [0]}
    )
    write_concepts(tmp_path / "local.jsonl", [other])
    (lung,) = read_vocabularies(
        [tmp_path / "base.jsonl"], xrefs=[tmp_path / "local.jsonl"]
    )
    assert lung.sources == {"MSH": [0], "local": [1]}
    assert lung.languages == {"ENG": [1]}
    assert lung.codes == {}  # the id has no prefix, so that its source is unknown


def test_concept_with_the_same_id_is_the_mapped_one(tmp_path: Path) -> None:
    same = term("MESH:D1", "lung cancer", "MESH:D2")
    (lung, skin), _ = add_names(tmp_path, same)
    assert (lung.aliases[1:], skin.aliases[1:]) == (["lung cancer"], [])


def test_retired_ids_are_added_before_the_names(tmp_path: Path) -> None:
    write_concepts(tmp_path / "base.jsonl", [LUNG])
    (tmp_path / "old.tsv").write_text("MESH:C1\tMESH:D1\n")
    (lung,) = read_vocabularies(
        [tmp_path / "base.jsonl"],
        xrefs=[write_obo(tmp_path, term("DOID:1", "lung cancer", "MESH:C1"))],
        retired=[tmp_path / "old.tsv"],
    )
    assert lung.aliases == ["Lung Neoplasms", "lung cancer"]


def test_options_of_names_apply_to_the_other_vocabulary(tmp_path: Path) -> None:
    write_concepts(tmp_path / "base.jsonl", [LUNG])
    synonym = 'synonym: "lung tumour" RELATED []'
    path = write_obo(
        tmp_path, make_term("DOID:1", "name: lung cancer", "xref: MESH:D1", synonym)
    )
    names = []
    (tmp_path / "base").mkdir()
    for options in ({}, {"scopes": ["RELATED"]}):
        base = write_obo(
            tmp_path / "base", make_term("MESH:D1", "name: Lung Neoplasms")
        )
        (lung,) = read_vocabularies([base], xrefs=[path], **options)
        names.append(lung.aliases[1:])
    assert names == [["lung cancer"], ["lung cancer", "lung tumour"]]


# --- mappings in SSSOM, and unions ---

DOID = term("DOID:1", "lung cancer"), term("DOID:2", "blue fever")
SSSOM = """#mapping_set_id: https://w3id.org/x
#curie_map:
#  DOID: http://purl.obolibrary.org/obo/DOID_
subject_id\tpredicate_id\tobject_id\tmapping_justification\tpredicate_modifier
"""


def unite(
    folder: Path, *mappings: str, labels: str = "", **options: Any
) -> tuple[list[Concept], list[Report]]:
    """The concepts with those of an ontology that a file of SSSOM maps to them."""
    write_concepts(folder / "base.jsonl", (LUNG, SKIN))
    path = folder / "map.sssom.tsv"
    rows = "".join("\t".join([*row.split(), "", ""][:5]) + "\n" for row in mappings)
    path.write_text(labels or SSSOM + rows)
    reports = [Report(), Report(), Report()]
    xrefs = [write_obo(folder, *DOID), path]
    concepts = read_vocabularies(
        [folder / "base.jsonl"], xrefs=xrefs, reports=reports, **options
    )
    return list(concepts), reports


def test_sssom_maps_the_concepts_of_other_vocabularies(tmp_path: Path) -> None:
    (lung, skin), reports = unite(
        tmp_path,
        "MESH:D1 skos:exactMatch DOID:1 semapv:ManualMappingCuration",
        "DOID:2 skos:closeMatch MESH:D2 semapv:LexicalMatching",
        "DOID:2 skos:exactMatch MESH:D2 semapv:LexicalMatching Not",
        "DOID:2 skos:exactMatch sssom:NoTermFound semapv:LexicalMatching",
    )
    assert lung.aliases == ["Lung Neoplasms", "lung cancer"]
    assert lung.codes == {"DOID": ["1"]}
    assert skin == replace(SKIN, related_codes={"related": {"DOID": ["2"]}})
    assert reports[2].counts["mappings that are used"] == 2
    assert reports[2].dropped["mappings with other predicates"] == 1
    assert reports[2].dropped["mappings to nothing"] == 1


def test_sssom_labels_are_names(tmp_path: Path) -> None:
    labels = (
        "subject_id,predicate_id,object_id,subject_label,object_label\n"
        'HP:1,http://www.w3.org/2004/02/skos/core#exactMatch,MESH:D1,"tumor, lung",x\n'
    )
    (tmp_path / "map.sssom.csv").write_text(labels)
    write_concepts(tmp_path / "base.jsonl", (LUNG,))
    (lung,) = read_vocabularies(
        [tmp_path / "base.jsonl"], xrefs=[tmp_path / "map.sssom.csv"]
    )
    assert lung.aliases == ["Lung Neoplasms", "tumor, lung"]
    assert lung.codes == {"HP": ["1"]}


def test_sssom_counts_doubtful_mappings_and_reads_lists_and_cross_references(
    tmp_path: Path,
) -> None:
    (tmp_path / "map.sssom.tsv").write_text(
        "subject_id\tpredicate_id\tobject_id\tconfidence\tsubject_label\n"
        "HP:1\tskos:exactMatch\tMESH:D1\t0.01\tdoubtful\n"
        "HP:2\toboInOwl:hasDbXref\tMESH:D1|MESH:D2\t0.9\tlump\n"
        "HP:3\tskos:exactMatch\tMESH:D2\t\tskin lump\n"
    )
    write_concepts(tmp_path / "base.jsonl", (LUNG, SKIN))
    reports = [Report(), Report()]
    lung, skin = read_vocabularies(
        [tmp_path / "base.jsonl"], xrefs=[tmp_path / "map.sssom.tsv"], reports=reports
    )
    assert "doubtful" not in lung.aliases
    assert lung.codes == {"HP": ["2"]}
    assert skin.codes["HP"] == ["2", "3"]
    assert "skin lump" in skin.aliases
    assert reports[1].dropped["mappings with a confidence below 0.5"] == 1


def test_sssom_texts_are_names_of_what_they_are_mapped_to(tmp_path: Path) -> None:
    path = tmp_path / "terms.sssom.tsv"
    path.write_text(
        "#license: x\nsubject_label\tsubject_type\tpredicate_id\tobject_id\t"
        "object_label\n"
        "heart atack\trdfs literal\tskos:exactMatch\tUMLS:C1\tHeart attack\n"
        "a close one\trdfs literal\tskos:closeMatch\tUMLS:C1\tHeart attack\n"
        "nothing\trdfs literal\tskos:exactMatch\tsssom:NoTermFound\t\n"
    )
    (concept,) = read_vocabulary(path)
    assert concept.aliases == ["Heart attack", "heart atack"]


def test_sssom_that_maps_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SapbertError, match="E106.*SSSOM"):
        unite(tmp_path, "X:1 skos:exactMatch Y:1 semapv:LexicalMatching")


def test_unmapped_concepts_are_added_and_others_may_be_mapped_to_them(
    tmp_path: Path,
) -> None:
    concepts, reports = unite(
        tmp_path,
        "DOID:1 skos:exactMatch MESH:D1 semapv:LexicalMatching",
        add_unmapped=True,
    )
    assert {each.cui: each.aliases for each in concepts} == {
        "DOID:2": ["blue fever"],
        "MESH:D1": ["Lung Neoplasms", "lung cancer"],
        "MESH:D2": ["Skin Neoplasms"],
    }
    assert [each.cui for each in concepts] == ["DOID:2", "MESH:D1", "MESH:D2"]
    assert reports[1].counts["concepts added"] == 1
    last = tmp_path / "last.jsonl"
    azure = Concept("X:1", ["azure fever"], codes={"DOID": ["2"]})
    write_concepts(last, [azure])
    (_, fever, *_) = read_vocabularies(
        [tmp_path / "base.jsonl"],
        xrefs=[tmp_path / "vocabulary.obo", last],
        add_unmapped=True,
    )
    assert fever.aliases == ["blue fever", "azure fever"]
    assert fever.sources == {"DOID": [0], "last": [1]}


def test_conflicts_are_counted_and_listed(tmp_path: Path) -> None:
    rows: list[tuple[str, ...]] = []
    write_concepts(tmp_path / "base.jsonl", (LUNG, SKIN))
    path = write_obo(
        tmp_path,
        term("DOID:1", "cancer of some organ", "MESH:D1", "MESH:D2"),
        term("DOID:2", "skin neoplasms", "MESH:D1"),
        term("DOID:3", "tumour", "MESH:D1"),
        term("DOID:4", "Tumour", "MESH:D2"),
    )
    report = Report(conflict=lambda *fields: rows.append(fields))
    [
        *read_vocabularies(
            [tmp_path / "base.jsonl"], xrefs=[path], reports=[Report(), report]
        )
    ]
    assert rows == [
        ("concepts that are mapped to several", "DOID:1", "MESH:D1|MESH:D2", ""),
        ("names of other concepts", "DOID:2", "MESH:D1|MESH:D2", "skin neoplasms"),
        ("names of several concepts", "DOID:3", "MESH:D1|MESH:D2", "tumour"),
        ("names of several concepts", "DOID:4", "MESH:D1|MESH:D2", "Tumour"),
    ]
