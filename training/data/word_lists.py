"""Files of word translations, plain, `.gz`, or in a zip as they are published."""

import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from training.errors import Errors, SapbertError
from spacy_sapbert.system.reading import BLOCK_BYTES, check_file, read_blocks

# What the reader of a zip raises for one that is damaged, cut, encrypted or of another
# method.
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError)


class WordList(NamedTuple):
    """A file, wherever it lies.

    path (Path): The file; in a zip, the zip and the name in it.
    blocks (Callable[[], Iterator[bytes]]): Reads it, from its start.
    """

    path: Path
    blocks: Callable[[], Iterator[bytes]]


def read_member(path: Path, name: str) -> Iterator[bytes]:
    """Read a file in a zip; nothing is unpacked to the disk.

    path (Path): The zip.
    name (str): The file in it.
    YIELDS (bytes): At most `BLOCK_BYTES`, never empty.
    RAISES (SapbertError): If the zip is damaged, or encrypted.
    """
    try:
        with zipfile.ZipFile(path) as archive, archive.open(name) as file:
            while block := file.read(BLOCK_BYTES):
                yield block
    except DAMAGE as error:
        raise SapbertError(
            Errors.E774.format(path=path / name, reason=type(error).__name__)
        ) from None


def list_files(paths: Sequence[Path], choose: Callable[[str], bool]) -> list[WordList]:
    """List files, and those in zips.

    paths (Sequence[Path]): Files and zips.
    choose (Callable[[str], bool]): Whether a file of a zip is wanted, by its name in
        it; hidden files and those of macOS are not.
    RETURNS (list[WordList]): In the order of the paths, and of the zip.
    RAISES (SapbertError): If a file is not there, or a zip damaged or without files
        that are wanted.
    """
    files: list[WordList] = []
    for path in paths:
        check_file(path)
        if path.suffix != ".zip":
            files.append(WordList(path, partial(read_blocks, [path])))
            continue
        try:
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
        except DAMAGE as error:
            raise SapbertError(
                Errors.E774.format(path=path, reason=type(error).__name__)
            ) from None
        wanted = [
            name
            for name in names
            if not name.endswith("/")
            and not name.startswith("__MACOSX/")
            and not name.rpartition("/")[2].startswith(".")
            and choose(name)
        ]
        if not wanted:
            raise SapbertError(Errors.E775.format(path=path))
        files += [WordList(path / n, partial(read_member, path, n)) for n in wanted]
    return files
