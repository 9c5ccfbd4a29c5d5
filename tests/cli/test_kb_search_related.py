import json

from typer.testing import CliRunner

from spacy_sapbert.cli.main import app
from spacy_sapbert.kb.knowledge_base import load_kb


def run(*arguments):
    return CliRunner().invoke(app, ["kb", "related", *map(str, arguments)])


def test_related_prints_neighbours_with_their_relations(cold_kb):
    result = run("C4", "C9", "--kb", cold_kb, "-k", 5)
    assert result.exit_code == 0, result.output
    first, second = result.output.split("\n\nC9 Lung disease\n")
    assert first.startswith("C4 Asthma\n")
    rows = [line.split() for line in first.splitlines()[4:]]
    assert len(rows) == 5
    words = {row[1]: row[-1] for row in rows}
    assert (words["C3"], words["C9"]) == ("sibling", "parent")
    words = {row[1]: row[-1] for row in map(str.split, second.splitlines()[2:])}
    assert (words["C3"], words["C4"]) == ("child", "child")


def test_related_json_equals_the_python_result(cold_kb):
    result = run("C4", "--kb", cold_kb, "--json")
    assert result.exit_code == 0, result.output
    found = [one._asdict() for one in load_kb(cold_kb).related("C4")]
    assert json.loads(result.stdout) == [
        {"cui": "C4", "name": "Asthma", "related": found}
    ]


def test_related_to_an_unknown_concept_is_an_error(cold_kb):
    result = run("C4", "gone", "--kb", cold_kb)
    assert result.exit_code == 1
    assert "E336" in result.output


def test_related_without_neighbours_exits_with_3(tiny_encoder, tmp_path):
    from spacy_sapbert.kb.build import build_kb
    from spacy_sapbert.vocabularies.concepts import Concept, write_concepts

    write_concepts(tmp_path / "c.jsonl", [Concept("C1", ["fever"])])
    build_kb(tmp_path / "c.jsonl", tmp_path / "kb", str(tiny_encoder))
    assert run("C1", "--kb", tmp_path / "kb").exit_code == 3
