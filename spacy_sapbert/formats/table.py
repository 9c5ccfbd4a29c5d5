"""A table for people, on the terminal."""

from collections.abc import Iterable
from typing import IO

from wasabi import table

from ..io.terminal import printable
from .entities import AMBIGUOUS, BY_ID, LinkedDoc, LinkedEntity
from .gold import NIL

HEADER = ("mention", "label", "CUI", "name", "score", "note")
ALIGNS = ("l", "l", "l", "l", "r", "l")
WIDEST = 40  # characters of a mention or a name


def shorten(text: str) -> str:
    """Return a text in one line of at most `WIDEST` printable characters."""
    text = " ".join(text.split())
    if len(text) > WIDEST:
        text = text[: WIDEST - 1] + "…"
    return printable(text)


def entity_row(entity: LinkedEntity, include_text: bool) -> list[str]:
    """Return the cells of an entity, with the mention or else its offsets."""
    offsets = f"{entity['start']}–{entity['end']}"
    score = entity["score"]
    note = entity["note"]
    # evidence decides other ties, and "ambiguous" says it already
    tie = "tie: id" if entity["tie"] == BY_ID and note != AMBIGUOUS else None
    return [
        shorten(entity["text"]) if include_text else offsets,
        shorten(entity["label"]),
        shorten(entity["cui"] or NIL),
        shorten(entity["name"] or ""),
        "" if score is None else f"{score:.3f}",
        shorten(", ".join(filter(None, (note, tie)))),
    ]


def write_docs(
    docs: Iterable[LinkedDoc], file: IO[bytes], *, include_text: bool = True
) -> None:
    """Write a table for each linked document; see `registry.Writer`."""
    for doc in docs:
        rows = [entity_row(entity, include_text) for entity in doc.entities]
        heading = shorten(str(doc.id))
        if rows:
            body = table(
                rows, header=HEADER, divider=True, aligns=ALIGNS, max_col=WIDEST
            )
        else:
            reason = f"not linked: {doc.error}" if doc.error else "no entities"
            body = f"\n{printable(reason)}\n"
        file.write(f"\n{heading}\n{body}".encode())
