import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from spacy_sapbert.cli.main import app
from spacy_sapbert.kb.knowledge_base import load_kb


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["kb", *(str(argument) for argument in arguments)])


def test_kb_build_writes_a_kb_and_prints_its_counts(
    concepts_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    kb = tmp_path / "kb"
    result = run(
        *("build", concepts_file, kb, "--encoder", tiny_encoder),
        *("--backend", "hnsw", "--setting", "M=8", "--setting", "ef=50"),
        *("--pooling", "cls", "--threshold", "0.5", "--source", "made up 1.0"),
    )
    assert result.exit_code == 0, result.output
    assert "made up 1.0" in result.output
    manifest = load_kb(kb).manifest
    assert manifest.index.settings["M"] == 8
    assert manifest.index.settings["ef_construction"] == 200
    assert manifest.encoder.pooling == "cls"
    assert manifest.encoder.max_length == 25
    assert manifest.threshold == 0.5
    assert manifest.sources == ["made up 1.0"]


def test_kb_build_quiet_prints_nothing(
    concepts_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    arguments = (concepts_file, tmp_path / "kb", "--encoder", tiny_encoder, "--quiet")
    result = run("build", *arguments)
    assert (result.exit_code, result.output) == (0, "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--setting", "M"), "--setting M=32"),
        (("--setting", "nothing=1"), "'nothing'"),
        (("--backend", "faiss"), "--backend"),
        (("--pooling", "max"), "pooling"),
        (("--precision", "int8"), "precision"),
        (("--engine", "onnx"), "engine"),
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
    result = run("build", concepts_file, kb, "--encoder", tiny_encoder, *options)
    assert result.exit_code == 1
    assert message in result.output
    assert not kb.exists()


def test_kb_build_replaces_a_folder_only_with_force(
    concepts_file: Path, own_kb: Path
) -> None:
    arguments = ("build", concepts_file, own_kb, "--encoder", own_kb / "encoder")
    refused = run(*arguments)
    assert refused.exit_code == 1
    assert "--force" in refused.output
    assert run(*arguments, "--force").exit_code == 0


def test_kb_info_prints_a_table_and_json(sample_kb: Path) -> None:
    table = run("info", sample_kb)
    assert table.exit_code == 0
    assert "Distinct names in the index" in table.output
    data = json.loads(run("info", sample_kb, "--json").output)
    assert data["counts"]["concepts"] == 8


def test_kb_verify_finds_damage(own_kb: Path) -> None:
    whole = run("verify", own_kb)
    assert whole.exit_code == 0, whole.output
    assert "100.0%" in whole.output
    (own_kb / "concepts.db").write_bytes(b"SQLite")
    damaged = run("verify", own_kb)
    assert damaged.exit_code == 1
    assert "concepts.db" in damaged.output


def test_kb_verify_without_a_kb_is_an_error_with_three_fixes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spacy_sapbert.kb.installed.installed_kbs", dict)
    result = run("verify")
    assert result.exit_code == 1
    output = " ".join(result.output.split())
    for fix in ("Name a folder", "pip install", "spacy sapbert kb build"):
        assert fix in output


def test_kb_commands_are_commands_of_spacy(sample_kb: Path) -> None:
    import subprocess
    import sys

    for command in (["spacy", "sapbert"], ["spacy_sapbert"]):
        done = subprocess.run(
            [sys.executable, "-m", *command, "kb", "info", str(sample_kb)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "Distinct names" in done.stdout


def test_kb_export_adds_an_engine_and_info_shows_it(own_kb: Path) -> None:
    pytest.importorskip("openvino", reason="OpenVINO is not installed")
    result = run("export", own_kb)
    assert result.exit_code == 0, result.output
    assert "1.0000" in result.output or "0.9999" in result.output
    assert "torch, openvino" in run("info", own_kb).output
    assert run("verify", own_kb).exit_code == 0
    assert run("export", own_kb, "--quiet").output == ""


def test_kb_export_without_a_kb_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("openvino", reason="OpenVINO is not installed")
    result = run("export", tmp_path)
    assert result.exit_code == 1
    assert "E303" in result.output
