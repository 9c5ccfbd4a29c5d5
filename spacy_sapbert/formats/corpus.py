"""The one reader of annotated documents, for all commands that learn or measure."""

import hashlib
import inspect
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import SapbertError
from ..io.reading import check_file, file_digest
from ..io.tables.files import is_sssom
from ..io.unpacking import Unpacked, is_zip
from .documents import OnError, raise_error
from .format_table import file_ending, list_formats, load_reader
from .gold import LONGEST, UNSAID, GoldDocument
from .inputs.files import BRAT, TEXT, detect_format, list_files, list_standoff

NOT_OPTIONS = ("path", "longest", "on_error")  # of readers
TYPE_SYSTEM = "TypeSystem.xml"  # beside documents of INCEpTION


def detect_corpus(path: Path) -> str:
    """Return the format of annotated documents, by the ending or the content."""
    if path.is_dir():
        return detect_folder(path)
    check_file(path)
    if is_sssom(path):
        return "sssom"
    format = None
    with suppress(SapbertError):  # of an unknown ending: it may be a table
        format = detect_format(path)
    if format not in (None, TEXT):
        return str(format)
    return "tsv"


def detect_folder(folder: Path) -> str:
    """Return the format of the files with annotations beside texts, else of the first.

    Without any, it is brat, whose files are then missing.
    """
    for name, beside in list_standoff().items():
        if next(folder.rglob(f"*{beside}"), None) is not None:
            return name
    endings = {ending for f in list_formats("read").values() for ending in f.endings}
    files = (file for file in sorted(folder.rglob("*")) if file_ending(file) in endings)
    kept = (file for file in files if file.is_file() and file.name != TYPE_SYSTEM)
    return next(map(detect_corpus, kept), BRAT)


def corpus_digest(path: Path) -> str:
    """Return the sha256 of a file, or of the names and files in a folder."""
    if not path.is_dir():
        return file_digest(path)
    seen = hashlib.sha256()
    for file in sorted(file for file in path.rglob("*") if file.is_file()):
        seen.update(f"{file.relative_to(path)}\0{file_digest(file)}\n".encode())
    return seen.hexdigest()


def change_prefixes(
    document: GoldDocument, *, prefix: str, drop_prefix: str
) -> GoldDocument:
    """Return ids without one prefix, and with another if they have no colon."""
    if not prefix and not drop_prefix:
        return document

    def change(cui: str) -> str:
        cui = cui.removeprefix(drop_prefix)
        return cui if ":" in cui else f"{prefix}{cui}"

    mentions = [
        mention._replace(parts=[[*map(change, part)] for part in mention.parts])
        for mention in document.mentions
    ]
    return document._replace(mentions=mentions)


def open_corpus(
    path: Path,
    format: str | None = None,
    *,
    longest: int = LONGEST,
    on_error: OnError = raise_error,
    **options: Any,
) -> Iterator[GoldDocument]:
    """Read a file or folder, also in a `.zip`.

    Invalid documents are there too, with their error.
    """
    if is_zip(path):
        return open_zip(path, format, longest=longest, on_error=on_error, **options)
    format = format or detect_corpus(path)
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
    if "longest" in arguments:  # of a table no text is read
        options["longest"] = longest
    read = partial(reader, on_error=on_error, **options)
    if path.is_file() or list_formats()[format].folder:
        return read(path)
    files = list_files(path, format, Counter())
    return (
        document._replace(id=name) if document.id == file.name else document
        for file, name, _ in files
        for document in read(file)
    )


def open_zip(
    path: Path, format: str | None, *, on_error: OnError, **options: Any
) -> Iterator[GoldDocument]:
    """Read the documents in a `.zip`, by which errors name its files."""
    unpacked = Unpacked()

    def name_error(error: SapbertError) -> None:
        on_error(unpacked.name(error))

    try:
        with unpacked.name_errors():
            folder = unpacked.unpack(path)
            yield from open_corpus(folder, format, on_error=name_error, **options)
    finally:
        unpacked.close()


def read_corpus(
    path: str | Path,
    format: str | None = None,
    *,
    prefix: str = "",
    drop_prefix: str = "",
    every: bool = False,
    on_error: OnError = raise_error,
    **options: Any,
) -> Iterator[GoldDocument]:
    """Read annotated documents of any format.

    https://spacy-sapbert.github.io/spacy-sapbert/corpora.html has the formats and their
    options. Tables of mentions, such as `map` writes them, are documents without a
    text, or one for each term.

    Args:
        path: A file or a folder, as the format has it; files can be `.gz`.
        format: A format, e.g. "pubtator"; None = by the ending or the content.
        prefix: Added to ids without a colon, e.g. "MESH:".
        drop_prefix: Removed from ids, e.g. "UMLS:".
        every: Yield mentions too of which nobody has said whether they have a concept.
            Else they are left out with a warning: they are not NIL.
        on_error: Called with the error of a document or a line that cannot be read,
            which is left out if this returns.
        options: Of the reader of the format.

    Yields:
        Each document, in the order of the files.

    Raises:
        SapbertError: If the format is unknown, or has no such option; later, with file
            and line, at the first invalid document; at the end, if there was no
            mention, or none with an id or NIL.

    Examples:
        >>> document = next(read_corpus("assets/sample/annotated.txt"))
        >>> document.mentions[0].mention, document.mentions[0].parts
        ('itching', [['C0033774']])
    """
    path = Path(path)
    format = format or detect_corpus(path)
    documents = open_corpus(path, format, on_error=on_error, **options)
    changed = finish_documents(path, documents, prefix, drop_prefix)
    return changed if every else leave_unsaid(path, format, changed)


def finish_documents(
    path: Path, documents: Iterator[GoldDocument], prefix: str, drop_prefix: str
) -> Iterator[GoldDocument]:
    """Yield documents with changed prefixes of ids; none with a mention is an error."""
    seen = False
    for document in documents:
        if document.error:
            continue
        seen = seen or bool(document.mentions)
        yield change_prefixes(document, prefix=prefix, drop_prefix=drop_prefix)
    if not seen:
        raise SapbertError(
            "E106",
            f"Expected annotated mentions in {path}, but it has none. Pass the file "
            "that has them.",
        )


def leave_unsaid(
    path: Path, format: str, documents: Iterator[GoldDocument]
) -> Iterator[GoldDocument]:
    """Yield documents without the mentions whose concept nobody has annotated."""
    unsaid = total = 0
    for document in documents:
        said = [mention for mention in document.mentions if mention.parts != UNSAID]
        total += len(document.mentions)
        unsaid += len(document.mentions) - len(said)
        yield document._replace(mentions=said)
    place = list_formats()[format].ids
    where = f"has it in {place}" if place else "has no place for one"
    if total and unsaid == total:
        raise SapbertError(
            "E106",
            f"{path}: Expected mentions with an id, or with NIL, but none of {total:,} "
            f"has one; without it, nobody has said that a mention has no concept. The "
            f"format {format} {where}. Annotate the concepts, e.g. of what `spacy "
            "sapbert link` writes in a format that has ids.",
        )
    if unsaid:
        warnings.warn(
            f"[W539] {path}: Expected mentions with an id, or with NIL, but {unsaid:,} "
            f"of {total:,} have neither. They are left out, and do not count as NIL. "
            f"The format {format} {where}.",
            stacklevel=2,
        )
