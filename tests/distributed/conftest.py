"""Documents, and the rows that one process makes of them."""

import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import spacy_sapbert

WORDS = ("heart attack", "fever", "MI", "aspirin", "no", "head pain", "and", "DM")
SENTINEL = "SENTINELTEXT"
ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "docs" / "many_machines"


@pytest.fixture(scope="session")
def spark(shared_process, tmp_path_factory) -> Iterator[Any]:
    """A session with two executors, each a process of its own, as on two machines."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
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


@pytest.fixture(scope="session")
def ray_data(shared_process) -> Iterator[Any]:
    """Ray with room for two actors, and for the task that reads their input."""
    ray = pytest.importorskip("ray", reason="ray is not installed")
    pytest.importorskip("ray.data", reason="ray[data] is not installed")
    ray.init(
        num_cpus=3,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": str(ROOT)}},
        object_store_memory=100_000_000,
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray.data
    ray.shutdown()


@pytest.fixture(scope="session")
def documents() -> Any:
    """Twenty documents: short, long, empty, without text, and one that is too long."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    texts: list[str | None] = [
        f"{WORDS[n % 8]} of {WORDS[n * 3 % 8]}. " * (1 + n * n % 11) for n in range(16)
    ]
    texts += ["", None, "  ", f"{SENTINEL} fever " * 100]
    wards = [None if n % 5 == 4 else n % 3 for n in range(20)]
    return pa.table(
        {
            "note": pa.array(range(100, 120), pa.int64()),
            "body": texts,
            "ward": pa.array(wards, pa.int8()),
        }
    )


@pytest.fixture(scope="session")
def make_link(sample_kb) -> Callable[..., Any]:
    """Makes a callable for these documents."""

    def make(**options: Any) -> Any:
        settings = {
            "kb": sample_kb,
            "text": "body",
            "id": "note",
            "keep": ["ward"],
            "max_chars": 1000,
            **options,
        }
        return spacy_sapbert.LinkBatches(**settings)

    return make


@pytest.fixture(scope="session")
def expected(make_link, documents) -> Any:
    """The rows of these documents from one call in this process."""
    return make_link()(documents).to_pylist()


@pytest.fixture(scope="session")
def notes_file(documents, tmp_path_factory) -> Path:
    """The documents as a Parquet file with the usual names of columns."""
    import pyarrow.parquet as pq

    path = tmp_path_factory.mktemp("notes") / "part-00000.parquet"
    pq.write_table(documents.rename_columns(["id", "text", "ward"]), path)
    return path


@pytest.fixture
def run_recipe(
    notes_file, sample_kb, tmp_path, monkeypatch
) -> Callable[..., list[dict[str, Any]]]:
    """Runs a script of the docs in this process, and returns the rows that it wrote."""
    import pyarrow.parquet as pq

    def run(name: str, *more: object) -> list[dict[str, Any]]:
        output = tmp_path / "linked.parquet"
        arguments = [name, notes_file, output, sample_kb, *more]
        monkeypatch.setattr(sys, "argv", [*map(str, arguments)])
        runpy.run_path(str(RECIPES / name))
        return sort_rows(pq.read_table(output).to_pylist())

    return run


@pytest.fixture(scope="session")
def expected_of_recipes(sample_kb, notes_file) -> list[dict[str, Any]]:
    """What the scripts have to write."""
    import pyarrow.parquet as pq

    link = spacy_sapbert.LinkBatches(kb=sample_kb, keep=["ward"])
    rows: list[dict[str, Any]] = link(pq.read_table(notes_file)).to_pylist()
    return rows


def sort_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of an engine in the order of the documents."""
    return sorted(rows, key=lambda row: (int(row["id"]), row["start"] or 0))
