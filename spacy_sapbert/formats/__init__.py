"""Linked Docs → output: one file a format, each with one function of one shape."""

from importlib import import_module
from pathlib import Path
from typing import IO, Dict, Iterable, Optional, Protocol

from ..errors import Errors, SapbertError
from .entities import ATTRIBUTE_NAMES, AttributeNames, NamedDoc

# A format is a module with `write_docs`.
WRITERS: Dict[str, str] = {
    "jsonl": "spacy_sapbert.formats.jsonl",
    "html": "spacy_sapbert.formats.html",
    "table": "spacy_sapbert.formats.table",
}
# Endings of file names by which a format is guessed.
SUFFIXES: Dict[str, str] = {
    ".jsonl": "jsonl",
    ".html": "html",
    ".htm": "html",
    ".txt": "table",
}


class Writer(Protocol):
    """What every format's `write_docs` is."""

    def __call__(
        self,
        docs: Iterable[NamedDoc],
        file: IO[bytes],
        *,
        spans_key: Optional[str] = None,
        include_text: bool = True,
        names: AttributeNames = ATTRIBUTE_NAMES,
    ) -> None:
        """Write linked documents, one after the other, in bounded memory.

        docs (Iterable[NamedDoc]): Ids and documents.
        file (IO[bytes]): Where to.
        spans_key (Optional[str]): A span group; None = the entities.
        include_text (bool): Write what the documents and the mentions say.
        names (AttributeNames): The custom attributes of the linker.
        RAISES (SapbertError): If the format cannot do without the text.
        """


def load_writer(name: str) -> Writer:
    """Import the function that writes a format.

    name (str): The format.
    RETURNS (Writer): The function.
    RAISES (SapbertError): If there is no such format.
    """
    if name not in WRITERS:
        raise SapbertError(Errors.E501.format(known=sorted(WRITERS), name=name))
    writer: Writer = import_module(WRITERS[name]).write_docs
    return writer


def guess_format(path: Path) -> str:
    """Tell the format from the name of a file.

    path (Path): The file; `.gz` at the end does not count.
    RETURNS (str): The format.
    RAISES (SapbertError): If the ending tells nothing.
    """
    suffix = Path(path.stem if path.suffix == ".gz" else path.name).suffix.lower()
    if suffix not in SUFFIXES:
        raise SapbertError(
            Errors.E502.format(path=path, known=sorted(SUFFIXES), formats=[*WRITERS])
        )
    return SUFFIXES[suffix]
