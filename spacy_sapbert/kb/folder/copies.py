"""Copies of a version: in another folder, or as bytes."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from ...io.forks import TemporaryFolder
from ...io.writing import CURRENT, copy_file, has_shared_permissions, link_file
from .layout import FILE, PARTS
from .publication import (
    LOCK_WAIT,
    draft_version,
    lock_kb,
    open_target,
    use_version,
)
from .records import FileRecord
from .versions import Version, format_manifest, parse_manifest, read_version

if TYPE_CHECKING:
    from ..knowledge_base import KnowledgeBase

ONLY = "v1"  # the version of a copy


def copy_version(
    version: Version, root: Path, *, current: bool = True, link: bool = False
) -> Version:
    """Publish a copy of a version in a folder of `open_target`; see `Draft.publish`.

    Files that the knowledge base there already has are not copied.

    Args:
        link: The copy has hard links to the files, where the disk allows it: nothing
            changes a published file in its place. Files with permissions of their own
            are copied, since both names would get those of the copy.
    """
    files, there = version.manifest.files, dict[str, FileRecord]()
    if (root / CURRENT).is_file():
        old = read_version(root)
        if old.manifest.digest == version.manifest.digest:
            return old
        there = old.keep(overlay=True)
    kept = {
        name: there[name]
        for name, record in files.items()
        if name in there and there[name].sha256 == record.sha256
    }
    for part in PARTS:
        names = {name for name in {*there, *files} if part.may_have(name)}
        if part.others and not names <= kept.keys():
            kept = {n: record for n, record in kept.items() if n not in names}
    with draft_version(root) as draft:
        for name in files.keys() - kept.keys():
            source, target = version.path(name), draft.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            may_link = link and has_shared_permissions(source)
            (link_file if may_link else copy_file)(source, target)
        draft.describe(version.manifest, kept)
        return draft.publish(current=current)


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
    manifest = parse_manifest(contents.get(FILE, b""), FILE)
    own = {n: r.model_copy(update={"version": None}) for n, r in manifest.files.items()}
    manifest = manifest.model_copy(update={"files": own})
    for name in own:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents.get(name, b""))
    (folder / FILE).write_bytes(format_manifest(manifest)[0])
    use_version(folder.parent, ONLY)
    return temporary
