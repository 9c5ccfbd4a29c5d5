"""Copies of a knowledge base: in another folder, or as bytes."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from ...io.forks import TemporaryFolder
from ..folder.publication import (
    LOCK_WAIT,
    copy_version,
    lock_kb,
    open_target,
    use_version,
)
from ..folder.records import CURRENT, FILE
from ..folder.versions import format_manifest, own_files, parse_manifest, read_version

if TYPE_CHECKING:
    from ..knowledge_base import KnowledgeBase

ONLY = "v1"  # the version of a copy


def save_copy(kb: "KnowledgeBase", folder: Path) -> None:
    """Copy the opened version of a knowledge base to a folder, which uses it then.

    If the folder is a different knowledge base, it gets a new version.
    """
    if kb.folder.resolve() == folder.resolve():
        if read_version(folder).manifest.digest != kb.manifest.digest:
            with lock_kb(folder, wait=LOCK_WAIT):
                kb.version.check()
                use_version(folder, kb.version.name)
        return
    with ExitStack() as stack:
        root = stack.enter_context(open_target(folder))
        if (root / CURRENT).exists():
            stack.enter_context(lock_kb(root, wait=LOCK_WAIT))
        copy_version(kb.version, root)


def kb_to_files(kb: "KnowledgeBase") -> dict[str, bytes]:
    """Read all files of a version into memory, by relative path."""
    files = {name: kb.version.path(name).read_bytes() for name in kb.manifest.files}
    return {FILE: format_manifest(kb.manifest)[0], **files}


def unpack_kb(contents: dict[str, bytes]) -> TemporaryFolder:
    """Write the files of `kb_to_files` into a temporary folder.

    Files that are not in meta.json are left out. The folder is removed when the object
    is deleted.
    """
    temporary = TemporaryFolder(prefix="sapbert-kb-")
    folder = temporary.path.resolve() / ONLY
    manifest = own_files(parse_manifest(contents.get(FILE, b""), FILE))
    for name in manifest.files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents.get(name, b""))
    (folder / FILE).write_bytes(format_manifest(manifest)[0])
    use_version(folder.parent, ONLY)
    return temporary
