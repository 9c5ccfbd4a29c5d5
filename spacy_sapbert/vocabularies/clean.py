"""Lines and names: what all readers of vocabularies do with them."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import SapbertError
from ..system.reading import decode_line, read_line_blocks
from .report import Report


def clean_name(text: str) -> str:
    """Strip a name, and replace each run of white space in it by one space.

    Tabs, carriage returns, U+0085, U+2028 and no-break spaces are white space. Case,
    Unicode form, zero-width and right-to-left marks stay.
    """
    return " ".join(text.split())


def has_letter_or_digit(name: str) -> bool:
    """Return whether a name has a letter or digit of any script."""
    return name[:1].isalnum() or any(map(str.isalnum, name))


def clean_names(texts: Iterable[str], report: Report) -> list[str]:
    """Return the distinct names with a letter or digit, cleaned; count the others."""
    names = [clean_name(text) for text in texts]
    kept = [name for name in names if has_letter_or_digit(name)]
    distinct = list(dict.fromkeys(kept))
    report.dropped["names without a letter or digit"] += len(names) - len(kept)
    report.dropped["repeated names"] += len(kept) - len(distinct)
    report.rows_kept += len(distinct)
    return distinct


def read_good_lines(
    path: Path,
    *,
    on_error: str,
    report: Report,
    blocks: Iterable[bytes] | None = None,
) -> Iterator[tuple[int, str]]:
    """Read the lines of a file, plain or `.gz`, and count them.

    on_error (str): "fail", or "skip" to count lines that are not UTF-8 and continue.
    blocks (Iterable[bytes] | None): See `read_line_blocks`.
    YIELDS (tuple[int, str]): Number of the line, from 1, and the line.
    RAISES (SapbertError): If the file is missing or truncated, or a line not UTF-8.
    """
    for first, lines in read_line_blocks(path, blocks=blocks):
        report.read(path.name, len(lines))
        for number, line in enumerate(lines, first):
            try:
                text = decode_line(line, path, number)
            except SapbertError:
                if on_error == "fail":
                    raise
                report.dropped["lines that are not UTF-8"] += 1
            else:
                yield number, text
