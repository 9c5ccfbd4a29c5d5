"""Checks of documents while they are read: slow texts, and ids that come twice."""

import re
import warnings
from collections.abc import Iterable, Iterator

from ...errors import SapbertError
from ..documents import Document, OnError

RUN = re.compile(r"(?:(?!\s)[\W_]){50,}+")  # punctuation and symbols
SLOW_RUN, MOST_RUN = 2_000, 100_000  # characters
MOST_IDS = 1_000_000  # that are compared; their hashes take less than 100 MB


def measure_run(text: str) -> int:
    """Return the length of the longest run of punctuation; 0 for less than 50."""
    return max((len(run) for run in RUN.findall(text)), default=0)


def check_runs(
    documents: Iterable[Document], on_error: OnError, *, keep_failed: bool = False
) -> Iterator[Document]:
    """Warn of documents with many punctuation characters in a row.

    spaCy's tokenizer takes them one by one off the ends of what is between two blanks,
    and copies the rest each time: 2,000 of them take half a second, 20,000 take a
    minute, and 1,000,000 days. More than any that people write is an error.
    """
    slow = 0
    for document in documents:
        # the Docs of a `.spacy` file have tokens
        run = measure_run(document.text) if document.doc is None else 0
        if run > MOST_RUN:
            error = too_many_signs(limit=MOST_RUN, id=document.id, run=run)
            on_error(error)
            if keep_failed:
                yield Document(document.id, "", error=str(error))
            continue
        if run > SLOW_RUN:
            slow += 1
            if slow == 1:
                warnings.warn(
                    "[W531] Expected at most some hundred punctuation characters in a "
                    f"row, but document {document.id!r} has {run:,}. spaCy's tokenizer "
                    "needs time with the square of that. If it takes too long, remove "
                    "them.",
                    stacklevel=2,
                )
        yield document
    if slow > 1:
        warnings.warn(
            f"[W532] {slow:,} documents have more than {SLOW_RUN:,} punctuation "
            "characters in a row. Removing them makes reading faster.",
            stacklevel=2,
        )


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
        warnings.warn(
            "[W534] Expected a different id for each document, but some have the "
            f"id of an earlier one: {count:,}, first at {example}. The output has "
            "all documents.",
            stacklevel=2,
        )


def too_many_signs(*, limit: int, id: object, run: int) -> SapbertError:
    return SapbertError(
        "E536",
        f"Expected documents with at most {limit:,} punctuation characters in a row, "
        f"but {id!r} has {run:,}: spaCy's tokenizer would need hours. Remove them, or "
        "pass the document as a `.spacy` file, which has tokens.",
    )
