"""What writers share: the fields of entities, rows of tables, and lossy texts."""

import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, NotRequired
from urllib.parse import quote

from spacy.tokens import Doc, Span
from typing_extensions import TypedDict

from ..errors import SapbertError
from ..io.version import SITE
from ..linking.candidates import Candidate
from .documents import FIELDS
from .gold import NIL

NamedDoc = tuple[Any, Doc]  # the id of a document, and the document
Losses = Counter[str]  # how often what was changed

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
    "tie",
)
# of tables that outlive a run: what linked a mention, and why a document has none
RUN_COLUMNS = ("kb_digest", "package_version", "error")
# line ends of any program, and tabs, which separate fields
BREAKING = "\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
BREAKS = re.compile(f"[{BREAKING}]")
UNBROKEN = re.compile(f"[^{BREAKING}]+")
BLANKS = re.compile(r"\s+")
OF_CONCEPT = ("name", "score", "probability", "types", "codes")
BY_ID = "id"  # a tie that only the order of the ids decides
# What a text says of a mention, other than that it is so; "" = it is so.
Context = Literal["", "negated", "past", "family", "suspected"]
# Attributes that detectors of other packages set, and what they say if they are true.
CONTEXTS: Mapping[str, Context] = {
    "negex": "negated",
    "is_negated": "negated",
    "is_historical": "past",
    "is_family": "family",
    "is_hypothetical": "suspected",
    "is_uncertain": "suspected",
}
UNKNOWN_LANGUAGE = "xx"  # spaCy's code for several languages
NOT_IN_IDS = re.compile(r"[|+\s]")  # they separate ids and fields


class AttributeNames(NamedTuple):
    """The custom attributes that a linker sets.

    `note` is why there is no concept, or how the mention was changed.
    """

    cui: str = "cui"
    candidates: str = "candidates"
    note: str = "link_note"
    codes: str | None = "codes"

    @property
    def used(self) -> list[str]:
        return [name for name in self if name is not None]


ATTRIBUTE_NAMES = AttributeNames()


class LinkedEntity(TypedDict):
    """A linked entity as JSON, with the name, score and types of its concept.

    Attributes:
        start, end: Offsets in characters.
        candidates: Best first; those of other linkers lack some fields.
        note: See `AttributeNames`.
        tie: The evidence that decided among concepts of equal score, or "id"; of the
            concept or, if there is none, of the first candidate.
        context: See `CONTEXTS`; only if a component of the pipeline has set one, or a
            reviewer; so is `comment`.
    """

    start: int
    end: int
    text: NotRequired[str]
    label: str
    cui: str | None
    name: str | None
    score: float | None
    probability: float | None
    types: list[str]
    codes: dict[str, list[str]]
    candidates: list[Candidate]
    note: str | None
    tie: str | None
    context: NotRequired[Context]
    comment: NotRequired[str]


class LinkedDoc(NamedTuple):
    """A linked document as the formats write it.

    Some repeat `fields`, columns of the input. `lang` is empty if it is not known.
    `error` says why a document has no mentions because it could not be linked.
    """

    id: Any
    text: str
    entities: list[LinkedEntity]
    fields: dict[str, Any] = {}
    lang: str = ""
    error: str = ""


def to_float(score: float | None) -> float | None:
    """Return a score for JSON, which has no NaN."""
    return float(score) if score is not None and math.isfinite(score) else None


def plain_candidate(candidate: Mapping[str, Any]) -> Candidate:
    plain: Any = {**candidate}
    for name in ("score", "probability"):
        if name in plain:
            plain[name] = to_float(plain[name])
    return plain


def read_attribute(
    doc: Doc, spans: Sequence[Span], key: str | None, name: str
) -> list[Any]:
    """Return a custom attribute of each span; None if it is not registered.

    `spans` are all spans of the group `key`, or all entities.
    """
    if key is not None and spans:
        # spans of equal offsets share `span._`, so the linker writes to the group
        values = doc.spans[key].attrs.get(name)
        if isinstance(values, (list, tuple)) and len(values) == len(spans):
            return list(values)
    if not Span.has_extension(name):
        return [None] * len(spans)
    return [span._.get(name) for span in spans]


def read_contexts(
    doc: Doc, spans: Sequence[Span], key: str | None, contexts: Mapping[str, Context]
) -> list[Context]:
    """Return what the text says of each span, by the first attribute that is true."""
    known = [name for name in contexts if Span.has_extension(name)]
    found: list[Context] = [""] * len(spans)
    for name in known:
        values = read_attribute(doc, spans, key, name)
        found = [
            contexts[name] if not said and value is True else said
            for said, value in zip(found, values, strict=True)
        ]
    return found


def describe_mention(
    start: int, end: int, text: str, label: str, cui: str | None
) -> LinkedEntity:
    """Return a mention with a concept of which nothing else is known."""
    return {
        "start": start,
        "end": end,
        "text": text,
        "label": label,
        "cui": cui,
        "name": None,
        "score": None,
        "probability": None,
        "types": [],
        "codes": {},
        "candidates": [],
        "note": None,
        "tie": None,
    }


def describe_entities(
    doc: Doc,
    *,
    spans_key: str | None = None,
    names: AttributeNames = ATTRIBUTE_NAMES,
    contexts: Mapping[str, Context] = CONTEXTS,
) -> list[LinkedEntity]:
    """Return the linked entities of a document, sorted by offset."""
    spans = list(doc.ents if spans_key is None else doc.spans.get(spans_key, ()))
    columns: Any = [read_attribute(doc, spans, spans_key, name) for name in names[:3]]
    columns.append(read_contexts(doc, spans, spans_key, contexts))
    described: list[LinkedEntity] = []
    for span, cui, found, note, context in zip(spans, *columns, strict=True):
        candidates = [plain_candidate(candidate) for candidate in found or ()]
        # a Doc saved without user data has no custom attributes
        cui = cui or (span.kb_id_ if span.kb_id_ != NIL else None) or None
        same = (each for each in candidates if each.get("cui") == cui)
        chosen: Mapping[str, Any] = next(same, {})
        # a concept that is no candidate shares its score with none
        tied = chosen if cui else next(iter(candidates), chosen)
        place = span.start_char, span.end_char, span.text, span.label_
        entity: Any = describe_mention(*place, cui)
        known = {name: chosen.get(name) for name in OF_CONCEPT}
        entity |= {name: value for name, value in known.items() if value is not None}
        entity |= {"candidates": candidates, "note": note, "tie": tied.get("tie")}
        if context:
            entity["context"] = context
        described.append(entity)
    return sorted(described, key=lambda entity: (entity["start"], entity["end"]))


def describe_docs(
    docs: Iterable[NamedDoc],
    *,
    spans_key: str | None = None,
    names: AttributeNames = ATTRIBUTE_NAMES,
) -> Iterator[LinkedDoc]:
    """Yield linked documents as the formats write them; see `describe_entities`."""
    for id, doc in docs:
        entities = describe_entities(doc, spans_key=spans_key, names=names)
        fields = doc.user_data.get(FIELDS) or {}
        lang = doc.lang_ if doc.lang_ != UNKNOWN_LANGUAGE else ""
        yield LinkedDoc(id, doc.text, entities, fields, lang)


def choose_columns(include_text: bool) -> list[str]:
    """Return `COLUMNS`, with or without the texts of the mentions."""
    return [name for name in COLUMNS if include_text or name != "text"]


def mention_rows(
    docs: Iterable[LinkedDoc], columns: Sequence[str]
) -> Iterator[list[Any]]:
    """Yield a row for each mention, and one for an error if it has a column."""
    fields: dict[str, Any]
    for doc in docs:
        id = None if doc.id is None else str(doc.id)
        if doc.error and "error" in columns:
            fields = {**doc.fields, "id": id, "error": doc.error}
            yield [fields.get(name) for name in columns]
        for entity in doc.entities:
            fields = {**doc.fields, **entity, "id": id}
            yield [fields.get(name) for name in columns]


def blank_breaks(text: str) -> str:
    """Replace each line end and tab by a blank; offsets stay."""
    return BREAKS.sub(" ", text)


def trim_place(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the offsets of a mention without the blanks around it; None if empty."""
    mention = text[start:end]
    core = mention.strip()
    if not core:
        return None
    start += len(mention) - len(mention.lstrip())
    return start, start + len(core)


def quote_id(cui: str, losses: Losses) -> str:
    """Return an id with `%7C` for `|` and so on, and count the change."""
    quoted = NOT_IN_IDS.sub(lambda match: quote(match.group()), cui)
    losses["ids quoted"] += quoted != cui
    return quoted


def name_type(label: str, losses: Losses) -> str:
    """Return a label as one word, with `_` for blanks; `ENTITY` if it is empty."""
    name = BLANKS.sub("_", label) or "ENTITY"
    losses["labels changed"] += name != label
    return name


def warn_losses(format: str, losses: Losses) -> None:
    changes = ", ".join(f"{count} {what}" for what, count in losses.items() if count)
    if changes:
        warnings.warn(
            f"[W520] Expected documents that {format} can hold as they are, but: "
            f"{changes}. Choose another format to lose nothing; "
            f"{SITE}formats.html describes each format.",
            stacklevel=3,
        )


def needs_text(*, format: object) -> SapbertError:
    return SapbertError(
        "E110",
        f"Expected a format that can leave the text out, but got {format}. Choose "
        "another `--format`, or remove `--no-text`.",
    )
