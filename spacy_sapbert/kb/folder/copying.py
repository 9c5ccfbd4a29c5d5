"""Copies of a knowledge base: in another folder, or as bytes."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import Errors, SapbertError
from ...system.forks import TemporaryFolder
from .manifest import format_manifest, read_manifest, replace_kb, write_manifest
from .records import FILE

if TYPE_CHECKING:
    from ..knowledge_base import KnowledgeBase


def copy_kb(kb: "KnowledgeBase", folder: Path) -> None:
    """Copy a knowledge base to a folder, which is replaced if it exists.

    Only the files of meta.json are copied, as they were when they were verified.

    RAISES (SapbertError): If the system refuses, e.g. because the disk is full.
    """
    if kb.folder.resolve() == folder.resolve():
        return
    with replace_kb(folder) as part:
        copy_files(kb, part)


def copy_files(kb: "KnowledgeBase", target: Path) -> None:
    """Copy the files of a knowledge base into a folder."""
    for name in kb.files.files:
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with kb.files.open(name) as source, open(path, "wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
    write_manifest(target, kb.manifest)


def kb_to_files(kb: "KnowledgeBase") -> dict[str, bytes]:
    """Read all files of a knowledge base into memory, by relative path."""
    contents = {FILE: format_manifest(kb.manifest)}
    for name in kb.files.files:
        with kb.files.open(name) as file:
            contents[name] = file.read()
    return contents


def unpack_kb(contents: dict[str, bytes]) -> TemporaryFolder:
    """Write the files of a knowledge base into a temporary folder.

    contents (dict[str, bytes]): From `kb_to_files`; files that are not in meta.json are
        left out.
    RETURNS (TemporaryFolder): Removes the folder when it is deleted.
    RAISES (SapbertError): If meta.json is missing, damaged or has a file that no
        knowledge base has.
    """
    temporary = TemporaryFolder(prefix="sapbert-kb-")
    folder = temporary.path.resolve()
    if FILE in contents:
        (folder / FILE).write_bytes(contents[FILE])
    for name in read_manifest(folder).files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.resolve().is_relative_to(folder):
            raise SapbertError(Errors.E306.format(path=name, reason="it is outside"))
        path.write_bytes(contents.get(name, b""))
    return temporary
