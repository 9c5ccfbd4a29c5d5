import csv
import json
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts
from tests.commands import invoke

run = partial(invoke, "kb")


def test_kb_build_writes_a_kb_and_prints_its_counts(
    concepts_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    kb = tmp_path / "kb"
    result = run(
        *("build", concepts_file, kb, "--encoder", tiny_encoder),
        *("--backend", "hnsw", "--setting", "M=8", "--setting", "ef=50"),
        *("--pooling", "cls", "--threshold", "0.5", "--source", "made up 1.0"),
        *("--engine", "torch"),
        code=0,
    )
    assert "made up 1.0" in result.output
    manifest = load_kb(kb).manifest
    assert manifest.index.settings["M"] == 8
    assert manifest.index.settings["ef_construction"] == 200
    assert manifest.encoder.pooling == "cls"
    assert manifest.encoder.max_length == 25
    assert manifest.threshold == 0.5
    assert manifest.sources == ["made up 1.0"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_kb_build_gpu_id_without_a_gpu_is_an_error(
    concepts_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    kb = tmp_path / "kb"
    result = run(
        "build", concepts_file, kb, "--encoder", tiny_encoder, "--gpu-id", 0, code=1
    )
    assert "E357" in result.output
    assert "Traceback" not in result.output
    assert not kb.exists()


def test_kb_build_quiet_prints_nothing(
    concepts_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    arguments = (concepts_file, tmp_path / "kb", "--encoder", tiny_encoder)
    result = run("build", *arguments, "--engine", "torch", "--quiet")
    assert (result.exit_code, result.output) == (0, "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--setting", "M"), "a setting as NAME=VALUE"),
        (("--setting", "nothing=1"), "'nothing'"),
        (("--backend", "usearch"), "--backend"),
        (("--setting", "M=x"), "setting M as a whole number"),
        (("--threshold", "2"), "threshold"),
    ],
)
def test_kb_build_invalid_option_is_an_error_with_its_name(
    concepts_file: Path,
    tiny_encoder: Path,
    tmp_path: Path,
    options: tuple,
    message: str,
) -> None:
    kb = tmp_path / "kb"
    result = run(
        "build", concepts_file, kb, "--encoder", tiny_encoder, *options, code=1
    )
    assert message in result.output
    assert not kb.exists()


def test_kb_build_replaces_a_folder_only_with_force(
    concepts_file: Path, own_kb: Path
) -> None:
    arguments = ("build", concepts_file, own_kb, "--encoder", own_kb / "v1" / "encoder")
    assert "--force" in run(*arguments, code=1).output
    run(*arguments, "--force", "--backend", "exact", "--engine", "torch", code=0)
    assert load_kb(own_kb).manifest.index.backend == "exact"
    assert (own_kb / "v1" / "index.hnsw").exists()
    assert not (own_kb / "v2" / "index.hnsw").exists()


def test_kb_info_prints_a_table_and_json(sample_kb: Path) -> None:
    assert "Distinct names in the index" in run("info", sample_kb, code=0).output
    data = json.loads(run("info", sample_kb, "--json").output)
    assert data["counts"]["concepts"] == 8


def test_kb_verify_finds_damage(own_kb: Path) -> None:
    assert "100.0%" in run("verify", own_kb, code=0).output
    (own_kb / "v1" / "concepts.db").write_bytes(b"SQLite")
    assert "concepts.db" in run("verify", own_kb, code=1).output


def test_kb_verify_without_a_kb_is_an_error_with_three_fixes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spacy_sapbert.kb.folder.versions.installed_kbs", dict)
    result = run("verify", code=1)
    output = " ".join(result.output.split())
    for fix in ("Name a folder", "pip install", "spacy sapbert kb build"):
        assert fix in output


@pytest.mark.parametrize(
    ("command", "folder", "code", "message"),
    [
        pytest.param(
            "spacy sapbert", ".", 0, "Distinct names", marks=pytest.mark.smoke
        ),
        ("spacy_sapbert", ".", 0, "Distinct names"),
        ("spacy sapbert", "none", 1, "E310"),
    ],
)
def test_kb_commands_are_commands_of_spacy(
    command: str,
    folder: str,
    code: int,
    message: str,
    sample_kb: Path,
    new_process: Any,
) -> None:
    words = [sys.executable, "-m", *command.split(), "kb", "info"]
    done = new_process.run([*words, str(sample_kb / folder)])
    assert done.returncode == code, done.stderr
    assert message in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_kb_export_adds_an_engine_and_info_shows_it(own_kb: Path) -> None:
    pytest.importorskip("openvino", reason="OpenVINO is not installed")
    result = run("export-openvino", own_kb, code=0)
    assert "1.0000" in result.output or "0.9999" in result.output
    assert "torch, openvino" in run("info", own_kb).output
    run("verify", own_kb, code=0)
    assert run("export-openvino", own_kb, "--quiet").output == ""


def test_kb_export_without_a_kb_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("openvino", reason="OpenVINO is not installed")
    assert "E303" in run("export-openvino", tmp_path, code=1).output


def test_kb_search_prints_candidates_in_order(sample_kb: Path) -> None:
    result = run("search", sample_kb, "pyrexia", "head pain", "-k", 2, code=0)
    first, second = result.output.split("\n\nhead pain\n")
    rows = [line.split() for line in first.splitlines()[4:]]
    assert [row[0] for row in rows] == ["1", "2"]
    assert rows[0][1:] == ["1.000", "C0000004", "Fever", "Pyrexia", "T184"]
    assert "C0000007" in second


def test_kb_search_json_has_every_candidate(sample_kb: Path) -> None:
    result = run("search", sample_kb, "pyrexia", "MI", "--k", 3, "--json", code=0)
    data = json.loads(result.output)
    assert [found["mention"] for found in data] == ["pyrexia", "MI"]
    assert [len(found["candidates"]) for found in data] == [3, 3]
    assert {c["cui"] for c in data[1]["candidates"][:2]} == {"C0000001", "C0000002"}


def test_kb_search_a_mention_without_candidates_exits_with_3(sample_kb: Path) -> None:
    result = run("search", sample_kb, "fever", "...", code=3)
    assert "no candidates" in result.output
    (linked,) = json.loads(run("search", sample_kb, "...", "--json").output)
    assert linked["note"]


def test_kb_search_prints_no_control_characters(sample_kb: Path) -> None:
    assert "\x1b[31m" not in run("search", sample_kb, "fever\x1b[31m").output


def test_kb_related_prints_neighbours_with_their_relations(cold_kb: Path) -> None:
    result = run("related", cold_kb, "C4", "C9", "-k", 6, code=0)
    first, second = result.output.split("\n\nC9 Lung disease\n")
    assert first.startswith("C4 Asthma\n")
    rows = [line.split() for line in first.splitlines()[4:]]
    assert len(rows) == 6
    words = {row[1]: row[-1] for row in rows}
    assert (words["C3"], words["C9"]) == ("sibling", "parent")
    words = {row[1]: row[-1] for row in map(str.split, second.splitlines()[2:])}
    assert (words["C3"], words["C4"]) == ("child", "child")


def test_kb_related_json_equals_the_python_result(cold_kb: Path) -> None:
    result = run("related", cold_kb, "C4", "--json", code=0)
    found = [one._asdict() for one in load_kb(cold_kb).related("C4")]
    assert json.loads(result.stdout) == [
        {"cui": "C4", "name": "Asthma", "related": found}
    ]


def test_kb_related_to_an_unknown_concept_is_an_error(cold_kb: Path) -> None:
    assert "E336" in run("related", cold_kb, "C4", "gone", code=1).output


def test_kb_related_without_neighbours_exits_with_3(
    make_kb: Callable[..., Path], tmp_path: Path
) -> None:
    kb = make_kb(tmp_path, [Concept("C1", ["fever"])])
    run("related", kb, "C1", code=3)


def test_kb_add_counts_only_new_names(own_kb: Path) -> None:
    name = load_kb(own_kb)["C0000001"].aliases[0]
    words = ["kb", "add", str(own_kb), "--cui", "C0000001", "--alias", name]
    result = invoke(*words, "--alias", "new name")
    assert "Added 1 name of 1 concept" in result.output
    assert "1 name known before" in " ".join(result.output.split())


@pytest.fixture
def edited_kb(own_kb: Path) -> Path:
    """With a name and a concept of a ward, without a name and a concept of ours."""
    run("add", own_kb, "--cui", "C0000004", "--alias", "ward heat", code=0)
    run("add", own_kb, "--new", "--cui", "W1", "--alias", "bay 3 cough", code=0)
    run("remove", own_kb, "C0000004", "--alias", "Pyrexia", code=0)
    run("remove", own_kb, "C0000006", code=0)
    return own_kb


def test_kb_show_marks_what_was_added(edited_kb: Path) -> None:
    output = run("show", edited_kb, "C0000004", "W1", code=0).output
    lines = [" ".join(line.split()) for line in output.splitlines()]
    assert "ward heat yes" in lines
    assert "bay 3 cough yes" in lines
    assert not any("Pyrexia" in line for line in lines)
    (shown,) = json.loads(run("show", edited_kb, "W1", "--json", code=0).output)
    assert shown == {
        "cui": "W1",
        "name": "bay 3 cough",
        "aliases": ["bay 3 cough"],
        "children": [],
    }
    assert "E336" in run("show", edited_kb, "gone", code=1).output


def test_kb_dump_is_the_vocabulary_after_the_edits(
    edited_kb: Path, concepts_file: Path, tmp_path: Path
) -> None:
    run("dump", edited_kb, "-o", tmp_path / "dump.jsonl", "--quiet", code=0)
    dumped = {one.cui: one for one in read_concepts(tmp_path / "dump.jsonl")}
    built = {one.cui: one for one in read_concepts(concepts_file)}
    assert list(dumped) == sorted({*built, "W1"} - {"C0000006"})
    assert dumped["W1"].aliases == ["bay 3 cough"]
    names = [name for name in built["C0000004"].aliases if name != "Pyrexia"]
    assert dumped["C0000004"].aliases == [*names, "ward heat"]
    for cui in {*built} - {"C0000004", "C0000006"}:
        assert dumped[cui] == built[cui]


def test_kb_dump_of_what_was_added_can_be_added_to_another(
    edited_kb: Path, sample_kb: Path, tmp_path: Path
) -> None:
    path = tmp_path / "ward.jsonl"
    run("dump", edited_kb, "--local", "-o", path, code=0)
    assert [one.cui for one in read_concepts(path)] == ["C0000004", "W1"]
    other = Path(shutil.copytree(sample_kb, tmp_path / "other"))
    run("add", other, path, code=0)
    assert "ward heat" in load_kb(other)["C0000004"].aliases
    assert load_kb(other)["W1"].name == "bay 3 cough"


def test_kb_dump_as_a_table_has_a_row_for_each_name(
    edited_kb: Path, tmp_path: Path
) -> None:
    path = tmp_path / "dump.csv"
    run("dump", edited_kb, "-o", path, code=0)
    with path.open(encoding="utf8", newline="") as file:
        rows = [*csv.DictReader(file)]
    local = [(row["id"], row["name"]) for row in rows if row["local"] == "yes"]
    assert local == [("C0000004", "ward heat"), ("W1", "bay 3 cough")]
    invoke("concepts", path, "-o", tmp_path / "again.jsonl", code=0)
    again = {one.cui: {*one.aliases} for one in read_concepts(tmp_path / "again.jsonl")}
    kb = load_kb(edited_kb)
    assert again == {cui: {*kb[cui].aliases} for cui in kb}
    assert "E110" in run("dump", edited_kb, "-o", tmp_path / "x.xml", code=1).output


def test_kb_dump_has_no_annotated_mentions(own_kb: Path, tmp_path: Path) -> None:
    note = tmp_path / "note.jsonl"
    text = "The waterworks are blocked."
    entities = [{"start": 4, "end": 14, "cui": "C0000004"}]
    note.write_text(json.dumps({"id": "n", "text": text, "entities": entities}))
    invoke("teach", own_kb, note, "--force", code=0)
    assert "waterworks" in load_kb(own_kb)["C0000004"].aliases
    run("dump", own_kb, "-o", tmp_path / "dump.jsonl", code=0)
    assert "waterworks" not in (tmp_path / "dump.jsonl").read_text("utf8")
