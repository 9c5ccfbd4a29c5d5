"""What each installation can do with the sample: link, map, verify, evaluate, serve.

Usage: python .ci/smoke.py FOLDER, in which `exact`, `hnsw` and `faiss` are knowledge
bases of the sample, each with that index, exported for ONNX Runtime.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
import warnings
from importlib.util import find_spec
from pathlib import Path

import spacy

import spacy_sapbert
from spacy_sapbert import SapbertError, load_kb

folder = Path(sys.argv[1]).resolve()
NOTE = "Her mother had a heart attack and takes Lipitor for high cholesterol."
FOUND = {"heart attack": "C0027051", "Lipitor": "C0593906"}
FOUND["high cholesterol"] = "C0020443"
light = find_spec("torch") is None
here = Path(spacy_sapbert.__file__).parents[1]
assert not (here / "pyproject.toml").exists(), f"not what is installed, but {here}"


def call(*words: object, code: int = 0) -> str:
    """Type a command in an empty folder; return what it shows."""
    command = [sys.executable, "-m", "spacy", "sapbert", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    shown = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == code, shown
    return shown


def link_in_python() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_mentions")
    nlp.add_pipe("sapbert_abbreviations")
    nlp.add_pipe("sapbert_linker", config={"kb": str(folder / "exact")})
    assert {ent.text: ent._.cui for ent in nlp(NOTE).ents} == FOUND
    assert ("torch" in sys.modules) <= (not light)


def refuse(kb: spacy_sapbert.KnowledgeBase) -> str:
    """Return the error of a knowledge base that cannot be opened; "" = it was."""
    try:
        kb.link(["fever"])
    except SapbertError as error:
        return str(error)
    return ""


def open_each_index() -> None:
    for index, library in (("hnsw", "hnswlib"), ("faiss", "faiss")):
        has_library = find_spec(library) is not None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kb = load_kb(folder / index)
            if index == "faiss" and not has_library:
                assert "pip install faiss-cpu" in refuse(kb)
                continue
            (linked,) = kb.link(["myocardial infartion"])
        assert linked.cui == FOUND["heart attack"], (index, linked)
        assert any("W560" in str(one.message) for one in caught) == (not has_library)


def type_commands() -> None:
    Path("note.txt").write_text(NOTE, "utf8")
    call("link", folder / "exact", "note.txt", "-o", "linked.jsonl")
    (line,) = Path("linked.jsonl").read_text("utf8").splitlines()
    entities = json.loads(line)["entities"]
    assert [entity["cui"] for entity in entities] == [*FOUND.values()]
    Path("terms.csv").write_text("term,id\nheart attack,C0020443\n", "utf8")
    kb, terms = folder / "exact", ("--column", "term")
    call("map", kb, "terms.csv", *terms, "-o", "mapped.csv")
    assert FOUND["heart attack"] in Path("mapped.csv").read_text("utf8")
    call("verify", kb, "terms.csv", *terms, "--id", "id", "-o", "verified.csv")
    assert FOUND["heart attack"] in Path("verified.csv").read_text("utf8")
    Path("mentions.tsv").write_text(
        "mention\tids\n" + "".join(map("{0[0]}\t{0[1]}\n".format, FOUND.items())),
        "utf8",
    )
    assert "one of the first 5 is right 100.0%" in call("evaluate", kb, "mentions.tsv")
    assert ("Installation light" in call("info")) == light
    cui = FOUND["heart attack"]
    place = {"start": NOTE.index("heart attack"), "cui": cui}
    place["end"] = place["start"] + len("heart attack")
    lines = [
        {"id": n, "text": f"{NOTE} {n}", "entities": [place]}
        for n in map(str, range(60))
    ]
    Path("taught.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf8")
    call("teach", kb, "taught.jsonl", "--output", "taught", "--force")
    assert load_kb("taught").manifest.taught.mentions == 60
    if light:
        encoder = kb / "v1" / "encoder"
        concept = json.dumps({"cui": "C1", "aliases": ["fever"]})
        Path("concepts.jsonl").write_text(concept + "\n", "utf8")
        words = ("kb", "build", "concepts.jsonl", "new", "--encoder", encoder)
        assert "pip install torch transformers" in call(*words, code=1)


def ask_the_service() -> None:
    command = [sys.executable, "-m", "spacy", "sapbert", "serve", folder / "exact"]
    process = subprocess.Popen(
        [*map(str, command), "--port", "0"], stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        shown = (re.search(r"http://[\d.:]+", line) for line in process.stderr)
        address = next(filter(None, shown))[0]
        body = json.dumps({"texts": [NOTE]}).encode()
        request = urllib.request.Request(
            f"{address}/link", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert FOUND["heart attack"] in answer.read().decode()
    finally:
        process.kill()
        process.communicate()


with tempfile.TemporaryDirectory() as empty:
    os.chdir(empty)
    link_in_python()
    open_each_index()
    type_commands()
    if find_spec("fastapi"):
        ask_the_service()
    os.chdir(folder)
