"""Copies of a knowledge base: in another folder, or as bytes."""

import shutil
from pathlib import Path

from ...system.forks import TemporaryFolder
from ...system.writing import write_folder_atomically
from ..knowledge_base import KnowledgeBase
from .manifest import FILE, OVERLAY_FOLDER, read_manifest


def copy_kb(kb: KnowledgeBase, folder: Path) -> None:
    """Copy a knowledge base to a folder, which is replaced if it exists.

    RAISES (SapbertError): If the system refuses, e.g. because the disk is full.
    """
    if kb.folder.resolve() == folder.resolve():
        return
    with write_folder_atomically(folder) as part:
        copy_files(kb.folder, part)


def copy_files(source: Path, target: Path) -> None:
    """Copy the files of a knowledge base without old overlays and temporary files."""
    overlay = read_manifest(source).overlay

    def find_leftovers(place: str, names: list[str]) -> set[str]:
        if Path(place) != source:
            return set()
        old = {n for n in names if OVERLAY_FOLDER.fullmatch(n)}
        parts = {n for n in names if n.startswith(".") and n.endswith(".tmp")}
        return (old | parts) - {overlay.folder if overlay else ""}

    shutil.copytree(source, target, ignore=find_leftovers, dirs_exist_ok=True)


def kb_to_files(kb: KnowledgeBase) -> dict[str, bytes]:
    """Read all files of a knowledge base into memory, by relative path."""
    # The folder may be newer than the opened knowledge base.
    names = read_manifest(kb.folder).files
    return {name: (kb.folder / name).read_bytes() for name in (FILE, *names)}


def unpack_kb(files: dict[str, bytes]) -> TemporaryFolder:
    """Write the files of a knowledge base into a temporary folder.

    files (dict[str, bytes]): From `kb_to_files`; files that are not in meta.json are
        left out.
    RETURNS (TemporaryFolder): Removes the folder when it is deleted.
    RAISES (SapbertError): If meta.json is missing, damaged or has a file outside of
        the folder.
    """
    temporary = TemporaryFolder(prefix="sapbert-kb-")
    folder = temporary.path
    if FILE in files:
        (folder / FILE).write_bytes(files[FILE])
    for name in read_manifest(folder).files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(files.get(name, b""))
    return temporary
