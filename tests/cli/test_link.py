import gzip
import json
import re
import shutil
from functools import partial

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import DocBin

from tests.commands import invoke

SENTINEL = "SENTINELTEXT"


@Language.component("test_link_failing")
def fail(doc):
    raise ZeroDivisionError(doc.text)


@pytest.fixture
def note(tmp_path):
    path = tmp_path / "note.txt"
    path.write_text(f"Heart attack and pyrexia, no headache. {SENTINEL}\n")
    return path


run = partial(invoke, "link")


def read_lines(path):
    return [json.loads(line) for line in path.read_text("utf8").splitlines()]


def test_link_without_pipeline_detects_and_links_names(note, sample_kb, tmp_path):
    output = tmp_path / "linked.jsonl"
    result = run(sample_kb, note, "--output", output, "--k", 2, code=0)
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


def test_link_setting_sets_any_option(note, sample_kb, tmp_path):
    note.write_text("MI")
    for setting, cui in ((), "C0000001"), (("--setting", "ambiguous=nil"), None):
        output = tmp_path / f"{cui}.jsonl"
        result = run(sample_kb, note, "--output", output, *setting, code=0)
        assert [entity["cui"] for entity in read_lines(output)[0]["entities"]] == [cui]
    result = run(sample_kb, note, "--setting", "ambiguity=nil", code=1)
    assert "E333" in result.output


def test_link_without_output_prints_a_table(note, sample_kb):
    result = run(sample_kb, note, "--quiet", code=0)
    assert "note.txt" in result.stdout
    assert "C0000004" in result.stdout
    assert result.stderr == ""


def test_link_no_text_writes_no_text(note, sample_kb, tmp_path):
    output = tmp_path / "linked.jsonl"
    result = run(sample_kb, note, "--output", output, "--no-text", code=0)
    assert SENTINEL not in output.read_text()
    assert "pyrexia" not in output.read_text()
    assert SENTINEL not in result.output


def test_link_keeps_the_order_of_inputs_for_any_batch_size(note, sample_kb, tmp_path):
    lines = tmp_path / "notes.jsonl.gz"
    texts = ["fever", "", "DM", "aspirin\0", "頭痛"]
    with gzip.open(lines, "wt", encoding="utf8") as file:
        for number, text in enumerate(texts):
            file.write(json.dumps({"id": number, "text": text}) + "\n")
    found = []
    for size in (1, 3, 64):
        output = tmp_path / f"{size}.jsonl"
        run(
            sample_kb,
            lines,
            note,
            "--output",
            output,
            "--batch-size",
            size,
            code=0,
        )
        found.append(read_lines(output))
    assert [data["id"] for data in found[0]] == [0, 1, 2, 3, 4, "note.txt"]
    assert found[0] == found[1] == found[2]


def test_link_below_the_threshold_is_nil_with_a_note(note, sample_kb, tmp_path):
    pipeline = spacy.blank("en")
    ruler = pipeline.add_pipe("entity_ruler")
    words = (SENTINEL, "and", ",")
    ruler.add_patterns([{"label": "X", "pattern": word} for word in words])
    pipeline.to_disk(tmp_path / "pipeline")
    output = tmp_path / "linked.jsonl.gz"
    result = run(
        *(sample_kb, note, "--pipeline", tmp_path / "pipeline"),
        *("--output", output, "--threshold", 1),
        code=0,
    )
    assert result.stderr.startswith(
        "1 document, 3 entities, 0 linked, 3 NIL (2 below_threshold, 1 empty); "
    )
    data = json.loads(gzip.decompress(output.read_bytes()))
    assert [(e["note"], len(e["candidates"]) > 0) for e in data["entities"]] == [
        *(("below_threshold", True), ("empty", False), ("below_threshold", True))
    ]


@pytest.fixture
def saved_pipeline(sample_kb, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_mentions", config={"spans_key": "sc"})
    nlp.add_pipe("sapbert_linker", config={"kb": str(sample_kb), "spans_key": "sc"})
    nlp.to_disk(tmp_path / "pipeline")
    return tmp_path / "pipeline"


def test_link_with_a_saved_linker_writes_its_span_group(saved_pipeline, note, tmp_path):
    output = tmp_path / "page.html"
    result = run(saved_pipeline, note, "--output", output, code=0)
    assert "3 entities, 3 linked" in result.stderr
    assert "concept/C0000001" in output.read_text("utf8")


def test_link_kb_for_a_pipeline_with_a_linker_is_an_error(saved_pipeline, note):
    result = run("other", note, "--pipeline", saved_pipeline, code=1)
    assert "E423" in result.output


def test_link_pipeline_without_entities_is_an_error_with_the_fix(
    note, sample_kb, tmp_path
):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "pipeline")
    result = run(sample_kb, note, "--pipeline", tmp_path / "pipeline", code=1)
    assert "E508" in result.output
    assert "--mentions names" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--pipeline", "not_there"], "E507"),
        (["--output", "linked.docx"], "E110"),
        (["missing.txt"], "E001"),
        (["--engine", "openvino"], "E223"),
    ],
)
def test_link_invalid_options_are_errors_of_one_line(note, sample_kb, arguments, code):
    result = run(sample_kb, note, *arguments, code=1)
    assert code in result.output
    assert "Traceback" not in result.output
    assert SENTINEL not in result.output


def test_link_invalid_line_leaves_no_output(sample_kb, tmp_path):
    lines = tmp_path / "notes.jsonl"
    lines.write_text(f'{{"text": "fever {SENTINEL}"}}\n{{"text": "{SENTINEL}"\n')
    output = tmp_path / "out" / "linked.jsonl"
    result = run(sample_kb, lines, "--output", output, "--batch-size", 1, code=1)
    assert "E117" in result.output
    assert "notes.jsonl:2:" in "".join(result.output.split())
    assert SENTINEL not in result.output
    assert list(output.parent.iterdir()) == []


def test_link_damaged_kb_leaves_no_output(note, own_kb, tmp_path):
    shutil.rmtree(own_kb / "v1" / "encoder")
    output = tmp_path / "linked.jsonl"
    result = run(own_kb, note, "--output", output, code=1)
    assert "E306" in result.output
    assert SENTINEL not in result.output
    assert not output.exists()


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


def test_link_spacy_files_without_detection(sample_kb, tmp_path):
    nlp = spacy.blank("en")
    doc = nlp("fever and aspirin")
    doc.ents = [doc.char_span(10, 17, label="DRUG")]
    DocBin(docs=[doc]).to_disk(tmp_path / "notes.spacy")
    nlp.to_disk(tmp_path / "pipeline")
    for number, more in enumerate([(), ("--pipeline", tmp_path / "pipeline")]):
        output = tmp_path / f"{number}.jsonl"
        notes = tmp_path / "notes.spacy"
        run(sample_kb, notes, "--output", output, *more, code=0)
        (data,) = read_lines(output)
        assert data["id"] == "notes.spacy:1"
        assert [(e["text"], e["label"], e["cui"]) for e in data["entities"]] == [
            ("aspirin", "DRUG", "C0000006")
        ]


@pytest.mark.parametrize(
    ("option", "value", "known"),
    [
        ("--format", "xml", "pubtator"),
        ("--input-format", "conll", "biocxml"),
        ("--on-error", "ignore", "skip"),
        ("--engine", "onnx", "openvino"),
        ("--precision", "int8", "bf16"),
        ("--mentions", "all", "names"),
    ],
)
def test_link_an_unknown_choice_is_a_wrong_option(note, option, value, known):
    output = " ".join(run("kb", note, option, value, code=2).output.split())
    assert option in output
    assert known in output


def test_link_without_the_knowledge_base_is_an_error(note, sample_kb):
    assert "E310" in run("not_there", note, code=1).output
    assert "Name the folder first" in run(note, sample_kb, code=1).output


def test_link_failing_document_is_an_error_with_its_id(note, sample_kb, tmp_path):
    pipeline = tmp_path / "pipeline"
    nlp = spacy.blank("en")
    nlp.add_pipe("test_link_failing")
    nlp.to_disk(pipeline)
    output = tmp_path / "linked.jsonl"
    options = ("--pipeline", pipeline, "--mentions", "names", "--output", output)
    result = run(sample_kb, note, *options, code=1)
    told = " ".join(result.output.split())
    assert "document 'note.txt', but its component 'test_link_failing' failed" in told
    assert "ZeroDivisionError" in told
    assert SENTINEL not in result.output
    assert not output.exists()


def test_link_interrupted_exits_with_130_and_leaves_no_file(
    note, sample_kb, tmp_path, monkeypatch
):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("spacy_sapbert.pipeline.running.run_batch", interrupt)
    result = run(sample_kb, note, "--output", tmp_path / "linked.jsonl", code=130)
    assert "Interrupted" in result.stderr
    assert not (tmp_path / "linked.jsonl").exists()


def test_link_filters_candidates(note, sample_kb, tmp_path):
    (tmp_path / "deny.txt").write_text("# not that one\nC0000001\tInfarction\n")
    heart, fever, head = "C0000001", "C0000004", "C0000007"
    for options, expected in (
        ((), {heart, fever, head}),
        (("--types", "T184"), {fever}),
        (("--types", "all", "--deny", tmp_path / "deny.txt"), {fever, head}),
    ):
        output = tmp_path / "linked.jsonl"
        arguments = (sample_kb, note, "--output", output, "--force")
        run(*arguments, "--threshold", "0.999", *options, code=0)
        data = json.loads(output.read_text("utf8"))
        found = {entity["cui"] for entity in data["entities"]}
        assert found - {None} == expected


def test_link_with_another_engine_returns_the_same(note, exported_kb, tmp_path):
    outputs = []
    for engine in ("torch", "openvino"):
        output = tmp_path / f"{engine}.jsonl"
        run(
            *(exported_kb, note, "--output", output),
            *("--engine", engine, "--precision", "float32", "--quiet"),
            code=0,
        )
        outputs.append([[e["cui"] for e in d["entities"]] for d in read_lines(output)])
    assert outputs[0] == outputs[1]
    assert any(outputs[0])
