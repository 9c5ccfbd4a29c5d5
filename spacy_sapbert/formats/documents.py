"""Documents to link: `.txt`, folders of them, `.jsonl`, `.spacy`, standard input."""

import json
import sys
import zlib
from collections.abc import Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    NamedTuple,
    cast,
)

from ..errors import Errors, SapbertError
from ..system.reading import (
    BLOCK_BYTES,
    check_file,
    decode_line,
    read_blocks,
    read_line_blocks,
)

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

TEXT_SUFFIXES = (".txt", ".txt.gz")
LINE_SUFFIXES = (".jsonl", ".jsonl.gz")
DOCS_SUFFIX = ".spacy"
STDIN = Path("-")
STDIN_NAME = "stdin"  # in the ids of documents, and in errors
BYTES_PER_CHARACTER = 6  # at the most: UTF-8 needs 4, JSON writes "\u0000"
ROOM = 1 << 16  # bytes of a line for what is not text


class Document(NamedTuple):
    """A text to link.

    id (str | int): The id in the file, else file name and line.
    doc (Doc | None): Of a `.spacy` file: its tokens and entities.
    """

    id: str | int
    text: str
    doc: "Doc | None" = None


def list_files(path: Path) -> list[tuple[Path, str]]:
    """Return the files of an input.

    path (Path): A `.txt` or `.jsonl` file, also with `.gz`; a `.spacy` file; a folder;
        or `-` for the standard input.
    RETURNS (list[tuple[Path, str]]): The file, or all `.txt` files in the folder and
        below, sorted; each with its name for ids.
    RAISES (SapbertError): If it is something else, or the folder has no such file.
    """
    if path == STDIN:
        return [(path, STDIN_NAME)]
    if not path.is_dir():
        check_file(path)
        if not path.name.endswith((*TEXT_SUFFIXES, *LINE_SUFFIXES, DOCS_SUFFIX)):
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


def list_inputs(paths: Iterable[Path]) -> list[tuple[Path, str]]:
    """Return the files of all inputs; see `list_files`.

    RAISES (SapbertError): As `list_files`, or if the standard input is given twice.
    """
    files = [file for path in paths for file in list_files(path)]
    if sum(path == STDIN for path, _ in files) > 1:
        raise SapbertError(Errors.E511)
    return files


def stdin_blocks() -> Iterator[bytes]:
    """Yield the available bytes of the standard input, at most `BLOCK_BYTES`."""
    stream = cast(BufferedReader, sys.stdin.buffer)
    while block := stream.read1(BLOCK_BYTES):
        yield block


def open_blocks(path: Path) -> Iterator[bytes]:
    """Read a file or the standard input; see `read_blocks`."""
    return stdin_blocks() if path == STDIN else read_blocks([path])


def shown_path(path: Path) -> Path:
    """Return the name of an input in errors."""
    return Path(STDIN_NAME) if path == STDIN else path


def read_text(path: Path, *, longest: int) -> str:
    """Read a file as one text with its line ends, so that offsets are correct.

    path (Path): The file, plain or `.gz`; `-` for the standard input.
    longest (int): Maximum number of characters.
    RETURNS (str): The text without a byte order mark.
    RAISES (SapbertError): With the line, if it is too long, truncated, or not UTF-8.
    """
    data, blocks, path = b"", open_blocks(path), shown_path(path)
    try:
        for block in blocks:
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
    """Check a parsed line: `text`, and maybe `id`; other fields are ignored.

    path (Path), line (int): File and line number for the error.
    name (str): Name of the file for the id.
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
) -> Iterator[tuple[int, Document, dict[str, Any]]]:
    """Read a `.jsonl` file, one document per line; blank lines are skipped.

    path (Path): The file, plain or `.gz`; `-` for the standard input.
    name (str): Name of the file for the ids of documents that have none.
    longest (int): Maximum number of characters of a document.
    YIELDS (tuple[int, Document, dict[str, Any]]): Line number, from 1, document, and
        all fields of the line.
    RAISES (SapbertError): With file and line, at the first invalid line.
    """
    line_bytes = BYTES_PER_CHARACTER * longest + ROOM
    blocks, path = open_blocks(path), shown_path(path)
    read = read_line_blocks(path, line_bytes=line_bytes, blocks=blocks)
    for first, lines in read:
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


def read_docs(path: Path, name: str, vocab: "Vocab | None") -> Iterator[Document]:
    """Read a `.spacy` file (a `DocBin`); the whole file is in memory.

    name (str): Name of the file for the ids of the documents.
    vocab (Vocab | None): Vocabulary of the pipeline; None = an empty one.
    RAISES (SapbertError): If the file is damaged, or not a `DocBin`.
    """
    from spacy.tokens import DocBin
    from spacy.vocab import Vocab

    number, docs = 0, None
    while True:
        number += 1
        try:
            if docs is None:
                bytes_data = b"".join(read_blocks([path]))
                docs = DocBin().from_bytes(bytes_data).get_docs(vocab or Vocab())
            doc = next(docs, None)
            text = "" if doc is None else doc.text
        except SapbertError:
            raise
        except Exception as error:  # what msgpack, numpy and spaCy say of such a file
            raise SapbertError(
                Errors.E512.format(path=path, number=number, kind=type(error).__name__)
            ) from None
        if doc is None:
            return
        yield Document(f"{name}:{number}", text, doc)


def read_documents(
    paths: Iterable[Path],
    *,
    longest: int,
    vocab: "Vocab | None" = None,
    one_text: bool = False,
) -> Iterator[Document]:
    """Read documents to link, one at a time.

    paths (Iterable[Path]): See `list_files`; all are checked before the first is read.
    longest (int): Maximum number of characters of a text.
    vocab (Vocab | None): For `.spacy` files: the vocabulary of the pipeline.
    one_text (bool): Read the standard input as one text; else as JSONL.
    RAISES (SapbertError): If a file does not exist, or with file and line, if a
        document is invalid.
    """
    files = list_inputs(paths)
    return read_files(files, longest=longest, vocab=vocab, one_text=one_text)


def read_files(
    files: list[tuple[Path, str]],
    *,
    longest: int,
    vocab: "Vocab | None",
    one_text: bool,
) -> Iterator[Document]:
    """Read files one after the other; see `read_documents`."""
    for path, name in files:
        if name.endswith(DOCS_SUFFIX):
            yield from read_docs(path, name, vocab)
        elif name.endswith(LINE_SUFFIXES) or (path == STDIN and not one_text):
            yield from read_json_lines(path, name, longest=longest)
        else:
            yield Document(name, read_text(path, longest=longest))
