"""Annotated documents + kb/ → what each option of the linker brings, one table.

    python -m benchmarks.linker_options corpus/dev.pubtator.gz --kb models/kb --train
    corpus/train.pubtator.gz --prefix MESH: --source-rank MSH,CTD

The gold mentions go through the pipeline as its entities: abbreviations, linker. Each
option is measured alone; those that help on the files of `--train` are then put
together, and last of all the fusion that helps most with them. The other files only
show what that brings.
"""

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc
from wasabi import msg

from benchmarks.machine import describe_machine
from benchmarks.option_judging import (
    GOLD,
    KS,
    Outcome,
    choose_golds,
    describe_row,
    describe_ties,
    judge_row,
    mean_gains,
)
from benchmarks.option_rows import (
    Row,
    choose_fusion,
    choose_steps,
    list_fusions,
    list_options,
)
from benchmarks.option_table import render_results
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.evaluate import describe_kb, describe_versions
from spacy_sapbert.evaluation.gold_mentions import (
    check_names,
    make_resolver,
    read_aliases,
)
from spacy_sapbert.evaluation.rankers import kb_lookup
from spacy_sapbert.formats.registry import READERS, read_docs
from spacy_sapbert.system.reading import file_digest
from spacy_sapbert.system.writing import write_json


def make_pipeline(kb: str) -> Language:
    """Make the pipeline; the gold mentions are its entities.

    kb (str): Folder of the knowledge base.
    RETURNS (Language): The pipeline, with the knowledge base opened.
    """
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_abbreviations")
    linker: Any = nlp.add_pipe("sapbert_linker", config={"kb": kb, "spans_key": GOLD})
    linker.initialize()
    return nlp


def read_documents(path: Path, nlp: Language, format: str, limit: int) -> list[Doc]:
    """Read annotated documents; with `limit`, the first ones."""
    with warnings.catch_warnings():  # what `doc.ents` lacks, the span group has
        warnings.simplefilter("ignore", UserWarning)
        docs = [d for _, d in read_docs(path, nlp, format=format, spans_key=GOLD)]
    return docs[: limit or None]


def measure_options(
    nlp: Language,
    train: Sequence[Path],
    paths: Sequence[Path],
    aliases: dict[str, str],
    *,
    orders: Sequence[Sequence[str]] = (),
    prefix: str = "",
    format: str = "pubtator",
    limit: int = 0,
    progress: bool = False,
) -> dict[str, Any]:
    """Measure every option alone, and together those that help.

    nlp (Language): From `make_pipeline`.
    train (Sequence[Path]): Documents to choose on.
    paths (Sequence[Path]): Other documents.
    aliases (dict[str, str]): Ids that another one stands for.
    orders (Sequence[Sequence[str]]): See `list_options`.
    prefix (str): Put before ids without a colon.
    format (str): Of the documents.
    limit (int): First documents of each file; 0 = all.
    progress (bool): Show bars.
    RETURNS (dict[str, Any]): What linker_options.json says of the lines and files.
    RAISES (SapbertError): If a file is not usable, or two have the same name.
    """
    check_names([*train, *paths])
    linker: Any = nlp.get_pipe("sapbert_linker")
    resolve = make_resolver(kb_lookup(linker.kb), aliases)
    files: dict[Path, Any] = {}
    for path in [*train, *paths]:
        docs = read_documents(path, nlp, format, limit)
        files[path] = (docs, *choose_golds(docs, resolve, prefix))
    outcomes: dict[Path, dict[str, Outcome]] = {path: {} for path in files}

    def measure(some: Sequence[Path], lines: dict[str, Row]) -> dict[str, float]:
        for path in some:
            docs, golds, _ = files[path]
            for name, row in lines.items():
                title = f"{path.name}: {name}"
                outcomes[path][name] = judge_row(
                    nlp, docs, golds, row, aliases, name=title, progress=progress
                )
        return mean_gains([outcomes[path] for path in some], lines)

    rows = list_options(orders, ngrams=bool(linker.kb.meta.get("ngrams")))
    steps: dict[str, Row] = {}
    tried = dict(rows)
    if train:
        steps = choose_steps(rows, measure(train, rows))
        fusions = list_fusions(rows, steps)
        tried.update(steps, **fusions)
        measure(train, steps)
        steps.update(choose_fusion(fusions, measure(train, fusions)))
    rows.update(steps)
    measure(paths, rows)
    described: dict[str, Any] = {}
    for path, found in outcomes.items():
        lines = tried if path in train else rows
        described[path.name] = {
            "sha256": file_digest(path),
            "chosen_on": path in train,
            **files[path][2],
            "rows": {
                name: describe_row(found[name], found.get(row.base or ""))
                for name, row in lines.items()
            },
            "ties": describe_ties(found),
        }
    return {
        "rows": {name: row._asdict() for name, row in rows.items()},
        "steps": list(steps),
        "files": described,
    }


def main(
    documents: list[Path] = typer.Argument(..., help="Annotated documents."),
    kb: Path = typer.Option(..., help="Folder of the knowledge base."),
    train: list[Path] = typer.Option(
        [], help="Documents to choose options on; may be repeated."
    ),
    format: str = typer.Option("pubtator", help=f"One of {', '.join(READERS)}."),
    prefix: str = typer.Option(
        "", help="Put before ids without a colon, e.g. MESH:", show_default=False
    ),
    aliases: Path | None = typer.Option(
        None, help="Lines: an id, a tab, the id that it is an alias of."
    ),
    source_rank: list[str] = typer.Option(
        [], help="Vocabularies, the best first: MSH,CTD; may be repeated."
    ),
    limit: int = typer.Option(0, min=0, help="First documents of each file; 0 = all."),
    output: Path | None = typer.Option(None, help="linker_options.json to write."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """annotated documents + kb/ -> table, linker_options.json

    Example: python -m benchmarks.linker_options corpus/dev.pubtator.gz --kb models/kb
    --train corpus/train.pubtator.gz --prefix MESH: --aliases aliases.tsv
    """
    try:
        known = read_aliases(aliases) if aliases else {}
        nlp = make_pipeline(str(kb))
        linker: Any = nlp.get_pipe("sapbert_linker")
        result = {
            "machine": {**describe_machine(), "versions": describe_versions()},
            "settings": {"prefix": prefix, "format": format, "limit": limit, "ks": KS},
            "kb": describe_kb(linker.kb),
            **measure_options(
                nlp,
                train,
                documents,
                known,
                orders=[rank.split(",") for rank in source_rank],
                prefix=prefix,
                format=format,
                limit=limit,
                progress=sys.stderr.isatty() and not quiet,
            ),
        }
        if output:
            write_json(output, result)
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    if not quiet:
        typer.echo(render_results(result))
        if output:
            msg.good(f"Wrote {output}")


if __name__ == "__main__":
    typer.run(main)
