"""Names of a knowledge base that are mostly not mentions: learned, written, read."""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import filter_spans

from ..errors import SapbertError
from ..formats.gold import GoldDocument
from ..io.reading import read_lines
from ..io.writing import write_atomically
from ..linking.opposites import NEGATING_WORDS
from ..linking.stop_names import STOP_NAMES
from ..linking.text import is_abbreviation, name_form

HEADER = ("name", "mentions", "occurrences")
COMMENT = "#"
SHARE = 0.2

LEAST_WORD = 5  # letters of a word in capitals that is not an abbreviation
AROUND = 40  # characters
# The words before and after a part of a line, and what follows it at once.
WORD_BEFORE = re.compile(r"(\w+)\W*$")
WORD_AFTER = re.compile(r"\W*?(\w+)")

Place = tuple[int, int]  # start and end in characters
FindPlaces = Callable[[Doc], Iterable[Place]]  # the names in a text


class NameCount(NamedTuple):
    """How often a name occurs, and how many of its occurrences are mentions."""

    name: str
    mentions: int
    occurrences: int


def stop_form(name: str) -> str:
    """Return how a stop name is compared: an abbreviation in capitals as it is."""
    return name if name.isupper() and is_abbreviation(name) else name_form(name)


def is_shouted(text: str, start: int, end: int) -> bool:
    """Return whether a word in capitals may be a common word that is written so.

    It is a heading, "PLAN:", or beside a longer word in capitals, "ALL PATIENTS", or
    says no: "NO fever".
    """
    line = text[max(0, start - AROUND) : start].rpartition("\n")[2]
    before = WORD_BEFORE.search(line)
    after = WORD_AFTER.match(text[end : end + AROUND].partition("\n")[0])
    beside = [match[1] for match in (before, after) if match]
    return (
        text[start:end].lower() in NEGATING_WORDS
        or (before is None and text.startswith(":", end))
        or any(word.isupper() and len(word) >= LEAST_WORD for word in beside)
    )


def write_stop_names(path: Path, learned: Iterable[NameCount], *, lang: str) -> None:
    """Write learned names, and the common words of a language without counts."""
    counted = [[name, str(m), str(n)] for name, m, n in learned]
    common = STOP_NAMES.get(lang, frozenset()) - {name for name, _, _ in counted}
    with write_atomically(path) as file:
        for row in (HEADER, *counted, *([name] for name in sorted(common))):
            file.write("\t".join(row).encode() + b"\n")


def read_stop_names(path: str | Path) -> list[str]:
    """Read names, one a line; what follows a tab is ignored, and lines with `#`."""
    names: list[str] = []
    for number, line in read_lines(Path(path)):
        cells = line.rstrip("\r\n").split("\t")
        is_header = number == 1 and cells == [*HEADER]
        name = cells[0].strip()
        if name and not is_header and not line.startswith(COMMENT):
            names.append(name)
    if not names:
        raise SapbertError(
            "E106",
            f"{path}: Expected names that are not marked, one a line, but got none. "
            "Write the file with `spacy sapbert stop-names`, or leave it out.",
        )
    return names


class Occurrence(NamedTuple):
    """A name in a text; `start` and `end` in characters."""

    start: int
    end: int
    name: str
    is_mention: bool


def learn_stop_names(
    nlp: Language,
    find_places: FindPlaces,
    texts: Iterable[GoldDocument],
    *,
    share: float = SHARE,
) -> list[NameCount]:
    """Find the names that are a mention in less than a share of their occurrences.

    An occurrence is what the detector marks, of the places that it finds: the longest
    name. If that is a stop name, the names inside it occur, so names are counted again
    until none is new.
    """
    found = [
        list_occurrences(
            find_places,
            nlp.make_doc(gold.text),
            ((m.start, m.end) for m in gold.mentions),
        )
        for gold in texts
    ]
    learned: dict[str, NameCount] = {}
    while True:
        counts = count_names(found, learned)
        new = {n: c for n, c in counts.items() if c.mentions < share * c.occurrences}
        if not new:
            break
        learned |= new
    return sorted(learned.values(), key=lambda count: (-count.occurrences, count.name))


def list_occurrences(
    find_places: FindPlaces, doc: Doc, mentions: Iterable[Place]
) -> list[Occurrence]:
    annotated = {*mentions}
    text = doc.text  # made of all tokens whenever it is read
    return [
        Occurrence(*place, stop_form(text[slice(*place)]), place in annotated)
        for place in find_places(doc)
    ]


def count_names(
    texts: Iterable[list[Occurrence]], stop_names: Container[str]
) -> dict[str, NameCount]:
    """Count the names that are marked in texts if some of them are not."""
    occurrences: Counter[str] = Counter()
    mentions: Counter[str] = Counter()
    for text in texts:
        left: Any = (found for found in text if found.name not in stop_names)
        marked: Any = filter_spans(left)
        for found in marked:
            occurrences[found.name] += 1
            mentions[found.name] += found.is_mention
    return {n: NameCount(n, mentions[n], count) for n, count in occurrences.items()}
