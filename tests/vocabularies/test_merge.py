from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import PLACES, Concept, write_concepts
from spacy_sapbert.vocabularies.merge import sort_concepts, unite_vocabularies
from spacy_sapbert.vocabularies.registry import (
    READERS,
    guess_format,
    load_reader,
    read_vocabularies,
    read_vocabulary,
)
from spacy_sapbert.vocabularies.report import Report

PLACE = st.dictionaries(
    st.sampled_from("ST"), st.sets(st.sampled_from([0, 1]), min_size=1).map(sorted)
)
CONCEPTS = st.builds(
    Concept,
    cui=st.just("A"),
    aliases=st.lists(st.sampled_from("xyz"), min_size=2, max_size=3, unique=True),
    languages=PLACE,
    sources=PLACE,
)
SAMPLE = Path(__file__).parents[2] / "assets" / "sample"


def test_unite_vocabularies_yields_each_concept_once_sorted() -> None:
    one = [Concept("A", ["a"]), Concept("C", ["c"])]
    two = [Concept("B", ["b"]), Concept("C", ["c", "d"]), Concept("D", ["d"])]
    united = list(unite_vocabularies([one, two, []]))
    assert [concept.cui for concept in united] == ["A", "B", "C", "D"]
    assert united[2].aliases == ["c", "d"]


def test_unite_vocabularies_prefers_the_first_name_and_definition() -> None:
    one = Concept("A", ["x", "y"], ["T1"], {"S": ["1"]}, ["P"], None, ["R"])
    two = Concept("A", ["z", "x"], ["T2"], {"S": ["2", "1"], "U": ["3"]}, ["Q"], "two")
    three = Concept("A", ["w"], definition="three")
    (united,) = unite_vocabularies([[one], [two], [three]])
    assert united == Concept(
        "A",
        ["x", "y", "z", "w"],
        types=["T1", "T2"],
        codes={"S": ["1", "2"], "U": ["3"]},
        parents=["P", "Q"],
        definition="two",
        retired=["R"],
    )


def test_unite_vocabularies_keeps_languages_and_sources() -> None:
    both = {"languages": {"ENG": [0, 1]}, "sources": {"S": [0], "T": [1]}}
    one = Concept("A", ["x", "y"], **both)
    two = Concept("A", ["z", "y", "x"], languages={"FIN": [0, 2]}, sources={"S": [1]})
    (united,) = unite_vocabularies([[one], [two], [Concept("A", ["y", "w"])]])
    assert united.aliases == ["x", "y", "z", "w"]
    assert united.languages == {"ENG": [0, 1], "FIN": [0, 2]}
    assert united.sources == {"S": [0, 1], "T": [1]}


@given(st.lists(CONCEPTS, min_size=1, max_size=4))
def test_unite_vocabularies_merges_languages_and_sources_of_any_names(
    concepts: list[Concept],
) -> None:
    expected = {
        (field, key, concept.aliases[place])
        for concept in concepts
        for field in PLACES
        for key, places in getattr(concept, field).items()
        for place in places
    }
    (united,) = unite_vocabularies([[concept] for concept in concepts])
    found = [
        (field, key, united.aliases[place])
        for field in PLACES
        for key, places in getattr(united, field).items()
        for place in places
    ]
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_unite_vocabularies_reads_its_inputs_in_step() -> None:
    read = []

    def watch() -> Any:
        for number in range(100):
            read.append(number)
            yield Concept(f"{number:03}", ["name"])

    next(unite_vocabularies([watch(), [Concept("999", ["z"])]]))
    assert len(read) <= 3


def test_sort_concepts_keeps_fields_and_the_order_of_the_same_id(
    few_concepts: list[Concept],
) -> None:
    mixed = [*reversed(few_concepts), Concept("C0000004", ["later", "Fever"])]
    found = list(sort_concepts(mixed))
    assert [concept.cui for concept in found] == sorted(c.cui for c in few_concepts)
    assert found[3].aliases == ["Fever", "FEVER", "Pyrexia", "febrile", "later"]
    assert found[0] == few_concepts[0]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf8"), min_size=1), unique=True))
def test_sort_concepts_sorts_as_python_does(cuis: list[str]) -> None:
    found = sort_concepts(Concept(cui, ["name"]) for cui in cuis)
    assert [concept.cui for concept in found] == sorted(cuis)


def test_read_vocabularies_merges_files_with_a_report_of_each(tmp_path: Path) -> None:
    obo, jsonl = tmp_path / "a.obo", tmp_path / "b.jsonl"
    obo.write_text("[Term]\nid: C0027051\nname: coronary\n")
    write_concepts(jsonl, [Concept("C0027051", ["MI"]), Concept("Z", ["z"])])
    reports = [Report(), Report()]
    concepts = list(read_vocabularies([obo, jsonl], reports=reports))
    assert [concept.aliases for concept in concepts] == [["coronary", "MI"], ["z"]]
    assert [report.concepts for report in reports] == [1, 2]
    assert [report.format for report in reports] == ["obo", "jsonl"]


def test_read_vocabularies_one_invalid_file_is_an_error(tmp_path: Path) -> None:
    bad = tmp_path / "bad.obo"
    bad.write_text("[Term]\nid: X:1\nnonsense\n")
    with pytest.raises(SapbertError, match=r"bad\.obo:3: "):
        list(read_vocabularies([SAMPLE, bad]))


# --- formats ---


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("MRCONSO.RRF", "rrf"),
        ("umls/MRCONSO.RRF.aa.gz", "rrf"),
        ("OTHER.RRF.gz", "rrf"),
        ("doid.obo", "obo"),
        ("doid.obo.gz", "obo"),
        ("hp.json", "obographs"),
        ("hp.json.gz", "obographs"),
        ("medic.txt", "biosyn"),
        ("concepts.jsonl.gz", "jsonl"),
    ],
)
def test_guess_format_uses_the_file_name(name: str, format: str) -> None:
    assert guess_format(Path(name)) == format


def test_guess_format_of_a_folder_uses_its_files(tmp_path: Path) -> None:
    (tmp_path / "META").mkdir()
    (tmp_path / "META" / "MRCONSO.RRF.aa.gz").touch()
    assert guess_format(tmp_path) == guess_format(SAMPLE) == "rrf"


def test_guess_format_unknown_name_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SapbertError, match="E110.*--format"):
        guess_format(tmp_path)


def test_registry_has_a_file_name_for_all_formats_but_one() -> None:
    assert all(callable(load_reader(format)) for format in READERS)
    unnamed = [format for format, (_, patterns) in READERS.items() if not patterns]
    assert unnamed == ["scispacy"]  # its files are called as those of `jsonl`


def test_read_vocabularies_unknown_format_is_an_error() -> None:
    with pytest.raises(SapbertError, match="E111.*'owl'"):
        read_vocabulary(SAMPLE, "owl")


def test_read_vocabularies_unknown_on_error_is_an_error() -> None:
    with pytest.raises(SapbertError, match="E112.*'ignore'"):
        read_vocabulary(SAMPLE, on_error="ignore")


def test_read_vocabularies_option_of_another_format_is_an_error_at_once() -> None:
    with pytest.raises(SapbertError, match="E113.*rrf.*--multi-xref"):
        read_vocabulary(SAMPLE, multi_xref="all")


def test_read_vocabularies_passes_an_option_to_the_formats_that_have_it(
    tmp_path: Path,
) -> None:
    obo = tmp_path / "a.obo"
    obo.write_text("[Term]\nid: X:1\nname: x\nxref: UMLS:C0000001\n")
    options = {"ids": "xref", "languages": ("SPA",)}
    concepts = list(read_vocabularies([obo, SAMPLE], **options))
    assert concepts[0].name == "x"
    assert "Belly" not in concepts[1].aliases
