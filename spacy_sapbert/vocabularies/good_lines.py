"""Lines of text, for the formats that have them."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import SapbertError
from ..system.reading import decode_line, read_line_blocks
from .report import Report


def read_good_lines(
    path: Path,
    *,
    on_error: str,
    report: Report,
    blocks: Iterable[bytes] | None = None,
) -> Iterator[tuple[int, str]]:
    """Read the lines of a file that are UTF-8, and count all of them.

    path (Path): The file, plain or `.gz`.
    on_error (str): "fail", or "skip" to count lines that are not UTF-8 and go on.
    report (Report): Is told of the lines.
    blocks (Iterable[bytes] | None): See `read_text_blocks`.
    YIELDS (tuple[int, str]): Number of the line, from 1, and the line.
    RAISES (SapbertError): If the file is missing or cut, or a line is not UTF-8.
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
