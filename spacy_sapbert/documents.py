"""Texts to link, read from `.txt` files, folders of them, and `.jsonl` files."""

import json
import zlib
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Tuple, Union

from .errors import Errors, SapbertError
from .files import check_file, decode_line, read_blocks, read_line_blocks

TEXT_SUFFIXES = (".txt", ".txt.gz")
LINE_SUFFIXES = (".jsonl", ".jsonl.gz")
BYTES_PER_CHARACTER = 6  # at the most: UTF-8 needs 4, JSON writes "\u0000"
ROOM = 1 << 16  # bytes of a line for what is not text


class Document(NamedTuple):
    """A text to link.

    id (Union[str, int]): As the file gives it, else name of the file, and line.
    text (str): The text.
    """

    id: Union[str, int]
    text: str


def list_files(path: Path) -> List[Tuple[Path, str]]:
    """List the files that an input names.

    path (Path): A `.txt` or `.jsonl` file, also with `.gz`; or a folder.
    RETURNS (List[Tuple[Path, str]]): The file itself, or all `.txt` files in the
        folder and below, sorted; each with the name that makes its id.
    RAISES (SapbertError): If it is something else, or the folder has no such file.
    """
    if not path.is_dir():
        check_file(path)
        if not path.name.endswith(TEXT_SUFFIXES + LINE_SUFFIXES):
            found = "a file with another ending"
            raise SapbertError(Errors.E505.format(path=path, found=found))
        return [(path, path.name)]
    files = [
        (file, file.relative_to(path).as_posix())
        for file in sorted(path.rglob("*"))
        if file.name.endswith(TEXT_SUFFIXES) and file.is_file()
    ]
    if not files:
        raise SapbertError(Errors.E505.format(path=path, found="without any `.txt`"))
    return files


def read_text(path: Path, *, longest: int) -> str:
    """Read a file as one text, line ends as they are, so that offsets hold.

    path (Path): The file, plain or `.gz`, in UTF-8; a byte order mark is dropped.
    longest (int): Characters of a document at the most.
    RETURNS (str): The text.
    RAISES (SapbertError): If it is too long, cut, or not UTF-8; with the line.
    """
    data = b""
    try:
        for block in read_blocks([path]):
            data += block
            if len(data) > BYTES_PER_CHARACTER * longest + ROOM:
                break
    except (EOFError, zlib.error) as error:
        line = data.count(b"\n") + 1
        raise SapbertError(
            Errors.E008.format(path=path, line=line, reason=error)
        ) from None
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise SapbertError(Errors.E006.format(path=path))
    data = data.removeprefix(b"\xef\xbb\xbf")
    too_long = SapbertError(Errors.E506.format(path=path, line=1, limit=longest))
    if len(data) > BYTES_PER_CHARACTER * longest:
        raise too_long
    try:
        text = data.decode("utf8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        offset = error.start - (data.rfind(b"\n", 0, error.start) + 1)
        raise SapbertError(
            Errors.E009.format(path=path, line=line, offset=offset)
        ) from None
    if len(text) > longest:
        raise too_long
    return text


def document_from_json(data: Any, path: Path, name: str, line: int) -> Document:
    """Check what a line says, and make the document of it.

    data (Any): The parsed line: `text` and maybe `id`; other fields are not looked at.
    path (Path): The file, for the error.
    name (str): Of the file, for the id.
    line (int): The line in it, from 1.
    RETURNS (Document): The document.
    RAISES (SapbertError): If a field is missing or of another type.
    """

    def fail(expected: str, got: str) -> SapbertError:
        return SapbertError(
            Errors.E504.format(path=path, line=line, expected=expected, got=got)
        )

    if not isinstance(data, dict):
        raise fail("a `text`", f"a {type(data).__name__}")
    text = data.get("text")
    if not isinstance(text, str):
        raise fail("a text as `text`", "none" if text is None else "something else")
    number = data.get("id")
    if number is None:
        number = f"{name}:{line}"
    if isinstance(number, bool) or not isinstance(number, (str, int)):
        raise fail("a text or a whole number as `id`", "something else")
    try:
        f"{number}{text}".encode()
    except UnicodeEncodeError:
        raise fail("valid Unicode", "half a surrogate pair") from None
    return Document(number, text)


def read_json_objects(
    path: Path, name: str, *, longest: int
) -> Iterator[Tuple[int, Document, Dict[str, Any]]]:
    """Read a `.jsonl` file, one document a line; blank lines are passed over.

    path (Path): The file, plain or `.gz`.
    name (str): Of the file, for the ids of documents that have none.
    longest (int): Characters of a document at the most.
    YIELDS (Tuple[int, Document, Dict[str, Any]]): Number of the line, from 1, the
        document, and all that the line says.
    RAISES (SapbertError): With file and line, at the first bad line.
    """
    line_bytes = BYTES_PER_CHARACTER * longest + ROOM
    for first, lines in read_line_blocks(path, line_bytes=line_bytes):
        for number, raw in enumerate(lines, first):
            line = decode_line(raw, path, number)
            if not line.strip():
                continue
            try:
                data = json.loads(line)
            except (ValueError, RecursionError):
                raise SapbertError(
                    Errors.E504.format(
                        path=path, line=number, expected="a `text`", got="no valid JSON"
                    )
                ) from None
            document = document_from_json(data, path, name, number)
            if len(document.text) > longest:
                raise SapbertError(
                    Errors.E506.format(path=path, line=number, limit=longest)
                )
            yield number, document, data


def read_json_lines(path: Path, name: str, *, longest: int) -> Iterator[Document]:
    """Read the documents of a `.jsonl` file; see `read_json_objects`."""
    for _, document, _ in read_json_objects(path, name, longest=longest):
        yield document


def read_documents(paths: Iterable[Path], *, longest: int) -> Iterator[Document]:
    """Read texts to link, one at a time.

    paths (Iterable[Path]): See `list_files`; all are looked for before any is read.
    longest (int): Characters of a document at the most.
    YIELDS (Document): Each document, in the order of the paths.
    RAISES (SapbertError): If there is no such file, or with file and line, if a
        document cannot be read.
    """
    files = [file for path in paths for file in list_files(path)]
    return read_files(files, longest=longest)


def read_files(files: List[Tuple[Path, str]], *, longest: int) -> Iterator[Document]:
    """Read listed files one after the other; see `read_documents`."""
    for path, name in files:
        if name.endswith(LINE_SUFFIXES):
            yield from read_json_lines(path, name, longest=longest)
        else:
            yield Document(name, read_text(path, longest=longest))
