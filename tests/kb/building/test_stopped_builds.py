"""A build with any index is all or nothing: killed, or out of disk, at any moment."""

import os
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.kb.building import row_vectors
from spacy_sapbert.kb.building.build import build_kb
from spacy_sapbert.kb.indexes import faiss_graph
from spacy_sapbert.kb.knowledge_base import load_kb
from tests.faults import REFUSED, stop_copies


def stop_builds(
    concepts: Path, encoder: Path, old: Path, work: Path, index: dict[str, Any]
) -> None:
    """Stop a build at many writes, and find the old or the new knowledge base."""
    row_vectors.ROWS_AT_ONCE = 8
    faiss_graph.BLOCK_ROWS = 8

    def build(target: Path) -> None:
        build_kb(concepts, target, str(encoder), threads=1, force=True, **index)

    def find_digest(path: Path) -> str:
        return load_kb(path).manifest.digest

    build(work / "new")
    before, after = find_digest(old), find_digest(work / "new")
    assert before != after
    folder = work / "kb"

    def check(end: int) -> None:
        assert find_digest(folder) in {before, before if end == REFUSED else after}

    moments = {
        "kill": range(2, 1000, 17),
        "full": range(9, 1000, 17),
        "limit": [300, 3000, 30_000, 1_000_000],
    }
    for how, each in moments.items():
        stop_copies(how, each, old, folder, build, check)
        # What the stopped ones left is used, or does no harm.
        build(folder)
        assert find_digest(folder) == after
        assert {path.name for path in work.iterdir()} <= {"kb", "new"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize(
    "index",
    [
        {"backend": "exact"},
        {"backend": "hnsw"},
        {"backend": "faiss", "backend_settings": {"pca": 8}},
    ],
    ids=["exact", "hnsw", "faiss"],
)
def test_build_kb_stopped_at_any_write_leaves_the_old_or_the_new_kb(
    index: dict[str, Any],
    concepts_file: Path,
    tiny_encoder: Path,
    sample_kb: Path,
    tmp_path: Path,
    new_process: Any,
) -> None:
    if index["backend"] == "faiss":
        pytest.importorskip("faiss")
    new_process.call(
        stop_builds, concepts_file, tiny_encoder, sample_kb, tmp_path, index
    )
