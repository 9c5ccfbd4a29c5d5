"""Where the file of a release is: at any depth of a folder or of a `.zip`."""

import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import translate
from functools import cache
from pathlib import Path

from ..errors import SapbertError, refused_by_system
from ..io.unpacking import Unpacked, is_zip

DEPTH = 12  # folders in each other; those of SNOMED CT have 4
MOST_FILES = 100_000
# What systems and programs put beside files, and what a release of ICD-10-CM changed
JUNK = re.compile(r"\.|__MACOSX|~\$|(?:icd10.*|order|codes)[-_ ]addenda", re.IGNORECASE)
ZIPS = 3  # in each other
ZIP = 1 << 30  # rank of a `.zip` in a folder: after all formats
SHOWN = 10  # files in an error

# How well a file fits, the lowest is best; None = it is not meant
Rank = Callable[[Path], tuple[int, int] | None]


@cache
def compile_name(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern), re.IGNORECASE)


def has_name(path: Path, pattern: str) -> bool:
    """Return whether a file has a name, in any case, with or without `.gz`."""
    match, name = compile_name(pattern).match, path.name
    plain = name[:-3] if name.lower().endswith(".gz") else name
    return bool(match(name) or match(plain))


def list_folder(folder: Path) -> list[Path]:
    """Return the files and folders in a folder, sorted, without junk."""
    try:
        inside = sorted(folder.iterdir())
    except OSError as error:
        raise refused_by_system(path=folder, reason=error.strerror) from None
    return [path for path in inside if not JUNK.match(path.name)]


def walk(folder: Path) -> Iterator[Path]:
    """Yield the files inside a folder, those nearest to the top first."""
    level, count = [folder], 0
    for _ in range(DEPTH):
        inside = [path for each in level for path in list_folder(each)]
        count += len(inside)
        if count > MOST_FILES:
            raise SapbertError(
                "E007",
                f"{folder}: Expected the folder of a release, with at most "
                f"{MOST_FILES:,} files, but got more. Name the file or the folder.",
            )
        yield from (path for path in inside if path.is_file())
        level = [path for path in inside if path.is_dir()]


def list_best(folder: Path, rank: Rank, *, is_known: bool) -> list[Path]:
    """Return the files inside a folder that fit best, those nearest to the top.

    Args:
        is_known: The format is known, so any file is meant if none has a rank.
    """
    files = [*walk(folder)]
    ranked = [((ZIP, 0) if is_zip(file) else rank(file), file) for file in files]
    if is_known and not any(key for key, _ in ranked):
        ranked = [((ZIP, 0), file) for file in files]
    keys = [((*key, len(file.parts)), file) for key, file in ranked if key]
    best = min((key for key, _ in keys), default=None)
    return [file for key, file in keys if key == best]


def find_best(
    path: Path, rank: Rank, unpacked: Unpacked, *, is_known: bool = False
) -> list[Path]:
    """Return the file at a path or inside it; several if it is not known which.

    Args:
        path: A file, a folder, a `.zip`, or one with the path of a member after it:
            "icd.zip/codes.txt".
        unpacked: Gets the folder of a `.zip`.
        is_known: See `list_best`.
    """
    archive = next((each for each in (path, *path.parents) if is_zip(each)), None)
    if archive is not None:
        path = unpacked.unpack(archive) / path.relative_to(archive)
    files = [path]
    for _ in range(ZIPS):
        if not path.is_dir():
            return [path]
        files = list_best(path, rank, is_known=is_known)
        if len(files) != 1 or not is_zip(files[0]):
            return files
        path = unpacked.unpack(files[0])
    return files


def list_some(texts: Iterable[object]) -> str:
    """Return texts for a message, the first of many."""
    listed = [*map(str, texts)]
    return ", ".join(listed[:SHOWN]) + " …" * (len(listed) > SHOWN)
