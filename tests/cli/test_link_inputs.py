"""`link` reads annotated files and tables, and counts what it leaves out."""

import csv
import gzip
import json
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
PUBTATOR = (
    "101|t|Pyrexia of mice\n101|a|Headache followed.\n"
    "101\t0\t7\tPyrexia\tDisease\tMESH:X\n101\t16\t24\tHeadache\tDisease\t-\n\n"
    "102|t|Aspirin\n102|a|\n102\t0\t7\tAspirin\tChemical\tMESH:Y\n"
)


@Language.component("test_link_inputs_bad", assigns=["doc.ents"])
def find_bad(doc: Doc) -> Doc:
    if "bad" in doc.text:
        raise ZeroDivisionError(doc.text)
    doc.set_ents([Span(doc, 0, 1, label="X")] if len(doc) else [])
    return doc


def run(*arguments: Any, code: int = 0, **options: Any) -> Any:
    result = invoke("link", *arguments, code=code, **options)
    assert SENTINEL not in result.stderr
    return result


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf8").splitlines()]


def write_lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf8")
    return path


def describe(docs: list[dict[str, Any]]) -> Any:
    return [
        (d["id"], [(e["text"], e["label"], e["cui"]) for e in d["entities"]])
        for d in docs
    ]


EXPECTED = [
    ("101", [("Pyrexia", "Disease", "C0000004"), ("Headache", "Disease", "C0000007")]),
    ("102", [("Aspirin", "Chemical", "C0000006")]),
]


@pytest.mark.parametrize("name", ["dev.txt", "dev.pubtator.gz", "dev"])
def test_link_pubtator_of_any_name_links_its_entities(
    name: str, sample_kb: Path, tmp_path: Path
) -> None:
    data = PUBTATOR.encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    output = tmp_path / "linked.jsonl"
    run(sample_kb, path, "--output", output)
    assert describe(read_lines(output)) == EXPECTED


@pytest.mark.parametrize("format", ["jsonl", "pubtator", "brat", "biocxml", "biocjson"])
def test_link_reads_what_it_writes(
    format: str, sample_kb: Path, tmp_path: Path
) -> None:
    (tmp_path / "dev.txt").write_text(PUBTATOR)
    written = tmp_path / "written"
    run(sample_kb, tmp_path / "dev.txt", "-o", written, "--format", format)
    output = tmp_path / "linked.jsonl"
    run(sample_kb, written, "-o", output, "--input-format", format)
    found = describe(read_lines(output))
    if format == "brat":  # the id is the file
        found = [(id.removesuffix(".txt"), entities) for id, entities in found]
    assert found == EXPECTED


def test_link_entities_of_json_lines_are_kept_without_their_ids(
    sample_kb: Path, tmp_path: Path
) -> None:
    """The first is inside of a token, the second has no name of the kb near it."""
    text = "prefever zz"
    entities = [
        {"start": 3, "end": 8, "label": "D", "cui": "GOLD1"},
        {"start": 9, "end": 11, "cui": "GOLD2"},
    ]
    rows = [{"text": text, "entities": entities}, {"text": "fever", "entities": []}]
    path = write_lines(tmp_path / "notes.jsonl", *rows, {"text": "fever"})
    output = tmp_path / "linked.jsonl"
    run(sample_kb, path, "--output", output, "--threshold", 0.999)
    assert "GOLD" not in output.read_text()
    assert describe(read_lines(output)) == [
        ("notes.jsonl:1", [("fever", "D", "C0000004"), ("zz", "ENTITY", None)]),
        ("notes.jsonl:2", []),
        ("notes.jsonl:3", [("fever", "CONCEPT", "C0000004")]),
    ]


def test_link_entities_of_json_lines_need_no_detector(
    sample_kb: Path, tmp_path: Path
) -> None:
    spacy.blank("en").to_disk(tmp_path / "pipeline")
    entities = [{"start": 0, "end": 5}]
    path = write_lines(tmp_path / "a.jsonl", {"text": "fever", "entities": entities})
    options = ("--pipeline", tmp_path / "pipeline")
    assert "1 linked" in run(sample_kb, path, *options).stderr
    path = write_lines(tmp_path / "b.jsonl", {"text": "fever"})
    assert "E508" in run(sample_kb, path, *options, code=1).stderr


@pytest.mark.parametrize("key", [None, "sc"])
def test_link_ids_of_a_docbin_do_not_reach_the_output(
    key: str | None, sample_kb: Path, tmp_path: Path
) -> None:
    nlp = spacy.blank("en")
    doc = nlp.make_doc("zz fever")
    spans = [Span(doc, n, n + 1, label="X", kb_id="GOLD") for n in (0, 1)]
    doc.user_data["id"] = "n7"
    doc.spans["sc"] = spans
    doc.set_ents(spans)
    DocBin(docs=[doc], store_user_data=True).to_disk(tmp_path / "gold.spacy")
    config = {"kb": str(sample_kb), "spans_key": key, "threshold": 0.999}
    nlp.add_pipe("sapbert_linker", config=config)
    nlp.to_disk(tmp_path / "pipeline")
    output = tmp_path / "linked.jsonl"
    run(tmp_path / "pipeline", tmp_path / "gold.spacy", "--output", output)
    assert describe(read_lines(output)) == [
        ("n7", [("zz", "X", None), ("fever", "X", "C0000004")])
    ]


def test_link_overlapping_entities_are_left_out_with_a_warning(
    sample_kb: Path, tmp_path: Path
) -> None:
    places = [(0, 12), (6, 12), (6, 12), (13, 16)]
    entities = [{"start": start, "end": end} for start, end in places]
    row = {"text": "heart attack now", "entities": entities}
    path = write_lines(tmp_path / "notes.jsonl", row)
    with pytest.warns(UserWarning, match="W533.*of 3 in the input 1 overlap"):
        result = run(sample_kb, path)
    assert "2 entities" in result.stderr
    nlp = make_nlp(sample_kb, spans_key="sc")
    nlp.to_disk(tmp_path / "pipeline")
    result = run(tmp_path / "pipeline", path)
    assert "4 entities" in result.stderr


def test_link_text_file_beside_annotations_keeps_them(
    sample_kb: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.txt").write_text("Took aspirin for fever")
    (folder / "a.ann").write_text("T1\tDrug 5 12\taspirin\n")
    (folder / "b.txt").write_text("no fever")
    output = tmp_path / "linked.jsonl"
    options = ("--output", output, "--force")
    run(sample_kb, folder, *options)
    fever = ("fever", "CONCEPT", "C0000004")
    assert describe(read_lines(output)) == [
        ("a.txt", [("aspirin", "Drug", "C0000006")]),
        ("b.txt", [fever]),
    ]
    run(sample_kb, folder, *options, "--input-format", "text")
    assert describe(read_lines(output))[0][1] == [
        ("aspirin", "CONCEPT", "C0000006"),
        fever,
    ]


def test_link_folder_skips_hidden_files_and_models(
    sample_kb: Path, tmp_path: Path
) -> None:
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
    result = run(sample_kb, folder, "--output", output)
    assert [data["id"] for data in read_lines(output)] == ["sub/a.txt"]
    assert "; not read: 3 hidden, 3 of knowledge bases or models; " in result.stderr


def test_link_a_format_that_is_no_stream_is_an_error(sample_kb: Path) -> None:
    option = "--input-format"
    assert "E110" in run(sample_kb, "-", option, "biocxml", code=1).stderr


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "notes.csv"
    rows = [("ward", "note", "nr"), ("A|B", 'fever,\r\n"DM"', "7"), ("C", "", "8")]
    with open(path, "w", newline="", encoding="utf8") as file:
        csv.writer(file).writerows(rows)
    return path


def test_link_csv_with_columns_to_keep(
    table: Path, sample_kb: Path, tmp_path: Path
) -> None:
    fields = ("--text-field", "note", "--id-field", "nr", "--keep", "ward")
    options = (*fields, "--output")
    output = tmp_path / "linked.jsonl"
    run(sample_kb, table, *options, output)
    first, second = read_lines(output)
    assert [*first] == ["id", "text", "ward", "entities"]
    assert (first["id"], first["text"], first["ward"]) == ("7", 'fever,\r\n"DM"', "A|B")
    assert [e["text"] for e in first["entities"]] == ["fever", "DM"]
    assert (second["id"], second["text"], second["entities"]) == ("8", "", [])
    run(sample_kb, table, *options, tmp_path / "linked.csv")
    with open(tmp_path / "linked.csv", newline="", encoding="utf8") as file:
        found = [(row["id"], row["text"], row["ward"]) for row in csv.DictReader(file)]
    assert found == [("7", "fever", "A|B"), ("7", "DM", "A|B")]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--text-field", "notes"), "E410"),
        (("--text-field", "note", "--keep", "bed"), "E410"),
        (("--keep", "score"), "E331"),
        (("--keep", "ward,ward"), "E331"),
        (("--keep", "ward", "--format", "html"), "E331"),
    ],
)
def test_link_wrong_columns_are_an_error(
    table: Path, options: tuple[str, ...], code: str, sample_kb: Path
) -> None:
    formats = () if "--format" in options else ("--format", "csv")
    assert code in run(sample_kb, table, *options, *formats, code=1).stderr


def test_link_parquet_reads_any_type_and_keeps_columns(
    sample_kb: Path, tmp_path: Path
) -> None:
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
        result = run(sample_kb, path, *fields, "--output", output)
        assert result.stderr.startswith("4 documents, 3 entities, 3 linked, 0 NIL; 1 ")
        assert "; 1 without text; " in result.stderr
        found = pq.read_table(output).select(["id", "text", "day", "nr"]).to_pylist()
        assert [tuple(row.values()) for row in found] == [
            ("1", "fever", "1970-01-01", "1"),
            ("3", "DM", None, "3"),
            ("4", "fever", "1970-01-04", "4"),
        ]


def test_link_null_texts_are_counted_and_passed_through(
    sample_kb: Path, tmp_path: Path
) -> None:
    path = write_lines(tmp_path / "a.jsonl", {"text": None, "id": "x"}, {"text": "DM"})
    output = tmp_path / "linked.jsonl"
    result = run(sample_kb, path, "--output", output)
    assert "2 documents, 1 entity, 1 linked, 0 NIL; 1 without text; " in result.stderr
    assert describe(read_lines(output))[0] == ("x", [])


def test_link_ids_that_come_twice_are_counted(sample_kb: Path, tmp_path: Path) -> None:
    rows = [{"text": "", "id": id} for id in (1, "b", "1", "b")]
    path = write_lines(tmp_path / "a.jsonl", *rows)
    with pytest.warns(UserWarning, match=r"W534.* one: 2, first at a\.jsonl:3\."):
        run(sample_kb, path)


def test_link_on_error_skip_leaves_out_bad_lines(
    sample_kb: Path, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"text": "fever"}}\n{{"text": "{SENTINEL}"\n')
    output = tmp_path / "linked.jsonl"
    options = ("--output", output)
    assert "E117" in run(sample_kb, path, *options, code=1).stderr
    run(sample_kb, path, *options, "--on-error", "ignore", code=2)
    result = run(sample_kb, path, *options, "--on-error", "skip")
    assert [data["id"] for data in read_lines(output)] == ["a.jsonl:1"]  # no id
    assert f"Skipped: [E117] {path}:2: Expected" in result.stderr
    assert "; 1 skipped; " in result.stderr
    output.unlink()
    path.write_text("{}\n{}\n")
    skip = ("--on-error", "skip")
    assert "E117" in run(sample_kb, path, *options, *skip, code=1).stderr
    assert not output.exists()


def test_link_on_error_skip_leaves_out_documents_of_failing_components(
    sample_kb: Path, tmp_path: Path
) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("test_link_inputs_bad")
    nlp.to_disk(tmp_path / "pipeline")
    texts = ["fever", f"bad {SENTINEL}", "DM", "fever", "bad"]
    path = write_lines(tmp_path / "a.jsonl", *({"text": t, "id": t[:9]} for t in texts))
    output = tmp_path / "linked"
    options = ("--pipeline", tmp_path / "pipeline", "--output")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(sample_kb, path, *options, output, code=1)
        skip = ("--on-error", "skip", "--shard-size", 2, "--batch-size", 2)
        result = run(sample_kb, path, *options, output, *skip)
        again = run(sample_kb, path, *options, output, *skip)
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


def test_link_lang_is_that_of_the_blank_pipeline(
    sample_kb: Path, tmp_path: Path
) -> None:
    path = write_lines(tmp_path / "a.jsonl", {"text": "aspirin del 1.º"})
    run(sample_kb, path, "--lang", "es")
    assert "E331" in run(sample_kb, path, "--lang", "xyz", code=1).stderr
    spacy.blank("en").to_disk(tmp_path / "pipeline")
    more = ("--pipeline", tmp_path / "pipeline")
    assert "E331" in run(sample_kb, path, "--lang", "es", *more, code=1).stderr


def test_link_empty_files_say_so(sample_kb: Path, tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.csv", "c.txt", "d.spacy", "e.json"):
        (tmp_path / name).touch()
    for name in ("a.jsonl", "b.csv", "c.txt"):
        with pytest.warns(UserWarning, match=rf"W537.*the file is empty: .*{name}"):
            run(sample_kb, tmp_path / name)
    for name in ("d.spacy", "e.json"):
        result = run(sample_kb, tmp_path / name, code=1)
        assert "the file is empty" in result.stderr


def test_link_progress_without_a_terminal_is_a_line_a_while(
    sample_kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spacy_sapbert.io.progress.LINE_SECONDS", 1e-6)
    path = write_lines(tmp_path / "a.jsonl", *({"text": "fever"} for _ in range(4)))
    output = tmp_path / "linked.jsonl"
    options = ("--output", output, "--batch-size", 1)
    lines = run(sample_kb, path, *options).stderr.splitlines()
    assert any(line.startswith("4 of 4 documents, ") for line in lines)
    assert lines[-1].startswith("4 documents, 4 entities, 4 linked, 0 NIL; ")
    assert lines[-1].endswith(" documents/s")
    assert run(sample_kb, path, *options, "--force", "--quiet").stderr == ""


def test_a_pipeline_that_links_takes_the_place_of_its_knowledge_base(
    sample_kb: Path, tmp_path: Path
) -> None:
    nlp = make_nlp(sample_kb)
    nlp.to_disk(tmp_path / "pipeline")
    path = write_lines(tmp_path / "a.jsonl", {"text": "fever"})
    names = ("--mentions", "names")
    assert "1 linked" in run(tmp_path / "pipeline", path, *names).stderr
    other = ("--pipeline", tmp_path / "pipeline")
    assert "E423" in run(tmp_path / "pipeline", path, *other, code=1).stderr
    result = invoke("kb", "info", tmp_path / "pipeline", code=1)
    inside = tmp_path / "pipeline" / "sapbert_linker" / "kb"
    assert "E303" in result.stderr
    assert str(inside) in result.stderr
    assert inside.is_dir()
