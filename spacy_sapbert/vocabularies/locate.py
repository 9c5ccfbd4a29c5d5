"""Where the file of a release is: at any depth of a folder or of a `.zip`."""

import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from errno import ENOSPC
from fnmatch import translate
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir, mkdtemp
from weakref import finalize

from ..errors import SapbertError, refused_by_system
from ..io.reading import check_unpacked
from ..io.temporary_db import no_temporary_space

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


def is_zip(path: Path) -> bool:
    return path.suffix.lower() == ".zip" and path.is_file()


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


class Unpacked:
    """The `.zip` files that were unpacked, into temporary folders.

    The folders are removed by `close`, or with this object.
    """

    def __init__(self) -> None:
        self.zips: dict[Path, Path] = {}  # by folder
        self.removals: list[Callable[[], object]] = []

    def find(self, path: Path, rank: Rank, *, is_known: bool = False) -> list[Path]:
        """Return the file at a path or inside it; several if it is not known which.

        Args:
            path: A file, a folder, a `.zip`, or one with the path of a member after it:
                "icd.zip/codes.txt".
            is_known: See `list_best`.
        """
        archive = next((each for each in (path, *path.parents) if is_zip(each)), None)
        if archive is not None:
            path = self.unpack(archive) / path.relative_to(archive)
        files = [path]
        for _ in range(ZIPS):
            if not path.is_dir():
                return [path]
            files = list_best(path, rank, is_known=is_known)
            if len(files) != 1 or not is_zip(files[0]):
                return files
            path = self.unpack(files[0])
        return files

    def unpack(self, path: Path) -> Path:
        """Return a temporary folder with the content of a `.zip`."""
        try:
            folder = Path(mkdtemp(prefix="spacy-sapbert-"))
            self.removals.append(finalize(self, rmtree, folder, ignore_errors=True))
            self.zips[folder] = path
            with zipfile.ZipFile(path) as archive:
                size = sum(member.file_size for member in archive.infolist())
                check_unpacked(path, path.stat().st_size, size)
                archive.extractall(folder)
        except SapbertError:
            raise
        except Exception as error:  # zipfile raises almost any if a file is damaged
            reason = getattr(error, "strerror", None) or type(error).__name__
            if getattr(error, "errno", None) == ENOSPC:
                raise no_temporary_space(folder=gettempdir(), reason=reason) from None
            raise SapbertError(
                "E150",
                f"{path}: Expected a whole zip file without a password, but it cannot "
                f"be unpacked ({reason}). Fetch or copy the file again, or unpack it "
                "and pass the folder.",
            ) from None
        return folder

    @contextmanager
    def name_errors(self) -> Iterator[None]:
        """Name files in errors by the path that was given: icd.zip/codes.txt:3."""
        try:
            yield
        except SapbertError as error:
            for folder, path in reversed(self.zips.items()):
                error.text = error.text.replace(str(folder), str(path))
            error.args = error.code, error.text
            raise

    def close(self) -> None:
        for remove in self.removals:
            remove()


def list_some(texts: Iterable[object]) -> str:
    """Return texts for a message, the first of many."""
    listed = [*map(str, texts)]
    return ", ".join(listed[:SHOWN]) + " …" * (len(listed) > SHOWN)
