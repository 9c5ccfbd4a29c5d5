"""Bodies of requests, and of the answers to them, as OpenAPI describes them."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from ..errors import Errors
from ..formats.entities import LinkedEntity
from ..kb.database import is_encodable
from ..linking.candidates import Candidate
from .lookup import FoundConcept
from .problems import Problem, RequestError
from .settings import Limits

MOST_VALUES = 10_000  # of a filter
LONGEST_VALUE = 1_000  # characters of an id, a type or a label

Value = Annotated[str, Field(min_length=1, max_length=LONGEST_VALUE)]
Values = Annotated[list[Value], Field(max_length=MOST_VALUES)]


class LinkSettings(BaseModel):
    """How to link; what is missing is as the pipeline has it.

    k: Maximum of candidates.
    threshold: Score below which a mention has no concept.
    types, sources, languages: Limit the concepts and names.
    allow, deny: Ids of concepts.
    codes: Vocabularies whose codes are in the answer.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    k: int | None = Field(None, ge=1, le=1000)
    threshold: float | None = Field(None, ge=-1, le=1)
    types: Values | None = None
    sources: Values | None = None
    languages: Values | None = None
    allow: Values | None = None
    deny: Values | None = None
    codes: Values | None = None

    def options(self) -> dict[str, Any]:
        """Return what is given, as `change_options` expects it."""
        given: dict[str, Any] = {"k": self.k, "threshold": self.threshold}
        given["codes"] = self.codes
        names = ("types", "sources", "languages", "allow", "deny")
        filter = {name: getattr(self, name) for name in names}
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


class ExplainRequest(LinkSettings):
    """A mention, or a text with [[marks]] around it, and what it should be."""

    mention: str | None = None
    context: str | None = None
    label: Value | None = None
    expected: Value | None = None


class LinkedText(BaseModel):
    """The entities of a text, or why there are none."""

    entities: list[LinkedEntity]
    error: Problem | None = None


class LinkAnswer(BaseModel):
    """One result for each text, in order, and the digest of the knowledge base."""

    kb: str
    documents: list[LinkedText]


class LinkedMention(BaseModel):
    """The link of a mention; see docs/linker.md."""

    cui: str | None
    note: str | None
    candidates: list[Candidate]


class MentionsAnswer(BaseModel):
    """One result for each mention, in order, and the digest of the knowledge base."""

    kb: str
    mentions: list[LinkedMention]


class SearchAnswer(BaseModel):
    """Names that begin with the text first, then the nearest ones."""

    concepts: list[FoundConcept]


def check_texts(texts: Sequence[str], limits: Limits, what: str) -> None:
    """Check the number and the length of texts, and that they are Unicode.

    what (str): What they are, for the error.
    RAISES (RequestError): If there are too many, or they are too long, or one has half
        a surrogate pair.
    """
    for limit, unit, got in (
        (limits.documents, what, len(texts)),
        (limits.characters, f"characters of {what}", sum(map(len, texts))),
    ):
        if got > limit:
            text = Errors.E458.format(limit=limit, what=unit, got=got)
            raise RequestError(text, 413)
    if not all(map(is_encodable, texts)):
        expected = f"{what} without half a surrogate pair"
        raise RequestError(Errors.E457.format(expected=expected), 422)
