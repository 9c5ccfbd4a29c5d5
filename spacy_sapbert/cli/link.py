"""`spacy sapbert link`: texts in, linked entities out."""

import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Iterable, Iterator, List, Optional

import typer
from tqdm import tqdm

from ..documents import Document, read_documents
from ..errors import Errors, SapbertError
from ..files import write_atomically
from ..options import change_options
from .app import app

if TYPE_CHECKING:
    from spacy.language import Language

    from ..formats.entities import AttributeNames, NamedDoc

LINKER = "sapbert_linker"
MENTIONS = "sapbert_mentions"
NAMES = "names"  # the value of `--mentions`


def load_pipeline(name: Optional[str]) -> "Language":
    """Load a pipeline, or begin one.

    name (Optional[str]): A folder or an installed package; None = a blank English one.
    RETURNS (Language): The pipeline.
    RAISES (SapbertError): If there is no such pipeline.
    """
    import spacy

    if name is None:
        return spacy.blank("en")
    try:
        return spacy.load(name)
    except OSError as error:
        reason = str(error).strip().partition("\n")[0]
        raise SapbertError(Errors.E507.format(name=name, reason=reason)) from None


def detects(nlp: "Language", what: str) -> bool:
    """Tell whether a pipeline sets spans to link.

    nlp (Language): The pipeline.
    what (str): "doc.ents" or "doc.spans".
    RETURNS (bool): Whether a component says that it does, or is none of spaCy's and
        does not say what it does.
    """
    for name, component in nlp.pipeline:
        assigned = nlp.get_pipe_meta(name).assigns
        # a component may be a function, an object, or an object of a compiled class
        module = getattr(component, "__module__", type(component).__module__)
        if what in assigned or (not assigned and not module.startswith("spacy.")):
            return True
    return False


def find_linker(nlp: "Language") -> Optional[str]:
    """Find the first linker of a pipeline.

    nlp (Language): The pipeline.
    RETURNS (Optional[str]): Name of the component, if there is one.
    """
    linkers = (n for n in nlp.pipe_names if nlp.get_pipe_meta(n).factory == LINKER)
    return next(linkers, None)


def complete_pipeline(
    nlp: "Language",
    *,
    kb: Optional[str] = None,
    mentions: Optional[str] = None,
    k: Optional[int] = None,
    threshold: Optional[float] = None,
) -> Any:
    """Give a pipeline what it lacks to link.

    nlp (Language): Changed in place.
    kb (Optional[str]): Folder or name of a knowledge base, for a pipeline without a
        linker; None = the only one installed.
    mentions (Optional[str]): "names" to detect the names of the knowledge base.
    k (Optional[int]): Candidates for a mention; None = as the linker has it.
    threshold (Optional[float]): Cosine under which a mention has no concept; None =
        as the linker has it.
    RETURNS (SapbertLinker): The linker.
    RAISES (SapbertError): If the pipeline has a linker with a knowledge base already,
        or nothing that detects entities.
    """
    if mentions not in (None, NAMES):
        raise SapbertError(Errors.E510.format(known=NAMES, value=mentions))
    name = find_linker(nlp)
    if name is None:
        name = LINKER
        nlp.add_pipe(LINKER, config={"kb": kb})
    elif kb is not None:
        raise SapbertError(Errors.E509.format(linker=name))
    linker: Any = nlp.get_pipe(name)
    changes = {"k": k, "threshold": threshold}
    given = {name: value for name, value in changes.items() if value is not None}
    linker.options = change_options(linker.options, given)
    if mentions == NAMES:
        config = {"spans_key": linker.spans_key}
        nlp.add_pipe(MENTIONS, before=name, config=config)
    if not detects(nlp, "doc.ents" if linker.spans_key is None else "doc.spans"):
        components = ", ".join(nlp.pipe_names)
        raise SapbertError(Errors.E508.format(components=components))
    return linker


def link_documents(
    nlp: "Language", documents: Iterable[Document], *, batch_size: int
) -> "Iterator[NamedDoc]":
    """Run a pipeline over documents.

    nlp (Language): The pipeline.
    documents (Iterable[Document]): Ids and texts.
    batch_size (int): Documents held at once.
    YIELDS (NamedDoc): Ids and Docs, in order.
    """
    texts = ((document.text, document.id) for document in documents)
    for doc, number in nlp.pipe(texts, as_tuples=True, batch_size=batch_size):
        yield number, doc


def count_links(
    docs: "Iterable[NamedDoc]",
    counts: Counter[str],
    *,
    spans_key: Optional[str],
    names: "AttributeNames",
) -> "Iterator[NamedDoc]":
    """Count what passes by.

    docs (Iterable[NamedDoc]): Ids and linked Docs.
    counts (Counter[str]): Is added to: "documents", "entities", "linked", and each
        reason why a mention has no concept.
    spans_key (Optional[str]): A span group; None = the entities.
    names (AttributeNames): The custom attributes of the linker.
    YIELDS (NamedDoc): The same.
    """
    from ..formats.entities import describe_entities

    for number, doc in docs:
        counts["documents"] += 1
        for entity in describe_entities(doc, spans_key=spans_key, names=names):
            counts["entities"] += 1
            if entity["cui"] is not None:
                counts["linked"] += 1
            else:
                counts[f"NIL: {entity['note'] or 'no candidate'}"] += 1
        yield number, doc


def summary_line(counts: Counter[str]) -> str:
    """Say in a line what was done.

    counts (Counter[str]): From `count_links`.
    RETURNS (str): E.g. "2 documents, 9 entities, 8 linked, 1 NIL (1 blank)".
    """
    totals = [f"{counts[key]} {key}" for key in ("documents", "entities", "linked")]
    reasons = {k[5:]: n for k, n in sorted(counts.items()) if k.startswith("NIL: ")}
    line = f"{', '.join(totals)}, {sum(reasons.values())} NIL"
    if reasons:
        line += f" ({', '.join(f'{n} {reason}' for reason, n in reasons.items())})"
    return line


@contextmanager
def open_output(path: Optional[Path]) -> Iterator[IO[bytes]]:
    """Open where the output goes.

    path (Optional[Path]): A file that takes its name once it is whole; None = the
        standard output.
    YIELDS (IO[bytes]): The file.
    """
    if path is not None:
        with write_atomically(path) as file:
            yield file
    else:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()


@app.command("link")
def link(
    inputs: List[Path] = typer.Argument(
        ..., metavar="INPUT...", help="Files .txt or .jsonl, also .gz; folders of .txt."
    ),
    pipeline: Optional[str] = typer.Option(
        None, help="Folder or package. [blank English with `--mentions names`]"
    ),
    output: Optional[Path] = typer.Option(None, help="File to write. [the terminal]"),
    kb: Optional[str] = typer.Option(
        None, help="Folder or name of a knowledge base. [the installed]"
    ),
    format: Optional[str] = typer.Option(
        None, help="jsonl, html or table. [by the ending of the output, else table]"
    ),
    mentions: Optional[str] = typer.Option(
        None, help="names = detect the names of the knowledge base."
    ),
    k: Optional[int] = typer.Option(
        None, min=1, max=1000, help="Candidates for a mention. [as the linker: 10]"
    ),
    threshold: Optional[float] = typer.Option(
        None,
        min=-1,
        max=1,
        help="Cosine under which it is NIL. [as the linker, the kb]",
    ),
    batch_size: int = typer.Option(64, min=1, help="Documents held at once."),
    no_text: bool = typer.Option(False, "--no-text", help="Leave the texts out."),
    force: bool = typer.Option(False, "--force", help="Replace the output."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """texts + pipeline + kb/ -> linked entities

    Example: spacy sapbert link notes/ --pipeline en_core_sci_sm --kb models/kb
    --output linked.jsonl
    """
    from ..formats import guess_format, load_writer
    from ..formats.entities import AttributeNames

    if output is not None and output.exists() and not force:
        raise SapbertError(Errors.E003.format(path=output))
    if format is None:
        format = "table" if output is None else guess_format(output)
    writer = load_writer(format)
    nlp = load_pipeline(pipeline)
    if pipeline is None:
        mentions = mentions or NAMES
    documents = read_documents(inputs, longest=nlp.max_length)
    linker = complete_pipeline(nlp, kb=kb, mentions=mentions, k=k, threshold=threshold)
    names = AttributeNames(*linker.attrs)
    spans_key = linker.spans_key
    counts: Counter[str] = Counter()
    bar = tqdm(
        link_documents(nlp, documents, batch_size=batch_size),
        unit=" docs",
        disable=quiet or output is None or not sys.stderr.isatty(),
    )
    docs = count_links(bar, counts, spans_key=spans_key, names=names)
    with open_output(output) as file:
        writer(docs, file, spans_key=spans_key, include_text=not no_text, names=names)
    if not quiet:
        typer.echo(summary_line(counts), err=True)
