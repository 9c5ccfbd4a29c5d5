"""Cells that a spreadsheet would compute, and the quote that prevents it."""

import re

# A spreadsheet reads such a cell as a formula. Leading quotes are included, so that
# removing one quote restores any cell.
FORMULA = re.compile("'*[=+\\-@\t\r\n\uff0b\uff0d\uff1d\uff20]")


def defuse(cell: str) -> str:
    """Return a text with a single quote before it if it could be a formula.

    Source: OWASP, CSV Injection.
    """
    return f"'{cell}" if FORMULA.match(cell) else cell


def undefuse(cell: str) -> str:
    """Return a text without the quote that `defuse` adds; another quote is kept."""
    return cell[1:] if cell[:1] == "'" and FORMULA.match(cell) else cell
