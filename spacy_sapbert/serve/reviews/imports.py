"""Files of documents → documents to review, with the mentions that they have.

All formats of `link` are read; what is said of the concepts becomes a proposal.
"""

import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from ...errors import SapbertError
from ...formats.documents import Document
from ...formats.gold import LONGEST, NIL, choose_kb_id
from ...formats.inputs.files import InputFile, choose_file, list_inputs
from ...formats.inputs.reading import read_documents
from ...io.version import SITE
from ...kb.knowledge_base import KnowledgeBase
from ...linking.filters import Filter
from ..encodings import to_utf8
from ..problems import (
    INVALID,
    MISSING,
    RequestError,
    too_much_in_request,
    wrong_request,
)
from .store import Added, NewNote, ReviewStore, Span

MOST_UNPACKED = 64 << 20  # bytes of an archive
NAME_BYTES = 250  # of a file, which most file systems can have
FILE = "file"  # that has no name
FILTER = "filter.json"  # beside notes: the part of the vocabulary for them


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


def read_filter(path: Path) -> str:
    """Return a filter in JSON: the part of the vocabulary for notes of a folder."""
    try:
        values = json.loads(path.read_text("utf8"))
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise SapbertError(
            "E117",
            f"{path}: Expected the fields of a filter in JSON, but got something else. "
            'Write for example {"types": ["DISO"]}.',
        )
    return json.dumps(Filter(**values).to_config())


def find_filter(name: str, filters: Mapping[str, str]) -> str:
    """Return the filter of the nearest folder of a name; "" = there is none."""
    folders = map(str, PurePosixPath(name).parents)
    return next((filters[folder] for folder in folders if folder in filters), "")


def read_notes(
    files: Iterable[InputFile], filters: Mapping[str, str]
) -> Iterator[NewNote]:
    """Yield the documents of files; one that is invalid is an error with file, line.

    Args:
        filters: Of folders in the names of files.
    """
    groups: dict[str, list[InputFile]] = {}
    for file in files:
        groups.setdefault(find_filter(file.name, filters), []).append(file)
    for filter, some in groups.items():
        for document in read_documents(
            some, longest=LONGEST, overlapping=True, concepts=True
        ):
            spans = propose_spans(document)
            yield NewNote(str(document.id), document.text, spans, filter)


def import_paths(store: ReviewStore, paths: Iterable[Path]) -> Added:
    """Add the documents of files and folders, all or none."""
    paths = [*paths]
    filters = {
        str(found.relative_to(path).parent): read_filter(found)
        for path in paths
        for found in path.rglob(FILTER)
    }
    files = list_inputs(paths, left_out=Counter())
    others = (file for file in files if PurePosixPath(file.name).name != FILTER)
    return store.add_documents(read_notes(others, filters))


def import_uploads(
    store: ReviewStore, kb: KnowledgeBase, files: Iterable[tuple[str, bytes]]
) -> Added:
    """Add the documents of files that were dropped on the page, all or none.

    Args:
        files: Names, with folders if they have some, and contents; brat has two files a
            document. An archive stands for its files.

    Raises:
        RequestError: If a file cannot be read.
        SapbertError: If a library is missing.
    """
    with TemporaryDirectory(prefix="sapbert-documents-") as temporary:
        folder = Path(temporary)
        inputs: dict[Path, InputFile] = {}
        try:
            filters: dict[str, str] = {}
            for path, name in write_files(folder, unpack_all(files)):
                if path.name == FILTER:
                    filter = read_filter(path)
                    kb.resolve_filter(Filter(**json.loads(filter)))
                    filters[str(PurePosixPath(name).parent)] = filter
                    continue
                file = choose_note(path, name)
                inputs[file.path] = file  # of brat both name the same document
            notes = [*read_notes(inputs.values(), filters)]
        except RequestError:
            raise
        except SapbertError as error:
            if error.code == MISSING:
                raise
            text = re.sub(rf"{re.escape(temporary)}/\d+/", "", error.text)
            if "`--" in text:  # how to mend it on the command line
                expected, but, got = text.partition(", but ")
                text = f"{expected}{but}{got.partition('. ')[0]}. Correct the file."
            raise RequestError(error.code, text, INVALID) from None
    added = store.add_documents(notes)
    ids = Counter(span.cui for one in notes for span in one.spans or () if span.cui)
    added.unknown_ids = sum(n for id, n in ids.items() if kb.concept(id) is None)
    return added


def choose_note(path: Path, name: str) -> InputFile:
    """Return a file with its format; the error is for a person before the page."""
    try:
        return choose_file(path, name, None)
    except SapbertError as error:
        if error.code != "E110":
            raise
        raise RequestError(
            "E110",
            f"Expected notes as text, or in a format of {SITE}formats.html, but got a "
            f"file that is neither: {name}. Save it as text (.txt) in UTF-8.",
            INVALID,
        ) from None


def write_files(
    folder: Path, files: Iterable[tuple[str, bytes]]
) -> list[tuple[Path, str]]:
    """Write files with names that anybody may have chosen, and return their paths.

    Two of one name are kept apart: each folder of names is one of ours, and the second
    of a name is in another one. Files that belong together stay together.
    """
    written: list[tuple[Path, str]] = []
    folders: dict[tuple[str, int], Path] = {}
    times: Counter[str] = Counter()
    for name, data in files:
        parts = [clean_part(part) for part in name.replace("\\", "/").split("/")]
        *above, last = [part for part in parts if part] or [FILE]
        name = "/".join([*above, last])
        times[name] += 1
        key = "/".join(above), times[name]
        place = folders.setdefault(key, folder / str(len(folders)))
        place.mkdir(exist_ok=True)
        (place / last).write_bytes(to_utf8(data))
        written.append((place / last, name))
    return written


def clean_part(part: str) -> str:
    """Return a part of a path as a name of a file; "" for one that names no file."""
    part = part.replace("\0", "").strip().lstrip(".")
    return part.encode("utf8", "replace")[-NAME_BYTES:].decode("utf8", "ignore")


def unpack_all(files: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Yield files, and those of archives in their place."""
    left = MOST_UNPACKED
    for name, data in files:
        if not name.lower().endswith(".zip"):
            yield name, data
            continue
        try:
            with zipfile.ZipFile(BytesIO(data)) as archive:
                for entry in archive.infolist():
                    hidden = PurePosixPath(entry.filename).name.startswith(".")
                    if entry.is_dir() or hidden:
                        continue
                    with archive.open(entry) as file:
                        unpacked = file.read(left + 1)
                    left -= len(unpacked)
                    if left < 0:
                        got, what = MOST_UNPACKED - left, "bytes of an archive"
                        raise too_much_in_request(MOST_UNPACKED, what, got)
                    yield entry.filename, unpacked
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError):
            expected = "an archive (.zip) that can be read"
            raise wrong_request(expected) from None
