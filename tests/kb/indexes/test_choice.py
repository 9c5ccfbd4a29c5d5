from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.kb.indexes import choice
from spacy_sapbert.kb.indexes.choice import (
    CHOICES,
    choose_index,
    describe_choices,
    free_memory,
    needed_memory,
)

GB = 10**9


@pytest.mark.parametrize(
    ("rows", "free", "missing", "expected"),
    [
        (20_000, 0, (), ("exact", {})),
        (300_000, 8 * GB, (), ("hnsw", {})),
        (10_000_000, None, (), ("hnsw", {})),
        (10_000_000, 64 * GB, (), ("hnsw", {})),
        (10_000_000, 16 * GB, (), ("faiss", {})),
        (10_000_000, 1 * GB, (), ("faiss", {})),  # the smallest, if none fits
        (10_000_000, 20 * GB, ("faiss",), ("hnsw", {"pca": 128})),
        (10_000_000, 1 * GB, ("faiss",), ("hnsw", {"pca": 128})),
        (300_000, 8 * GB, ("hnsw",), ("faiss", {})),
        (300_000, 8 * GB, ("hnsw", "faiss"), ("exact", {"compact": 1})),
    ],
)
def test_choose_index_by_rows_memory_and_libraries(
    rows: int,
    free: int | None,
    missing: tuple[str, ...],
    expected: tuple[str, dict[str, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choice, "is_usable", lambda backend: backend not in missing)
    assert choose_index(rows, 384, free=free) == expected


def test_needed_memory_of_ten_million_names() -> None:
    needed = [round(needed_memory(each, 10_000_000, 384) / GB) for each in CHOICES]
    # The last is the mapped file that each search reads.
    assert needed == [18, 6, 8, 8]


def test_free_memory_is_that_of_the_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info, limit, used = (tmp_path / name for name in ("info", "limit", "used"))
    info.write_text("MemTotal: 9 kB\nMemAvailable:    4000 kB\n")
    monkeypatch.setattr(choice, "MEMORY_INFO", info)
    monkeypatch.setattr(choice, "CONTAINER_LIMITS", ((limit, used),))
    assert free_memory() == 4_096_000
    limit.write_text("max\n")
    used.write_text("5\n")
    assert free_memory() == 4_096_000
    limit.write_text("1000\n")
    assert free_memory() == 995
    info.unlink()
    assert free_memory() is None


def test_describe_choices_names_the_chosen_one_first() -> None:
    text = describe_choices(CHOICES[1], 10_000_000, 384)
    first, _, others = text.partition("(others: ")
    assert first.startswith("10,000,000 distinct names of width 384: faiss: 2.8 GB of")
    assert "10.4 GB on disk" in first
    assert "faiss" not in others
    assert "hnsw, pca 128: 7.7 GB of memory, 14.4 GB on disk" in others


@pytest.mark.parametrize("number", range(3))
def test_describe_choices_estimates_the_time_of_a_graph(number: int) -> None:
    def hours(rows: int, threads: int) -> str:
        text = describe_choices(CHOICES[number], rows, 384, threads=threads)
        return text.partition(", about ")[2].partition(" to index")[0]

    one = {0: "2 h 0 min", 1: "1 h 48 min", 2: "1 h 8 min"}[number]
    assert hours(10_000_000, 1) == one
    assert hours(100_000, 1).endswith(" s")


def test_describe_choices_of_exact_search_has_no_time() -> None:
    text = describe_choices(CHOICES[3], 10_000_000, 384)
    assert "about" not in text.partition("(others: ")[0]


HIDDEN = """
import sys
for name in {hidden!r}:
    sys.modules[name] = None
from pathlib import Path
from spacy_sapbert import build_kb, load_kb
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.indexes import choice
choice.EXACT_ROWS = 1
concepts, encoder, folder, old = map(Path, sys.argv[1:])
print(build_kb(concepts, folder, str(encoder)).index.backend)
print(load_kb(folder).link(["fever"])[0].cui)
for work in (
    lambda: build_kb(concepts, folder, str(encoder), backend="hnsw", force=True),
    lambda: load_kb(old).link(["fever"]),
):
    try:
        work()
    except SapbertError as error:
        print(error)
"""


@pytest.mark.parametrize(
    ("hidden", "backend"),
    [(["hnswlib"], "faiss"), (["hnswlib", "faiss"], "exact")],
)
def test_build_kb_without_hnswlib(
    hidden: list[str],
    backend: str,
    concepts_file: Path,
    tiny_encoder: Path,
    sample_kb: Path,
    run_python: Any,
    tmp_path: Path,
) -> None:
    if backend == "faiss":
        pytest.importorskip("faiss")
    code = HIDDEN.format(hidden=hidden)
    folder = tmp_path / "kb"
    done = run_python(code, concepts_file, tiny_encoder, folder, sample_kb)
    lines = done.stdout.splitlines()
    assert lines[:2] == [backend, "C0000004"], done.stderr
    assert len(lines) == 4
    for line in lines[2:]:
        assert "[E390]" in line
        assert "`pip install hnswlib`" in line
        assert f"one of {'exact, faiss' if backend == 'faiss' else 'exact'}" in line
