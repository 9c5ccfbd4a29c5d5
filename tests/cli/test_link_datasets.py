"""`link` reads and writes folders of Parquet files as engines do."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.commands import invoke

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

import pyarrow.dataset as ds  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

from spacy_sapbert import LinkBatches  # noqa: E402
from spacy_sapbert.formats.inputs.parquet_rows import read_partition  # noqa: E402


@pytest.fixture
def notes() -> Any:
    texts = ["fever", "no headache", None, "heart attack and DM", "aspirin", "MI"]
    years = ["2023", "2024", "2023", None, "2024", "2023"]
    return pa.table({"id": range(6), "text": texts, "year": years})


@pytest.fixture
def folder(notes: Any, tmp_path: Path) -> Path:
    """A table as Spark writes it, with the leftovers of a run that was stopped."""
    folder = tmp_path / "notes.parquet"
    partitioning = ds.partitioning(pa.schema([("year", pa.string())]), flavor="hive")
    ds.write_dataset(
        notes, folder, format="parquet", partitioning=partitioning, max_rows_per_group=1
    )
    unfinished = folder / "_temporary" / "0" / "part-0.parquet"
    unfinished.parent.mkdir(parents=True)
    pq.write_table(notes, unfinished)
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.parquet.crc").touch()
    return folder


run = partial(invoke, "link", code=0)


def read_links(path: Path) -> Any:
    """Return what is linked in the rows of a table, in the order of the documents."""
    names = ("id", "start", "end", "text", "cui", "score", "kb_digest", "year")
    rows = pq.read_table(path).to_pylist()
    return sorted(tuple(row[name] for name in names) for row in rows)


def test_link_datasets_equal_the_rows_of_link_batches(
    folder: Path, notes: Any, sample_kb: Path, tmp_path: Path
) -> None:
    output = tmp_path / "linked.parquet"
    arguments = [sample_kb, folder, "--keep", "year", "--shard-size", 2]
    result = run(*arguments, "--output", output)
    assert "6 documents, 6 entities" in result.stderr
    assert "documents/s" in result.stderr
    parts = sorted(path.name for path in output.glob("part-*"))
    assert parts == [f"part-0000{number}.parquet" for number in range(3)]
    expected = LinkBatches(kb=sample_kb, keep=["year"])(notes)
    table = pq.read_table(output)
    assert table.schema.names == expected.schema.names
    assert table.schema.types == expected.schema.types
    pq.write_table(expected, tmp_path / "expected.parquet")
    assert read_links(output) == read_links(tmp_path / "expected.parquet")
    # finished, so nothing is written again
    before = {path: path.stat().st_mtime_ns for path in output.iterdir()}
    run(*arguments, "--output", output)
    assert {path: path.stat().st_mtime_ns for path in output.iterdir()} == before


def test_link_datasets_can_be_read_again(
    folder: Path, sample_kb: Path, tmp_path: Path
) -> None:
    single = tmp_path / "single.parquet"
    run(sample_kb, folder, "--keep", "year", "--output", single)
    assert pq.read_table(single).num_rows == 6


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("part-0.parquet", {}),
        ("a=b=c/part-0.parquet", {"a": "b=c"}),
        ("a%20b=1/c=x%2Fy/part-0.parquet", {"a b": "1", "c": "x/y"}),
        ("year=__HIVE_DEFAULT_PARTITION__/p.parquet", {"year": None}),
    ],
)
def test_parquet_partition_is_the_name_of_folders(name: str, expected: Any) -> None:
    assert read_partition(name) == expected
