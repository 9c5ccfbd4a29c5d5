"""Output in parts, each written atomically, so that an interrupted run can resume.

A part that is not in `_state.json` is written again.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count, islice
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from ..errors import SapbertError, not_written
from ..io.system import lock_handle, open_folder
from ..io.writing import locked, write_atomically, write_json
from .documents import Document

STATE_FILE = "_state.json"

# Writes documents to a file, and counts what it wrote and what `FAILED`.
WritePart = Callable[[Iterator[Document], Any], dict[str, int]]
FAILED = "failed"  # documents that a part lacks because a component failed
FileName = Annotated[str, Field(pattern=r"^[^/\\]*$")]  # files of it are removed


class Shard(TypedDict):
    """A part that is complete; `documents` is how many of the input it is made of."""

    file: FileName
    documents: int
    bytes: int
    input: str
    counts: dict[str, int]


class OutputState(TypedDict):
    """The content of `_state.json`; `command` has all options that change the parts."""

    version: Literal[1]
    command: dict[str, Any]
    suffix: FileName
    parts: list[Shard]
    finished: bool


OUTPUT_STATE = TypeAdapter(OutputState)


def part_name(number: int, suffix: str) -> str:
    """Return the file name of a part, from 0; names sort as the parts do."""
    return f"part-{number:05}{suffix}"


def digest_document(document: Document) -> bytes:
    """Return the sha256 of the id, text, entities and fields of a document."""
    spans: list[Any] = []
    if document.doc is not None:
        groups = {"": document.doc.ents, **document.doc.spans}
        spans = [
            [key, span.start_char, span.end_char, span.label_]
            for key, group in sorted(groups.items())
            for span in group
        ]
    if document.mentions is not None:
        spans = [list(span) for span in document.mentions]
    data = json.dumps([document.id, document.text, spans, document.fields])
    return hashlib.sha256(data.encode()).digest()


def pass_documents(documents: Iterable[Document], seen: Any) -> Iterator[Document]:
    """Yield the documents, and update the hash `seen` with each."""
    for document in documents:
        seen.update(digest_document(document))
        yield document


def read_state(folder: Path) -> OutputState | None:
    """Read the state of an output; None if the folder is empty."""
    path = folder / STATE_FILE
    if not path.exists():
        # left by a run that was killed before its first state was written
        started = f".{STATE_FILE}."
        if any(not entry.name.startswith(started) for entry in folder.iterdir()):
            raise other_files(path=folder)
        return None
    with suppress(OSError, ValidationError):
        if path.is_file():  # reading a pipe would block
            return OUTPUT_STATE.validate_json(path.read_bytes(), strict=True)
    raise SapbertError(
        "E560",
        f"{path}: Expected the state of an output in parts, but it cannot be read. "
        "Pass another `--output`, or remove the folder.",
    )


def open_state(folder: Path, command: dict[str, Any], *, force: bool) -> OutputState:
    """Return the state of an output in parts, which `lock_folder` has locked.

    `command` is every option that changes the parts, as JSON. `force` starts again.
    """
    state = read_state(folder)
    command = json.loads(json.dumps(command))
    if state is not None and not force:
        old = state["command"]
        differing = [key for key in command if old.get(key) != command[key]]
        differing += [key for key in old if key not in command]
        if differing:
            settings = ", ".join(f"`{key}`" for key in differing)
            raise SapbertError(
                "E560",
                f"Expected {folder} to be written by this command, but it was started "
                f"with another {settings}. Pass another `--output`, the old settings, "
                "or `--force`.",
            )
        return state
    if state is not None:
        # The parts before the state that lists them; the last may not be listed yet.
        names = [part["file"] for part in state["parts"]]
        for name in [*names, part_name(len(names), state["suffix"])]:
            (folder / name).unlink(missing_ok=True)
    return {
        "version": 1,
        "command": command,
        "suffix": "",
        "parts": [],
        "finished": False,
    }


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Create a folder, and lock it against other runs, if the system has locks."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = open_folder(folder)
    except FileExistsError:
        raise other_files(path=folder) from None
    except OSError as error:
        raise not_written(path=folder, reason=error.strerror) from None
    try:
        if lock_handle(handle) is False:
            raise locked(path=folder)
        yield
    finally:
        os.close(handle)


def check_part(folder: Path, part: Shard, documents: Iterable[Document]) -> None:
    """Check that a part exists, and that its documents have not changed."""
    path = folder / part["file"]
    size = path.stat().st_size if path.is_file() else None
    if size != part["bytes"]:
        state = "there is none" if size is None else f"it has {size}"
        expected = part["bytes"]
        raise SapbertError(
            "E560",
            f"Expected {path} with {expected} bytes, as it was written, but {state}. "
            "Restore it, or pass `--force` to start again.",
        )
    seen = hashlib.sha256()
    for _ in pass_documents(documents, seen):
        pass
    if seen.hexdigest() != part["input"]:
        raise other_input(path=path)


def write_parts(
    folder: Path,
    state: OutputState,
    documents: Iterable[Document],
    *,
    size: int,
    suffix: str,
    write_part: WritePart,
) -> None:
    """Write the parts that are missing; after each, the state is written.

    The folder is locked by `lock_folder`. After an error the state lists the parts that
    are complete.
    """
    state_file = folder / STATE_FILE
    stream = iter(documents)
    for part in state["parts"]:
        check_part(folder, part, islice(stream, part["documents"]))
    if not state["parts"]:
        state["suffix"] = suffix
        write_json(state_file, state)
    for number in count(len(state["parts"])):
        first = next(stream, None)
        if first is None:
            break
        if state["finished"]:
            last = folder / state["parts"][-1]["file"] if number else folder
            raise other_input(path=last)
        path = folder / part_name(number, suffix)
        seen = hashlib.sha256()
        rest = chain([first], islice(stream, size - 1))
        with write_atomically(path) as file:
            counts = write_part(pass_documents(rest, seen), file)
        state["parts"].append(
            {
                "file": path.name,
                "documents": counts["documents"] + counts.get(FAILED, 0),
                "bytes": path.stat().st_size,
                "input": seen.hexdigest(),
                "counts": counts,
            }
        )
        write_json(state_file, state)
    if not state["finished"]:
        state["finished"] = True
        write_json(state_file, state)


def other_files(*, path: object) -> SapbertError:
    return SapbertError(
        "E560",
        f"Expected {path} to be an empty folder, or an output of this command, but it "
        "has other files, which were not changed. Pass another `--output`.",
    )


def other_input(*, path: object) -> SapbertError:
    return SapbertError(
        "E560",
        f"Expected the documents from which {path} was written, but the input has "
        "changed. Restore the input, or pass `--force` to start again.",
    )
