import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from spacy_sapbert.kb.edits import diff
from spacy_sapbert.kb.edits.diff import compare_kbs
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.vocabularies.compare import (
    MEANINGS,
    Difference,
    describe_difference,
)
from spacy_sapbert.vocabularies.concepts import Concept
from tests.commands import invoke

EXPECTED = [
    Difference(
        *("renamed", "C0000001", ["Myocardial infarction"], ["Heart attack"]),
        "Heart attack",
    ),
    Difference(
        *("moved", "C0000001", ["C0000003"], ["C0000008", "C0000009"], "Heart attack")
    ),
    Difference(
        *("codes", "C0000001", ["ICD10CM:I21"], ["ICD10CM:I21.9"], "Heart attack")
    ),
    Difference(
        *("retired", "C0000002", ["Mitral insufficiency"], ["C0000001"]),
        "Mitral insufficiency",
    ),
    Difference("names", "C0000004", ["febrile"], ["feverish"], "Fever"),
    Difference("removed", "C0000007", ["Headache"], [], "Headache"),
    Difference("added", "C0000009", [], ["Sore throat"], "Sore throat"),
]


LINES = [
    "renamed C0000001 Heart attack: -Myocardial infarction +Heart attack",
    "moved C0000001 Heart attack: -C0000003 +C0000008, C0000009",
    "codes C0000001 Heart attack: -ICD10CM:I21 +ICD10CM:I21.9",
    "retired C0000002 Mitral insufficiency: -Mitral insufficiency +C0000001",
    "names C0000004 Fever: -febrile +feverish",
    "removed C0000007 Headache: -Headache",
    "added C0000009 Sore throat: +Sore throat",
]


@pytest.fixture(scope="module")
def changed_kb(
    few_concepts: list[Concept],
    make_kb: Callable[..., Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The sample of another release."""
    by_cui = {concept.cui: concept for concept in few_concepts}
    first, fever = by_cui["C0000001"], by_cui["C0000004"]
    by_cui["C0000001"] = replace(
        first,
        aliases=["Heart attack", "Myocardial infarction", *first.aliases[2:]],
        parents=["C0000008", "C0000009"],
        codes={"ICD10CM": ["I21.9"]},
        retired=["C9999999", "C0000002"],
    )
    by_cui["C0000004"] = replace(fever, aliases=[*fever.aliases[:-1], "feverish"])
    del by_cui["C0000002"], by_cui["C0000007"]
    by_cui["C0000009"] = Concept("C0000009", ["Sore throat"])
    folder = tmp_path_factory.mktemp("changed")
    return make_kb(folder, [*reversed(by_cui.values())], backend="exact")


@pytest.mark.parametrize("page", [1, 2, 5000])
def test_compare_kbs_yields_all_differences(
    page: int, sample_kb: Path, changed_kb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diff, "PAGE", page)
    old, new = load_kb(sample_kb), load_kb(changed_kb)
    assert list(compare_kbs(old, new)) == EXPECTED
    back = [one.change for one in compare_kbs(new, old)]
    assert back == ["renamed", "moved", "codes", "added", "names", "added", "removed"]
    assert not list(compare_kbs(new, new))


def test_kb_diff_writes_json_lines(
    sample_kb: Path, changed_kb: Path, tmp_path: Path
) -> None:
    output = tmp_path / "changes.jsonl"
    words = ["kb", "diff", str(sample_kb), str(changed_kb)]
    printed = invoke(*words, code=0)
    lines = [line.strip() for line in printed.output.strip().splitlines()]
    table = [line.split(maxsplit=2) for line in lines if line][: len(MEANINGS)]
    assert table == [[kind, "1", meaning] for kind, meaning in MEANINGS.items()]
    assert sorted(lines[-len(LINES) :]) == sorted(LINES)
    invoke(*words, "--output", output, code=0)
    lines = [json.loads(line) for line in output.read_text("utf8").splitlines()]
    assert [Difference(**line) for line in lines] == EXPECTED
    assert "E003" in invoke(*words, "--output", output).output
    many = Difference("names", "X:1", [], [*"abcde"], "Fever")
    assert describe_difference(many) == "names X:1 Fever: +a, b, c and 2 more"


def test_concepts_diff_is_that_of_the_knowledge_bases(
    sample_kb: Path, changed_kb: Path, tmp_path: Path
) -> None:
    for kb in (sample_kb, changed_kb):
        dump = tmp_path / f"{kb.parent.name}.jsonl"
        invoke("kb", "dump", kb, "-o", dump, code=0)
    files = [tmp_path / f"{kb.parent.name}.jsonl" for kb in (sample_kb, changed_kb)]
    output = tmp_path / "changes.jsonl"
    printed = invoke("concepts", "diff", *files, "-o", output, code=0).output
    lines = [json.loads(line) for line in output.read_text("utf8").splitlines()]
    assert [Difference(**line) for line in lines] == EXPECTED
    assert "retired 1 ids that are now" in " ".join(printed.split())
