"""Cells that a spreadsheet would compute, and the quote that prevents it."""

import re

# A spreadsheet reads such a cell as a formula. Leading quotes are included, so that
# removing one quote restores any cell.
FORMULA = re.compile("'*[=+\\-@\t\r\n\uff0b\uff0d\uff1d\uff20]")
SIGNS = re.compile(r"[-+/=@ ]+")  # nothing that could be computed: "+", "+/-"
NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)?(?:[eE][-+]?\d+)?%?")


class AsRead(str):
    """A cell of a table of the user, which is written again as it was read."""

    __slots__ = ()


def defuse(cell: str) -> str:
    """Return a text with a single quote before it if it could be a formula.

    A number with its sign is none, and signs alone are none.

    Source: OWASP, CSV Injection.
    """
    if not FORMULA.match(cell) or NUMBER.fullmatch(cell) or SIGNS.fullmatch(cell):
        return cell
    return f"'{cell}"


def undefuse(cell: str) -> str:
    """Return a text without the quote that `defuse` adds; another quote is kept."""
    return cell[1:] if cell[:1] == "'" and FORMULA.match(cell) else cell
