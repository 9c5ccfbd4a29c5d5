"""The test split of MedMentions, and the evaluation of encoders on all test sets."""

import re
from pathlib import Path

import typer

from experiments.annotated.split_documents import run
from spacy_sapbert.cli.app import make_app
from spacy_sapbert.cli.main import app as package
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.reading import read_lines
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.io.writing import check_outputs, write_atomically
from training.results_table import results_table

app = make_app(add_completion=False)
APPROXIMATE = {"medmentions"}  # millions of names: a faster index than exact search


@app.command("select")
def select_documents(
    corpus: Path = typer.Argument(..., help="corpus_pubtator.txt"),
    ids: Path = typer.Argument(..., help="corpus_pubtator_pmids_test.txt"),
    output: Path = typer.Argument(..., help="To write: those documents."),
    force: bool = typer.Option(False, "--force", help="Replace existing outputs."),
) -> None:
    """PubTator + ids of documents -> PubTator"""
    check_outputs(output, force=force)
    wanted = {line.strip() for _, line in read_lines(ids)}
    with write_atomically(output) as file:
        for _, line in read_lines(corpus):
            if not line.strip() or re.split(r"[|\t]", line, maxsplit=1)[0] in wanted:
                file.write(f"{line}\n".encode())


@app.command("evaluate")
def evaluate_encoders(
    base: str = typer.Argument(..., help="Encoder before training."),
    encoders: Path = typer.Argument(..., help="Folder of encoder-SEED."),
    corpora: Path = typer.Argument(..., help="Folder of CORPUS.jsonl, CORPUS*.tsv."),
    output: Path = typer.Argument(..., help="To write: CORPUS/NAME.json, table.md."),
) -> None:
    """encoders + test sets -> results of each, if they are not there; a table of all

    The dictionary of a corpus is searched without an order that is learned from
    names, and exactly, but for that of MedMentions. Only one knowledge base is kept.
    """
    trained = sorted(encoders.glob("encoder-*[0-9]"))
    if not trained:
        raise SapbertError(
            "E106",
            f"Expected encoders in {encoders}, but got none. Train them first.",
        )
    found = {path.name.replace("encoder", "trained"): str(path) for path in trained}
    paths = []
    for corpus in sorted(corpora.glob("*.jsonl")):
        mentions = sorted(map(str, corpora.glob(f"{corpus.stem}*.tsv")))
        index = [] if corpus.stem in APPROXIMATE else ["--backend", "exact"]
        for name, encoder in {"base": base, **found}.items():
            paths.append(str(results := output / corpus.stem / f"{name}.json"))
            if results.exists():
                msg.info(f"{results} is there")
                continue
            kb = str(encoders / "kb")
            build = ["kb", "build", str(corpus), kb, "--encoder", encoder, *index]
            call([*build, "--order", "none", "--force"])
            call(["evaluate", kb, *mentions, "--output", str(results)])
    table = output / "table.md"
    results_table(paths, level="rows", ties="lenient", output=table, force=True)


def call(words: list[str]) -> None:
    """Run a command of `spacy sapbert`; an error ends this one, too."""
    try:
        package(words)
    except SystemExit as end:
        if end.code:
            raise


if __name__ == "__main__":
    run(app)
