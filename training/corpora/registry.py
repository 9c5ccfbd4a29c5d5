"""Annotated corpora of every format, each read as `GoldDocument`s.

To add a format, write one file with a function like the others', and name it here.
Those that the package reads too are in `spacy_sapbert.formats`.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from training.errors import Errors, SapbertError
from spacy_sapbert.formats.gold import GoldDocument, GoldSpan

__all__ = ["FORMATS", "GoldDocument", "GoldSpan", "change_prefix", "read_corpus"]

# format: module and function
FORMATS: dict[str, str] = {
    "tsv": "training.corpora.tsv:read_tsv",
    "pubtator": "spacy_sapbert.formats.pubtator:read_gold",
    "biosyn": "training.corpora.biosyn_concepts:read_biosyn_concepts",
    "xlbel": "training.corpora.xlbel:read_xlbel",
    "cometa": "training.corpora.cometa:read_cometa",
    "askapatient": "training.corpora.askapatient:read_askapatient",
    "cadec": "training.corpora.cadec:read_cadec",
    "brat": "spacy_sapbert.formats.brat:read_gold",
}


Reader = Callable[..., Iterator[GoldDocument]]


def load_reader(format: str) -> Reader:
    """Import the reader of a format.

    format (str): A key of `FORMATS`.
    RETURNS (Reader): A function of a path and its own options.
    RAISES (SapbertError): If there is no such format.
    """
    if format not in FORMATS:
        raise SapbertError(Errors.E710.format(known=", ".join(FORMATS), format=format))
    module, _, name = FORMATS[format].partition(":")
    reader: Reader = getattr(import_module(module), name)
    return reader


def change_prefix(cui: str, *, prefix: str, drop_prefix: str) -> str:
    """Write an id as the vocabulary has it.

    cui (str): As the corpus has it.
    prefix (str): Put before an id that has none.
    drop_prefix (str): Taken away first.
    RETURNS (str): The id.
    """
    cui = cui.removeprefix(drop_prefix)
    return cui if ":" in cui else f"{prefix}{cui}"


def finish_documents(
    path: Path, documents: Iterable[GoldDocument], *, prefix: str, drop_prefix: str
) -> Iterator[GoldDocument]:
    """Return all ids their prefix; see `read_corpus`.

    YIELDS (GoldDocument): Each document.
    RAISES (SapbertError): If the last is through and none had a mention.
    """
    seen = False
    for document in documents:
        seen = seen or bool(document.spans)
        spans = [
            span._replace(
                parts=[
                    [
                        change_prefix(cui, prefix=prefix, drop_prefix=drop_prefix)
                        for cui in part
                    ]
                    for part in span.parts
                ]
            )
            for span in document.spans
        ]
        yield document._replace(spans=spans)
    if not seen:
        raise SapbertError(Errors.E707.format(path=path))


def read_corpus(
    path: Path, format: str, *, prefix: str = "", drop_prefix: str = "", **options: Any
) -> Iterator[GoldDocument]:
    """Read a corpus of any format.

    path (Path): A file or a folder, as the format has it; files may be `.gz`.
    format (str): A key of `FORMATS`.
    prefix (str): Put before ids without a colon, e.g. "MESH:".
    drop_prefix (str): Taken from the ids that begin with it, e.g. "UMLS:".
    options (Any): What the reader of the format takes.
    RETURNS (Iterator[GoldDocument]): The documents.
    RAISES (SapbertError): If the format is unknown, or has no such option; later, with
        file and line, at the first bad line; at the end, if there was no mention.
    """
    reader = load_reader(format)
    known = [name for name in inspect.signature(reader).parameters if name != "path"]
    for option in options:
        if option not in known:
            raise SapbertError(
                Errors.E711.format(
                    format=format,
                    known=", ".join(name.replace("_", "-") for name in known) or "none",
                    option=option.replace("_", "-"),
                )
            )
    documents = reader(path, **options)
    return finish_documents(path, documents, prefix=prefix, drop_prefix=drop_prefix)
