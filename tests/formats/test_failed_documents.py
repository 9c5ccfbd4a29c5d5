"""A document that is skipped stays in the output, with the error if it has a place."""

import csv
import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.formats.entities import LinkedDoc
from spacy_sapbert.formats.inputs.files import list_inputs
from spacy_sapbert.formats.inputs.reading import read_documents
from spacy_sapbert.formats.registry import list_formats, load_writer, open_target
from spacy_sapbert.pipeline.link_files import LinkJob, link_files
from tests.commands import invoke

ERROR = "[E117] notes.jsonl:2: Expected a document with a text as `text`."
WRITERS = list_formats("write")
GOOD = '{"id": "1", "text": "fever", "entities": [{"start": 0, "end": 5}]}\n'
INPUTS = {
    "a.jsonl": f'{GOOD}{{"id": "2", "text": 7}}\n{GOOD.replace("1", "3")}',
    "a.pubtator": "".join(
        f"{id}|t|fever\n{id}|a|\n{id}\t0\t{end}\tfever\tX\tC1\n\n"
        for id, end in (("1", 5), ("2", 4), ("3", 5))
    )
    + "4|t|fever\n4|b|fever\n5|t|fever\n",
    "a.json": json.dumps(
        {
            "documents": [
                {"id": id, "passages": [{"offset": 0, "text": text}]}
                for id, text in (("1", "fever"), ("2", 7), ("3", "fever"))
            ]
        }
    ),
}


@pytest.mark.parametrize("name", [n for n in WRITERS if n != "omop"])
def test_a_document_that_was_not_linked_stays_in_every_format(
    name: str, tmp_path: Path
) -> None:
    pytest.importorskip((WRITERS[name].library or ("json",))[0])
    path = tmp_path / "out"
    docs = [LinkedDoc("n1", "", [], error=ERROR), LinkedDoc("n2", "fever", [])]
    with open_target(path, name) as target:
        load_writer(name)(iter(docs), target)
    if name == "parquet":
        import pyarrow.parquet as pq

        (row,) = pq.read_table(path).to_pylist()
        assert (row["id"], row["error"], row["start"]) == ("n1", ERROR, None)
        return
    files = [file for file in (path, *path.rglob("*")) if file.is_file()]
    data = "\n".join(f"{file.name}\n{file.read_text('utf8')}" for file in files)
    assert "n1" in data
    assert WRITERS[name].errors == ("Expected a document with a text" in data)


def test_csv_has_a_column_for_the_error(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    with open_target(path, "csv") as target:
        load_writer("csv")(
            [LinkedDoc("n1", "", [], {"ward": "A"}, error=ERROR)], target
        )
    (row,) = csv.DictReader(path.read_text("utf8").splitlines())
    assert {key: value for key, value in row.items() if value} == {
        "id": "n1",
        "error": ERROR,
    }


@pytest.mark.parametrize("name", ["jsonl", "brat", "biocxml", "biocjson", "pubtator"])
def test_formats_with_an_error_are_read_again(name: str, tmp_path: Path) -> None:
    from spacy_sapbert.formats.registry import load_reader

    path = tmp_path / "out"
    with open_target(path, name) as target:
        load_writer(name)(iter([LinkedDoc("n1", "", [], error=ERROR)]), target)
    (document,) = load_reader(name)(path)
    assert (document.id, document.mentions) == ("n1", [])


@pytest.mark.parametrize("name", INPUTS)
def test_read_documents_keeps_the_ids_of_those_that_are_invalid(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(INPUTS[name], "utf8")
    errors: list[SapbertError] = []
    files = list_inputs([path])
    read = read_documents(files, longest=99, on_error=errors.append, keep_failed=True)
    found = [(str(document.id), bool(document.error)) for document in read]
    assert found[:3] == [("1", False), ("2", True), ("3", False)]
    assert found[3:] in ([], [("4", True), ("5", False)])
    assert len(errors) == sum(error for _, error in found)


def test_read_documents_keeps_the_names_of_texts_and_of_brat_that_are_invalid(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_bytes(b"fever \xff")
    (tmp_path / "b.txt").write_text("fever")
    (tmp_path / "b.ann").write_text("T1\tX 0 9\tfever\n")
    (tmp_path / "c.txt").write_text("fever")
    errors: list[SapbertError] = []
    files = list_inputs([tmp_path])
    read = read_documents(files, longest=99, on_error=errors.append, keep_failed=True)
    assert [(document.id, bool(document.error)) for document in read] == [
        ("a.txt", True),
        ("b.txt", True),
        ("c.txt", False),
    ]
    assert [error.code for error in errors] == ["E009", "E117"]


@pytest.mark.parametrize("name", INPUTS)
def test_read_corpus_leaves_out_documents_that_are_invalid(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(INPUTS[name], "utf8")
    errors: list[SapbertError] = []
    ids: list[Any] = []
    with suppress(SapbertError):  # E106: there is no mention in BioC above
        for document in read_corpus(path, on_error=errors.append):
            ids.append(document.id)
    assert {"1", "3"} <= set(map(str, ids))
    assert "2" not in map(str, ids)
    assert errors
    with pytest.raises(SapbertError, match="E117"):
        list(read_corpus(path))


@pytest.mark.parametrize("name", ["pubtator", "jsonl"])
def test_link_says_which_documents_are_not_marked(
    name: str, sample_kb: Path, tmp_path: Path
) -> None:
    path, output = tmp_path / "a.jsonl", tmp_path / f"out.{name}"
    path.write_text(INPUTS["a.jsonl"])
    job = LinkJob((path,), output, kb=str(sample_kb), on_error="skip")
    result = link_files(job)
    assert result.left_out == Counter({"skipped": 1})
    assert result.unmarked == (["2"] if name == "pubtator" else [])
    assert output.read_text().count("fever") >= 2
    words = ["link", sample_kb, path, "--on-error", "skip", "--force"]
    shown = invoke(*words, "--output", output, code=0)
    assert ("not marked in the output: 2" in shown.output) == (name == "pubtator")


def test_commands_leave_out_what_is_invalid_if_asked(
    sample_kb: Path, tmp_path: Path
) -> None:
    table = tmp_path / "gold.tsv"
    rows = ["mention\tids", "fever\tC0000004", "MI", *["pain\tC0000007"] * 60]
    table.write_text("\n".join(rows), "utf8")
    for words in (
        ["convert", table, "--output", tmp_path / "out.tsv"],
        ["evaluate", sample_kb, table],
        ["calibrate", sample_kb, table, "--dry-run"],
        ["teach", sample_kb, table, "--output", tmp_path / "kb", "--force"],
    ):
        assert f"{table}:3: Expected" in invoke(*words, code=1).output
        shown = invoke(*words, "--on-error", "skip", code=0)
        assert "1 documents or lines were left out" in shown.output
