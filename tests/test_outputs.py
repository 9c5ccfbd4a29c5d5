"""Every command that writes follows one rule: an existing output needs `--force`."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from spacy_sapbert.cli.main import app as package_app
from tests.commands import invoke, make_tree
from tests.faults import fill_disk
from training.__main__ import app as training_app

APPS = {"sapbert": package_app, "training": training_app}
# Where the output stands among the arguments. The inputs do not exist, so that the test
# sees that the output is checked before anything is read.
OUT = "OUT"
NONE = "none"
COMMANDS: dict[str, list[list[str]]] = {
    "sapbert assemble": [[NONE, OUT]],
    "sapbert concepts diff": [[NONE, NONE, "--output", OUT]],
    "sapbert concepts read": [
        [NONE, "--output", OUT],
        [NONE, "--output", "new.jsonl", "--report", OUT],
    ],
    "sapbert evaluate": [
        [NONE, NONE, "--output", "OUT.html"],
        [NONE, NONE, "--predictions", "OUT.html"],
        [NONE, NONE, "--errors", "OUT.csv"],
    ],
    "sapbert link": [[NONE, NONE, "--output", "OUT.jsonl"]],
    "sapbert map": [[NONE, NONE, "--column", "a", "--output", "OUT.csv"]],
    "sapbert regress": [[NONE, NONE, "--output", OUT]],
    "sapbert update": [
        [NONE, NONE, NONE, "--output", "OUT.csv"],
        [NONE, NONE, NONE, "--output", "new.csv", "--report", "OUT.csv"],
    ],
    "sapbert verify": [[NONE, NONE, "--output", "OUT.csv"]],
    "sapbert stop-names": [[NONE, NONE, "--output", OUT]],
    "sapbert teach": [[NONE, NONE, "--output", OUT], [NONE, NONE, "--report", OUT]],
    "sapbert kb build": [[NONE, OUT, "--encoder", NONE]],
    "sapbert kb diff": [[NONE, NONE, "--output", OUT]],
    "sapbert kb dump": [[NONE, "--output", OUT]],
    "sapbert fetch-encoder": [[OUT]],
    "training convert-dictionary": [[NONE, OUT]],
    "training pairs": [[NONE, OUT]],
    "training finetune-pairs": [[NONE, "--concepts", NONE, "--output", OUT]],
    "training translation-pairs": [[NONE, "--output", OUT]],
    "training families": [[NONE, OUT]],
    "training relations": [[NONE, NONE, OUT]],
    "training hold-out": [[NONE, OUT, "new.jsonl"], [NONE, "new.jsonl", OUT]],
    "training hold-out-names": [
        [NONE, OUT, "new.tsv"],
        [NONE, "new.jsonl", OUT],
        [NONE, "new.jsonl", "new.tsv", "--validation", OUT],
    ],
    "training sample": [[NONE, OUT, NONE]],
    "sapbert convert": [[NONE, "--format", "tsv", "--output", "OUT.tsv"]],
    "training convert-corpus": [[NONE, "--format", "cometa", "--output", "OUT.tsv"]],
    "training train": [[NONE, OUT]],
    "training results-table": [["a=none", "--output", OUT]],
}
# Commands that write a folder, and a file that every such folder has.
FOLDERS = {
    "sapbert assemble": "assembled.json",
    "sapbert kb build": "CURRENT",
    "sapbert teach": "CURRENT",
    "sapbert fetch-encoder": "sapbert.json",
    "training train": "sapbert.json",
}
CASES = [(name, words) for name, cases in COMMANDS.items() for words in cases]


def list_writing(group: Any, name: str) -> Iterator[str]:
    """Yield the commands with `--force` of a group and the groups in it."""
    if not hasattr(group, "list_commands"):
        if "force" in {parameter.name for parameter in group.params}:
            yield name
        return
    for each in group.list_commands(None):
        yield from list_writing(group.get_command(None, each), f"{name} {each}")


def test_every_command_that_writes_is_tested():
    found = {
        name
        for prefix, app in APPS.items()
        for name in list_writing(make_tree(app), prefix)
    }
    assert found == {*COMMANDS, "sapbert kb package"}  # which is tested below


@pytest.mark.parametrize(("name", "words"), CASES)
def test_existing_output_is_an_error_without_force(name, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    app, *command = name.split()
    command += [word.replace(OUT, "earlier") for word in words]
    (output,) = (tmp_path / word for word in command if word.startswith("earlier"))
    output.write_bytes(b"of hours")
    shown = invoke(*command, app=APPS[app])
    assert shown.exit_code == (2 if name == "sapbert regress" else 1)
    assert "[E003]" in shown.output, shown.output
    assert "--force" in shown.output
    forced = invoke(*command, "--force", app=APPS[app])
    assert "exists already" not in forced.output
    assert "No such option" not in forced.output
    if name != "sapbert fetch-encoder":  # it has no input that is missing
        assert forced.exit_code in (1, 2)
        assert output.read_bytes() == b"of hours"


@pytest.mark.parametrize("mark", [True, False])
@pytest.mark.parametrize("name", FOLDERS)
def test_force_replaces_no_folder_of_another_kind(name, mark, tmp_path, monkeypatch):
    folder = tmp_path / "precious"
    monkeypatch.chdir(tmp_path)
    (folder / "of_hours").mkdir(parents=True)
    (folder / "of_hours" / "notes.csv").write_text("text", "utf8")
    if mark:
        (folder / FOLDERS[name]).parent.mkdir(exist_ok=True)
        (folder / FOLDERS[name]).touch()
    before = sorted(tmp_path.rglob("*"))
    app, *command = name.split()
    for output in (folder, "precious/"):
        words = [word.replace(OUT, str(output)) for word in COMMANDS[name][0]]
        done = invoke(*command, *words, "--force", app=APPS[app], code=1)
        shown = " ".join(done.output.split())
        assert "[E003]" in shown
        assert "it has of_hours/notes.csv" in shown
        assert sorted(tmp_path.rglob("*")) == before
    monkeypatch.chdir(folder)
    words = [word.replace(OUT, ".") for word in COMMANDS[name][0]]
    done = invoke(*command, *words, "--force", app=APPS[app])
    assert (done.exit_code, "[E003]" in done.output) == (1, True)
    assert sorted(tmp_path.rglob("*")) == before


def test_force_replaces_no_pipeline_without_our_components(tmp_path):
    folder = tmp_path / "precious"
    files = ["config.cfg", "meta.json", "tokenizer", "vocab/vectors"]
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("of hours", "utf8")
    done = invoke("assemble", NONE, folder, "--force", code=1)
    assert "[E003]" in done.output, done.output
    assert all((folder / file).is_file() for file in files)


@pytest.mark.parametrize("name", ["sapbert kb build", "sapbert teach"])
@pytest.mark.parametrize("inside", ["v2", "v1/y/x"])
def test_no_knowledge_base_is_written_inside_of_one(name, inside, tmp_path):
    (tmp_path / "kb" / "v1").mkdir(parents=True)
    (tmp_path / "kb" / "CURRENT").write_text("v1\n", "utf8")
    (tmp_path / "link").symlink_to(tmp_path / "kb" / "v1")
    before = sorted(tmp_path.rglob("*"))
    app, *command = name.split()
    for output in (tmp_path / "kb" / inside, tmp_path / "link" / "x"):
        words = [word.replace(OUT, str(output)) for word in COMMANDS[name][0]]
        for force in ([], ["--force"]):
            done = invoke(*command, *words, *force, app=APPS[app], code=1)
            assert "[E003]" in done.output, done.output
            assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("place", "code"),
    [
        ("file/x", "E004"),  # a file is no folder
        ("folder", "E002"),
        ("link/x", "E003"),
    ],
)
@pytest.mark.parametrize(
    ("name", "words"), [case for case in CASES if case[0] not in FOLDERS]
)
def test_place_of_an_output_is_checked_before_anything_is_read(
    name, words, place, code, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "kb" / "v1").mkdir(parents=True)
    (tmp_path / "kb" / "CURRENT").write_text("v1\n", "utf8")
    (tmp_path / "link").symlink_to(tmp_path / "kb" / "v1")
    app, *command = name.split()
    command += [word.replace(OUT, place) for word in words]
    for word in command:
        if word.startswith("folder"):
            (tmp_path / word).mkdir()
    before = sorted(tmp_path.rglob("*"))
    done = invoke(*command, "--force", app=APPS[app])
    assert done.exit_code == (2 if name == "sapbert regress" else 1)
    assert f"[{code}]" in done.output or "[E423]" in done.output, done.output
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "command",
    [
        "sapbert concepts none -o x.jsonl --report ./same --conflicts x/../same",
        "sapbert evaluate none none --output same --predictions link/same",
        "sapbert evaluate none none --errors same.csv --predictions same.csv",
        "sapbert teach none none --output same --report same/report.json",
        "training hold-out none same same",
    ],
)
def test_outputs_with_one_path_are_an_error_before_anything_is_read(
    command, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    app, *words = command.split()
    for force in ([], ["--force"]):
        done = invoke(*words, *force, app=APPS[app], code=1)
        assert "[E003]" in done.output, done.output
        assert [path.name for path in tmp_path.iterdir()] == ["link"]


@pytest.mark.parametrize(
    "command",
    [
        "concepts none -o new.jsonl --report same --retired same",
        "convert same --format tsv --output link/same",
        "evaluate none none --compare same --predictions same",
        "link none none --allow same.jsonl --output same.jsonl",
        "link none folder/notes.txt --format brat --output folder",
        "map none same.csv --column a -o same.csv",
        "regress none same --output same",
        "teach none same --report same",
    ],
)
def test_output_that_is_an_input_is_an_error_before_anything_is_read(
    command, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "folder").mkdir()
    names = ("same", "same.csv", "same.jsonl", "folder/notes.txt")
    for name in names:
        (tmp_path / name).write_text("of hours", "utf8")
    done = invoke(*command.split(), "--force", app=package_app)
    assert done.exit_code == (2 if command.startswith("regress") else 1)
    assert "[E003]" in done.output, done.output
    assert {(tmp_path / name).read_text("utf8") for name in names} == {"of hours"}


@pytest.mark.parametrize(
    "command",
    [
        "concepts CONCEPTS -o OUT.jsonl --report OUT.json",
        "evaluate KB GOLD --output OUT.json --predictions OUT.jsonl --errors OUT.txt",
        "link KB NOTES --output OUT.parquet",
    ],
)
def test_full_disk_is_an_error_that_leaves_whole_outputs(
    command, sample_kb, concepts_file, tmp_path, disk
):
    gold, output = tmp_path / "gold.tsv", disk / "out"
    rows = (f"{number} fever\tC0000004" for number in range(400))
    gold.write_text("\n".join(["mention\tids", *rows]), "utf8")
    notes = tmp_path / "notes.jsonl"
    notes.write_text('{"text": "Fever and a heart attack."}\n' * 400, "utf8")
    words = command.replace("KB", str(sample_kb)).replace("GOLD", str(gold))
    words = words.replace("CONCEPTS", str(concepts_file)).replace("OUT", str(output))
    words = words.replace("NOTES", str(notes))
    refused: list[dict[str, bytes]] = []
    for free in (0, 4, 8, 16, 32, 64, 128, 256, 1024, 6000):
        fill_disk(disk, free << 10)
        done = invoke(*words.split(), "--quiet")
        (disk / "filler").unlink()
        files = [path for path in disk.glob("[!.]*") if path.is_file()]
        left = {path.name: path.read_bytes() for path in files}
        if done.exit_code == 0:
            break
        assert isinstance(done.exception, SystemExit), done.exception
        assert "No space left on device" in " ".join(done.output.split())
        assert ": [(" not in done.output  # the list of an error of shutil
        assert str(disk) in done.output
        assert not output.exists()
        refused.append({n: content for n, content in left.items() if "look" not in n})
        for path in disk.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert done.exit_code == 0, done.output
    assert refused
    for each in refused:
        assert each.items() <= left.items()


def test_existing_wheel_is_an_error_without_force(tmp_path):
    wheel = tmp_path / "sapbert_kb_x-0.1.0-py3-none-any.whl"
    wheel.touch()
    command = ["kb", "package", NONE, str(tmp_path), "--name", "x"]
    shown = invoke(*command, app=package_app)
    assert (shown.exit_code, "[E003]" in shown.output) == (1, True)
    forced = invoke(*command, "--force", app=package_app)
    assert (forced.exit_code, "E003" in forced.output) == (1, False)
