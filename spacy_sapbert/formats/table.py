"""A table for people, on the terminal."""

from collections.abc import Iterable, Sequence
from typing import IO

from wasabi import table

from ..io.terminal import printable
from ..linking.certainty import AMBIGUOUS
from .entities import BY_ID, LinkedDoc, LinkedEntity
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


def draw_table(
    rows: Iterable[Sequence[object]],
    header: Sequence[str],
    aligns: Sequence[str] | None = None,
) -> str:
    """Draw a table whose cells are short."""
    cells = [[shorten(str(cell)) for cell in row] for row in rows]
    return table(cells, header=header, divider=True, aligns=aligns, max_col=WIDEST)


def entity_row(entity: LinkedEntity, include_text: bool) -> list[str]:
    """Return the cells of an entity, with the mention or else its offsets."""
    offsets = f"{entity['start']}–{entity['end']}"
    score = entity["score"]
    note = entity["note"]
    # evidence decides other ties, and "ambiguous" says it already
    tie = "tie: id" if entity["tie"] == BY_ID and note != AMBIGUOUS else None
    return [
        entity["text"] if include_text else offsets,
        entity["label"],
        entity["cui"] or NIL,
        entity["name"] or "",
        "" if score is None else f"{score:.3f}",
        ", ".join(filter(None, (note, tie))),
    ]


def write_docs(
    docs: Iterable[LinkedDoc], file: IO[bytes], *, include_text: bool = True
) -> None:
    """Write a table for each linked document; see `format_table.Writer`."""
    for doc in docs:
        rows = [entity_row(entity, include_text) for entity in doc.entities]
        heading = shorten(str(doc.id))
        if rows:
            body = draw_table(rows, HEADER, ALIGNS)
        else:
            reason = f"not linked: {doc.error}" if doc.error else "no entities"
            body = f"\n{printable(reason)}\n"
        file.write(f"\n{heading}\n{body}".encode())
