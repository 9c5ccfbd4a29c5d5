"""Formats of linked documents: write Docs, and read annotated files as gold Docs.

This module does not import spaCy, so that training can read corpora without it.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from ..errors import Errors, SapbertError
from ..system.writing import write_atomically, write_folder_atomically
from .gold import GoldDocument

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.vocab import Vocab

    from .entities import AttributeNames, LinkedDoc, NamedDoc

# module and function of each format
WRITERS: dict[str, str] = {
    "jsonl": "jsonl:write_docs",
    "html": "page.write:write_docs",
    "table": "table:write_docs",
    "csv": "csv:write_docs",
    "parquet": "parquet:write_docs",
    "omop": "omop:write_docs",
    "pubtator": "pubtator:write_docs",
    "brat": "brat:write_docs",
    "biocxml": "bioc:write_xml",
    "biocjson": "bioc:write_json",
}
READERS: dict[str, str] = {
    "jsonl": "jsonl:read_gold",
    "pubtator": "pubtator:read_gold",
    "brat": "brat:read_gold",
    "biocxml": "bioc:read_xml",
    "biocjson": "bioc:read_json",
}
# formats whose output is a folder, and the ending of their annotation files
FOLDERS: dict[str, str] = {"brat": ".ann"}
# format by the ending of the file name
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
# file ending of formats that are not known by theirs
OTHER_SUFFIXES = {"omop": ".csv"}
# formats that can repeat columns of the input
KEEPING = ("jsonl", "csv", "parquet")
# formats that need a library, and what installs it
LIBRARIES: dict[str, tuple[str, str]] = {
    "parquet": ("pyarrow", "pyarrow"),
    "biocxml": ("bioc", "bioc lxml"),
    "biocjson": ("bioc", "bioc lxml"),
}

GoldReader = Callable[..., Iterator[GoldDocument]]


class Writer(Protocol):
    """The function of a format that writes documents."""

    def __call__(
        self,
        docs: "Iterable[LinkedDoc]",
        target: Any,
        *,
        include_text: bool = True,
        **options: Any,
    ) -> None:
        """Write linked documents one by one, in bounded memory.

        Args:
            docs: From `entities.describe_docs`; may be changed.
            target: A file open for writing; of the formats in `FOLDERS` the path of an
                empty folder.
            include_text: Write the texts of the documents and mentions.

        Raises:
            SapbertError: If the format needs the text.
        """


def check_library(name: str) -> None:
    """Raise an error if the library that a format needs is not installed."""
    if name in LIBRARIES:
        library, packages = LIBRARIES[name]
        try:
            import_module(library)
        except ImportError as error:
            raise SapbertError(
                Errors.E521.format(library=library, reason=error, packages=packages)
            ) from None


def load_function(name: str, functions: dict[str, str]) -> Any:
    """Import the function of a format.

    Args:
        functions: `WRITERS` or `READERS`.

    Raises:
        SapbertError: If a library is not installed.
    """
    check_library(name)
    module, _, function = functions[name].partition(":")
    return getattr(import_module(f".{module}", __package__), function)


def load_writer(name: str) -> Writer:
    """Import the function that writes a format.

    Raises:
        SapbertError: If there is no such format, or its library is missing.
    """
    if name not in WRITERS:
        raise SapbertError(Errors.E501.format(known=sorted(WRITERS), name=name))
    writer: Writer = load_function(name, WRITERS)
    return writer


def load_reader(name: str) -> GoldReader:
    """Import the function that reads a format: from a path to `GoldDocument`s.

    Raises:
        SapbertError: If the format cannot be read, or its library is missing.
    """
    if name not in READERS:
        raise SapbertError(Errors.E530.format(known=sorted(READERS), name=name))
    reader: GoldReader = load_function(name, READERS)
    return reader


def guess_format(path: Path) -> str:
    """Return the format by the ending of a file name, without `.gz`.

    Raises:
        SapbertError: If the ending is unknown.
    """
    suffix = Path(path.stem if path.suffix == ".gz" else path.name).suffix.lower()
    if suffix not in SUFFIXES:
        raise SapbertError(
            Errors.E502.format(path=path, known=sorted(SUFFIXES), formats=[*WRITERS])
        )
    return SUFFIXES[suffix]


def check_folder(path: Path, suffix: str) -> None:
    """Check that a folder may be replaced.

    Args:
        suffix: Ending of the files of the format, each beside a `.txt` file.

    Raises:
        SapbertError: If it is a file, or a folder with other files.
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
    """Open the target of a `Writer`, which is renamed at the end.

    Args:
        path: A file or, of a format in `FOLDERS`, a folder; None = the standard output.

    Raises:
        SapbertError: If the format needs a folder, or it has other files.
    """
    if format in FOLDERS:
        if path is None:
            raise SapbertError(Errors.E520.format(format=format))
        check_folder(path, FOLDERS[format])
        with write_folder_atomically(path, None) as folder:
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
    spans_key: str | None = None,
    names: "AttributeNames | None" = None,
    **options: Any,
) -> None:
    """Write linked documents to a file or folder, all or nothing.

    Args:
        path: The file or folder; it is replaced.
        format: A key of `WRITERS`; None = by the ending of the path.
        spans_key: A span group; None = the entities.
        names: The attributes of the linker, if they have other names.
        options: Options of the `Writer`.

    Raises:
        SapbertError: If the format is unknown, or needs a missing library.
    """
    from .entities import ATTRIBUTE_NAMES, describe_docs

    format = format or guess_format(path)
    writer = load_writer(format)
    linked = describe_docs(docs, spans_key=spans_key, names=names or ATTRIBUTE_NAMES)
    with open_target(path, format) as target:
        writer(linked, target, **options)


def read_docs(
    path: Path,
    nlp: "Language | Vocab",
    *,
    format: str | None = None,
    spans_key: str = "gold",
    label: str = "ENTITY",
) -> "Iterator[NamedDoc]":
    """Read annotated documents as gold Docs; see `gold_docs.make_gold_docs`.

    Args:
        path: A file or, of a format in `FOLDERS`, a folder.
        nlp: A pipeline with a tokenizer; a vocabulary: tokens are separated by blanks.
        format: A key of `READERS`; None = by the ending of the path or the content; of
            a folder brat.
        label: Label of mentions without a type.

    Raises:
        SapbertError: If the format cannot be read; later, with the place in the file,
            at the first invalid document.
    """
    from .gold_docs import make_gold_docs
    from .inputs.files import detect_format

    if format is None:
        format = "brat" if path.is_dir() else detect_format(path)
    documents = load_reader(format)(path)
    return make_gold_docs(documents, nlp, path=path, spans_key=spans_key, label=label)
