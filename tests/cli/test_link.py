import json
import re
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


def read_lines(path):
    return [json.loads(line) for line in path.read_text("utf8").splitlines()]


def test_link_without_pipeline_detects_and_links_names(sample_kb, tmp_path):
    note, output = tmp_path / "note.txt", tmp_path / "linked.jsonl"
    note.write_text(f"Heart attack and pyrexia, no headache. {SENTINEL}\n")
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


def test_candidates_of_files_are_few_and_change_no_link(sample_kb, tmp_path):
    """Of the first some, a file has what it has of all: ties and probabilities."""
    note = tmp_path / "note.txt"
    note.write_text("MI, cold and heart attacks, no fever.")
    found = {}
    for words in ((), ("--candidates", 0), ("--candidates", 9), ("-k", 5)):
        output = tmp_path / "linked.jsonl"
        invoke("link", sample_kb, note, "-o", output, *words, "--force", code=0)
        (data,) = read_lines(output)
        found[words] = [entity.pop("candidates") for entity in data["entities"]], data
    most, data = found.pop(("--candidates", 9))
    assert max(map(len, most)) == 8
    for words, (few, others) in found.items():
        assert others == data
        number = words[1] if words else 3
        assert few == [some[:number] for some in most]
    for ending in ("csv", "html", "xml"):
        output = tmp_path / f"linked.{ending}"
        sizes = []
        for number in (0, 1, 9):
            words = ["--candidates", number, "--force", "-o", output]
            invoke("link", sample_kb, note, *words, code=0)
            sizes.append(output.stat().st_size)
        assert sizes == sorted({*sizes})


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


def test_link_of_a_text_from_the_standard_input_says_how_to_pass_it(sample_kb):
    for text in ("Fever and seizures\n", "[1]\n", '{"text": "fever"}\nand a cough\n'):
        error = invoke("link", sample_kb, "-", input=text, code=1).stderr
        assert re.search(r"E117\] stdin:[12]: .*`--input-format text`", error)
        assert not re.search("seizures|cough", error)
    for line in ('{"text": "fever"\n', '{"text": 1}\n'):
        error = invoke("link", sample_kb, "-", input=line, code=1).stderr
        assert "--input-format" not in error


def test_link_reads_the_standard_input_and_writes_the_standard_output(
    sample_kb, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    words = ["link", sample_kb, "-", "--format", "jsonl", "-o", "-"]
    result = invoke(*words, input='{"text": "fever"}\n', code=0)
    (entity,) = json.loads(result.stdout)["entities"]
    assert entity["cui"] == "C0000004"
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    "command",
    [
        "verify KB - --column term --id id -o -",
        "map KB - --column term -o -",
        "evaluate KB - -o -",
        "concepts - -o -",
        "kb dump KB -o -",
    ],
)
def test_a_command_without_streams_does_not_write_a_file_of_their_name(
    command, sample_kb, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    words = [sample_kb if word == "KB" else word for word in command.split()]
    error = invoke(*words, code=1).stderr
    assert re.search(r"E003\] Expected a file .*, but - is the standard output", error)
    assert not [*tmp_path.iterdir()]


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
    link(sample_kb, path, "--output", output, "--least-cosine", 0.999)
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
    config = {"kb": str(sample_kb), "spans_key": "sc", "least_cosine": 0.999}
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
