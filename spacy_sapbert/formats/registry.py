"""Linked Docs → output, and back to gold Docs: one file a format.

Nothing here imports spaCy, so that training can read corpora without it.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import (
    IO,
    TYPE_CHECKING,
    Any,
    Protocol,
)

from ..errors import Errors, SapbertError
from ..system.writing import write_atomically, write_folder_atomically
from .gold import GoldDocument

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.vocab import Vocab

    from .entities import AttributeNames, NamedDoc

# A format is a module with `write_docs`.
WRITERS: dict[str, str] = {
    "jsonl": "spacy_sapbert.formats.jsonl",
    "html": "spacy_sapbert.formats.html",
    "table": "spacy_sapbert.formats.table",
    "csv": "spacy_sapbert.formats.csv",
    "parquet": "spacy_sapbert.formats.parquet",
    "pubtator": "spacy_sapbert.formats.pubtator",
    "brat": "spacy_sapbert.formats.brat",
    "biocxml": "spacy_sapbert.formats.biocxml",
    "biocjson": "spacy_sapbert.formats.biocjson",
}
# A format that can be read is a module with `read_gold`.
READERS: dict[str, str] = {
    name: WRITERS[name] for name in ("jsonl", "pubtator", "brat", "biocxml", "biocjson")
}
# Formats of which an output is a folder, with files for each document.
FOLDERS: dict[str, str] = {"brat": ".ann"}  # and the ending by which one is known
# Endings of file names by which a format is guessed.
SUFFIXES: dict[str, str] = {
    ".jsonl": "jsonl",
    ".html": "html",
    ".htm": "html",
    ".txt": "table",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pubtator": "pubtator",
    ".xml": "biocxml",
    ".json": "biocjson",
}
# Formats that need a library, and the extra that brings it.
LIBRARIES: dict[str, tuple[str, str]] = {
    "parquet": ("pyarrow", "parquet"),
    "biocxml": ("bioc", "bioc"),
    "biocjson": ("bioc", "bioc"),
}

GoldReader = Callable[..., Iterator[GoldDocument]]


class Writer(Protocol):
    """What every format's `write_docs` is."""

    def __call__(
        self,
        docs: "Iterable[NamedDoc]",
        target: Any,
        *,
        spans_key: str | None = None,
        include_text: bool = True,
        names: "AttributeNames" = ...,
    ) -> None:
        """Write linked documents, one after the other, in bounded memory.

        docs (Iterable[NamedDoc]): Ids and documents.
        target (IO[bytes] | Path): Where to: a file open for writing; of the
            formats in `FOLDERS` the path of an empty folder.
        spans_key (str | None): A span group; None = the entities.
        include_text (bool): Write what the documents and the mentions say.
        names (AttributeNames): The custom attributes of the linker.
        RAISES (SapbertError): If the format cannot do without the text.
        """


def load_module(name: str, modules: dict[str, str]) -> Any:
    """Import a format, and the library that it needs.

    name (str): The format.
    modules (dict[str, str]): `WRITERS` or `READERS`, which have it.
    RETURNS (ModuleType): Its module.
    RAISES (SapbertError): If the library is not installed.
    """
    if name in LIBRARIES:
        library, extra = LIBRARIES[name]
        try:
            import_module(library)
        except ImportError as error:
            raise SapbertError(
                Errors.E521.format(
                    library=library, name=name, reason=error, extra=extra
                )
            ) from None
    return import_module(modules[name])


def load_writer(name: str) -> Writer:
    """Import the function that writes a format.

    name (str): The format.
    RETURNS (Writer): The function.
    RAISES (SapbertError): If there is no such format, or its library is missing.
    """
    if name not in WRITERS:
        raise SapbertError(Errors.E501.format(known=sorted(WRITERS), name=name))
    writer: Writer = load_module(name, WRITERS).write_docs
    return writer


def load_reader(name: str) -> GoldReader:
    """Import the function that reads a format.

    name (str): The format.
    RETURNS (GoldReader): A function of a path, which yields `GoldDocument`s.
    RAISES (SapbertError): If the format cannot be read, or its library is missing.
    """
    if name not in READERS:
        raise SapbertError(Errors.E530.format(known=sorted(READERS), name=name))
    reader: GoldReader = load_module(name, READERS).read_gold
    return reader


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


def check_folder(path: Path, suffix: str) -> None:
    """Check that a folder may be replaced.

    path (Path): The folder, if there is one.
    suffix (str): Of the files that belong to the format, each beside a `.txt` file.
    RAISES (SapbertError): If it is a file, or a folder that holds other files.
    """
    if path.exists() and not path.is_dir():
        raise SapbertError(Errors.E522.format(path=path, found="a file"))
    for file in path.rglob("*"):
        partner = file.with_suffix(".txt" if file.suffix == suffix else suffix)
        known = file.suffix in (".txt", suffix) and partner.is_file()
        if not file.is_dir() and not known:
            raise SapbertError(Errors.E522.format(path=path, found="one with others"))


@contextmanager
def open_target(path: Path | None, format: str) -> Iterator[IO[bytes] | Path]:
    """Open where a format is written to.

    path (Path | None): A file or, of a format in `FOLDERS`, a folder, which takes
        its name once it is whole; None = the standard output.
    format (str): The format.
    YIELDS (IO[bytes] | Path): What `write_docs` of the format takes.
    RAISES (SapbertError): If there is no folder to write, or one with other files.
    """
    if format in FOLDERS:
        if path is None:
            raise SapbertError(Errors.E520.format(format=format))
        check_folder(path, FOLDERS[format])
        with write_folder_atomically(path) as folder:
            yield folder
    elif path is not None:
        with write_atomically(path) as file:
            yield file
    else:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()


def write_linked(
    docs: "Iterable[NamedDoc]",
    path: Path,
    *,
    format: str | None = None,
    **options: Any,
) -> None:
    """Write linked documents to a file or folder, whole or not at all.

    docs (Iterable[NamedDoc]): Ids and documents.
    path (Path): The file or folder; what was there before is replaced.
    format (str | None): A key of `WRITERS`; None = by the ending of the path.
    options (Any): What the writer takes; see `Writer`.
    RAISES (SapbertError): If the format is unknown, needs a library that is missing,
        or cannot be written so.
    """
    format = format or guess_format(path)
    writer = load_writer(format)
    with open_target(path, format) as target:
        writer(docs, target, **options)


def read_docs(
    path: Path,
    nlp: "Language | Vocab",
    *,
    format: str | None = None,
    spans_key: str = "gold",
    label: str = "ENTITY",
) -> "Iterator[NamedDoc]":
    """Read annotated documents as gold Docs; see `gold_docs.make_gold_docs`.

    path (Path): A file or, of a format in `FOLDERS`, a folder.
    nlp (Language | Vocab): Its tokenizer is used; a bare vocabulary has none, so
        that tokens are what blanks part.
    format (str | None): A key of `READERS`; None = by the ending of the path, and
        brat for a folder.
    spans_key (str): The span group that gets all the mentions.
    label (str): Of mentions without a type.
    RETURNS (Iterator[NamedDoc]): Ids and Docs.
    RAISES (SapbertError): If the format cannot be read; later, with the place in the
        file, where it is not as it should be.
    """
    from .gold_docs import make_gold_docs

    if format is None:
        format = "brat" if path.is_dir() else guess_format(path)
    documents = load_reader(format)(path)
    return make_gold_docs(documents, nlp, path=path, spans_key=spans_key, label=label)
