"""Readers of annotated corpora; each yields `GoldDocument`s.

A new format is one file with a reader like the others, and one line here. Formats that
the installed package reads too are those of `spacy_sapbert.formats.registry`.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import SapbertError
from ..formats.documents import OnError, raise_error
from ..formats.gold import GoldDocument, GoldSpan
from ..formats.inputs.files import detect_format
from ..formats.registry import FORMATS as INSTALLED
from ..formats.registry import load_reader as load_installed
from ..mapping.run import is_mapped

__all__ = ["FORMATS", "GoldDocument", "GoldSpan", "change_prefixes", "read_corpus"]

# format: module and function; None = a format of the installed package
FORMATS: dict[str, str | None] = {
    "tsv": "tables:read_tsv",
    "biosyn": "tables:read_biosyn_concepts",
    "xlbel": "tables:read_xlbel",
    "cometa": "tables:read_cometa",
    "askapatient": "tables:read_askapatient",
    "cadec": "cadec:read_cadec",
    "mapped": "mapped:read_mapped",
    **{name: None for name, format in INSTALLED.items() if format.read},
}
TABLES, MAPPED = (".tsv", ".tsv.gz"), "mapped"
NOT_OPTIONS = ("path", "longest", "on_error")  # of readers


Reader = Callable[..., Iterator[GoldDocument]]


def load_reader(format: str) -> Reader:
    """Import the reader of a format, a key of `FORMATS`."""
    if format not in FORMATS:
        known = ", ".join(FORMATS)
        raise SapbertError(
            "E110",
            f"Expected one of the corpus formats {known}, but got {format!r}. Correct "
            "`--format`.",
        )
    target = FORMATS[format]
    if target is None:
        return load_installed(format)
    module, _, name = target.partition(":")
    reader: Reader = getattr(import_module(f".{module}", __package__), name)
    return reader


def change_prefixes(
    parts: Sequence[Sequence[str]], *, prefix: str, drop_prefix: str
) -> list[list[str]]:
    """Return ids without one prefix, and with another if they have no colon."""
    dropped = [[cui.removeprefix(drop_prefix) for cui in part] for part in parts]
    return [[c if ":" in c else f"{prefix}{c}" for c in part] for part in dropped]


def read_corpus(
    path: str | Path,
    format: str | None = None,
    *,
    prefix: str = "",
    drop_prefix: str = "",
    on_error: OnError = raise_error,
    **options: Any,
) -> Iterator[GoldDocument]:
    """Read a corpus of any format.

    Args:
        path: A file or a folder, as the format has it; files can be `.gz`.
        format: One of the formats of docs/corpora.md, e.g. "pubtator"; None = by the
            ending or the content.
        prefix: Added to ids without a colon, e.g. "MESH:".
        drop_prefix: Removed from ids, e.g. "UMLS:".
        on_error: Called with the error of a document that cannot be read, which is left
            out if this returns. Readers of research corpora stop at such an error.
        options: Of the reader of the format, see docs/corpora.md.

    Yields:
        Each document, in the order of the files.

    Raises:
        SapbertError: If the format is unknown, or has no such option; later, with file
            and line, at the first bad line; at the end, if there was no mention.

    Examples:
        >>> document = next(read_corpus("assets/sample/annotated.txt"))
        >>> document.spans[0].mention, document.spans[0].parts
        ('itching', [['C0033774']])
    """
    path = Path(path)
    format = format or detect_annotated(path)
    reader = load_reader(format)
    arguments = inspect.signature(reader).parameters
    known = [name for name in arguments if name not in NOT_OPTIONS]
    for option in options:
        if option not in known:
            raise SapbertError(
                "E113",
                f"Expected one of the options of the format {format} "
                f"({', '.join(known).replace('_', '-') or 'none'}), but got "
                f"`--{option.replace('_', '-')}`. Remove it.",
            )
    if "on_error" in arguments:
        options["on_error"] = on_error
    return finish_documents(path, reader(path, **options), prefix, drop_prefix)


def detect_annotated(path: Path) -> str:
    """Return the format of annotated documents, by the ending or the content."""
    if is_mapped(path):
        return MAPPED
    if path.name.endswith(TABLES):
        return "tsv"
    return "brat" if path.is_dir() else detect_format(path)


def finish_documents(
    path: Path, documents: Iterator[GoldDocument], prefix: str, drop_prefix: str
) -> Iterator[GoldDocument]:
    """Yield documents with changed prefixes of ids; none with a mention is an error."""
    seen = False
    for document in documents:
        seen = seen or bool(document.spans)
        spans = [
            span._replace(
                parts=change_prefixes(
                    span.parts, prefix=prefix, drop_prefix=drop_prefix
                )
            )
            for span in document.spans
        ]
        yield document._replace(spans=spans)
    if not seen:
        raise SapbertError(
            "E106",
            f"Expected gold mentions in {path}, but it has none. Pass the file that "
            "has them.",
        )
