"""`spacy sapbert info`: what a report of a problem needs, and nothing else."""

import json
import platform
from pathlib import Path
from typing import Any

import numpy as np

from spacy_sapbert import load_kb
from spacy_sapbert.io.version import __version__
from tests.commands import invoke


def print_info(*words: object) -> dict[str, Any]:
    result = invoke("info", "--json", *words, code=0)
    return json.loads(result.stdout)


def test_info_has_versions_and_platform() -> None:
    found = print_info()
    assert found["spacy-sapbert"] == __version__
    assert found["Python"] == platform.python_version()
    assert found["numpy"] == np.__version__
    assert "GPU" in found
    assert "pytest" not in found


def test_info_describes_a_knowledge_base_without_names_of_files(
    demo_folder: Path, tmp_path: Path
) -> None:
    kb, taught = demo_folder / "models" / "sample" / "kb", tmp_path / "taught"
    corrections = Path(__file__).parents[2] / "assets/sample/corrections.csv"
    words = ["teach", str(kb), str(corrections), "--output", str(taught)]
    invoke(*words, code=0)
    found = print_info(taught)
    manifest = load_kb(taught).manifest
    assert found["Digest"] == manifest.digest
    assert found["Concepts"] == f"{manifest.counts.concepts:,}"
    shown = invoke("info", taught).stdout
    assert "Digest" in shown
    for private in ("corrections", str(tmp_path)):
        assert private not in shown
