"""Damaged and replaced knowledge bases, as the two benchmarks count them."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.replacement import check_answers, make_concepts
from spacy_sapbert.kb.knowledge_base import load_kb

LINUX = sys.platform == "linux" and hasattr(os, "fork")


@pytest.mark.skipif(not LINUX, reason="the benchmark needs Linux")
def test_damage_of_every_kind_is_a_named_error_or_without_effect(
    cold_kb: Path, run_python: Callable[..., Any]
) -> None:
    done = run_python(
        "from benchmarks.damage import main; from benchmarks.harness import run_cli;"
        "run_cli(main)",
        cold_kb,
        "--tries=40",
        "--seed=3",
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    kept, every = [], []
    for line in done.stdout.splitlines():
        if len(line.split()) < 6 or not line.split()[-1].isdigit():
            continue
        *kind, tried, named, none, other_answer, other = line.split()
        if "kept" in kind:
            kept.append((tried, named))
        if kind == ["all"]:
            every = [tried, other]
            assert int(named) + int(none) + int(other_answer) == 40
    assert len(kept) == 7
    assert all(tried == named for tried, named in kept)
    assert every == ["40", "0"]


def test_check_answers_finds_answers_of_two_versions(
    make_kb: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "b").mkdir()
    concepts = [make_concepts(version) for version in "AB"]
    (tmp_path / "mixed").mkdir()
    one = load_kb(make_kb(tmp_path / "b", concepts[1]))
    mixed = load_kb(make_kb(tmp_path / "mixed", concepts[0][:5] + concepts[1][5:]))
    assert check_answers(one) == "B"
    assert check_answers(mixed) == "mixed"
