"""The files of a release folder."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...errors import missing_in_folder
from ...io.reading import read_lines
from ..locate import any_case
from ..report import Report
from .delimited import read_columns

DEPTH = 4  # folders in each other; those of SNOMED CT have 3
ENDINGS = ("", ".gz")


def find_files(folder: Path, pattern: str) -> list[Path]:
    """Return the files of a release with a name, sorted.

    Args:
        pattern: Of the name in any case, without `.gz`, in the folder or in folders
            inside it.
    """
    for depth in range(DEPTH):
        for ending in ENDINGS:
            found = folder.glob("*/" * depth + any_case(pattern + ending))
            if files := sorted(file for file in found if file.is_file()):
                return files
    return []


def release_folder(path: Path, *inner: str) -> Path:
    """Return the folder of a release, of which a file may be given.

    Args:
        inner: Names of the folders in which that file may be.
    """
    if path.is_dir():
        return path
    folder = path.parent
    return folder.parent if folder.name in inner else folder


def has_commas(path: Path) -> bool:
    """Return whether the first line of a table has commas in place of tabs."""
    (_, header) = next(read_lines(path), (0, ""))
    return "," in header and "\t" not in header


class Release:
    """The tables of a release, each with columns by name.

    Args:
        path: The folder, or its main table.
        main: Pattern of the name of the main table, without which nothing is read.
        inner: Names of the folders in which the main table may be.
        separator: Where the main table has no tabs, commas separate instead.
    """

    def __init__(
        self,
        path: Path,
        main: str,
        report: Report,
        *,
        inner: Sequence[str] = (),
        separator: str = "\t",
        quoted: bool = False,
    ) -> None:
        self.folder = release_folder(path, *inner)
        self.report, self.separator, self.quoted = report, separator, quoted
        # a file that is named is read, whatever its name
        self.named = {} if path.is_dir() else {main: [path]}
        files = self.find(main)
        if not files:
            raise missing_in_folder(file=main, folder=path)
        if separator == "\t" and has_commas(files[0]):
            self.separator, self.quoted = ",", True

    def find(self, pattern: str) -> list[Path]:
        """Return the files with a name; see `find_files`."""
        return self.named.get(pattern) or find_files(self.folder, pattern)

    def read(
        self,
        pattern: str,
        columns: Sequence[str],
        missing: str = "",
        *,
        optional: Sequence[str] = (),
    ) -> Iterator[list[str]]:
        """Read columns of all files with a name.

        Args:
            missing: What is not known without them, for a note.

        Yields:
            See `read_columns`.
        """
        files = self.find(pattern)
        if not files and missing:
            self.report.notes.append(f"{pattern} is not there: {missing}.")
        for file in files:
            rows = read_columns(
                file,
                columns,
                self.report,
                separator=self.separator,
                quoted=self.quoted,
                optional=optional,
            )
            for _, row in rows:
                yield row
