"""JSONL: one document per line; offsets are in characters of the text."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Annotated, Any, Required

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from ..errors import SapbertError
from .documents import OnError, raise_error
from .entities import LinkedDoc
from .gold import (
    LONGEST,
    GoldDocument,
    GoldMention,
    collect_mentions,
    failed_document,
    mention_not_in_text,
)
from .inputs.rows import COLUMNS, make_document, read_json_rows


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
    docs: Iterable[LinkedDoc],
    file: IO[bytes],
    *,
    include_text: bool = True,
    keep: Iterable[str] = (),
) -> None:
    for doc in docs:
        data: dict[str, Any] = {"id": doc.id, "text": doc.text}
        data |= {name: doc.fields.get(name) for name in keep}
        data["entities"] = doc.entities
        if doc.error:
            data["error"] = doc.error
        if not include_text:
            del data["text"]
            for entity in doc.entities:
                entity.pop("text", None)  # a file without texts is written again
        line = json.dumps(data, ensure_ascii=False, allow_nan=False)
        file.write(line.encode("utf8") + b"\n")


def read_entities(path: Path, line: int, text: str, entities: Any) -> list[GoldMention]:
    """Check the `entities` of a line; `label`, `cui` and `text` may be missing."""

    def fail(expected: str) -> SapbertError:
        return SapbertError(
            "E117",
            f"{path}:{line}: Expected `entities` as a list of JSON objects with "
            f"{expected}, but got something else. Correct the line, or write the file "
            "again with `spacy sapbert link … --format jsonl`.",
        )

    def read_entity(entity: Any) -> GoldMention:
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
            raise mention_not_in_text(path=path, line=line, start=start, end=end)
        parts = [[cui]] if cui else []
        return GoldMention(start, end, fields.get("label", ""), mention, parts, line)

    if not isinstance(entities, list):
        raise fail("`start` and `end`")
    # one by one: pydantic would collect the errors of all
    return collect_mentions(map(read_entity, entities), fail)


def read_gold(
    path: Path, *, longest: int = LONGEST, on_error: OnError = raise_error
) -> Iterator[GoldDocument]:
    """Read lines like those of `write_docs`; `entities` may be missing."""
    for number, row in read_json_rows(path, COLUMNS, on_error=on_error):
        try:
            document = make_document(row, path, path.name, number, longest=longest)
            entities = row.get("entities", [])
            spans = read_entities(path, number, document.text, entities)
        except SapbertError as error:
            on_error(error)
            if error.document is not None:
                yield failed_document(error.document, error)
        else:
            yield GoldDocument(document.id, document.text, spans)
