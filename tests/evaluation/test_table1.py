"""The commands of docs/papers.md, on small files in the released layouts."""

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.encoder.huggingface import load_encoder
from training.trainer.validation import embed_texts

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "papers.md"
CORPUS, OTHERS = "ncbi-disease", " bc5cdr-disease bc5cdr-chemical"
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


def test_commands_of_table1_count_as_the_released_evaluation(
    new_process, tiny_encoder, tmp_path
):
    rng = np.random.default_rng(0)
    names = make_names(rng)
    queries = make_queries(names, rng)
    write_biosyn(tmp_path / "data" / CORPUS, names, queries)
    single = [f"{ids[0]}||{name}" for name, ids in names.items()]
    folder = tmp_path / "data" / "askapatient"
    write_lines(folder / "AskAPatient.dict.txt", *single)
    for fold in range(10):
        lines = [f"{ids[0]}||{mention}" for mention, ids in queries[fold::10]]
        name = f"AskAPatient.fold-{fold}.test.preprocessed_query.txt"
        write_lines(folder / name, *lines)
    folder = tmp_path / "data" / "cometa"
    write_lines(folder / "COMETA_id_sf_dictionary.txt", *single)
    header = ["", "ID", "Term", "General SNOMED ID", "General SNOMED Label"]
    header += ["Specific SNOMED ID", "Specific SNOMED Label", "Example"]
    rows = [
        [str(n), f"t{n}", mention, ids[0], "x", ids[0], "x", "x"]
        for n, (mention, ids) in enumerate(queries)
    ]
    test = folder / "splits" / "stratified_general" / "test.csv"
    write_lines(test, *("\t".join(row) for row in (header, *rows)))
    for name in ("umls", "umls-2017AA"):
        shutil.copytree(ROOT / "assets" / "sample", tmp_path / "assets" / name)
    document = ("1|t|A fever.", "1|a|", "1\t2\t7\tfever\tT184\tUMLS:C0015967", "")
    write_lines(tmp_path / "corpus_pubtator.txt", *document, *document[:2], "")
    write_lines(tmp_path / "corpus_pubtator_pmids_test.txt", "1")
    shutil.copytree(tiny_encoder, tmp_path / "models" / "umls" / "encoder-0")
    shutil.copytree(ROOT / "training", tmp_path / "training")

    blocks = re.findall(r"```bash\n(.*?)```", PAGE.read_text("utf8"), re.DOTALL)
    script = "\n".join(["set -eu", *blocks])
    training = re.compile(r"^for seed .*?^done$", re.DOTALL | re.MULTILINE)
    assert training.search(script), "the page trains five encoders"
    script = training.sub("", script)
    # the others of a loop have the same commands
    for repeated, less in ((OTHERS, ""), (" 1 2 3 4 5 6 7 8 9", " 1")):
        assert repeated in script
        script = script.replace(repeated, less)
    # the sample is of a made-up release, without a base to download
    script = re.sub(r"^python -m training check.*$", "", script, flags=re.MULTILINE)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": f".:{ROOT}"}
    done = new_process.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, timeout=900
    )
    assert not done.returncode, done.stdout[-2000:] + done.stderr[-2000:]

    results = json.loads((tmp_path / "results" / f"{CORPUS}.json").read_text())
    for k in (1, 5):
        (scored,) = results["files"]
        found = scored["accuracy"]["all"]["rows"][f"acc@{k}"]["lenient"]
        expected = released_accuracy(names, queries, tiny_encoder, k)
        assert 0 < expected < 1
        assert found == pytest.approx(expected, abs=0.001), k
    for name in ("askapatient", "cometa", "medmentions"):
        assert (tmp_path / "results" / f"{name}.json").is_file()
