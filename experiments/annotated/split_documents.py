"""Annotated documents → parts to train on, to choose the model by, and to evaluate."""

import random
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import spacy
import typer
from spacy.tokens import Doc, DocBin, Span

from spacy_sapbert.cli.app import make_app
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.convert import LABEL, convert_corpus
from spacy_sapbert.formats.corpus import detect_corpus, read_corpus
from spacy_sapbert.formats.docbin import read_docbin
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.io.writing import check_outputs, write_atomically

app = make_app(add_completion=False)
TRAIN, DEV, HELD_OUT = PARTS = ("train", "dev", "held_out")


def choose_parts(
    texts: Iterable[str], *, dev: float, held_out: float, seed: int
) -> dict[str, str]:
    """Choose a part for each distinct text at random.

    Args:
        dev, held_out: Shares of the texts, each 0 to 1.
        seed: Equal seeds choose equal parts, in whatever order the texts are.
    """
    distinct = sorted({*texts})
    random.Random(seed).shuffle(distinct)
    last_held_out = round(held_out * len(distinct))
    last_dev = last_held_out + round(dev * len(distinct))
    return {
        text: HELD_OUT if place < last_held_out else DEV if place < last_dev else TRAIN
        for place, text in enumerate(distinct)
    }


def read_docs(path: Path) -> list[Doc]:
    """Read Docs with entities from a `.spacy` file.

    Raises:
        SapbertError: If there is no such file, or it is none of spaCy.
    """
    documents = read_docbin(path, path.name, spacy.blank("en").vocab)
    return [document.doc for document in documents if document.doc is not None]


def list_files(path: Path) -> list[Path]:
    """Return the files of annotated documents in a folder; a folder of brat is one."""
    if not path.is_dir() or any(path.rglob("*.ann")):
        return [path]
    return sorted(file for file in path.iterdir() if file.is_file())


def label_mentions(doc: Doc, label: str) -> None:
    """Set one label for all entities of a Doc."""
    doc.ents = [
        Span(doc, ent.start, ent.end, label=label, kb_id=ent.kb_id) for ent in doc.ents
    ]


def read_annotated_docs(
    path: Path, *, lang: str, label: str | None = None, **ids: Any
) -> list[Doc]:
    """Read annotated documents of any format as `spacy sapbert convert` does.

    Args:
        path: A `.spacy` file, a file of a corpus format, or a folder of such files.
        lang: Language of the tokenizer.
        label: Of all mentions; None = their types, or `LABEL` without one.
        ids: `prefix` and `drop_prefix` of `read_corpus`.
    """
    docs: list[Doc] = []
    for file in list_files(path):
        format = detect_corpus(file)
        if format == "spacy":
            docs += read_docs(file)
            continue
        with TemporaryDirectory() as folder:
            converted = Path(folder) / "docs.spacy"
            documents = read_corpus(file, format, **ids)
            convert_corpus(documents, converted, lang=lang)
            docs += read_docs(converted)
    if label:
        for doc in docs:
            label_mentions(doc, label)
    return docs


@app.command()
def split_documents(
    documents: Path = typer.Argument(
        ...,
        help="PubTator, brat, BioC, JSONL, TSV or .spacy: a file, or a folder of them.",
    ),
    output: Path = typer.Argument(
        ..., help="Folder for train.spacy, dev.spacy and held_out.spacy."
    ),
    dev: float = typer.Option(
        0.1, min=0, max=0.5, help="Share of the documents that choose the best model."
    ),
    held_out: float = typer.Option(
        0.2, min=0, max=0.5, help="Share of the documents to evaluate on."
    ),
    held_out_documents: Path | None = typer.Option(
        None, help="Other documents to evaluate on, instead of a share."
    ),
    prefix: str = typer.Option("", help="Add to ids without a colon, e.g. MESH:"),
    drop_prefix: str = typer.Option("", help="Remove from ids, e.g. UMLS:"),
    lang: str = typer.Option("en", help="Language of the tokenizer."),
    label: str | None = typer.Option(
        None, help=f"Of all mentions. [their types, or {LABEL} without one]"
    ),
    most: int = typer.Option(
        0, min=0, help="Documents to train on at most, for a curve. [all]"
    ),
    seed: int = typer.Option(0, help="Of the random choice."),
    force: bool = typer.Option(False, "--force", help="Replace existing outputs."),
) -> None:
    """annotated documents -> train.spacy, dev.spacy and held_out.spacy

    Equal texts are in one part. Documents of --held-out-documents that are also among
    the others are left out.

    Example: python experiments/annotated/split_documents.py
    CDR_TrainingSet.PubTator.txt corpus/annotated --prefix MESH:
    """
    paths = {part: output / f"{part}.spacy" for part in PARTS}
    check_outputs(*paths.values(), force=force)
    share = 0 if held_out_documents else held_out
    read = partial(
        read_annotated_docs,
        lang=lang,
        label=label,
        prefix=prefix,
        drop_prefix=drop_prefix,
    )
    docs = read(documents)
    part_of = choose_parts(
        (doc.text for doc in docs), dev=dev, held_out=share, seed=seed
    )
    parts: dict[str, list[Doc]] = defaultdict(list)
    for doc in docs:
        parts[part_of[doc.text]].append(doc)
    if most:
        parts[TRAIN] = random.Random(seed).sample(
            parts[TRAIN], min(most, len(parts[TRAIN]))
        )
    if held_out_documents:
        known = {doc.text for doc in docs}
        others = read(held_out_documents)
        parts[HELD_OUT] = [doc for doc in others if doc.text not in known]
    for part, path in paths.items():
        if not any(doc.ents for doc in parts[part]):
            raise no_annotated_mentions(part=path.name, documents=len(docs))
        with write_atomically(path) as file:
            bin = DocBin(docs=parts[part], store_user_data=True)
            file.write(bin.to_bytes())
    header = ("Part", "Documents", "Mentions")
    rows = [
        (
            part,
            f"{len(parts[part]):,}",
            f"{sum(len(doc.ents) for doc in parts[part]):,}",
        )
        for part in PARTS
    ]
    msg.table(rows, header=header, divider=True, aligns=("l", "r", "r"))
    msg.good(f"Wrote {output}")


def no_annotated_mentions(*, part: object, documents: object) -> SapbertError:
    return SapbertError(
        "E106",
        f"Expected mentions in {part}, but there are none of the {documents} "
        "documents. Annotate more documents, or choose larger shares.",
    )


def run(app: typer.Typer) -> None:
    """Run a command line; a `SapbertError` ends it with one line."""
    try:
        app()
    except SapbertError as error:
        msg.fail(error, exits=1)


if __name__ == "__main__":
    run(app)
