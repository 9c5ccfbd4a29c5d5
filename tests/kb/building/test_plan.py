"""The plan of a build: written once, and vectors of another one are kept."""

from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.building.plan import check_plan, plan_index
from spacy_sapbert.kb.indexes.exact import Exact
from spacy_sapbert.kb.indexes.faiss_graph import Faiss
from spacy_sapbert.kb.indexes.hnsw import Hnsw
from spacy_sapbert.kb.indexes.registry import Backend

PLAN = {"concepts_sha256": "1", "engine": "torch"}
OTHER = {"concepts_sha256": "1", "engine": "openvino"}
HNSW, FAISS = Hnsw(), Faiss()
LEFT = ("embedded.json", "vectors", "index.faiss", "plan.json")


def leave_vectors(folder: Path) -> None:
    """Write the plan and what a stopped build may leave."""
    plan_index(folder, PLAN, HNSW, rows=1, width=8)
    for name in LEFT[:-1]:
        (folder / name).touch()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_plan_index_uses_the_index_of_the_first(tmp_path: Path) -> None:
    assert plan_index(tmp_path, PLAN, None, rows=20_000, width=8) == Exact()
    assert plan_index(tmp_path, PLAN, None, rows=30_000, width=8) == Exact()
    assert names(tmp_path) == {"plan.json"}


@pytest.mark.parametrize(
    ("plan", "index", "name"),
    [(OTHER, None, "engine"), (PLAN, FAISS, "index"), (PLAN | {"x": 1}, None, "x")],
)
def test_check_plan_keeps_vectors_of_another_plan_unless_they_are_to_be_replaced(
    plan: dict[str, str], index: Backend | None, name: str, tmp_path: Path
) -> None:
    leave_vectors(tmp_path)
    with pytest.raises(SapbertError, match=rf"E394.*\(other: {name}\).*--force"):
        check_plan(tmp_path, plan, index, replace=False)
    assert names(tmp_path) == {*LEFT}
    check_plan(tmp_path, plan, index, replace=True)
    assert names(tmp_path) == set()


@pytest.mark.parametrize("index", [None, HNSW])
def test_check_plan_keeps_vectors_of_the_same_plan(
    index: Backend | None, tmp_path: Path
) -> None:
    check_plan(tmp_path, PLAN, index, replace=False)
    leave_vectors(tmp_path)
    check_plan(tmp_path, PLAN, index, replace=True)
    assert names(tmp_path) == {*LEFT}


@pytest.mark.parametrize("content", [None, "", "[]", "{", "{}"])
def test_check_plan_does_not_use_vectors_without_a_plan(
    content: str | None, tmp_path: Path
) -> None:
    leave_vectors(tmp_path)
    (tmp_path / "plan.json").unlink()
    if content is not None:
        (tmp_path / "plan.json").write_text(content, "utf8")
    with pytest.raises(SapbertError, match="E394"):
        check_plan(tmp_path, PLAN, None, replace=False)
    check_plan(tmp_path, PLAN, None, replace=True)
    assert names(tmp_path) == set()
