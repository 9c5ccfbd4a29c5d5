"""A knowledge base as a copy in another folder, or as bytes."""

import shutil
from pathlib import Path

from ..system.forks import TemporaryFolder
from ..system.writing import write_folder_atomically
from .knowledge_base import KnowledgeBase
from .manifest import FILE, OVERLAY_FOLDER, read_meta
from .overlay_files import overlay_folder


def copy_kb(kb: KnowledgeBase, folder: Path) -> None:
    """Copy a knowledge base; over itself nothing happens.

    kb (KnowledgeBase): The knowledge base.
    folder (Path): Where to; replaced as a whole.
    RAISES (SapbertError): If the system refuses, e.g. a full disk.
    """
    if kb.folder.resolve() == folder.resolve():
        return
    with write_folder_atomically(folder) as part:
        copy_files(kb.folder, part)


def copy_files(source: Path, target: Path) -> None:
    """Copy the files of a knowledge base, without what is left of changing it.

    source (Path): Its folder.
    target (Path): Where to; it may be there, and empty.
    """
    overlay = overlay_folder(source, read_meta(source))

    def find_leftovers(place: str, names: list[str]) -> set[str]:
        if Path(place) != source:
            return set()
        old = {n for n in names if OVERLAY_FOLDER.fullmatch(n)}
        parts = {n for n in names if n.startswith(".") and n.endswith(".tmp")}
        return (old | parts) - {overlay.name if overlay else ""}

    shutil.copytree(source, target, ignore=find_leftovers, dirs_exist_ok=True)


def kb_to_files(kb: KnowledgeBase) -> dict[str, bytes]:
    """Read all files of a knowledge base into memory.

    kb (KnowledgeBase): The knowledge base.
    RETURNS (dict[str, bytes]): By relative path.
    """
    # What lies there now, which may be newer than what is open.
    names = read_meta(kb.folder)["files"]
    return {name: (kb.folder / name).read_bytes() for name in (FILE, *names)}


def unpack_kb(files: dict[str, bytes]) -> TemporaryFolder:
    """Write the files of a knowledge base into a temporary folder.

    files (dict[str, bytes]): From `kb_to_files`; what meta.json does not name is left
        out, and it names no place outside of the folder.
    RETURNS (TemporaryFolder): The folder, which lasts as long as this object.
    RAISES (SapbertError): If meta.json is missing or damaged.
    """
    temporary = TemporaryFolder(prefix="sapbert-kb-")
    folder = temporary.path
    if FILE in files:
        (folder / FILE).write_bytes(files[FILE])
    for name in read_meta(folder)["files"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(files.get(name, b""))
    return temporary
