"""Files of names that are not marked, with their counts."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import SapbertError
from ..io.reading import read_lines
from ..io.writing import write_atomically
from ..linking.stop_names import STOP_NAMES

HEADER = ("name", "mentions", "occurrences")
COMMENT = "#"


class NameCount(NamedTuple):
    """How often a name occurs, and how many of its occurrences are mentions."""

    name: str
    mentions: int
    occurrences: int


def write_stop_names(path: Path, learned: Iterable[NameCount], *, lang: str) -> None:
    """Write learned names, and the common words of a language without counts."""
    counted = [[name, str(m), str(n)] for name, m, n in learned]
    common = STOP_NAMES.get(lang, frozenset()) - {name for name, _, _ in counted}
    with write_atomically(path) as file:
        for row in (HEADER, *counted, *([name] for name in sorted(common))):
            file.write("\t".join(row).encode() + b"\n")


def read_stop_names(path: str | Path) -> list[str]:
    """Read the list that `spacy sapbert stop-names` wrote, or one name a line.

    What follows a tab is ignored, and so are lines that start with `#`.

    Raises:
        SapbertError: If there is no such file, or it has no names.
    """
    names = [*iter_names(Path(path))]
    if not names:
        raise SapbertError(
            "E572",
            f"{path}: Expected names that are not marked, one a line, but got none. "
            "Write the file with `spacy sapbert stop-names`, or leave it out.",
        )
    return names


def iter_names(path: Path) -> Iterator[str]:
    """Yield the names in a file."""
    for number, line in read_lines(path):
        cells = line.rstrip("\r\n").split("\t")
        is_header = number == 1 and cells == [*HEADER]
        name = cells[0].strip()
        if name and not is_header and not line.startswith(COMMENT):
            yield name
