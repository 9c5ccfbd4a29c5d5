"""The same rows from libraries of tables that run on one machine or few."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from spacy_sapbert import LinkBatches  # noqa: E402

MakeLink = Callable[..., LinkBatches]


@pytest.fixture
def hugging_face(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    datasets.disable_progress_bars()
    return datasets


@pytest.mark.parametrize("library", ["datasets", "dask", "polars"])
def test_recipe_writes_a_table(
    library: str,
    run_recipe: Callable[..., Any],
    expected_of_recipes: Any,
    request: pytest.FixtureRequest,
) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    if library == "datasets":
        request.getfixturevalue("hugging_face")
    rows = run_recipe(f"link_{library}.py")
    without = ("codes", "candidates") if library == "datasets" else ()
    assert [*rows[0]] == [n for n in expected_of_recipes[0] if n not in without]
    for name in ("id", "start", "end", "text", "cui", "score", "error", "ward"):
        found = [row[name] for row in rows]
        assert found == [row[name] for row in expected_of_recipes]


@pytest.mark.parametrize("partitions", [1, 7])
def test_dask_rows_do_not_depend_on_the_partitions(
    make_link: MakeLink, documents: Any, expected: Any, partitions: int
) -> None:
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    link = make_link()

    def link_frame(frame: Any) -> Any:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        return link(table).to_pandas(types_mapper=pd.ArrowDtype)

    frame = documents.to_pandas(types_mapper=pd.ArrowDtype)
    parts = dd.from_pandas(frame, npartitions=partitions)
    linked = parts.map_partitions(link_frame, meta=link_frame(frame.head(0)))
    rows = pa.Table.from_pandas(linked.compute(), preserve_index=False)
    assert rows.to_pylist() == expected
