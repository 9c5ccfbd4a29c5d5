import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts, write_concepts
from spacy_sapbert.vocabularies.registry import read_vocabulary
from training.__main__ import app
from training.corpora.biosyn import preprocess_concepts, preprocess_name


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, ["biosyn-names", *map(str, arguments)])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Tooth Agenesis, Selective, 6", "tooth agenesis selective 6"),
        ("Crohn's  disease (CD)", "crohn s disease cd"),
        ("beta-2\tagonist\n", "beta 2 agonist"),
        ("C_6 {deficiency}", "c 6 deficiency"),
        ("Sjögren–Larsson", "sjögren–larsson"),  # only ASCII is punctuation
        ("+/-", ""),
        ("", ""),
    ],
)
def test_preprocess_name_removes_case_and_punctuation(name: str, expected: str) -> None:
    assert preprocess_name(name) == expected


@given(st.text())
def test_preprocess_name_twice_equals_once(name: str) -> None:
    once = preprocess_name(name)
    assert preprocess_name(once) == once == " ".join(once.split())


def test_preprocess_concepts_has_distinct_names_in_order() -> None:
    concepts = [
        Concept(
            "C1",
            ["---", "Heart-attack", "MI", "heart attack"],
            types=["T047"],
            sources={"S": [0, 2], "T": [2, 3]},
        ),
        Concept("C2", ["..."]),
    ]
    counts: Counter[str] = Counter()
    assert list(preprocess_concepts(concepts, counts)) == [
        Concept(
            "C1",
            ["heart attack", "mi"],
            types=["T047"],
            sources={"S": [1], "T": [0, 1]},
        )
    ]
    # the given one is left alone
    assert concepts[0].aliases[1] == "Heart-attack"
    assert concepts[0].sources == {"S": [0, 2], "T": [2, 3]}
    assert counts == {
        "concepts": 2,
        "names": 5,
        "of punctuation only, dropped": 2,
        "equal to another of the concept, dropped": 1,
        "names written": 2,
        "concepts written": 1,
    }


def test_preprocess_concepts_without_names_is_an_error() -> None:
    with pytest.raises(SapbertError, match="E731.*1 concepts"):
        list(preprocess_concepts([Concept("C1", ["..."])], Counter()))


def test_biosyn_names_writes_concepts(tmp_path: Path) -> None:
    path, output = tmp_path / "concepts.jsonl", tmp_path / "out.jsonl.gz"
    write_concepts(path, [Concept("C1", ["Heart-attack", "MI"], retired=["C9"])])
    done = run(path, output)
    assert done.exit_code == 0
    assert "names written" in done.output
    assert list(read_concepts(output)) == [
        Concept("C1", ["heart attack", "mi"], retired=["C9"])
    ]
    assert run(path, output, "--quiet").output == ""


def test_biosyn_names_without_names_writes_nothing(tmp_path: Path) -> None:
    path, output = tmp_path / "concepts.jsonl", tmp_path / "out.jsonl"
    path.write_text(json.dumps({"cui": "C1", "name": "..."}) + "\n", "utf8")
    done = run(path, output)
    assert done.exit_code == 1
    assert "E731" in done.output
    assert list(tmp_path.iterdir()) == [path]


def test_biosyn_names_of_medic_are_as_many_as_published(
    data_file: Callable[[str], Path],
) -> None:
    path = data_file("medic/medic_06Jul2012.txt.gz")
    counts: Counter[str] = Counter()
    concepts = list(preprocess_concepts(read_vocabulary(path, "biosyn"), counts))
    names = {name for concept in concepts for name in concept.aliases}
    assert len(concepts) == 11_915
    assert counts["names"] == 76_237
    assert counts["names written"] == 72_968  # a name of two concepts counts twice
    assert len(names) == 71_924
    # 71,923 with a letter: the other is "1", a slip in MEDIC after "…, Familial, 1"
    assert [name for name in names if name.isnumeric()] == ["1"]
