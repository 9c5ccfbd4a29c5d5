"""JSONL: one document per line; offsets are in characters of the text."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Annotated, Any, Required

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from ..errors import Errors, SapbertError
from .documents import read_json_lines
from .entities import LinkedDoc
from .gold import LONGEST, GoldDocument, GoldSpan, collect_spans


class GoldEntity(TypedDict, total=False):
    """An entity of a line; other fields are ignored."""

    __pydantic_config__ = ConfigDict(strict=True)  # type: ignore[misc]

    start: Required[Annotated[int, Field(ge=0)]]
    end: Required[int]
    text: Any
    label: str
    cui: str | None


GOLD_ENTITY = TypeAdapter(GoldEntity)


def write_docs(
    docs: Iterable[LinkedDoc], file: IO[bytes], *, include_text: bool = True
) -> None:
    """Write linked documents as JSONL; see `registry.Writer`."""
    for doc in docs:
        data = {"id": doc.id, "text": doc.text, "entities": doc.entities}
        if not include_text:
            del data["text"]
            for entity in doc.entities:
                del entity["text"]
        line = json.dumps(data, ensure_ascii=False, allow_nan=False)
        file.write(line.encode("utf8") + b"\n")


def read_entities(path: Path, line: int, text: str, entities: Any) -> list[GoldSpan]:
    """Check the `entities` of a line; their `label`, `cui` and `text` may be missing.

    path (Path), line (int): File and line for the error.
    RAISES (SapbertError): If an entity is invalid, or its offsets do not match its
        text; it is not quoted.
    """

    def fail(expected: str) -> SapbertError:
        return SapbertError(Errors.E531.format(path=path, line=line, expected=expected))

    def read_entity(entity: Any) -> GoldSpan:
        try:
            fields = GOLD_ENTITY.validate_python(entity)
        except ValidationError as error:
            field = error.errors()[0]["loc"][-1:]
            texts = field in (("label",), ("cui",))
            expected = "texts as `label` and `cui`" if texts else "`start` and `end`"
            raise fail(expected) from None
        start, end, cui = fields["start"], fields["end"], fields.get("cui")
        if not start < end <= len(text):
            raise fail("`start` and `end` inside the text")
        mention = text[start:end]
        if fields.get("text", mention) != mention:
            raise SapbertError(
                Errors.E713.format(path=path, line=line, start=start, end=end)
            )
        parts = [[cui]] if cui else []
        return GoldSpan(start, end, fields.get("label", ""), mention, parts, line)

    if not isinstance(entities, list):
        raise fail("`start` and `end`")
    # one by one: pydantic would collect the errors of all
    return collect_spans(map(read_entity, entities), fail)


def read_gold(path: Path, *, longest: int = LONGEST) -> Iterator[GoldDocument]:
    """Read lines like those of `write_docs`; `entities` may be missing.

    path (Path): The file, plain or `.gz`.
    longest (int): Maximum number of characters of a document.
    RAISES (SapbertError): With file and line, at the first invalid line, or if the
        documents were written without texts.
    """
    for line, document, data in read_json_lines(path, path.name, longest=longest):
        entities = data.get("entities", [])
        spans = read_entities(path, line, document.text, entities)
        yield GoldDocument(document.id, document.text, spans)
