"""The workflow of docs/table1.md, on small files in the released layouts."""

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.table1.test_sets import app
from spacy_sapbert.encoder.huggingface import load_encoder
from tests.commands import invoke
from training.trainer.validation import embed_texts

ROOT = Path(__file__).parents[2]
BIOSYN = ("ncbi-disease", "bc5cdr-disease", "bc5cdr-chemical")
WORDS = ["renal", "cardiac", "acute", "chronic", "failure", "fever", "pain", "cyst"]
Names = dict[str, list[str]]  # a name → the ids of all concepts that have it


def make_names(rng: np.random.Generator) -> Names:
    """Names of one to three words; every fifth one is of several concepts."""
    names: Names = {}
    while len(names) < 60:
        words = rng.choice(WORDS, rng.integers(1, 4), replace=False)
        ids = rng.choice(25, 1 if len(names) % 5 else 3, replace=False)
        names.setdefault(" ".join(words), [f"D{id:06}" for id in ids])
    return names


def make_queries(names: Names, rng: np.random.Generator) -> list[tuple[str, list[str]]]:
    """Mentions with another word than a name, and its ids.

    None has the words of a name in another order: for the linker, that is this name.
    """
    known = {tuple(sorted(name.split())) for name in names}
    queries = []
    while len(queries) < 120:
        name = str(rng.choice([*names]))
        words = name.split()
        words[rng.integers(len(words))] = str(rng.choice(WORDS))
        if tuple(sorted(words)) not in known:
            queries.append((" ".join(words), names[name]))
    return queries


def released_accuracy(
    names: Names, queries: list[tuple[str, list[str]]], encoder: Path, k: int
) -> float:
    """Return Acc@k as `evaluation/utils.py` of cambridgeltl/sapbert computes it.

    A query is right if one of the first k rows of the dictionary, or of those that tie
    with the last of them, has an id that is one of its ids.
    """
    tokenizer, model = load_encoder(str(encoder))
    how: dict[str, Any] = {"pooling": "mean", "max_length": 25}
    labels = list(names.values())
    rows = embed_texts(model.eval(), tokenizer, [*names], **how)
    vectors = embed_texts(model, tokenizer, [mention for mention, _ in queries], **how)
    cosines = (vectors @ rows.T).numpy().round(6)
    hits = [
        any({*labels[row]} & {*ids} for row in np.flatnonzero(own >= np.sort(own)[-k]))
        for own, (_, ids) in zip(cosines, queries, strict=True)
    ]
    return float(np.mean(hits))


def write_lines(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), "utf8")


def write_biosyn(folder: Path, names: Names, queries: list[Any]) -> None:
    """Write a set as BioSyn's preprocessing does."""
    write_lines(
        folder / "test_dictionary.txt",
        *(f"{'|'.join(ids)}||{name}" for name, ids in names.items()),
    )
    for number in range(4):
        lines = [
            f"{number}||0|9||Disease||{mention}||{'|'.join(ids)}"
            for mention, ids in queries[number::4]
        ]
        write_lines(folder / "processed_test" / f"{number}.concept", *lines)


@pytest.fixture
def project(tmp_path) -> Path:
    """A copy of the workflow, with the sample as both releases of UMLS."""
    folder = tmp_path / "experiments" / "table1"
    shutil.copytree(ROOT / "experiments" / "table1", folder)
    for name in ("umls", "umls-2017AA"):
        shutil.copytree(ROOT / "assets" / "sample", tmp_path / "assets" / name)
    return folder


@pytest.fixture
def queries(project) -> tuple[Names, list[tuple[str, list[str]]]]:
    """The files of the user, and their names and mentions."""
    rng = np.random.default_rng(0)
    names = make_names(rng)
    queries = make_queries(names, rng)
    data = project.parents[1] / "data"
    for corpus in BIOSYN:
        write_biosyn(data / corpus, names, queries)
    single = [f"{ids[0]}||{name}" for name, ids in names.items()]
    folder = data / "askapatient"
    write_lines(folder / "AskAPatient.dict.txt", *single)
    for fold in range(10):
        lines = [f"{ids[0]}||{mention}" for mention, ids in queries[fold::10]]
        name = f"AskAPatient.fold-{fold}.test.preprocessed_query.txt"
        write_lines(folder / name, *lines)
    folder = data / "cometa"
    write_lines(folder / "COMETA_id_sf_dictionary.txt", *single)
    header = ["", "ID", "Term", "General SNOMED ID", "General SNOMED Label"]
    header += ["Specific SNOMED ID", "Specific SNOMED Label", "Example"]
    rows = [
        [str(n), f"t{n}", mention, ids[0], "x", ids[0], "x", "x"]
        for n, (mention, ids) in enumerate(queries)
    ]
    test = folder / "splits" / "stratified_general" / "test.csv"
    write_lines(test, *("\t".join(row) for row in (header, *rows)))
    document = ("1|t|A fever.", "1|a|", "1\t2\t7\tfever\tT184\tUMLS:C0015967", "")
    folder = data / "medmentions"
    write_lines(folder / "corpus_pubtator.txt", *document, "2|t|Pain.", "2|a|", "")
    write_lines(folder / "corpus_pubtator_pmids_test.txt", "1")
    return names, queries


def test_workflow_of_table1_counts_as_the_released_evaluation(
    new_process, project, queries, tiny_encoder
):
    path = project / "project.yml"
    text = path.read_text("utf8")
    others = "    - train-2\n    - train-3\n    - train-4\n"
    assert text.count(others) == 1
    path.write_text(text.replace(others, ""), "utf8")

    def run_all() -> str:
        words = ["project", "run", "all", str(project), "--vars.base", tiny_encoder]
        done = new_process.run(
            [sys.executable, "-m", "spacy", *map(str, words)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            timeout=900,
        )
        assert not done.returncode, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    run_all()
    trained = project / "models" / "encoder-1"
    for name, encoder in (("base", tiny_encoder), ("trained-1", trained)):
        path = project / "results" / BIOSYN[0] / f"{name}.json"
        results = json.loads(path.read_text("utf8"))
        for k in (1, 5):
            (scored,) = results["files"]
            found = scored["accuracy"]["all"]["rows"][f"acc@{k}"]["lenient"]
            expected = released_accuracy(*queries, encoder, k)
            assert 0 < expected < 1
            assert found == pytest.approx(expected, abs=0.001), (name, k)
    table = (project / "results" / "table.md").read_text("utf8")
    for file in (*BIOSYN, "askapatient-9", "cometa", "medmentions"):
        assert re.search(rf"\| {file}.tsv +\| trained .* ± ", table), table

    chosen = (project / "corpus" / "medmentions.txt").read_text("utf8")
    assert "fever" in chosen
    assert "Pain" not in chosen

    # what is there stays
    lost = project / "results" / "cometa" / "trained-1.json"
    lost.unlink()
    again = run_all()
    assert "Skipping 'train-1': nothing changed" in again
    assert again.count(".json is there") == 17
    assert lost.exists()


def test_error_ends_the_evaluation_of_table1(tmp_path):
    (tmp_path / "encoders" / "encoder-0").mkdir(parents=True)
    write_lines(tmp_path / "test" / "cometa.jsonl", "{")
    folders = [tmp_path / name for name in ("encoders", "test", "results")]
    result = invoke("evaluate", tmp_path / "base", *folders, app=app, code=1)
    assert "[E634]" in result.output
    assert not (tmp_path / "results").exists()
