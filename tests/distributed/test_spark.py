"""The same rows from Spark, whatever happens to its workers.

One session with two executors, each a process of its own, as on two machines.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from spacy_sapbert import LinkBatches  # noqa: E402
from spacy_sapbert.formats.arrow import MENTION_SCHEMA  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
MakeLink = Callable[..., LinkBatches]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    set_environment = {
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder / "work"),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in set_environment.items():
            patch.setenv(name, value)
        try:
            session = (
                SparkSession.builder.master("local-cluster[2,1,1024]")
                .config("spark.task.maxFailures", "2")  # 4, but for the time
                .config("spark.ui.enabled", "false")
                .config("spark.driver.memory", "512m")
                .config("spark.executor.memory", "512m")
                .config("spark.local.dir", str(folder))
                .config("spark.sql.warehouse.dir", str(folder))
                .config("spark.sql.shuffle.partitions", "2")
                .getOrCreate()
            )
        except (PySparkException, OSError) as error:  # without Java
            pytest.skip(f"Spark does not start: {type(error).__name__}")
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.fixture(scope="module")
def frame(spark: Any, documents: Any) -> Any:
    """The documents, in one partition."""
    schema = "note bigint, body string, ward tinyint"
    rows = [tuple(row.values()) for row in documents.to_pylist()]
    return spark.createDataFrame(rows, schema).coalesce(1)


def collect(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of Spark as Arrow has them, in the order of the documents."""
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    for row in rows:
        row["codes"] = None if row["codes"] is None else [*row["codes"].items()]
    return sorted(rows, key=lambda row: (int(row["id"]), row["start"] or 0))


def test_spark_schema_is_that_of_the_rows(make_link: MakeLink, frame: Any) -> None:
    schema = make_link().spark_schema(frame)
    assert schema.names == [*MENTION_SCHEMA.names, "ward"]
    assert schema["ward"].dataType.simpleString() == "tinyint"
    assert schema["codes"].dataType.simpleString() == "map<string,array<string>>"


@pytest.mark.parametrize("partitions", [7, 2, 1])
def test_spark_rows_do_not_depend_on_the_partitions(
    make_link: MakeLink, frame: Any, expected: Any, partitions: int
) -> None:
    link = make_link()
    documents = frame.repartition(partitions) if partitions > 1 else frame
    rows = documents.mapInArrow(link.iterate, link.spark_schema(frame))
    assert documents.rdd.getNumPartitions() == partitions
    assert collect(rows) == expected


def test_spark_empty_partitions_and_candidates(
    make_link: MakeLink, spark: Any, frame: Any, sample_kb: Path
) -> None:
    link = make_link(candidates=True, keep=[])
    few = frame.where("note = 101").repartition(5)
    (first, *_) = few.mapInArrow(link.iterate, link.spark_schema()).collect()
    assert first.candidates[0].cui == first.cui
    none = frame.where("note = 0").mapInArrow(link.iterate, link.spark_schema())
    assert none.collect() == []


def test_spark_skew_all_long_documents_in_one_partition(
    make_link: MakeLink, frame: Any, expected: Any
) -> None:
    from pyspark.sql.functions import expr

    link = make_link()
    long = frame.repartitionByRange(2, expr("length(coalesce(body, ''))"))
    rows = long.mapInArrow(link.iterate, link.spark_schema(frame))
    assert collect(rows) == expected


def test_spark_recipe_writes_a_table(
    spark: Any,
    run_recipe: Callable[..., Any],
    expected_of_recipes: Any,
    tmp_path: Path,
) -> None:
    rows = run_recipe("link_spark.py", tmp_path / "local")
    assert rows == expected_of_recipes
    assert len([*tmp_path.glob("local/kb-*")]) == 1


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")
def test_spark_worker_that_is_killed_loses_and_repeats_nothing(
    make_link: MakeLink, frame: Any, expected: Any, tmp_path: Path
) -> None:
    link = make_link()
    marker = str(tmp_path / "killed")

    def kill_once(batches: Iterator[Any]) -> Iterator[Any]:
        """Yield the rows of some documents, then die; the next attempt goes on."""
        for number, batch in enumerate(batches):
            for part in (batch.slice(0, 3), batch.slice(3)):
                yield from link.iterate([part])
                if number == 0 and not os.path.exists(marker):
                    open(marker, "x").close()
                    os.kill(os.getpid(), signal.SIGKILL)

    documents = frame.repartition(3)
    rows = documents.mapInArrow(kill_once, link.spark_schema(frame))
    assert collect(rows) == expected
    assert os.path.exists(marker)


def test_spark_kb_that_cannot_be_opened_is_one_clear_error(
    own_kb: Path, frame: Any, make_link: MakeLink, tmp_path: Path
) -> None:
    from pyspark.errors import PythonException

    link = make_link(kb=own_kb, keep=[])
    (own_kb / "concepts.db").write_bytes(b"damaged")
    attempts = str(tmp_path)

    def iterate(batches: Iterator[Any]) -> Iterator[Any]:
        import tempfile

        tempfile.mkstemp(prefix="attempt-", dir=attempts)
        yield from link.iterate(batches)

    rows = frame.mapInArrow(iterate, link.spark_schema())
    with pytest.raises(PythonException) as caught:
        rows.collect()
    assert str(caught.value).count("[E306] ") == 1
    assert "SENTINELTEXT" not in str(caught.value)
    # as often as Spark tries a task; then it stops the job
    assert len([*tmp_path.glob("attempt-*")]) == 2
