"""The errors of all commands: a code, one line, no text, and nothing is written."""

import re
import sys

import pytest
import torch

from tests.commands import invoke

SENTINEL = "SENTINELTEXT"
FILES = {
    "note.txt": f"fever {SENTINEL}",
    "bad.jsonl": f'{{"text": "fever"}}\n{{"text": "{SENTINEL}"\n',
    "table.csv": f"ward,note\nA,fever {SENTINEL}\n",
    "small.obo": f"[Term]\nid: X:1\nname: {SENTINEL}\n",
    "gold.tsv": f"mention\tids\n{SENTINEL}\tC0000004\n",
    "bad.tsv": f"mention\tids\nfever\tC0000004\n{SENTINEL}\n",
    "more/gold.tsv": f"mention\tids\n{SENTINEL}\tC0000004\n",
    "bad.yaml": f"- {{mention: {SENTINEL}, expect: C1}}\n",
}
EXPLAIN = f"explain KB {SENTINEL}"
NO_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
BUILD = "kb build CONCEPTS out --encoder ENCODER"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("link KB note.txt --pipeline none", "E507"),
        ("link KB note.txt -o out.docx", "E110"),
        ("link KB none.txt", "E001"),
        ("link KB note.txt --engine onnx", "E223"),
        ("link KB bad.jsonl -o out.jsonl --batch-size 1", "E117.*bad.jsonl:2:"),
        ("link none note.txt", "E310"),
        ("link note.txt KB", "Name the folder first"),
        ("link KB note.txt --shard-size 2", "E423"),
        ("link KB table.csv --text notes", "E410"),
        ("link KB table.csv --text note --format html --keep ward", "E331"),
        ("calibrate KB gold.tsv --limit 20", "E582"),
        ("concepts small.obo", "--output"),
        ("evaluate KB bad.tsv --output out.json", "bad.tsv:3:"),
        ("evaluate KB gold.tsv more/gold.tsv", "E423"),
        ("explain KB", "E331"),
        ("explain KB --context a[[SENTINELTEXT", "E331"),
        (f"{EXPLAIN} --setting secret=1", "E333"),
        (f"{EXPLAIN} --setting label_types={'[' * 50_000}", r"\[E"),
        (f"{BUILD} --backend usearch", "--backend"),
        *(
            pytest.param(f"{command} --device cuda", "E357", marks=NO_GPU)
            for command in (
                BUILD,
                "evaluate KB gold.tsv",
                "calibrate KB gold.tsv",
                "teach KB gold.tsv",
                "link KB note.txt",
                "map KB table.csv -o out.csv --column note",
                "verify KB table.csv -o out.csv --column note --id ward",
                "update KB KB table.csv -o out.csv --column note --id ward",
                "kb add KB CONCEPTS",
            )
        ),
        ("kb info none", "E310"),
        ("kb search KB fever --types T999", r"E332.*it has.*but got 'T999'.*`--types`"),
        (
            "kb search KB fever --languages ENG",
            r"E332.*Expected no `filter\.languages`, .* but got 'ENG'\. Leave out",
        ),
        ("kb dump KB -o out.xml", "E110"),
        ("map KB table.csv -o out.csv --column nope", "E410.*'nope'"),
        ("map KB none.csv -o out.csv --column note --types T999", "E332"),
        ("map KB table.csv -o out.json --column note", "E110"),
        ("verify KB table.csv -o out.csv --column note", "E410"),
        # 1 means that cases failed
        ("regress KB none.yaml --output out.jsonl", "E001"),
        ("regress KB bad.yaml --output out.jsonl", "E117"),
        # of a choice
        ("link KB note.txt --mentions all", "--mentions"),
        ("link KB note.txt --format xml", "--format.*pubtator"),
    ],
)
def test_an_error_is_one_line_without_a_text(
    command, said, sample_kb, concepts_file, tiny_encoder, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf8")
    places = {"KB": sample_kb, "CONCEPTS": concepts_file, "ENCODER": tiny_encoder}
    words = [places.get(word, word) for word in command.split(" ")]
    result = invoke(*words)
    is_usage = said.startswith("--") and "kb build" not in command
    code = 2 if command.startswith("regress") or is_usage else 1
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    shown = " ".join(result.stderr.split())
    assert re.search(said, shown), shown
    assert is_usage or re.fullmatch(r"✘ \[E\d{3}\] .+\n", result.stderr)
    assert SENTINEL not in shown
    assert {path.name for path in tmp_path.iterdir()} == {
        name.partition("/")[0] for name in FILES
    }


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            "kb build concepts.jsonl out",
            "Missing option '--encoder'.*`spacy sapbert fetch-encoder models/minilm`",
        ),
        ("map", "Missing argument 'KB'.*Folder or name of the knowledge base"),
    ],
)
def test_what_is_missing_is_an_error_that_says_what_it_is(command, said):
    shown = invoke(*command.split(), code=2).stderr.replace("│", " ")
    assert re.search(said, " ".join(shown.split()))


@pytest.mark.parametrize("mention", ["", " ", "fev\udcffer"])
def test_a_mention_that_is_no_text_is_an_error(sample_kb, mention):
    assert "E331" in invoke("explain", sample_kb, mention, code=1).output


@pytest.mark.parametrize(
    ("command", "can_skip"),
    [
        ("link KB bad.jsonl -o out.jsonl", True),
        ("evaluate KB bad.tsv", True),
        ("map KB bad.jsonl --column text -o out.csv", False),
        ("verify KB bad.jsonl --column text --id text -o out.csv", False),
    ],
)
def test_an_error_names_skip_only_if_the_command_has_it(
    sample_kb, tmp_path, command, can_skip
):
    for name in ("bad.jsonl", "bad.tsv"):
        (tmp_path / name).write_text(FILES[name], "utf8")
    places = {"KB": sample_kb}
    words = [
        places.get(word, tmp_path / word if "." in word else word)
        for word in command.split()
    ]
    assert invoke(*words, code=1).output.count("--on-error skip") == can_skip
    if can_skip:
        output = invoke(*words, "--on-error", "skip").output
        assert "Expected" in output
        assert "--on-error skip" not in output


@pytest.mark.parametrize("extra", ["serve", "mcp"])
def test_a_service_without_its_packages_names_their_extra(extra, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    shown = " ".join(invoke(extra, "kb", code=1).output.split())
    assert "[E521] Expected fastapi to be installed" in shown
    assert f'Run `pip install -c constraints.txt -e ".[{extra}]"`.' in shown
