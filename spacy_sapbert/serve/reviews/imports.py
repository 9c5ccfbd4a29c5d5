"""Files of documents → documents to review, with the mentions that they have.

All formats of `link` are read; what is said of the concepts becomes a proposal.
"""

import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from ...errors import SapbertError
from ...formats.documents import Document
from ...formats.gold import LONGEST, choose_kb_id
from ...formats.inputs.files import InputFile, choose_file, list_inputs
from ...formats.inputs.reading import read_documents
from ..encodings import to_utf8
from ..problems import (
    INVALID,
    MISSING,
    RequestError,
    too_much_in_request,
    wrong_request,
)
from .store import ReviewStore, Span

NIL = "NIL"
MOST_UNPACKED = 64 << 20  # bytes of an archive
NAME_BYTES = 250  # of a file, which most file systems can have
FILE = "file"  # that has no name


@dataclass
class Imported:
    """What was read: ids of the documents, and the number of their mentions."""

    documents: list[str] = field(default_factory=list)
    mentions: int = 0


def propose_spans(document: Document) -> list[Span] | None:
    """Return the mentions of a document, each once; None = it has none."""
    if document.mentions is None:
        return None
    spans: dict[tuple[int, int], Span] = {}
    for span in document.mentions:
        cui = choose_kb_id(span)
        known = Span(span.start, span.end, span.type, "" if cui == NIL else cui)
        if span.start >= 0:
            spans.setdefault((span.start, span.end), known)
    return [*spans.values()]


def import_files(store: ReviewStore, files: Iterable[InputFile]) -> Imported:
    """Add the documents of files.

    Raises:
        SapbertError: If a document is invalid, with file and line; those before it are
            kept.
    """
    found = Imported()
    for document in read_documents(
        files, longest=LONGEST, overlapping=True, concepts=True
    ):
        id = store.add_document(str(document.id), document.text)
        spans = propose_spans(document)
        if spans is not None:
            store.set_proposals(id, spans)
            found.mentions += len(spans)
        found.documents.append(id)
    return found


def import_paths(store: ReviewStore, paths: Iterable[Path]) -> Imported:
    """Add the documents of files and folders; see `import_files`."""
    return import_files(store, list_inputs(paths, left_out=Counter()))


def import_uploads(store: ReviewStore, files: Mapping[str, bytes]) -> Imported:
    """Add the documents of files that were dropped on the page.

    Args:
        files: Contents by name; brat has two files a document, or an archive of them.

    Raises:
        RequestError: If a file cannot be read.
        SapbertError: If a library is missing.
    """
    with TemporaryDirectory(prefix="sapbert-documents-") as name:
        folder = Path(name)
        for name, data in files.items():
            path = folder / file_name(name)
            path.write_bytes(to_utf8(data))
            if zipfile.is_zipfile(path) and path.suffix.lower() == ".zip":
                unpack(path, folder)
                path.unlink()
        paths = sorted(path for path in folder.iterdir() if path.is_file())
        try:
            chosen = [choose_file(path, path.name, None) for path in paths]
            # Of brat both files name the same document.
            inputs = {file.path: file for file in chosen}
            return import_files(store, inputs.values())
        except RequestError:
            raise
        except SapbertError as error:
            if error.code == MISSING:
                raise
            text = error.text.replace(f"{folder}/", "")
            raise RequestError(error.code, text, INVALID) from None


def file_name(name: str) -> str:
    """Return the end of a name that anybody may have chosen, as a name of a file."""
    last = PurePosixPath(name.replace("\\", "/").replace("\0", "")).name.lstrip(".")
    return last.encode("utf8", "replace")[-NAME_BYTES:].decode("utf8", "ignore") or FILE


def unpack(path: Path, folder: Path) -> None:
    """Unpack the files of an archive, without their folders.

    Raises:
        RequestError: If it is too large or damaged.
    """
    left = MOST_UNPACKED
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if entry.is_dir() or PurePosixPath(entry.filename).name.startswith("."):
                    continue
                with archive.open(entry) as file:
                    data = file.read(left + 1)
                left -= len(data)
                if left < 0:
                    got = MOST_UNPACKED - left
                    what = "bytes of an archive"
                    raise too_much_in_request(MOST_UNPACKED, what, got)
                (folder / file_name(entry.filename)).write_bytes(data)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError):
        expected = "an archive (.zip) that can be read"
        raise wrong_request(expected) from None
