"""Find the files of an input and their formats: by the ending, else by the content."""

import json
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ...errors import SapbertError
from ...io.reading import UTF8_MARK, check_file, read_blocks
from ...io.system import STREAM
from ..documents import STDIN_NAME
from ..format_table import file_ending, list_formats

TEXT, BRAT, JSON_LINES = "text", "brat", "jsonl"
# what files with an ending of another format are too, by their content
OTHERS = {(".json", JSON_LINES), (".xml", "inception")}
HEAD_BYTES = 1 << 16  # that are read to detect a format
# what a folder has if it is a pipeline or an encoder; a knowledge base has versions
MODELS = (
    ("meta.json", "config.cfg"),
    ("config.json", "tokenizer.json"),
    ("config.json", "vocab.txt"),
)
KB_FILE, KB_VERSION = "CURRENT", re.compile(r"v\d+")


class InputFile(NamedTuple):
    """A file of an input; `-` = the standard input, of brat e.g. the `.ann` file.

    The ids of its documents are made of `name`: the file name, or its path in the
    folder.
    """

    path: Path
    name: str
    format: str


def read_head(path: Path) -> bytes:
    """Return the first bytes of a file, unpacked; less if it is damaged."""
    head = b""
    try:
        for block in read_blocks([path]):
            head += block
            if len(head) >= HEAD_BYTES:
                break
    except (EOFError, zlib.error):
        pass  # an error with the line, when it is read
    return head[:HEAD_BYTES].removeprefix(UTF8_MARK)


def is_json_line(head: bytes) -> bool:
    """Return whether a text begins with a JSON object in one line, maybe a long one."""
    line, end, _ = head.lstrip().partition(b"\n")
    if not end and len(head) == HEAD_BYTES:
        return line.startswith(b"{")
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def detect_content(path: Path) -> str | None:
    """Return the format by the first bytes of a file; None if none is recognised."""
    head = read_head(path)
    for name, format in list_formats("content").items():
        if re.match(format.content.encode(), head, re.DOTALL):
            return name
    return JSON_LINES if is_json_line(head) else None


def list_standoff() -> dict[str, str]:
    """Return the formats with a file beside each text, and its ending."""
    return {name: format.folder for name, format in list_formats("folder").items()}


def detect_format(path: Path) -> str:
    """Return the format of a file that is there, by its ending or its content.

    A `.txt` file is brat if it has an `.ann` file beside it, and so on.
    """
    ending = file_ending(path)
    formats = list_formats("endings")
    usual = [name for name, format in formats.items() if ending in format.endings]
    if path.suffix == ".txt":
        for name, beside in list_standoff().items():
            if path.with_suffix(beside).is_file():
                return name
    if len(usual) == 1 and ending not in {other for other, _ in OTHERS}:
        return usual[0]
    detected = detect_content(path)
    if usual and detected not in usual and (ending, detected) not in OTHERS:
        return usual[0]
    if detected is None:
        known = ", ".join(formats)
        raise SapbertError(
            "E110",
            f"Expected documents in one of the formats {known}, but neither the "
            f"ending nor the content of {path} is that of one. Pass its format as "
            "`--input-format`, or convert it.",
        )
    return detected


def check_format(format: str | None, what: str, known: Iterable[str]) -> None:
    if format not in (None, *known):
        raise SapbertError(
            "E110",
            f"Expected {what} in one of the formats {', '.join(known)}, but got "
            f"{format}. Correct `--input-format`.",
        )


def choose_file(path: Path, name: str, format: str | None) -> InputFile:
    check_file(path)
    format = format or detect_format(path)
    if beside := list_standoff().get(format):
        path = path.with_suffix(beside)
        name = Path(name).with_suffix(".txt").as_posix()
        check_file(path)
        check_file(path.with_suffix(".txt"))
    return InputFile(path, name, format)


def is_model(folders: Iterable[str], files: Iterable[str]) -> bool:
    """Return whether a folder is a knowledge base, a pipeline or an encoder."""
    found = {*files}
    if KB_FILE in found and any(map(KB_VERSION.fullmatch, folders)):
        return True
    return any(found.issuperset(names) for names in MODELS)


def walk_folder(folder: Path, left_out: Counter[str]) -> Iterator[Path]:
    """Yield the files in a folder and below, sorted.

    Hidden files and folders, and folders of models, are counted in `left_out`.
    """
    paths: list[Path] = []
    for parent, folders, files in os.walk(folder, followlinks=False):
        if is_model(folders, files):
            left_out["of knowledge bases or models"] += 1
            folders.clear()
            continue
        shown = [name for name in (*folders, *files) if not name.startswith(".")]
        left_out["hidden"] += len(folders) + len(files) - len(shown)
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += (Path(parent, name) for name in files if not name.startswith("."))
    return iter(sorted(paths))


def is_unfinished(name: str) -> bool:
    """Return whether a file of a table is one that an engine has not finished."""
    return any(part.startswith("_") and "=" not in part for part in Path(name).parts)


def list_files(
    path: Path, format: str | None, left_out: Counter[str]
) -> list[InputFile]:
    """Return a file, or the files of a folder with the ending of the format, sorted.

    Without a format those with the ending of the folder, if that is one of a table,
    else all `.txt` files.
    """
    if path == STREAM:
        check_format(format, "the standard input", list_formats("streamed"))
        return [InputFile(path, STDIN_NAME, format or JSON_LINES)]
    if not path.is_dir():
        return [choose_file(path, path.name, format)]
    # engines write a table as a folder with the name of a file
    tables = list_formats("rows")
    format = format or next(
        (f for f in tables if path.suffix in tables[f].endings), None
    )
    endings = list_formats()[format or TEXT].endings
    files = [
        choose_file(file, file.relative_to(path).as_posix(), format)
        for file in walk_folder(path, left_out)
        if file_ending(file) in endings and file.is_file()
    ]
    if format in tables:
        files = [file for file in files if not is_unfinished(file.name)]
    if not files:
        expected = " or ".join(f"`{ending}`" for ending in endings)
        raise SapbertError(
            "E106",
            f"Expected files that end with {expected}, also with `.gz`, in {path}, "
            "but found none, without hidden files, knowledge bases and other models. "
            "Pass the format of its files as `--input-format`, or name the files.",
        )
    return files


def list_inputs(
    paths: Iterable[Path],
    format: str | None = None,
    *,
    left_out: Counter[str] | None = None,
) -> list[InputFile]:
    """Return the files of all inputs; see `list_files`."""
    check_format(format, "documents", list_formats("endings"))
    counts = Counter[str]() if left_out is None else left_out
    files = [file for path in paths for file in list_files(path, format, counts)]
    if sum(file.path == STREAM for file in files) > 1:
        raise SapbertError(
            "E423",
            "Expected the standard input, `-`, once, but got it twice. Pass it once.",
        )
    return files


def count_documents(files: Iterable[InputFile]) -> int | None:
    """Return the number of documents, or None if it needs more than a look at a file.

    Lines of plain JSONL are counted, which takes a second for some gigabytes.
    """
    total = 0
    for path, _, format in files:
        if format == TEXT or format in list_standoff():
            total += 1
        elif format == JSON_LINES and path != STREAM and path.suffix != ".gz":
            total += sum(block.count(b"\n") for block in read_blocks([path]))
        elif format == "parquet":
            from ...io.tables.parquet import count_rows

            total += count_rows(path)
        else:
            return None
    return total
