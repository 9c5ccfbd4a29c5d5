"""Checks of documents while they are read: slow texts, and ids that come twice."""

import re
import warnings
from collections.abc import Iterable, Iterator

from ...errors import Errors, SapbertError, Warnings
from ..documents import Document, OnError

RUN = re.compile(r"(?:(?!\s)[\W_]){50,}+")  # punctuation and symbols
SLOW_RUN, MOST_RUN = 2_000, 100_000  # characters
MOST_IDS = 1_000_000  # that are compared; their hashes take less than 100 MB


def measure_run(text: str) -> int:
    """Return the length of the longest run of punctuation; 0 for less than 50."""
    return max((len(run) for run in RUN.findall(text)), default=0)


def check_runs(documents: Iterable[Document], on_error: OnError) -> Iterator[Document]:
    """Warn of documents with many punctuation characters in a row.

    spaCy's tokenizer takes brackets, quotes and symbols one by one off the ends of what
    is between two blanks, and copies the rest each time: 2,000 of them take half a
    second, 20,000 take a minute, and 1,000,000 days.

    Args:
        on_error: Called for a document that has more than any that people write.
    """
    slow = 0
    for document in documents:
        # the Docs of a `.spacy` file have tokens
        run = measure_run(document.text) if document.doc is None else 0
        values = {"id": document.id, "run": run}
        if run > MOST_RUN:
            on_error(SapbertError(Errors.E536.format(limit=MOST_RUN, **values)))
            continue
        if run > SLOW_RUN:
            slow += 1
            if slow == 1:
                warnings.warn(Warnings.W531.format(**values), stacklevel=2)
        yield document
    if slow > 1:
        warnings.warn(Warnings.W532.format(count=slow, limit=SLOW_RUN), stacklevel=2)


def check_ids(documents: Iterable[Document]) -> Iterator[Document]:
    """Warn at the end of documents with the id of an earlier one.

    Of more than `MOST_IDS` different ids, the later ones are not compared.
    """
    seen: set[int] = set()
    count, example = 0, ""
    for document in documents:
        key = hash(str(document.id))
        if key in seen:
            count += 1
            example = example or document.place or str(document.id)
        elif len(seen) < MOST_IDS:
            seen.add(key)
        yield document
    if count:
        warnings.warn(Warnings.W534.format(count=count, place=example), stacklevel=2)
