"""Checksums of the open vocabularies that `project assets` fetches."""

from pathlib import Path

import typer

from spacy_sapbert.errors import Errors, SapbertError
from spacy_sapbert.system.reading import file_digest
from spacy_sapbert.system.terminal import msg


def check_assets(
    checksums: Path = typer.Argument(
        ..., help="A sha256, two blanks and a path in each line, as of sha256sum."
    ),
) -> None:
    """Compare the files that are there with their sha256; Weasel has only MD5.

    Example: python -m training check-assets assets/checksums.sha256
    """
    checked, absent = compare_checksums(checksums)
    msg.good(f"{checked} files are as they were published, {absent} are not here")


def compare_checksums(checksums: Path) -> tuple[int, int]:
    """Compare files with their checksums.

    checksums (Path): Paths in it are relative to the working directory.
    RETURNS (tuple[int, int]): Number of equal files, and of files that are not there.
    RAISES (SapbertError): If a file has another checksum, or a line is no checksum.
    """
    checked = absent = 0
    for number, line in enumerate(checksums.read_text("utf8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        expected, blanks, name = line.partition("  ")
        if not blanks or len(expected) != 64:
            raise SapbertError(Errors.E426.format(path=checksums, line=number))
        path = Path(name)
        if not path.is_file():
            absent += 1
        elif (got := file_digest(path)) != expected:
            values = {"path": path, "expected": expected, "got": got}
            raise SapbertError(Errors.E425.format(checksums=checksums, **values))
        else:
            checked += 1
    return checked, absent
