"""A row a mention, for the formats that are tables."""

from collections.abc import Iterable, Iterator
from typing import Any

from .entities import AttributeNames, NamedDoc, describe_entities

COLUMNS = (
    "id",
    "start",
    "end",
    "text",
    "label",
    "cui",
    "name",
    "score",
    "probability",
    "types",
    "codes",
    "candidates",
    "note",
)


def mention_rows(
    docs: Iterable[NamedDoc],
    *,
    spans_key: str | None,
    names: AttributeNames,
) -> Iterator[dict[str, Any]]:
    """Return the entities of all documents, each with the id of its document.

    docs (Iterable[NamedDoc]): Ids and documents.
    spans_key (str | None): A span group; None = the entities.
    names (AttributeNames): The custom attributes of the linker.
    YIELDS (dict[str, Any]): A value for each of `COLUMNS`, as `describe_entities` says.
    """
    for number, doc in docs:
        for entity in describe_entities(doc, spans_key=spans_key, names=names):
            yield {"id": str(number), **entity}


def choose_columns(include_text: bool) -> Iterator[str]:
    """Name the columns of a table.

    include_text (bool): With what the mentions say.
    YIELDS (str): Each of `COLUMNS`, in order.
    """
    yield from (name for name in COLUMNS if include_text or name != "text")
