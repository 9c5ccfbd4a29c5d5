import csv
import json
import re
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span

from tests.commands import invoke
from tests.pipelines import make_nlp

SENTINEL = "SENTINELTEXT"


@pytest.fixture
def note(tmp_path):
    path = tmp_path / "note.txt"
    path.write_text(f"Heart attack and pyrexia, no headache. {SENTINEL}\n")
    return path


def read_lines(path):
    return [json.loads(line) for line in path.read_text("utf8").splitlines()]


def test_link_without_pipeline_detects_and_links_names(note, sample_kb, tmp_path):
    output = tmp_path / "linked.jsonl"
    result = invoke("link", sample_kb, note, "--output", output, "--k", 2, code=0)
    (data,) = read_lines(output)
    assert data["id"] == "note.txt"
    assert data["text"] == note.read_text()
    assert [(e["text"], e["cui"], e["name"]) for e in data["entities"]] == [
        ("Heart attack", "C0000001", "Myocardial infarction"),
        ("pyrexia", "C0000004", "Fever"),
        ("headache", "C0000007", "Headache"),
    ]
    assert all(len(entity["candidates"]) == 2 for entity in data["entities"])
    assert re.fullmatch(
        r"1 document, 3 entities, 3 linked, 0 NIL; [\d.]+ s, [\d.,]+ documents/s\n",
        result.stderr,
    )
    assert result.stdout == ""
    options = ("--output", output, "--no-text", "--force")
    result = invoke("link", sample_kb, note, *options, code=0)
    for written in (output.read_text(), result.output):
        assert not {SENTINEL, "pyrexia"} & {*re.findall(r"\w+", written)}


def test_link_reads_the_standard_input(sample_kb):
    lines = '{"id": "a", "text": "fever"}\n{"text": "aspirin"}\n'
    arguments = ["link", str(sample_kb), "-", "--format", "jsonl"]
    result = invoke(*arguments, input=lines, code=0)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [data["id"] for data in found] == ["a", "stdin:2"]
    result = invoke(*arguments, "--input-format", "text", input=lines)
    (data,) = [json.loads(line) for line in result.stdout.splitlines()]
    assert (data["id"], data["text"]) == ("stdin", lines)
    assert [entity["text"] for entity in data["entities"]] == ["fever", "aspirin"]


@Language.component("test_link_inputs_bad", assigns=["doc.ents"])
def find_bad(doc: Doc) -> Doc:
    if "bad" in doc.text:
        raise ZeroDivisionError(doc.text)
    doc.set_ents([Span(doc, 0, 1, label="X")] if len(doc) else [])
    return doc


def link(*arguments: Any, code: int = 0, **options: Any) -> Any:
    result = invoke("link", *arguments, code=code, **options)
    assert SENTINEL not in result.stderr
    return result


def write_lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf8")
    return path


def describe(docs: list[dict[str, Any]]) -> Any:
    return [
        (d["id"], [(e["text"], e["label"], e["cui"]) for e in d["entities"]])
        for d in docs
    ]


def test_link_entities_of_json_lines_are_kept_without_their_ids(sample_kb, tmp_path):
    """The first is inside of a token, the second has no name of the kb near it."""
    text = "prefever zz"
    entities = [
        {"start": 3, "end": 8, "label": "D", "cui": "GOLD1"},
        {"start": 9, "end": 11, "cui": "GOLD2"},
    ]
    rows = [{"text": text, "entities": entities}, {"text": "fever", "entities": []}]
    path = write_lines(tmp_path / "notes.jsonl", *rows, {"text": "fever"})
    output = tmp_path / "linked.jsonl"
    link(sample_kb, path, "--output", output, "--threshold", 0.999)
    assert "GOLD" not in output.read_text()
    assert describe(read_lines(output)) == [
        ("notes.jsonl:1", [("fever", "D", "C0000004"), ("zz", "ENTITY", None)]),
        ("notes.jsonl:2", []),
        ("notes.jsonl:3", [("fever", "CONCEPT", "C0000004")]),
    ]


def test_link_ids_of_a_docbin_do_not_reach_the_output(sample_kb, tmp_path):
    nlp = spacy.blank("en")
    doc = nlp.make_doc("zz fever")
    spans = [Span(doc, n, n + 1, label="X", kb_id="GOLD") for n in (0, 1)]
    doc.user_data["id"] = "n7"
    doc.spans["sc"] = spans
    doc.set_ents(spans)
    DocBin(docs=[doc], store_user_data=True).to_disk(tmp_path / "gold.spacy")
    config = {"kb": str(sample_kb), "spans_key": "sc", "threshold": 0.999}
    nlp.add_pipe("sapbert_linker", config=config)
    nlp.to_disk(tmp_path / "pipeline")
    output = tmp_path / "linked.jsonl"
    link(tmp_path / "pipeline", tmp_path / "gold.spacy", "--output", output)
    assert describe(read_lines(output)) == [
        ("n7", [("zz", "X", None), ("fever", "X", "C0000004")])
    ]


def test_link_overlapping_entities_are_left_out_with_a_warning(sample_kb, tmp_path):
    places = [(0, 12), (6, 12), (6, 12), (13, 16)]
    entities = [{"start": start, "end": end} for start, end in places]
    row = {"text": "heart attack now", "entities": entities}
    path = write_lines(tmp_path / "notes.jsonl", row)
    with pytest.warns(UserWarning, match="W533.*of 3 in the input 1 overlap"):
        result = link(sample_kb, path)
    assert "2 entities" in result.stderr
    nlp = make_nlp(sample_kb, spans_key="sc")
    nlp.to_disk(tmp_path / "pipeline")
    result = link(tmp_path / "pipeline", path)
    assert "4 entities" in result.stderr


def test_link_folder_skips_hidden_files_and_models(sample_kb, tmp_path):
    folder = tmp_path / "notes"
    for place in (".git", "sub/.cache"):
        (folder / place).mkdir(parents=True)
        (folder / place / "x.txt").write_text("fever")
    (folder / ".hidden.txt").write_text("fever")
    (folder / "sub" / "a.txt").write_text("fever")
    shutil.copytree(sample_kb, folder / "kb")
    shutil.copytree(sample_kb / "v1" / "encoder", folder / "encoder")
    spacy.blank("en").to_disk(folder / "pipeline")
    (folder / "encoder" / "vocab.txt").touch()
    (folder / "pipeline" / "notes.txt").touch()
    output = tmp_path / "linked.jsonl"
    result = link(sample_kb, folder, "--output", output)
    assert [data["id"] for data in read_lines(output)] == ["sub/a.txt"]
    assert "; not read: 3 hidden, 3 of knowledge bases or models; " in result.stderr


@pytest.fixture
def table(tmp_path) -> Path:
    path = tmp_path / "notes.csv"
    rows = [("ward", "note", "nr"), ("A|B", 'fever,\r\n"DM"', "7"), ("C", "", "8")]
    with open(path, "w", newline="", encoding="utf8") as file:
        csv.writer(file).writerows(rows)
    return path


def test_link_csv_with_columns_to_keep(table, sample_kb, tmp_path):
    fields = ("--text-field", "note", "--id-field", "nr", "--keep", "ward")
    options = (*fields, "--output")
    output = tmp_path / "linked.jsonl"
    link(sample_kb, table, *options, output)
    first, second = read_lines(output)
    assert [*first] == ["id", "text", "ward", "entities"]
    assert (first["id"], first["text"], first["ward"]) == ("7", 'fever,\r\n"DM"', "A|B")
    assert [e["text"] for e in first["entities"]] == ["fever", "DM"]
    assert (second["id"], second["text"], second["entities"]) == ("8", "", [])
    link(sample_kb, table, *options, tmp_path / "linked.csv")
    with open(tmp_path / "linked.csv", newline="", encoding="utf8") as file:
        found = [(row["id"], row["text"], row["ward"]) for row in csv.DictReader(file)]
    assert found == [("7", "fever", "A|B"), ("7", "DM", "A|B")]


def test_link_parquet_reads_any_type_and_keeps_columns(sample_kb, tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    texts = pa.array(["fever", None, "DM", "fever"], pa.large_string())
    columns = {
        "nr": pa.array([1, 2, 3, 4]),
        "text": texts.dictionary_encode(),
        "note": pa.StructArray.from_arrays([texts], ["body"]),
        "day": pa.array([0, 1, None, 3], pa.date32()),
    }
    path = tmp_path / "notes.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=2)
    for field in ("text", "note.body"):
        output = tmp_path / f"{field}.parquet"
        fields = ("--text-field", field, "--id-field", "nr", "--keep", "day,nr")
        result = link(sample_kb, path, *fields, "--output", output)
        assert result.stderr.startswith("4 documents, 3 entities, 3 linked, 0 NIL; 1 ")
        assert "; 1 without text; " in result.stderr
        found = pq.read_table(output).select(["id", "text", "day", "nr"]).to_pylist()
        assert [tuple(row.values()) for row in found] == [
            ("1", "fever", "1970-01-01", "1"),
            ("3", "DM", None, "3"),
            ("4", "fever", "1970-01-04", "4"),
        ]


def test_link_on_error_skip_leaves_out_bad_lines(sample_kb, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"text": "fever"}}\n{{"text": "{SENTINEL}"\n')
    output = tmp_path / "linked.jsonl"
    options = ("--output", output)
    assert "E117" in link(sample_kb, path, *options, code=1).stderr
    result = link(sample_kb, path, *options, "--on-error", "skip")
    assert [data["id"] for data in read_lines(output)] == ["a.jsonl:1"]  # no id
    assert f"Skipped: [E117] {path}:2: Expected" in result.stderr
    assert "; 1 skipped; " in result.stderr
    output.unlink()
    path.write_text("{}\n{}\n")
    skip = ("--on-error", "skip")
    assert "E117" in link(sample_kb, path, *options, *skip, code=1).stderr
    assert not output.exists()


def test_link_on_error_skip_leaves_out_documents_of_failing_components(
    sample_kb, tmp_path
):
    nlp = spacy.blank("en")
    nlp.add_pipe("test_link_inputs_bad")
    nlp.to_disk(tmp_path / "pipeline")
    texts = ["fever", f"bad {SENTINEL}", "DM", "fever", "bad"]
    path = write_lines(tmp_path / "a.jsonl", *({"text": t, "id": t[:9]} for t in texts))
    output = tmp_path / "linked"
    options = ("--pipeline", tmp_path / "pipeline", "--output")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        link(sample_kb, path, *options, output, code=1)
        skip = ("--on-error", "skip", "--shard-size", 2, "--batch-size", 2)
        result = link(sample_kb, path, *options, output, *skip)
        again = link(sample_kb, path, *options, output, *skip)
    assert "'bad SENTI' (a.jsonl:2)" in result.stderr
    assert "3 documents, 3 entities" in result.stderr
    assert "; 2 skipped; " in result.stderr
    parts = [read_lines(part) for part in sorted(output.glob("part-*"))]
    assert [[(data["id"], "error" in data) for data in part] for part in parts] == [
        [("fever", False), ("bad SENTI", True)],
        [("DM", False), ("fever", False)],
        [("bad", True)],
    ]
    assert "3 documents, 3 entities" in again.stderr


def test_a_pipeline_that_links_takes_the_place_of_its_knowledge_base(
    sample_kb, tmp_path
):
    nlp = make_nlp(sample_kb)
    nlp.to_disk(tmp_path / "pipeline")
    path = write_lines(tmp_path / "a.jsonl", {"text": "fever"})
    names = ("--mentions", "names")
    assert "1 linked" in link(tmp_path / "pipeline", path, *names).stderr
    other = ("--pipeline", tmp_path / "pipeline")
    assert "E423" in link(tmp_path / "pipeline", path, *other, code=1).stderr
    result = invoke("kb", "info", tmp_path / "pipeline", code=1)
    inside = tmp_path / "pipeline" / "sapbert_linker" / "kb"
    assert "E303" in result.stderr
    assert str(inside) in result.stderr
    assert inside.is_dir()


def test_link_a_table_of_spark_becomes_one_in_parts(sample_kb, tmp_path):
    """It has leftovers of a run that was stopped."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pq = pytest.importorskip("pyarrow.parquet")
    folder, output = tmp_path / "notes.parquet", tmp_path / "linked.parquet"
    parts = {
        "year=2023": {"0": "fever", "2": None, "5": "MI"},
        "year=2024": {"1": "no headache", "4": "aspirin"},
        "year=__HIVE_DEFAULT_PARTITION__": {"3": "heart attack and DM"},
        "_temporary/0": {"9": "fever"},
    }
    for name, texts in parts.items():
        (folder / name).mkdir(parents=True)
        table = pa.table({"id": [*texts], "text": [*texts.values()]})
        pq.write_table(table, folder / name / "part-0.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.parquet.crc").touch()
    options = ("--keep", "year", "--shard-size", 2, "--output", output)
    assert "6 documents, 6 entities" in link(sample_kb, folder, *options).stderr
    parts = sorted(path.name for path in output.glob("part-*"))
    assert parts == [f"part-0000{number}.parquet" for number in range(3)]
    rows = pq.read_table(output).to_pylist()
    found = {(row["id"], row["text"], row["cui"], row["year"]) for row in rows}
    assert found == {
        ("0", "fever", "C0000004", "2023"),
        ("1", "headache", "C0000007", "2024"),
        ("3", "heart attack", "C0000001", None),
        ("3", "DM", "C0000005", None),
        ("4", "aspirin", "C0000006", "2024"),
        ("5", "MI", "C0000001", "2023"),
    }
