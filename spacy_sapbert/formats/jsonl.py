"""JSONL: one document per line; offsets are in characters of the text."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NotRequired, TypedDict

from spacy.tokens import Doc

from ..errors import Errors, SapbertError
from .documents import read_json_objects
from .entities import (
    ATTRIBUTE_NAMES,
    AttributeNames,
    LinkedEntity,
    NamedDoc,
    describe_entities,
)
from .gold import LONGEST, GoldDocument, GoldSpan


class LinkedDocument(TypedDict):
    """A line of the output: the id of a document, its text and its entities."""

    id: Any
    text: NotRequired[str]
    entities: list[LinkedEntity]


def doc_to_json(
    number: Any,
    doc: Doc,
    *,
    spans_key: str | None = None,
    include_text: bool = True,
    names: AttributeNames = ATTRIBUTE_NAMES,
) -> LinkedDocument:
    """Return the line of a document; see `registry.Writer`."""
    entities = describe_entities(doc, spans_key=spans_key, names=names)
    if include_text:
        return {"id": number, "text": doc.text, "entities": entities}
    for entity in entities:
        del entity["text"]
    return {"id": number, "entities": entities}


def write_docs(
    docs: Iterable[NamedDoc],
    file: IO[bytes],
    *,
    spans_key: str | None = None,
    include_text: bool = True,
    names: AttributeNames = ATTRIBUTE_NAMES,
) -> None:
    """Write linked documents as JSONL; see `registry.Writer`."""
    for number, doc in docs:
        data = doc_to_json(
            number, doc, spans_key=spans_key, include_text=include_text, names=names
        )
        line = json.dumps(data, ensure_ascii=False, allow_nan=False)
        file.write(line.encode("utf8") + b"\n")


def read_entities(path: Path, line: int, data: dict[str, Any]) -> Iterator[GoldSpan]:
    """Check the `entities` of a line; their `label`, `cui` and `text` may be missing.

    path (Path), line (int): File and line for the error.
    RAISES (SapbertError): If an entity is invalid, or its offsets do not match its
        text; it is not quoted.
    """

    def fail(expected: str) -> SapbertError:
        return SapbertError(Errors.E531.format(path=path, line=line, expected=expected))

    text, entities = data["text"], data.get("entities", [])
    if not isinstance(entities, list):
        raise fail("`start` and `end`")
    for entity in entities:
        if not isinstance(entity, dict):
            raise fail("`start` and `end`")
        start, end = entity.get("start"), entity.get("end")
        if not (type(start) is type(end) is int and 0 <= start < end <= len(text)):
            raise fail("`start` and `end` inside the text")
        label, cui = entity.get("label", ""), entity.get("cui")
        if not isinstance(label, str) or not isinstance(cui, (str, type(None))):
            raise fail("texts as `label` and `cui`")
        if entity.get("text", text[start:end]) != text[start:end]:
            raise SapbertError(
                Errors.E713.format(path=path, line=line, start=start, end=end)
            )
        parts: list[list[str]] = [[cui]] if cui else []
        yield GoldSpan(start, end, label, text[start:end], parts, line)


def read_gold(path: Path, *, longest: int = LONGEST) -> Iterator[GoldDocument]:
    """Read lines like those of `write_docs`; `entities` may be missing.

    path (Path): The file, plain or `.gz`.
    longest (int): Maximum number of characters of a document.
    RAISES (SapbertError): With file and line, at the first invalid line, or if the
        documents were written without texts.
    """
    for line, document, data in read_json_objects(path, path.name, longest=longest):
        spans = list(read_entities(path, line, data))
        yield GoldDocument(document.id, document.text, spans)
