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


def link_dataset(link: LinkBatches, data: Any, **options: Any) -> Any:
    """Link a dataset; its types have no maps, so codes become lists of pairs."""
    return data.with_format("arrow").map(
        link.as_lists,
        batched=True,
        batch_size=8,
        remove_columns=data.column_names,
        new_fingerprint=link.fingerprint(data._fingerprint),
        **options,
    )


@pytest.mark.usefixtures("new_process")
@pytest.mark.parametrize("processes", [None, 2])
def test_datasets_rows_are_those_of_one_process(
    make_link: MakeLink,
    documents: Any,
    expected: Any,
    hugging_face: Any,
    tmp_path: Path,
    processes: int | None,
) -> None:
    documents_file = str(tmp_path / "documents.parquet")
    import pyarrow.parquet as pq

    pq.write_table(documents, documents_file)
    data = hugging_face.Dataset.from_parquet(documents_file, cache_dir=str(tmp_path))
    rows = link_dataset(make_link(), data, num_proc=processes).with_format(None)[:]
    columns = zip(*rows.values(), strict=True)
    found = [dict(zip(rows, values, strict=True)) for values in columns]
    for row in found:
        pairs = row["codes"] or []
        row["codes"] = row["codes"] and [(p["key"], p["value"]) for p in pairs]
    assert found == expected


def test_datasets_cache_is_used_until_the_kb_changes(
    make_link: MakeLink,
    documents: Any,
    own_kb: Path,
    hugging_face: Any,
    tmp_path: Path,
) -> None:
    import pyarrow.parquet as pq

    from spacy_sapbert.kb.settings import change_kb

    documents_file = str(tmp_path / "documents.parquet")
    pq.write_table(documents, documents_file)
    data = hugging_face.Dataset.from_parquet(documents_file, cache_dir=str(tmp_path))
    calls: list[int] = []

    class Counted(LinkBatches):
        def __call__(self, table: Any) -> Any:
            calls.append(len(table))
            return super().__call__(table)

    def link() -> Any:
        options = {"kb": own_kb, "text": "body", "id": "note", "batch_size": 63}
        link_dataset(Counted(**options), data)
        return len(calls)

    first = link()
    assert first > 0
    assert link() == first
    change_kb(own_kb, threshold=0.1)
    from spacy_sapbert.distributed.opened import open_settings

    open_settings.cache_clear()  # as in a new process
    assert link() > first


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
    assert [*rows[0]] == [*expected_of_recipes[0]]
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
