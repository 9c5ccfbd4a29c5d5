"""`check` lists what would stop the steps of a workflow, before the first of them."""

import gzip
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from training import check
from training.check import count_names, estimate_disk

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "assets" / "sample"


@pytest.fixture
def settings(tiny_encoder: Path) -> list[str]:
    return ["--encoder.base", str(tiny_encoder)]


def test_check_passes_if_every_step_can_run(
    invoke: Callable[..., Any],
    settings: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = invoke("check", SAMPLE, "--name", "sample", *settings)
    assert "Every step can run" in shown.output
    assert not any(tmp_path.iterdir())


def test_check_lists_all_problems_at_once(
    invoke: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("packages").write_text("a file in the place of a folder")
    names = ["--name", "My KB", "--version", "one", "--lang", "qq"]
    wrong = ["--encoder.base", "models/none", "--training.epoch", "2"]
    shown = invoke("check", "assets/umls", *names, *wrong, code=1)
    codes = ("E001", "E316", "E317", "E723", "E004", "E613")
    assert [code for code in codes if f"[{code}]" not in shown.output] == []
    base = ["--encoder.base", "./models/none"]
    shown = invoke("check", SAMPLE, "--name", "kb", *base, code=1)
    assert "[E208]" in shown.output


def test_check_names_the_packages_that_are_missing(
    invoke: Callable[..., Any], settings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "find_spec", lambda _: None)
    shown = invoke("check", SAMPLE, "--name", "sample", *settings, code=1)
    assert "[E626]" in shown.output


def test_check_warns_of_too_little_disk(
    invoke: Callable[..., Any], settings: list[str], tmp_path: Path
) -> None:
    """It is a rule of thumb, so that every step can run all the same."""
    concepts = tmp_path / "concepts.jsonl"
    write_concepts(concepts, [Concept("C0000001", ["Fever"])])
    os.truncate(concepts, 10**13)  # takes no space on the disk
    shown = invoke("check", concepts, "--name", "large", *settings)
    assert "[W602]" in shown.output
    assert "Every step can run" in shown.output


def test_check_of_a_base_with_pickled_weights_counts_them(
    invoke: Callable[..., Any], tiny_encoder: Path, tmp_path: Path
) -> None:
    base = Path(shutil.copytree(tiny_encoder, tmp_path / "base"))
    (base / "model.safetensors").rename(base / "pytorch_model.bin")
    invoke("check", SAMPLE, "--name", "sample", "--encoder.base", base)
    plain = estimate_disk(0, str(tiny_encoder))
    assert 0 < plain < estimate_disk(0, "hub/bert")
    assert estimate_disk(0, str(base)) == plain


def test_check_reads_the_settings_of_the_base(
    invoke: Callable[..., Any],
    tiny_encoder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    base = Path(shutil.copytree(tiny_encoder, tmp_path / "base"))
    words = ["check", SAMPLE, "--name", "sample", "--encoder.base", base]
    with pytest.warns(UserWarning, match=r"W601.*encoder\.pooling to be 'mean'"):
        invoke(*words, "--encoder.pooling", "cls")
    (base / "sapbert.json").write_text('{"pooling": "mean"}', "utf8")
    assert "[E202]" in invoke(*words, code=1).output


@pytest.mark.parametrize(
    ("languages", "names"), [((), 2), (("--languages", "ENG,SPA"), 3)]
)
@pytest.mark.parametrize("packed", [False, True])
def test_check_counts_the_names_of_mrconso_in_the_languages(
    invoke: Callable[..., Any],
    settings: list[str],
    tmp_path: Path,
    languages: tuple[str, ...],
    names: int,
    packed: bool,
) -> None:
    rows = [
        f"C000000{i}|{language}|P|L{i}|PF|S{i}|Y|A{i}||M{i}||MSH|MH|D{i}|{name}|0|N||"
        for i, (language, name) in enumerate(
            [("ENG", "fever"), ("ENG", "pain"), ("SPA", "fiebre"), ("FIN", "kipu")]
        )
    ]
    data = ("\n".join(rows) + "\n").encode()
    if packed:
        (tmp_path / "MRCONSO.RRF.gz").write_bytes(gzip.compress(data))
    else:
        (tmp_path / "MRCONSO.RRF").write_bytes(data)
    shown = invoke("check", tmp_path, "--name", "small", *settings, *languages)
    assert re.search(rf"names, about +{names} ", shown.output)
    shown = invoke("check", tmp_path, "--name", "x", *settings, "--languages", "all")
    assert re.search(r"names, about +4 ", shown.output)


def test_count_names_of_another_vocabulary_is_a_rule_of_thumb(tmp_path: Path) -> None:
    table = tmp_path / "names.tsv"
    table.write_bytes(b"x" * 1000)
    assert count_names(table, [table, table], "ENG") == 20


def test_estimate_disk_grows_with_names() -> None:
    assert estimate_disk(20, "BERT") > estimate_disk(10, "BERT")
