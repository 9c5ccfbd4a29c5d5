"""What a reader read, kept and dropped, in numbers: nothing goes missing unsaid."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from wasabi import msg


@dataclass
class Report:
    """Filled by a reader while it reads.

    path (str): What was read.
    format (str): As which format.
    rows (dict[str, int]): Rows (lines, terms) read, by file.
    rows_kept (int): Rows of names that passed the filters and said something.
    names (int): Names in the concepts that were made.
    concepts (int): Concepts that were made.
    dropped (dict[str, int]): What was left out, by rule.
    counts (dict[str, int]): What else was found, e.g. definitions.
    notes (list[str]): What is off since a file is absent.
    progress (Callable[[str, int], None] | None): Called with a file and how many
        more rows of it were read.
    """

    path: str = ""
    format: str = ""
    rows: dict[str, int] = field(default_factory=Counter)
    rows_kept: int = 0
    names: int = 0
    concepts: int = 0
    dropped: dict[str, int] = field(default_factory=Counter)
    counts: dict[str, int] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    progress: Callable[[str, int], None] | None = None

    def read(self, file: str, rows: int) -> None:
        """Count rows as read.

        file (str): Name of the file.
        rows (int): How many more of its rows were read.
        """
        self.rows[file] += rows
        if self.progress is not None:
            self.progress(file, rows)

    def to_json(self) -> dict[str, Any]:
        """RETURNS (dict[str, Any]): Plain JSON types, in a fixed order."""
        return {
            "path": self.path,
            "format": self.format,
            "rows": dict(self.rows),
            "rows_kept": self.rows_kept,
            "names": self.names,
            "concepts": self.concepts,
            "dropped": {rule: n for rule, n in sorted(self.dropped.items()) if n},
            "counts": {what: n for what, n in sorted(self.counts.items()) if n},
            "notes": self.notes,
        }


def report_rows(report: Report) -> list[tuple[str, str]]:
    """Put a report in the rows of a table.

    report (Report): The report.
    RETURNS (list[tuple[str, str]]): What, and how many.
    """
    data = report.to_json()
    rows = [(f"read: {file}", n) for file, n in data["rows"].items()]
    rows += [(f"dropped: {rule}", n) for rule, n in data["dropped"].items()]
    rows += [("kept: rows", report.rows_kept), ("kept: names", report.names)]
    rows += [(f"found: {what}", n) for what, n in data["counts"].items()]
    rows += [("concepts", report.concepts)]
    return [(what, f"{n:,}") for what, n in rows]


def print_report(report: Report) -> None:
    """Print a report as a table, and its notes under it.

    report (Report): The report.
    """
    msg.divider(f"{report.path} ({report.format})")
    msg.table(report_rows(report), aligns=("l", "r"))
    for note in report.notes:
        msg.info(note)
