import warnings
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.kb.indexes import registry
from spacy_sapbert.kb.indexes.registry import choose_index, make_backend


@pytest.mark.parametrize(
    ("rows", "width", "missing", "expected"),
    [
        (20_000, 384, (), "exact"),
        (20_001, 384, (), "hnsw"),
        (3_000_000, 384, (), "hnsw"),
        (3_000_001, 384, (), "faiss"),
        (1_567_164, 768, (), "hnsw"),
        (1_567_165, 768, (), "faiss"),
        (20_001, 384, ("hnsw",), "faiss"),
        (20_001, 384, ("hnsw", "faiss"), "exact"),
        (3_000_001, 384, ("hnsw", "faiss"), "exact"),
    ],
)
def test_choose_index_by_memory_and_libraries(
    rows: int,
    width: int,
    missing: tuple[str, ...],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "is_usable", lambda backend: backend not in missing)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert choose_index(rows, width) == make_backend(expected)


def test_choose_index_of_many_rows_without_faiss_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "is_usable", lambda backend: backend != "faiss")
    with pytest.warns(UserWarning, match="W558.*3,000,001.* 5 GB.*install faiss-cpu"):
        assert choose_index(3_000_001, 384) == make_backend("hnsw")


HIDDEN = """
import sys
for name in {hidden!r}:
    sys.modules[name] = None
from pathlib import Path
from spacy_sapbert import build_kb, load_kb
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.indexes import registry
registry.EXACT_ROWS = 1
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
    new_process: Any,
    tmp_path: Path,
) -> None:
    if backend == "faiss":
        pytest.importorskip("faiss")
    code = HIDDEN.format(hidden=hidden)
    folder = tmp_path / "kb"
    done = new_process.python(code, concepts_file, tiny_encoder, folder, sample_kb)
    lines = done.stdout.splitlines()
    assert lines[:2] == [backend, "C0000004"], done.stderr
    assert len(lines) == 4
    for line in lines[2:]:
        assert "[E521]" in line
        assert "`pip install hnswlib`" in line
