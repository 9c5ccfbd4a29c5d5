"""Bodies of requests, and of the answers to them, as OpenAPI describes them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar, get_origin

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo

from ..formats.entities import LinkedEntity
from ..kb.database import is_encodable
from ..kb.folder.records import Calibration, Counts, Teaching
from ..linking.candidates import Candidate
from ..linking.certainty import Certainty
from ..linking.filters import FILTER_FIELDS
from ..linking.options import OPTIONS
from ..verification.verdicts import Verdict
from .lookup import ConceptName, SearchedConcept
from .problems import Problem, too_much_in_request, wrong_request
from .settings import Limits

MOST_VALUES = 10_000  # of a filter
LONGEST_VALUE = 1_000  # characters of an id, a type or a label
MOST_FOUND = 100  # concepts of an answer
MOST_CODED = 1_000  # concepts of a request for codes

Model = TypeVar("Model", bound=BaseModel)
Value = Annotated[str, Field(min_length=1, max_length=LONGEST_VALUE)]
Values = Annotated[list[Value], Field(max_length=MOST_VALUES)]


# Types of options that are not endless in a request
LIMITED: dict[Any, Any] = {
    tuple: Values,
    Mapping: Annotated[dict[Value, Values], Field(max_length=MOST_VALUES)],
}


def describe_setting(option: FieldInfo) -> Any:
    """Return type and default of a setting of a request; None = as the pipeline."""
    kind: Any = option.annotation
    if option.metadata:
        kind = Annotated[kind, *option.metadata]
    kind = LIMITED.get(get_origin(option.annotation), kind)
    return kind | None, Field(None, description=option.description)


# How to link. The fields of the filter are settings of their own.
SETTINGS = {name: field for name, field in OPTIONS.items() if name != "filter"}
LinkSettings: Any = create_model(
    "LinkSettings",
    __config__=ConfigDict(extra="forbid", strict=True),
    __doc__="How to link; what is missing is as the pipeline has it.",
    **{n: describe_setting(field) for n, field in (SETTINGS | FILTER_FIELDS).items()},
)


def read_settings(request: Any) -> dict[str, Any]:
    """Return the settings of a request that are given, as `change_options` expects."""
    given = {name: getattr(request, name) for name in [*SETTINGS, *FILTER_FIELDS]}
    filter = {name: given.pop(name) for name in FILTER_FIELDS}
    filter = {name: values for name, values in filter.items() if values}
    given["filter"] = filter or None
    return {name: value for name, value in given.items() if value is not None}


class LinkRequest(LinkSettings):
    """Texts whose mentions are detected and linked."""

    texts: list[str]


class MentionsRequest(LinkSettings):
    """Mentions to link, each on its own, and the labels of their entities."""

    mentions: list[str]
    labels: list[Annotated[str, Field(max_length=LONGEST_VALUE)]] | None = None


class JudgedEntity(LinkedEntity):
    """A linked entity, and how far its link can be trusted; see `judge_link`."""

    certainty: Certainty


class LinkedText(BaseModel):
    """The entities of a text, or why there are none."""

    entities: list[JudgedEntity]
    error: Problem | None = None


class LinkAnswer(BaseModel):
    """One result for each text, in order, and the digest of the knowledge base."""

    kb: str
    documents: list[LinkedText]


class LinkedMention(BaseModel):
    """The link of a mention; see https://spacy-sapbert.github.io/spacy-sapbert/linker.html."""

    cui: str | None
    note: str | None
    candidates: list[Candidate]
    certainty: Certainty


class MentionsAnswer(BaseModel):
    """One result for each mention, in order, and the digest of the knowledge base."""

    kb: str
    mentions: list[LinkedMention]


class VerifyRequest(BaseModel):
    """Pairs of text and id to verify; see `KnowledgeBase.verify`.

    Attributes:
        labels: The names that stand beside the ids; "" = none.
        contexts: The document of each text.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    texts: list[str]
    ids: list[Annotated[str, Field(max_length=LONGEST_VALUE)]]
    labels: list[Annotated[str, Field(max_length=LONGEST_VALUE)]] | None = None
    contexts: list[str] | None = None


class VerifyAnswer(BaseModel):
    """The verdict on each pair, in order, and the digest of the knowledge base."""

    kb: str
    verdicts: list[Verdict]


class SearchRequest(BaseModel):
    """A text to search concepts for: an id, a code, a name or its beginning.

    Attributes:
        types: Allowed semantic types; empty = all.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    text: Value
    k: Annotated[int, Field(ge=1, le=MOST_FOUND)] = 10
    types: Values = []


class SearchAnswer(BaseModel):
    """Names that begin with the text first, then the nearest ones."""

    concepts: list[SearchedConcept]


class CodesRequest(BaseModel):
    """Ids of concepts whose codes are wanted."""

    model_config = ConfigDict(extra="forbid", strict=True)

    cuis: Annotated[list[Value], Field(max_length=MOST_CODED)]


class CodesAnswer(BaseModel):
    """The codes by concept and vocabulary; concepts without one are left out."""

    codes: dict[str, dict[str, list[str]]]


class RootsAnswer(BaseModel):
    """Concepts at the top of the hierarchy."""

    concepts: list[ConceptName]


class KbAnswer(BaseModel):
    """A knowledge base, and what a link must reach.

    Attributes:
        threshold: Least probability of a link.
        least_cosine: Least score of a link; null = any.
        reviews: Whether decisions of reviewers are kept.
        codes: The vocabularies whose codes are shown, the first one unless another is
            chosen: those of the option `codes`, else all.
    """

    digest: str
    counts: Counts
    sources: list[str]
    threshold: float
    least_cosine: float | None
    calibration: Calibration | None
    taught: Teaching | None
    reviews: bool
    codes: list[str]


def validate(model: type[Model], given: Mapping[str, Any]) -> Model:
    """Return a model of values that are no body of JSON."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None


def check_texts(texts: Sequence[str], limits: Limits, what: str) -> None:
    """Check number and length of texts (`what` they are), and that they are Unicode."""
    for limit, unit, got in (
        (limits.documents, what, len(texts)),
        (limits.characters, f"characters of {what}", sum(map(len, texts))),
    ):
        if got > limit:
            raise too_much_in_request(limit, unit, got)
    if not all(map(is_encodable, texts)):
        expected = f"{what} without half a surrogate pair"
        raise wrong_request(expected)
