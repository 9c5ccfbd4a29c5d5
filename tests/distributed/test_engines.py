"""The same rows from engines for many machines, whatever happens to their workers."""

import csv
import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
import srsly

pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from spacy_sapbert import LinkBatches  # noqa: E402
from spacy_sapbert.formats.entities import LinkedDoc  # noqa: E402
from spacy_sapbert.formats.omop import write_docs  # noqa: E402

from .conftest import RECIPES, ROOT, sort_rows  # noqa: E402


@pytest.mark.parametrize("library", ["datasets", "dask", "polars"])
def test_recipe_of_a_library_of_tables_writes_a_table(
    library, run_recipe, expected_of_recipes, monkeypatch, tmp_path
):
    imported = pytest.importorskip(library, reason=f"{library} is not installed")
    if library == "datasets":
        monkeypatch.setattr(imported.config, "HF_DATASETS_CACHE", tmp_path)
        imported.disable_progress_bars()
    rows = run_recipe(f"link_{library}.py")
    without = ("codes", "candidates") if library == "datasets" else ()
    assert [*rows[0]] == [n for n in expected_of_recipes[0] if n not in without]
    for name in ("id", "start", "end", "text", "cui", "score", "error", "ward"):
        found = [row[name] for row in rows]
        assert found == [row[name] for row in expected_of_recipes]


# --- machines without an engine ---


@pytest.mark.skipif(os.name != "posix", reason="the script is for bash")
def test_slurm_task_links_its_part(
    notes_file, sample_kb, expected_of_recipes, tmp_path, new_process
):
    import pyarrow.parquet as pq

    words = [RECIPES / "link_slurm.sh", notes_file.parent, tmp_path / "linked"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    more = {"PATH": path, "PYTHONPATH": os.getcwd(), "SLURM_ARRAY_TASK_ID": "0"}
    environment = {**os.environ, **more}
    new_process.run(["bash", *words, sample_kb], env=environment, check=True)
    rows = pq.read_table(tmp_path / "linked").to_pylist()
    names = ("id", "start", "cui", "score", "kb_digest")
    assert [[row[name] for name in names] for row in rows] == [
        [row[name] for name in names] for row in expected_of_recipes
    ]


def test_kubernetes_job_has_an_index_for_each_part(new_process):
    job = srsly.read_yaml(RECIPES / "link_kubernetes.yaml")
    assert job["spec"]["completionMode"] == "Indexed"
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (script,) = container["args"]
    # the command with another program, to see what the shell makes of it
    shown = script.replace("python -m", "echo")
    if os.name == "posix":
        words = new_process.run(
            [*container["command"], shown],
            env={**os.environ, "JOB_COMPLETION_INDEX": "7"},
            check=True,
        ).stdout.split()
        link = ["spacy", "sapbert", "link", "/data/kb"]
        assert words[:5] == [*link, "/data/notes/part-00007.parquet"]


# --- Ray Data, with a pool of two actors ---


@pytest.mark.usefixtures("ray_data")
def test_ray_recipe_writes_the_rows_of_one_process(run_recipe, expected_of_recipes):
    assert run_recipe("link_ray.py", 1) == expected_of_recipes


# --- Spark ---


@pytest.fixture(scope="module")
def frame(spark, documents) -> Any:
    """The documents, in one partition."""
    schema = "note bigint, body string, ward tinyint"
    rows = [tuple(row.values()) for row in documents.to_pylist()]
    return spark.createDataFrame(rows, schema).coalesce(1)


def collect(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of Spark as Arrow has them, in the order of the documents."""
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    for row in rows:
        row["codes"] = None if row["codes"] is None else [*row["codes"].items()]
    return sort_rows(rows)


def test_spark_rows_do_not_depend_on_the_partitions(make_link, frame, expected):
    link = make_link()
    schema = link.spark_schema(frame)
    assert schema["ward"].dataType.simpleString() == "tinyint"
    assert schema["codes"].dataType.simpleString() == "map<string,array<string>>"
    for documents in (frame, frame.repartition(7)):
        assert collect(documents.mapInArrow(link.iterate, schema)) == expected


def test_spark_recipe_writes_a_table(spark, run_recipe, expected_of_recipes):
    assert run_recipe("link_spark.py") == expected_of_recipes


def test_spark_note_nlp_is_what_the_format_omop_writes(spark, sample_kb, tmp_path):
    import pyarrow as pa

    texts = {7: "A heart attack,\nthen " + "calm " * 60 + "and a fever.", 8: "Fever."}
    link = LinkBatches(kb=sample_kb, text="note_text", id="note_id", keep=["note_text"])
    notes = spark.createDataFrame([*texts.items()], "note_id bigint, note_text string")
    given = [row.asDict() for row in notes.collect()]
    # The ids of OMOP that a vocabulary of Athena has, for one concept.
    rows = [
        row | {"codes": [("OMOP", ["437663"])] if row["text"] == "fever" else []}
        for row in link(pa.Table.from_pylist(given)).to_pylist()
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
