"""Unpack `.zip` files into temporary folders, and name them in errors as they are."""

import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import ENOSPC
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir, mkdtemp
from weakref import finalize

from ..errors import SapbertError
from .reading import check_unpacked
from .temporary_db import no_temporary_space


def is_zip(path: Path) -> bool:
    return path.suffix.lower() == ".zip" and path.is_file()


class Unpacked:
    """The `.zip` files that were unpacked, into temporary folders.

    The folders are removed by `close`, or with this object.
    """

    def __init__(self) -> None:
        self.zips: dict[Path, Path] = {}  # by folder
        self.removals: list[Callable[[], object]] = []

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
            raise self.name(error) from None

    def name(self, error: SapbertError) -> SapbertError:
        """Return an error with the paths that were given."""
        for folder, path in reversed(self.zips.items()):
            error.text = error.text.replace(str(folder), str(path))
        error.args = error.code, error.text
        return error

    def close(self) -> None:
        for remove in self.removals:
            remove()
