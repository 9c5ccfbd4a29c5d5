"""The same rows from Spark, whatever happens to its workers."""

import csv
import os
import signal
from collections.abc import Callable, Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from spacy_sapbert import LinkBatches  # noqa: E402
from spacy_sapbert.formats.arrow import MENTION_SCHEMA  # noqa: E402
from spacy_sapbert.formats.entities import LinkedDoc  # noqa: E402
from spacy_sapbert.formats.omop import write_docs  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
MakeLink = Callable[..., LinkBatches]
ROOT = Path(__file__).parents[2]


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


def spark_table(frame: Any) -> Any:
    """Return the rows of Spark as an Arrow table."""
    import pyarrow as pa

    return pa.Table.from_pylist([row.asDict() for row in frame.collect()])


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
) -> None:
    assert run_recipe("link_spark.py") == expected_of_recipes


def test_spark_note_nlp_is_what_the_format_omop_writes(
    spark: Any, sample_kb: Path, tmp_path: Path
) -> None:
    texts = {7: "A heart attack,\nthen " + "calm " * 60 + "and a fever.", 8: "Fever."}
    link = LinkBatches(kb=sample_kb, text="note_text", id="note_id", keep=["note_text"])
    notes = spark.createDataFrame([*texts.items()], "note_id bigint, note_text string")
    # The ids of OMOP that a vocabulary of Athena has, for one concept.
    rows = [
        row | {"codes": [("OMOP", ["437663"])] if row["text"] == "fever" else []}
        for row in link(spark_table(notes)).to_pylist()
    ]
    linked = spark.createDataFrame(
        [tuple({**row, "codes": dict(row["codes"])}.values()) for row in rows],
        link.spark_schema(notes),
    )
    linked.createOrReplaceTempView("linked")
    found = spark.sql((ROOT / "docs/many_machines/note_nlp.sql").read_text("utf8"))

    docs = [
        LinkedDoc(
            str(id),
            text,
            [
                {**row, "codes": dict(row["codes"])}  # type: ignore[misc]
                for row in rows
                if row["id"] == str(id)
            ],
        )
        for id, text in texts.items()
    ]
    with open(tmp_path / "note_nlp.csv", "w+b") as file:
        write_docs(docs, file)
        file.seek(0)
        expected = [*csv.DictReader(TextIOWrapper(file, "utf8", newline=""))]
    times = ("nlp_date", "nlp_datetime")  # of now
    as_text = [
        {k: "" if v is None else str(v) for k, v in row.asDict().items()}
        for row in found.orderBy("note_nlp_id").collect()
    ]
    for row in (*as_text, *expected):
        assert all(row.pop(name) for name in times)
    assert [row["section_concept_id"] for row in as_text] == [""] * 3
    assert as_text == expected


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
    (own_kb / "v1" / "concepts.db").write_bytes(b"damaged")
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
