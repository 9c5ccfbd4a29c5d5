"""Where the files of a release are: at any depth of a folder or of a `.zip`."""

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from ..errors import SapbertError
from ..io.reading import check_unpacked

DEPTH = 5  # folders in each other

Matches = Callable[[Path], bool]  # whether a format has the names of a file or folder


def any_case(pattern: str) -> str:
    """Return a pattern of file names that matches in any case of its letters."""

    def both(match: re.Match[str]) -> str:
        mark, inside, dash = match[1] or "", match[2] or match[0], match[3] or ""
        if inside.lower() == inside.upper():
            return match[0]
        return f"[{mark}{inside.lower()}{inside.upper()}{dash}]"

    # a list of characters in brackets, or a letter
    return re.sub(r"\[(!?)([^]]+?)(-?)\]|[^\W\d_]", both, pattern)


def locate_release(path: Path, matches: Matches) -> Path:
    """Return the file or folder of a release that is at a path or inside it.

    Inside a folder it is the folder of a release that is nearest to the top, else the
    only file that has a format; the path itself if there is neither.
    """
    if not path.is_dir() or matches(path):
        return path
    folders = [each for each in walk(path) if each.is_dir() and matches(each)]
    if folders:
        return folders[0]
    files = [each for each in walk(path) if each.is_file() and matches(each)]
    return files[0] if len(files) == 1 else path


def walk(folder: Path) -> Iterator[Path]:
    """Yield the files and folders inside a folder, those nearest to the top first."""
    level = [folder]
    for _ in range(DEPTH):
        level = [
            inside
            for each in level
            if each.is_dir()
            for inside in sorted(each.iterdir())
            if not inside.name.startswith((".", "__MACOSX"))
        ]
        yield from level


def unpack_release(path: Path) -> "TemporaryDirectory[str]":
    """Unpack a `.zip` into a temporary folder, which is removed with the result."""
    folder = TemporaryDirectory(prefix="spacy-sapbert-")
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
            check_unpacked(path, path.stat().st_size, size)
            archive.extractall(folder.name)
    except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError) as error:
        raise SapbertError(
            "E150",
            f"{path}: Expected a whole zip file without a password, but it cannot be "
            f"unpacked ({type(error).__name__}). Fetch or copy the file again, or "
            "unpack it and pass the folder.",
        ) from None
    return folder
