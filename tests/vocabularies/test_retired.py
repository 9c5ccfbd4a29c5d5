from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from spacy_sapbert.vocabularies.registry import read_vocabularies
from spacy_sapbert.vocabularies.report import Report

VOCABULARY = [
    Concept("MESH:D1", ["one"]),
    Concept("MESH:D2", ["two"], retired=["MESH:C2"]),
]


def read(
    folder: Path,
    text: str,
    concepts: list[Concept] = VOCABULARY,
    on_error: str = "fail",
) -> tuple[dict[str, list[str]], Report]:
    """Retired ids by concept, and the report of the file of retired ids."""
    write_concepts(folder / "c.jsonl", concepts)
    path = folder / "old.tsv"
    path.write_text(text, "utf8")
    reports = [Report(), Report()]
    found = read_vocabularies(
        [folder / "c.jsonl"], retired=[path], reports=reports, on_error=on_error
    )
    return {concept.cui: concept.retired for concept in found}, reports[1]


@pytest.mark.parametrize(
    "line", ["A\tMESH:D1", "A,MSH:D1", '"A","MESH:D1"', " A , mesh:D1 "]
)
def test_retired_id_becomes_one_of_the_concept(tmp_path: Path, line: str) -> None:
    found, report = read(tmp_path, f"{line}\n")
    assert found == {"MESH:D1": ["A"], "MESH:D2": ["MESH:C2"]}
    assert report.counts["retired ids added"] == 1


def test_retired_ids_are_written_as_the_ids_of_the_vocabulary(tmp_path: Path) -> None:
    concepts = [Concept("MESH:D000077287", ["levetiracetam"])]
    found, _ = read(tmp_path, "C026098,D000077287\n", concepts)
    assert found == {"MESH:D000077287": ["MESH:C026098"]}


def test_retired_ids_are_followed_to_the_first_concept(tmp_path: Path) -> None:
    # D1 is still a concept, so that it was replaced does not count
    found, report = read(tmp_path, "A\tB\nB\tMESH:D1\nMESH:D1\tMESH:D2\nE\tMESH:C2\n")
    assert found == {"MESH:D1": ["A", "B"], "MESH:D2": ["MESH:C2", "E"]}
    assert report.dropped == {"retired ids that a concept has": 1}


def test_retired_ids_in_a_circle_or_without_a_concept_are_counted(
    tmp_path: Path,
) -> None:
    text = "A\tB\nB\tA\nF\tF\nU\tunknown\nMESH:C2\tMESH:D1\nC\tMESH:D1\nC\tMESH:D2\n"
    found, report = read(tmp_path, text)
    assert found == {"MESH:D1": [], "MESH:D2": ["MESH:C2"]}
    assert report.dropped == {
        "retired ids that lead to no concept": 4,
        "retired ids that a concept has": 1,
        "retired ids that lead to several concepts": 1,
    }


def test_retired_id_in_a_circle_with_a_way_out_is_found(tmp_path: Path) -> None:
    found, _ = read(tmp_path, "A\tB\nB\tA\nB\tMESH:D1\n")
    assert found["MESH:D1"] == ["A", "B"]


@pytest.mark.parametrize("line", ["A", "A\t", "A\tB\tC", "A,B,C", 'A,"B'])
def test_retired_ids_with_a_bad_line_are_an_error(tmp_path: Path, line: str) -> None:
    with pytest.raises(SapbertError, match="E117.*old.tsv:2"):
        read(tmp_path, f"X\tMESH:D1\n{line}\n")
    found, report = read(tmp_path, f"X\tMESH:D1\n{line}\n", on_error="skip")
    assert found["MESH:D1"] == ["X"]
    assert report.dropped["bad lines"] == 1


def test_long_chain_of_retired_ids_ends(tmp_path: Path) -> None:
    pairs = [f"A{n}\tA{n + 1}" for n in range(3000)]
    found, report = read(tmp_path, "\n".join([*pairs, "A3000\tMESH:D1"]))
    assert "A3000" in found["MESH:D1"]
    assert report.dropped["retired ids that lead to no concept"] > 2900
