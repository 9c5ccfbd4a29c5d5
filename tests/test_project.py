"""The workflows of project.yml end, typed as the pages show them.

.ci/run types those of the demo, of languages and of hierarchies, with a real encoder.
"""

import gzip
import os
import re
import shlex
import shutil
import signal
import socket
import sys
import time
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import spacy
import srsly
from spacy.cli._util import parse_config_overrides
from thinc.api import Config
from weasel.util import load_project_config

from spacy_sapbert.encoder.minilm import MODULE, PACKAGE
from spacy_sapbert.io.system import drop_quotes
from spacy_sapbert.vocabularies.reader_table import read_vocabulary

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "tests" / "vocabularies" / "examples"
README = (ROOT / "README.md").read_text("utf8")
PAGES = [ROOT / "README.md", ROOT / "project.yml", *sorted((ROOT / "docs").glob("*.*"))]
TEXT = "\n".join(path.read_text("utf8") for path in PAGES if path.is_file())
# variables that the pages set, with their values
SET = re.findall(r"""--(vars\.\w+) (\\?"[^"]*"|[^\s`'"\\]+)""", TEXT)
TYPED = {*re.findall(r"spacy project run (\w+)", TEXT)}
FOUND, LINKED = "mentions found", "mentions found and linked"
# the tests below type them, and tests/training/test_upload.py the last one
HERE = {"all", "annotated", "open", "sample", "serve", "upload"}


@pytest.fixture
def project(tmp_path) -> Path:
    """A copy of the files of the repository that the commands use."""
    folder = tmp_path / "project"
    shutil.copytree(ROOT / "training", folder / "training")
    annotated = folder / "experiments" / "annotated"
    shutil.copytree(ROOT / "experiments" / "annotated", annotated)
    shutil.copytree(ROOT / "assets" / "sample", folder / "assets" / "sample")
    shutil.copy(ROOT / "project.yml", folder)
    return folder


@pytest.fixture
def load(project) -> Callable[..., dict[str, Any]]:
    """Reads project.yml as `spacy project run` does."""

    def read(*words: str) -> dict[str, Any]:
        return load_project_config(project, overrides=parse_config_overrides([*words]))

    return read


@pytest.fixture
def run(project, new_process) -> Callable[..., str]:
    """Runs `python -m spacy project run` to its end."""

    def run_project(*words: object, code: int = 0) -> str:
        command = [sys.executable, "-m", "spacy", "project", "run", *words]
        done = new_process.run(command, cwd=project, timeout=900)
        assert done.returncode == code, (done.stdout + done.stderr)[-3000:]
        return " ".join((done.stdout + done.stderr).split())

    return run_project


def test_all_workflows_of_the_pages_are_run():
    ci = (ROOT / ".ci" / "run").read_text("utf8")
    assert {*re.findall(r"spacy project run (\w+)", ci)} | HERE == TYPED


@pytest.mark.parametrize("words", [(), *(("--" + name, value) for name, value in SET)])
def test_lines_of_the_project_are_one_path_or_one_command_each(load, words):
    for command in load(*(word.strip('\\"') for word in words))["commands"]:
        paths = [*command.get("deps", []), *command.get("outputs", [])]
        assert not [path for path in paths if not re.fullmatch(r"[\w./-]+", path)]
        for line in command["script"]:
            own = r"(experiments/annotated|assets/sample)/\w+\.py( |$)"
            modules = r"-m (spacy|spacy_sapbert|training|experiments\.[.\w]+|build) "
            hub = r"-m huggingface_hub\.cli\.hf "
            assert re.match(rf"python ({modules}|{own}|{hub})", line)
            assert line.count("python ") == 1


def test_quotes_of_the_project_work_on_windows(load):
    """There weasel splits lines by other rules, which leave quotes in the words."""
    lines = [
        line
        for command in load("--vars.source", "UMLS 2024AA")["commands"]
        for line in command["script"]
    ]
    quoted = [line for line in lines if re.search("[\"']", line)]
    assert any("'UMLS 2024AA'" in line for line in quoted)
    for line in quoted:
        assert line.startswith("python -m spacy_sapbert ")  # it drops them
        assert drop_quotes(shlex.split(line, posix=False)) == shlex.split(line)
    plain = ["a", "'", "O'Neill's"]
    assert drop_quotes(["''", '"a b"', *plain]) == ["", "a b", *plain]


@pytest.mark.parametrize("path", sorted(ROOT.glob("experiments/*/project.yml")))
def test_lines_of_experiments_need_no_quotes(path):
    for command in srsly.read_yaml(path)["commands"]:
        assert [line for line in command["script"] if re.search("[\"']", line)] == []


def test_steps_of_workflows_find_what_they_need(load):
    """Of the user, of the assets, or of a step before."""
    project = load()
    commands = {command["name"]: command for command in project["commands"]}
    demo = project["workflows"]["demo"]
    for name, steps in [
        *project["workflows"].items(),
        *((command, [command]) for command in ("serve", "open")),
    ]:
        there = {asset["dest"] for asset in project["assets"]}
        there.add(project["vars"]["vocabulary"])
        # the knowledge base of the sample is the default of `annotated`
        for step in [*demo, *steps] if name == "annotated" else steps:
            for dep in commands[step].get("deps", []):
                assert dep in there or (ROOT / dep).exists(), (step, dep)
            there |= {*commands[step].get("outputs", [])}


def shorten(path: Path, **changes: Any) -> None:
    """Make a training of few steps of a config; it warms up within one of them."""
    config = Config().from_disk(path, interpolate=False)
    rate = {"warmup_steps": 1, "initial_rate": 0.005}
    short = {"training": {**changes, "optimizer": {"learn_rate": rate}}}
    Config(config).merge(short).to_disk(path)


def read_scores(project: Path) -> dict[str, Any]:
    return srsly.read_json(project / "results/annotated/evaluation.json")["scores"]


def check_package(project: Path) -> None:
    """The pipeline and the wheel of it answer alike."""
    nlp = spacy.load(project / "models" / "annotated" / "pipeline")
    assert nlp.pipe_names[-2:] == ["sapbert_abbreviations", "sapbert_linker"]
    (wheel,) = (project / "packages" / "annotated").rglob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(project / "site")
    (folder,) = (path.parent for path in (project / "site").rglob("config.cfg"))
    again = spacy.load(folder)
    text = "She reports chest pain. Her asthma is stable."
    assert [e.text for e in nlp(text).ents] == [e.text for e in again(text).ents]


def test_annotated_ends_with_a_package(demo_folder, project, run):
    shutil.copytree(demo_folder / "models", project / "models")
    detector = project / "experiments" / "annotated" / "cpu.cfg"
    shorten(detector, max_steps=60, eval_frequency=30)
    run("annotated", ".")
    scores = read_scores(project)
    assert scores[FOUND]["gold"] == 56
    assert scores[FOUND]["f"]["value"] > 0.6
    assert scores[LINKED]["f"]["value"] > 0.4
    low, high = scores[FOUND]["f"]["interval"]
    assert low < scores[FOUND]["f"]["value"] < high
    check_package(project)


def test_annotated_with_a_transformer_and_all_that_its_page_sets(
    demo_folder, project, run
):
    """With one label, and documents and knowledge base of the user."""
    pytest.importorskip(
        "spacy_transformers", reason="spacy-transformers is not installed"
    )
    shutil.copytree(demo_folder / "models" / "sample" / "kb", project / "models" / "kb")
    (project / "corpus").mkdir()
    sample = project / "assets" / "sample" / "annotated.txt"
    sample.rename(project / "corpus" / "mine")
    detector = project / "experiments" / "annotated" / "transformer.cfg"
    shorten(detector, max_steps=2, eval_frequency=1)
    # the tiny encoder has 64 positions
    config = Config().from_disk(detector, interpolate=False)
    spans = config["components"]["transformer"]["model"]["get_spans"]
    spans.update(window=6, stride=5)
    config.to_disk(detector)
    values = {
        "documents": "corpus/mine",
        "annotated_kb": "models/kb",
        "split_options": " --label Disease",
        "detector": "experiments/annotated/transformer.cfg",
        "detector_encoder": "models/kb/v1/encoder",
    }
    assert {f"vars.{name}" for name in values} <= {name for name, _ in SET}
    run("annotated", ".", *(x for k, v in values.items() for x in (f"--vars.{k}", v)))
    scores = read_scores(project)
    assert scores[FOUND]["gold"] == 56
    assert {name.partition(": ")[2] for name in scores} <= {"", "Disease"}
    check_package(project)


def test_all_ends_with_packages(tiny_encoder, project, run):
    shutil.copytree(tiny_encoder, project / "models" / "minilm")
    # a table, which has neither languages nor trade names
    names = ["id,name,synonyms"]
    for concept in read_vocabulary(project / "assets" / "sample"):
        name, *others = (alias.replace(",", " ") for alias in concept.aliases)
        names.append(f"{concept.cui},{name},{'|'.join(others)}")
    (project / "mine.csv").write_text("\n".join(names) + "\n", "utf8")
    mentions = "assets/sample/mentions.tsv"
    settings = {"vocabulary": "./mine.csv", "base": "models/minilm"}
    settings |= {"mentions": mentions, "held_out": "0.3"}  # weasel: 0.3000…04
    words = [w for name, value in settings.items() for w in (f"--vars.{name}", value)]
    run("all", ".", *words)
    card = (project / "models" / "umls" / "encoder" / "README.md").read_text("utf8")
    assert re.findall(r"^\| (\w+\.tsv) \| \d+ \| ", card, re.MULTILINE) == [
        "held_out.tsv",
        "mentions.tsv",
    ]
    assert re.search("The trained encoder is (not shown to be )?better than", card)
    wheels = [*(project / "packages" / "umls").rglob("*.whl")]
    assert len(wheels) == 2
    (kb,) = (wheel for wheel in wheels if wheel.name.startswith("sapbert_kb_"))
    with zipfile.ZipFile(kb) as archive:
        assert archive.read("sapbert_kb_umls/kb/v1/encoder/README.md").decode() == card
    nlp = spacy.load(project / "models" / "umls" / "pipeline")
    assert [ent.kb_id_ for ent in nlp("asthma").ents] == ["C0004096"]
    assert "nothing changed" in run("all", ".", *words)
    # `train` replaces no encoder, so nothing that it was made of is replaced
    held_out = project / "corpus" / "umls" / "held_out.tsv"
    before = held_out.read_bytes()
    for other in ("--vars.held_out", "0.5"), ("--vars.epochs", "2"):
        shown = run("all", ".", *words, *other, code=1)
        assert "[E003]" in shown
        assert other[1] in shown.partition("but got")[2]
        assert "Remove models/umls/encoder" in shown
    with (project / "mine.csv").open("a", encoding="utf8") as table:
        table.write("C9999999,night cough,cough at night\n")
    assert "another content of ./mine.csv" in run("all", ".", *words, code=1)
    assert held_out.read_bytes() == before


def test_open_vocabularies_become_a_pipeline(tiny_encoder, project, run):
    folder = project / "assets" / "open"
    folder.mkdir()
    for name, cui in [("doid", "C0000008"), ("mondo", "C0000002")]:
        term = f"[Term]\nid: {name}:1\nname: fever {name}\nxref: UMLS_CUI:{cui}\n"
        (folder / f"{name}.obo").write_text(f"format-version: 1.2\n\n{term}", "utf8")
    shutil.copy(EXAMPLES / "obographs" / "doid-2026.json", folder / "hp.json")
    mesh = (EXAMPLES / "mesh" / "desc2024.xml").read_bytes()
    (folder / "desc2026.gz").write_bytes(gzip.compress(mesh))
    run("open", ".", "--vars.encoder", tiny_encoder)
    nlp = spacy.load(project / "models" / "open" / "pipeline")
    text = "fever doid and fever mondo, exact, pyrexia"
    ids = [ent.kb_id_ for ent in nlp(text).ents]
    assert ids == ["C0000008", "C0000002", "C0000001", "MESH:D000001"]


def test_sample_is_what_the_ten_lines_need(project, run, new_process):
    pytest.importorskip(MODULE, reason=f"{PACKAGE} is not installed")
    shown = run("sample")
    assert "the ten lines of README.md" in shown
    (code,) = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    (output,) = re.findall(r"^```text\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    done = new_process.python(code, cwd=project)
    assert done.stdout == output, done.stderr


@pytest.mark.skipif(os.name != "posix", reason="this system has no such groups")
def test_serve_answers_until_it_is_stopped(project, new_process):
    pytest.importorskip(MODULE, reason=f"{PACKAGE} is not installed")
    address = ("127.0.0.1", 8080)
    try:
        socket.create_server(address).close()
    except OSError:
        pytest.skip("another program uses the port 8080")
    command = [sys.executable, "-m", "spacy", "project", "run", "serve"]
    # a group of processes, all of which Ctrl-C reaches
    with (project / "log").open("w") as log:
        service = new_process.start(
            command, cwd=project, stdout=log, stderr=log, process_group=0
        )
    try:
        ready = wait_for("http://127.0.0.1:8080/readyz", service)
        assert ready, (project / "log").read_text("utf8")[-3000:]
    finally:
        os.killpg(service.pid, signal.SIGINT)
        service.wait()
    socket.create_server(address).close()


def wait_for(address: str, service: Any) -> bool:
    """Return whether a service answers before it ends."""
    while service.poll() is None:
        try:
            with urllib.request.urlopen(address) as reply:
                return reply.status == 200
        except OSError:
            time.sleep(0.5)
    return False
