"""The files of a release folder."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...errors import missing_in_folder
from ..locate import has_name, walk
from ..report import Report
from .delimited import read_rows, select_columns


def find_files(folder: Path, pattern: str) -> list[Path]:
    """Return the files of a release with a name, sorted, those nearest to the top.

    Args:
        pattern: Of the name, see `has_name`, in the folder or in folders inside it.
    """
    files = [file for file in walk(folder) if has_name(file, pattern)]
    depth = len(files[0].parts) if files else 0
    return [file for file in files if len(file.parts) == depth]


class Release:
    """The tables of a release, each with columns by name, with tabs or else quoted.

    Args:
        path: Its main table, or any file with the name of one.
        main: Pattern of the name of the main table.
        inner: Names of the folders in which the main table may be.
    """

    def __init__(
        self,
        path: Path,
        main: str,
        report: Report,
        *,
        inner: Sequence[str] = (),
    ) -> None:
        folder = path.parent
        is_inner = folder.name.lower() in map(str.lower, inner)
        self.folder = folder.parent if is_inner else folder
        self.report = report
        # a file that is named is read, whatever its name
        self.named = {} if has_name(path, main) else {main: [path]}
        if not self.find(main):
            raise missing_in_folder(file=main, folder=path)

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
            rows = read_rows(file, None, self.report)
            for _, row in select_columns(
                rows, file, columns, self.report, optional=optional
            ):
                yield row
