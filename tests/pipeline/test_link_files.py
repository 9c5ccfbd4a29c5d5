import csv
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert import LinkJob, link_files
from spacy_sapbert.errors import SapbertError
from tests.pipelines import NLP

OTHER: dict[str, Any] = {
    "keep": ("ward",),
    "on_error": "skip",
    "options": {"k": 3},
    "shard_size": 7,
    "first_id": 2,
    "no_text": True,
}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.jsonl"
    lines = [{"id": 1, "text": "fever"}, {"id": 2}, {"id": 3, "text": "heart attack"}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_link_files_writes_what_it_counts(
    notes: Path, sample_kb: Path, tmp_path: Path
) -> None:
    output = tmp_path / "linked.jsonl"
    skipped: list[SapbertError] = []
    job = LinkJob((notes,), output, kb=str(sample_kb), on_error="skip")
    result = link_files(job, on_skip=skipped.append)
    written = [json.loads(line) for line in output.read_text().splitlines()]
    assert [line["id"] for line in written] == [1, 2, 3]
    first, failed, last = written
    assert [e["cui"] for e in first["entities"]] == ["C0000004"]
    assert [e["cui"] for e in last["entities"]] == ["C0000001"]
    assert failed == {"id": 2, "text": "", "entities": [], "error": str(skipped[0])}
    assert result.counts == {
        **{"documents": 2, "entities": 2, "linked": 2},
        "failed": 1,
    }
    assert (result.documents, result.left_out["skipped"], len(skipped)) == (2, 1, 1)


def test_link_files_writes_failed_documents_into_tables(
    notes: Path, sample_kb: Path, tmp_path: Path
) -> None:
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    for name in ("linked.parquet", "linked.csv"):
        job = LinkJob((notes,), tmp_path / name, kb=str(sample_kb), on_error="skip")
        link_files(job)
    rows = pq.read_table(tmp_path / "linked.parquet").to_pylist()
    assert [(row["id"], row["cui"]) for row in rows] == [
        ("1", "C0000004"),
        ("2", None),
        ("3", "C0000001"),
    ]
    assert [row["error"] is None for row in rows] == [True, False, True]
    assert "E117" in rows[1]["error"]
    assert (rows[1]["codes"], rows[1]["candidates"]) == (None, None)
    with (tmp_path / "linked.csv").open(encoding="utf8", newline="") as file:
        cells = [(row["id"], row["cui"], row["error"]) for row in csv.DictReader(file)]
    assert cells == [(row["id"], row["cui"] or "", row["error"] or "") for row in rows]


def test_link_files_in_parts_goes_on_only_with_the_same_job(
    notes: Path, sample_kb: Path, tmp_path: Path
) -> None:
    job = LinkJob(
        (notes,), tmp_path / "parts", kb=str(sample_kb), shard_size=1, on_error="skip"
    )
    assert link_files(job).parts == 3  # one with the error
    again = link_files(replace(job, batch_size=1))
    assert (again.parts, again.documents) == (3, 0)
    with pytest.raises(SapbertError, match="E560.*`threshold`"):
        link_files(replace(job, options={"threshold": 0.9}))


@pytest.mark.parametrize(
    "name",
    [
        setting.name
        for setting in fields(LinkJob)
        if setting.name not in ("inputs", "pipeline")
    ],
)
def test_link_job_all_fields_but_those_declared_decide_the_output(name: str) -> None:
    job = LinkJob((Path("a.txt"),))
    setting = next(setting for setting in fields(LinkJob) if setting.name == name)
    other = replace(job, **{name: OTHER.get(name, "x") if name not in SPEED else 5})
    same = other.describe([], NLP) == job.describe([], NLP)
    assert same == (not setting.metadata.get("changes_output", True))


SPEED = ("batch_size", "n_process", "force")


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"on_error": "ignore"}, "E331"),
        ({"shard_size": 0}, "E331"),
        ({"n_process": 0}, "E331"),
    ],
)
def test_link_job_value_that_is_not_possible_is_an_error(
    values: dict[str, Any], code: str
) -> None:
    with pytest.raises(SapbertError, match=code):
        LinkJob((Path("a.txt"),), **values)


def test_link_job_takes_one_path_or_texts() -> None:
    job = LinkJob("notes.txt", output="linked.jsonl")  # type: ignore[arg-type]
    assert (job.inputs, job.output) == ((Path("notes.txt"),), Path("linked.jsonl"))
    assert LinkJob(["a.txt", Path("b")]).inputs == (Path("a.txt"), Path("b"))  # type: ignore[arg-type]
