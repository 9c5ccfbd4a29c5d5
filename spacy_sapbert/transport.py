"""A knowledge base as a copy in another folder, or as bytes."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Dict

from .kb import KnowledgeBase
from .meta import FILE, read_meta
from .writing import write_folder_atomically


def copy_kb(kb: KnowledgeBase, folder: Path) -> None:
    """Copy a knowledge base; over itself nothing happens.

    kb (KnowledgeBase): The knowledge base.
    folder (Path): Where to; replaced as a whole.
    RAISES (SapbertError): If the system refuses, e.g. a full disk.
    """
    if kb.folder.resolve() == folder.resolve():
        return
    with write_folder_atomically(folder) as part:
        shutil.copytree(kb.folder, part, dirs_exist_ok=True)


def kb_to_files(kb: KnowledgeBase) -> Dict[str, bytes]:
    """Read all files of a knowledge base into memory.

    kb (KnowledgeBase): The knowledge base.
    RETURNS (Dict[str, bytes]): By relative path.
    """
    return {name: (kb.folder / name).read_bytes() for name in (FILE, *kb.meta["files"])}


def unpack_kb(files: Dict[str, bytes]) -> TemporaryDirectory:
    """Write the files of a knowledge base into a temporary folder.

    files (Dict[str, bytes]): From `kb_to_files`; what meta.json does not name is left
        out, and it names no place outside of the folder.
    RETURNS (TemporaryDirectory): The folder, which lasts as long as this object.
    RAISES (SapbertError): If meta.json is missing or damaged.
    """
    temporary: TemporaryDirectory = TemporaryDirectory(prefix="sapbert-kb-")
    folder = Path(temporary.name)
    if FILE in files:
        (folder / FILE).write_bytes(files[FILE])
    for name in read_meta(folder)["files"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(files.get(name, b""))
    return temporary
