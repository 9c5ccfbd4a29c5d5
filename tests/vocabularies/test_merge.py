"""Several vocabularies: united, mapped, compared, with retired ids."""

from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.compare import (
    Difference,
    compare_vocabularies,
    describe_difference,
)
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from spacy_sapbert.vocabularies.reader_table import read_vocabularies
from spacy_sapbert.vocabularies.report import Report
from tests.vocabularies.test_examples import FOLDER

OLD = [
    Concept("X:1", ["fever", "pyrexia"], codes={"ICD10": ["R50"]}, parents=["X:9"]),
    Concept("X:2", ["cough"]),
    Concept("X:3", ["rash"]),
    Concept("X:9", ["sign"]),
]
NEW = [
    Concept("X:1", ["Fever", "pyrexia"], codes={"ICD10": ["R50.9"]}, retired=["X:2"]),
    Concept("X:4", ["ache"]),
    Concept("X:9", ["sign"]),
]


def test_compare_vocabularies_yields_every_difference_by_id(tmp_path):
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl.gz"
    write_concepts(old, OLD)
    write_concepts(new, NEW)
    assert [*compare_vocabularies(old, new)] == [
        Difference("renamed", "X:1", ["fever"], ["Fever"], "Fever"),
        Difference("moved", "X:1", ["X:9"], [], "Fever"),
        Difference("names", "X:1", ["fever"], ["Fever"], "Fever"),
        Difference("codes", "X:1", ["ICD10:R50"], ["ICD10:R50.9"], "Fever"),
        Difference("retired", "X:2", ["cough"], ["X:1"], "cough"),
        Difference("removed", "X:3", ["rash"], [], "rash"),
        Difference("added", "X:4", [], ["ache"], "ache"),
    ]
    assert not [*compare_vocabularies(new, new)]
    three = Difference("names", "X:1", [*"abc"], [*"defg"], "Fever")
    line = "names X:1 Fever: -a, b, c +d, e, f and 1 more"
    assert describe_difference(three) == line


@pytest.mark.parametrize("concepts", [OLD[::-1], [*OLD, OLD[-1]]])
def test_compare_vocabularies_ids_must_ascend(concepts, tmp_path):
    path = tmp_path / "old.jsonl"
    write_concepts(path, concepts)
    with pytest.raises(SapbertError, match="E104.*old.jsonl.*sorted"):
        [*compare_vocabularies(path, path)]


UNITED = FOLDER / "united"


def test_vocabulary_that_is_mapped_to_nothing_is_an_error(tmp_path):
    write_concepts(tmp_path / "base.jsonl", [Concept("X:1", ["a"])])
    paths = [tmp_path / "base.jsonl"]
    with pytest.raises(SapbertError, match=r"E106.*'X:1'"):
        list(read_vocabularies(paths, xrefs=[UNITED / "doid.obo"]))
    with pytest.raises(SapbertError, match="E106.*SSSOM"):
        list(read_vocabularies(paths, xrefs=[UNITED / "map.sssom.tsv"]))


@pytest.mark.parametrize("line", ["A\t", "A\tB\tC", 'A,"B'])
def test_retired_ids_with_a_bad_line_are_an_error(tmp_path, line):
    write_concepts(tmp_path / "c.jsonl", [Concept("MESH:D1", ["one"])])
    files, retired = [tmp_path / "c.jsonl"], tmp_path / "old.tsv"
    retired.write_text(f"X\tMESH:D1\n{line}\n")
    with pytest.raises(SapbertError, match="E117.*old.tsv:2"):
        list(read_vocabularies(files, retired=[retired]))
    more: Any = {"reports": [Report(), Report()], "on_error": "skip"}
    (concept,) = read_vocabularies(files, retired=[retired], **more)
    assert concept.retired == ["X"]
    assert more["reports"][1].dropped["bad lines"] == 1
