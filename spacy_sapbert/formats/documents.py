"""Documents to link: `.txt`, folders of them, `.jsonl`, `.spacy`, standard input."""

import re
import sys
import warnings
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from io import BufferedReader
from itertools import chain, count, starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Required, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from ..errors import Errors, SapbertError, Warnings
from ..system.json_lines import load_line
from ..system.reading import (
    BLOCK_BYTES,
    RECORD_VALUES,
    USUAL_BYTES,
    UTF8_MARK,
    UTF16_MARKS,
    check_file,
    decode_line,
    read_blocks,
    read_line_blocks,
)
from .docbin import TOKENS, TooLargeError, iter_docbin

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

TEXT_SUFFIXES = (".txt", ".txt.gz")
LINE_SUFFIXES = (".jsonl", ".jsonl.gz")
DOCS_SUFFIX = ".spacy"
RUN = re.compile(r"(?:(?!\s)[\W_]){50,}+")  # punctuation and symbols
SLOW_RUN, MOST_RUN = 2_000, 100_000  # characters
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


class DocumentLine(TypedDict, total=False):
    """A line of a `.jsonl` file; it may have other fields."""

    __pydantic_config__ = ConfigDict(extra="allow", strict=True)  # type: ignore[misc]

    text: Required[str]
    id: str | int | None


DOCUMENT_LINE = TypeAdapter(DocumentLine)
EXPECTED = {
    "": "a `text`",
    "text": "a text as `text`",
    "id": "a text or a whole number as `id`",
}


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


def open_input(path: Path) -> tuple[Path, Iterator[bytes]]:
    """Return the name of a file or the standard input in errors, and its blocks."""
    if path == STDIN:
        stream = cast(BufferedReader, sys.stdin.buffer)
        return Path(STDIN_NAME), iter(partial(stream.read1, BLOCK_BYTES), b"")
    return path, read_blocks([path])


def read_text(path: Path, *, longest: int) -> str:
    """Read a file as one text with its line ends, so that offsets are correct.

    path (Path): The file, plain or `.gz`; `-` for the standard input.
    longest (int): Maximum number of characters.
    RETURNS (str): The text without a byte order mark.
    RAISES (SapbertError): With the line, if it is too long, truncated, or not UTF-8.
    """
    data = b""
    path, blocks = open_input(path)
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
    if data.startswith(UTF16_MARKS):
        raise SapbertError(Errors.E006.format(path=path))
    data = data.removeprefix(UTF8_MARK)
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


def parse_line(line: str, path: Path, number: int) -> DocumentLine:
    """Parse a line of a `.jsonl` file.

    path (Path), number (int): File and line for the error.
    RAISES (SapbertError): If a field is missing or of another type; never with its
        value.
    """
    try:
        if len(line) <= USUAL_BYTES:
            return DOCUMENT_LINE.validate_json(line)
        return DOCUMENT_LINE.validate_python(load_line(line))
    except ValidationError as invalid:
        error = invalid.errors(include_url=False)[0]
    field = str(error["loc"][0]) if error["loc"] else ""
    if error["type"] == "json_invalid":
        got = f"no valid JSON ({error['ctx']['error']})"
    elif error["type"] == "missing" or error["input"] is None and field:
        got = "none"
    else:
        got = "something else" if field else f"a {type(error['input']).__name__}"
    values = {"path": path, "line": number, "expected": EXPECTED[field]}
    raise SapbertError(Errors.E504.format(got=got, **values))


def read_json_lines(
    path: Path, name: str, *, longest: int
) -> Iterator[tuple[int, Document, dict[str, Any]]]:
    """Read a `.jsonl` file, one document per line; blank lines are skipped.

    path (Path): The file, plain or `.gz`; `-` for the standard input.
    name (str): Name of the file for the ids of documents that have none.
    longest (int): Maximum number of characters of a document.
    YIELDS (tuple[int, Document, dict[str, Any]]): Line number, from 1, document, and
        all fields of the line, of which other formats may check more.
    RAISES (SapbertError): With file and line, at the first invalid line.
    """
    path, blocks = open_input(path)
    for first, lines in read_line_blocks(path, blocks=blocks):
        for number, raw in enumerate(lines, first):
            line = decode_line(raw, path, number)
            if not line.strip():
                continue
            fields = parse_line(line, path, number)
            id, text = fields.get("id"), fields["text"]
            if len(text) > longest:
                raise SapbertError(
                    Errors.E506.format(path=path, line=number, limit=longest)
                )
            document = Document(f"{name}:{number}" if id is None else id, text)
            yield number, document, {**fields}


def read_docbin(path: Path, name: str, vocab: "Vocab | None") -> Iterator[Document]:
    """Read a `.spacy` file (a `DocBin`); the whole file is in memory.

    name (str): Name of the file for the ids of the documents.
    vocab (Vocab | None): Vocabulary of the pipeline; None = an empty one.
    RAISES (SapbertError): If the file is damaged, too large, or not a `DocBin`.
    """
    from spacy.vocab import Vocab

    docs = iter_docbin(path, vocab or Vocab())
    for number in count(1):
        try:
            doc = next(docs, None)
            text = "" if doc is None else doc.text
        except SapbertError:
            raise
        except TooLargeError:
            raise SapbertError(
                Errors.E534.format(
                    path=path, number=number, tokens=TOKENS, values=RECORD_VALUES
                )
            ) from None
        except Exception as error:  # any error of zlib, msgpack, numpy and spaCy
            raise SapbertError(
                Errors.E512.format(path=path, number=number, kind=type(error).__name__)
            ) from None
        if doc is None:
            return
        yield Document(f"{name}:{number}", text, doc)


def check_runs(documents: Iterable[Document]) -> Iterator[Document]:
    """Warn of documents with many punctuation characters in a row.

    spaCy's tokenizer takes brackets, quotes and symbols one by one off the ends of what
    is between two blanks, and copies the rest each time: 2,000 of them take half a
    second, 20,000 take a minute, and 1,000,000 days.

    RAISES (SapbertError): If a document has more than any that people write.
    """
    slow = 0
    for document in documents:
        # the Docs of a `.spacy` file have tokens
        text = document.text if document.doc is None else ""
        run = max((len(found) for found in RUN.findall(text)), default=0)
        values = {"id": document.id, "run": run}
        if run > MOST_RUN:
            raise SapbertError(Errors.E536.format(limit=MOST_RUN, **values))
        if run > SLOW_RUN:
            slow += 1
            if slow == 1:
                warnings.warn(Warnings.W531.format(**values), stacklevel=2)
        yield document
    if slow > 1:
        warnings.warn(Warnings.W532.format(count=slow, limit=SLOW_RUN), stacklevel=2)


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

    def read_file(path: Path, name: str) -> Iterator[Document]:
        if name.endswith(DOCS_SUFFIX):
            yield from read_docbin(path, name, vocab)
        elif name.endswith(LINE_SUFFIXES) or (path == STDIN and not one_text):
            for _, document, _ in read_json_lines(path, name, longest=longest):
                yield document
        else:
            yield Document(name, read_text(path, longest=longest))

    return check_runs(chain.from_iterable(starmap(read_file, list_inputs(paths))))
