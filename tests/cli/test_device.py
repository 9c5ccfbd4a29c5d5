"""Commands that embed many names take a GPU if there is one."""

import json

import pytest

from tests.commands import invoke

COMMANDS = [
    "kb build CONCEPTS out --encoder ENCODER",
    "kb add KB CONCEPTS",
    "evaluate KB gold.tsv",
    "calibrate KB gold.tsv --dry-run",
    "teach KB gold.tsv --output out",
    "link KB note.jsonl",
    "map KB table.csv --column mention -o out.csv",
    "verify KB table.csv --column mention --id id -o out.csv",
    "update OLD KB table.csv --column mention --id id -o out.csv",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs_the_encoder_on_a_gpu(
    command,
    sample_kb,
    own_kb,
    concepts_file,
    tiny_encoder,
    tmp_path,
    monkeypatch,
    two_gpus,
):
    monkeypatch.chdir(tmp_path)
    gold = ("hart atack\tC0000001\n", "feverr\tC0000004\n") * 30
    (tmp_path / "gold.tsv").write_text("mention\tids\n" + "".join(gold))
    (tmp_path / "table.csv").write_text("mention,id\nhart atack,C0000004\n")
    if command.startswith("update"):
        invoke("kb", "remove", own_kb, "C0000004", code=0)
        two_gpus.clear()
    spans = [{"start": 0, "end": 10, "label": "DISEASE"}]
    note = {"text": "hart atack", "entities": spans}
    (tmp_path / "note.jsonl").write_text(json.dumps(note))
    places = {"OLD": sample_kb, "KB": own_kb}
    places |= {"CONCEPTS": concepts_file, "ENCODER": tiny_encoder}
    words = [places.get(word, word) for word in command.split()]
    invoke(*words, code=0)
    assert {*two_gpus} == {"cuda"}
