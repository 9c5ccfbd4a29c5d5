"""The plan of a build: vectors of another one are kept."""

from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.writing import write_json
from spacy_sapbert.kb.building.row_vectors import check_plan, describe_index
from spacy_sapbert.kb.indexes.faiss_graph import Faiss
from spacy_sapbert.kb.indexes.hnsw import Hnsw
from spacy_sapbert.kb.indexes.registry import Backend

PLAN = {"concepts_sha256": "1", "engine": "torch"}
OTHER = {"concepts_sha256": "1", "engine": "openvino"}
HNSW, FAISS = Hnsw(), Faiss()
LEFT = ("plan.json", "vectors")


def leave_vectors(folder: Path) -> dict[str, Any]:
    """Write what a stopped build may leave, and return its state."""
    state = {**PLAN, **describe_index(HNSW), "done": 3}
    write_json(folder / LEFT[0], state)
    for name in LEFT[1:]:
        (folder / name).touch()
    return state


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


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
    assert check_plan(tmp_path, plan, index, replace=True) == {}
    assert names(tmp_path) == set()


@pytest.mark.parametrize("index", [None, HNSW])
def test_check_plan_keeps_vectors_of_the_same_plan(
    index: Backend | None, tmp_path: Path
) -> None:
    assert check_plan(tmp_path, PLAN, index, replace=False) == {}
    state = leave_vectors(tmp_path)
    assert check_plan(tmp_path, PLAN, index, replace=True) == state
    assert names(tmp_path) == {*LEFT}


def test_check_plan_does_not_use_vectors_without_a_plan(tmp_path: Path) -> None:
    leave_vectors(tmp_path)
    (tmp_path / "plan.json").unlink()
    assert check_plan(tmp_path, PLAN, None, replace=False) == {}
    assert names(tmp_path) == set()
