"""JSONL: one document per line; offsets are in characters of the text."""

import json
from collections.abc import Iterable, Iterator, Mapping
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
# The fields of a line that may have spans: ours; `doc.to_json()` of spaCy; Prodigy;
# doccano, and Label Studio. Of `LABELS`, texts are labels of a document.
LABELS = ("label", "labels")
SPANS = ("entities", "ents", "spans", *LABELS)
NOT_ACCEPTED = ("reject", "ignore")  # the `answer` of Prodigy
THEIR_NAMES = {"start_offset": "start", "end_offset": "end", "kb_id": "cui"}


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


def read_spans(
    path: Path, line: int, text: str, row: Mapping[str, Any]
) -> list[GoldMention] | None:
    """Return the mentions that a line has in one of `SPANS`; None = in none of them.

    What a person marked is read, or an error names its field. `label`, `cui` and `text`
    of a mention may be missing. What a person rejected in Prodigy is not used.
    """
    if row.get("answer") in NOT_ACCEPTED:
        return None
    for name, marked, fix in (
        ("annotations", "result", "Export them as JSON_MIN"),  # of Label Studio
        ("denotations", "span", "Write them as `entities`"),  # of PubAnnotation
    ):
        if any(marked in item for item in list_objects(row.get(name))):
            fix = f"{fix}, or remove `{name}`"
            raise unread_spans(path, line, f"in one of {', '.join(SPANS)}", name, fix)
    found = {name: row[name] for name in SPANS if has_spans(name, row.get(name))}
    spans = [read_entities(path, line, text, *field) for field in found.items()]
    places = [sorted((s.start, s.end, s.type) for s in some) for some in spans]
    if any(some != places[0] for some in places[1:]):
        names = " and ".join(found)
        raise unread_spans(path, line, "in one field", names, "Remove all but one")
    return spans[0] if spans else None


def list_objects(value: Any) -> list[Mapping[str, Any]]:
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, Mapping)]


def has_spans(name: str, value: Any) -> bool:
    """Return whether a field has spans; a label of a text or texts is none."""
    if name in LABELS and isinstance(value, list):
        return any(isinstance(item, (list, Mapping)) for item in value)
    return value is not None and name not in LABELS


def make_plain(entity: Any) -> Any:
    """Return an entity of another tool with our names for its fields."""
    if isinstance(entity, (list, tuple)) and len(entity) in (3, 4):
        return dict(zip(("start", "end", "label", "cui"), entity, strict=False))
    if not isinstance(entity, Mapping):
        return entity
    plain = {THEIR_NAMES.get(name, name): value for name, value in entity.items()}
    labels = entity.get("labels")
    if isinstance(labels, list) and len(labels) == 1:
        plain.setdefault("label", labels[0])
    plain |= {name: entity[name] for name in THEIR_NAMES.values() if name in entity}
    return plain


def unread_spans(
    path: Path, line: int, expected: str, name: str, fix: str
) -> SapbertError:
    return SapbertError(
        "E117",
        f"{path}:{line}: Expected the mentions {expected}, but got them as {name}. "
        f"{fix}.",
    )


def read_entities(
    path: Path, line: int, text: str, field: str, entities: Any
) -> list[GoldMention]:
    """Check the spans in a field of a line."""

    def fail(expected: str) -> SapbertError:
        return SapbertError(
            "E117",
            f"{path}:{line}: Expected `{field}` as a list of JSON objects with "
            f"{expected}, but got something else. Correct the line, or write the file "
            "again with `spacy sapbert link … --format jsonl`.",
        )

    def read_entity(entity: Any) -> GoldMention:
        try:
            fields = GOLD_ENTITY.validate_python(make_plain(entity))
        except ValidationError as error:
            wrong = error.errors()[0]["loc"][-1:]
            texts = wrong in (("label",), ("cui",))
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
    """Read lines like those of `write_docs`, or of others; see `read_spans`."""
    for number, row in read_json_rows(path, COLUMNS, on_error=on_error):
        if row.get("answer") in NOT_ACCEPTED:
            continue
        try:
            document = make_document(row, path, path.name, number, longest=longest)
            spans = read_spans(path, number, document.text, row) or []
        except SapbertError as error:
            on_error(error)
            if error.document is not None:
                yield failed_document(error.document, error)
        else:
            yield GoldDocument(document.id, document.text, spans)
