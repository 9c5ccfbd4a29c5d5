"""JSONL: one document per line; offsets are in characters of the text."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Annotated, Any, Required

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from ..errors import SapbertError
from ..io.json_members import JSONError, read_values
from .documents import OnError, raise_error
from .entities import LinkedDoc
from .gold import (
    LONGEST,
    UNSAID,
    GoldDocument,
    GoldMention,
    collect_mentions,
    failed_document,
    is_no_id,
    mention_not_in_text,
)
from .inputs.files import read_head
from .inputs.rows import COLUMNS, Row, make_document, read_json_rows, wrong_document
from .tools.spans import read_ids, warn_left_out


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
LABELS = ("label", "labels", "annotations")
SPANS = ("entities", "ents", "spans", *LABELS)
NOT_ACCEPTED = ("reject", "ignore")  # the `answer` of Prodigy
REJECTED = "documents rejected or ignored"
OTHER = "NIL_"  # options of Prodigy: another concept, or the text does not say
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
    of a mention may be missing; without `cui`, nobody has said which concept it is.
    """
    for name, marked, format in (
        ("annotations", "result", "labelstudio"),
        ("denotations", "span", "pubannotation"),
    ):
        if any(marked in item for item in list_objects(row.get(name))):
            fix = f"Name the format, {format}, or remove `{name}`"
            raise unread_spans(path, line, f"in one of {', '.join(SPANS)}", name, fix)
    found = {name: row[name] for name in SPANS if has_spans(name, row.get(name))}
    spans = [read_entities(path, line, text, *field) for field in found.items()]
    places = [sorted((s.start, s.end, s.type) for s in some) for some in spans]
    if any(some != places[0] for some in places[1:]):
        names = " and ".join(found)
        raise unread_spans(path, line, "in one field", names, "Remove all but one")
    if spans and len(spans[0]) == 1 and spans[0][0].parts == UNSAID:
        return [spans[0][0]._replace(parts=read_choice(row))]
    return spans[0] if spans else None


def name_text(row: Mapping[str, Any], column: str) -> Mapping[str, Any]:
    """Return a row of which the text is not `data`, as in some exports of doccano."""
    is_other = isinstance(row.get("data"), str) and column == COLUMNS.text
    return {column: row["data"], **row} if is_other else row


def is_rejected(row: Mapping[str, Any]) -> bool:
    """Return whether a person did not accept a line in Prodigy."""
    is_task = "spans" in row or "_input_hash" in row
    return is_task and row.get("answer") in NOT_ACCEPTED


def read_choice(row: Mapping[str, Any]) -> list[list[str]]:
    """Return the option of a line in Prodigy that a person chose for its only span."""
    chosen = row.get("accept")
    options = [option.get("id") for option in list_objects(row.get("options"))]
    known = [id for id in chosen if id in options] if isinstance(chosen, list) else []
    return read_ids([id for id in known if OTHER not in str(id)], named=True)


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
    given = {name: v for name, v in entity.items() if v or name != "kb_id"}
    plain = {THEIR_NAMES.get(name, name): value for name, value in given.items()}
    if "start_offset" in entity:  # in older doccano, a label is a number
        plain["label"] = str(plain.get("label", ""))
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
        parts = [] if is_no_id(cui or "") else [[str(cui)]]
        if "cui" not in fields:
            parts = UNSAID
        return GoldMention(start, end, fields.get("label", ""), mention, parts, line)

    if not isinstance(entities, list):
        raise fail("`start` and `end`")
    # one by one: pydantic would collect the errors of all
    return collect_mentions(map(read_entity, entities), fail)


def read_rows(path: Path, on_error: OnError) -> Iterator[Row]:
    """Read the lines of a file, or the objects in its list."""
    if not read_head(path).lstrip().startswith(b"["):
        yield from read_json_rows(path, COLUMNS, on_error=on_error)
        return
    try:
        for number, (_, row) in enumerate(read_values(path), 1):
            if isinstance(row, dict):
                yield number, row
            else:
                got = f"a {type(row).__name__}"
                error = wrong_document(path, number, "its fields in a JSON object", got)
                on_error(error)
    except JSONError as got:
        raise wrong_document(path, 1, "a list of JSON objects", str(got)) from None


def read_gold(
    path: Path, *, longest: int = LONGEST, on_error: OnError = raise_error
) -> Iterator[GoldDocument]:
    """Read lines like those of `write_docs`, or of others; see `read_spans`.

    What a person did not accept in Prodigy is left out.
    """
    left_out = Counter[str]()
    for number, row in read_rows(path, on_error):
        if is_rejected(row):
            left_out[REJECTED] += 1
            continue
        try:
            row = name_text(row, COLUMNS.text)
            document = make_document(row, path, path.name, number, longest=longest)
            spans = read_spans(path, number, document.text, row) or []
        except SapbertError as error:
            on_error(error)
            if error.document is not None:
                yield failed_document(error.document, error)
        else:
            yield GoldDocument(document.id, document.text, spans)
    warn_left_out(path, left_out)
