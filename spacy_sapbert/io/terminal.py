"""What a terminal shows: no control characters, and errors on the standard error."""

import json
import re
import sys
from contextlib import suppress
from typing import Any

from wasabi import Printer, color

REPLACEMENT = "\ufffd"
WIDEST_COLUMN = 60  # labels of reports are longer than wasabi's 30
# Commands to the terminal, marks that change the order of the text, surrogates. Joiners
# of Persian and Hindi, wide blanks of Japanese and soft hyphens are not.
NOT_ASCII = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
CONTROLS = re.compile(f"[\0-\x1f{NOT_ASCII}]")
JSON_CONTROLS = re.compile(f"[{NOT_ASCII}]")  # `json.dumps` escapes the others


def printable(text: str) -> str:
    """Return a text in one line without control characters, which may be commands."""
    line = " ".join(text.splitlines())
    return CONTROLS.sub(REPLACEMENT, line)


def format_json(data: Any) -> str:
    """Return indented JSON for the standard output; control characters are escaped."""
    text = json.dumps(data, indent=2, ensure_ascii=False)
    return JSON_CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class TerminalPrinter(Printer):
    """Wasabi's printer without control characters in texts; colours on a terminal only.

    Errors and warnings go to the standard error, in one line; everything else goes to
    the standard output.
    """

    def fail(self, title: Any, *, exits: int | None = None) -> None:
        """Print an error, and exit if an exit code is given."""
        self.print_problem(f"✘ {title}", "red")
        if exits is not None:
            sys.exit(exits)

    def warn(self, title: Any) -> None:
        """Print a warning, or that a command was stopped."""
        self.print_problem(f"⚠ {title}", "yellow")

    def print_problem(self, line: str, fg: str) -> None:
        """Print a line to the standard error, even if its terminal is gone."""
        line = printable(line)
        with suppress(OSError, ValueError):
            if sys.stderr.isatty():
                line = color(line, fg=fg)
            print(line, file=sys.stderr, flush=True)  # noqa: T201

    def text(self, title: Any = "", text: Any = "", **options: Any) -> Any:
        """Print a message."""
        self.show_color = sys.stdout.isatty()
        return super().text(printable(str(title)), printable(str(text)), **options)

    def divider(self, text: str = "", **options: Any) -> Any:
        """Print a heading, in a terminal on a line across it."""
        if sys.stdout.isatty():
            return super().divider(printable(text), **options)
        self.text()
        return self.text(text)

    def table(self, data: Any, **options: Any) -> Any:
        """Print a table, with columns aligned up to `WIDEST_COLUMN` characters."""
        rows = [[printable(str(cell)) for cell in row] for row in data]
        return super().table(rows, **{"max_col": WIDEST_COLUMN, **options})


msg = TerminalPrinter()
