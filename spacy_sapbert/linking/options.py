"""The options of linking, each declared once.

From `LinkOptions` come the default config of the linker, its checks, its properties,
the key of cached searches, `--setting`, the requests of the service, and a list on the
page of the linker. A new option is a field here, its use, and its test; then run
`python docs/generate.py`.
"""

from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, field_validator

from ..errors import SapbertError
from .filters import Filter, make_filter
from .settings_base import (
    OrderedTexts,
    Settings,
    SomeTexts,
    order_texts,
    unknown_setting,
)

Evidence = Literal["label", "annotated", "case", "preferred", "source", "coherence"]
EVIDENCE: tuple[Evidence, ...] = get_args(Evidence)
Cosine = Annotated[float, Field(ge=-1, le=1)]
Probability = Annotated[float, Field(ge=0, le=1)]
CHANGES_SEARCH: dict[str, Any] = {"changes_search": True}


class LinkOptions(Settings):
    """How mentions are linked.

    https://spacy-sapbert.github.io/spacy-sapbert/linker.html explains all.

    `changes_search` marks options on which the candidates found or their scores depend.

    Examples:
        >>> options = LinkOptions(k=3, filter={"types": ["DISO"]})
        >>> kb.link(["heart attack"], options=options)[0].cui
        'C0027051'
    """

    k: int = Field(
        default=10,
        ge=1,
        le=1000,
        description="number of candidates for a mention",
        json_schema_extra=CHANGES_SEARCH,
    )
    threshold: Probability | None = Field(
        default=None,
        description="probability that the first candidate must have, else the mention "
        "has no concept; null = the threshold of the knowledge base, 0 = link "
        "everything",
        json_schema_extra=CHANGES_SEARCH,
    )
    least_cosine: Cosine | None = Field(
        default=None,
        description="score, a cosine, that the first candidate must reach as well; "
        "null = any",
        json_schema_extra=CHANGES_SEARCH,
    )
    candidate_threshold: Cosine | None = Field(
        default=None,
        description="score that the other candidates must reach to be listed; null = "
        "all are listed",
    )
    ambiguous: Literal["link", "nil"] = Field(
        default="link",
        description='"nil" = a mention has no concept if only the order of the ids '
        "breaks the tie",
    )
    tie_evidence: Annotated[tuple[Evidence, ...], BeforeValidator(order_texts)] = Field(
        default=("label", "annotated", "case", "preferred", "source"),
        description="evidence that breaks ties, the most important first",
    )
    source_rank: OrderedTexts = Field(
        default=(),
        description='for the evidence "source": vocabularies, the best first',
    )
    codes: OrderedTexts = Field(
        default=(),
        description='vocabularies whose codes are set, e.g. ["SNOMEDCT_US", '
        '"ICD10CM"]; empty = all',
    )
    label_types_use: Literal["filter", "evidence"] = Field(
        default="filter",
        description='"filter" = an entity finds only concepts with the types of its '
        'label; "evidence" = the types only break ties',
    )
    label_types: Annotated[
        Mapping[str, SomeTexts], AfterValidator(MappingProxyType)
    ] = Field(
        default_factory=lambda: MappingProxyType({}),
        description='semantic types or groups of the labels, e.g. DISEASE = ["T047"]',
    )
    filter: Annotated[Filter, BeforeValidator(make_filter)] = Field(
        default=Filter(),
        description='limits the concepts and names, e.g. types = ["DISO"] or '
        "defined = true",
    )

    @field_validator("threshold", mode="before")
    @classmethod
    def check_threshold(cls, value: Any) -> Any:
        return check_threshold(value) if isinstance(value, (int, float)) else value

    def search_key(self) -> Hashable:
        """Return the values on which a search depends, besides mention and filter."""
        return tuple(getattr(self, name) for name in SEARCH_OPTIONS)

    def to_config(self) -> dict[str, Any]:
        """Return the options as a config has them: plain JSON types, by name."""
        values = {
            name: [*value] if isinstance(value, tuple) else value
            for name, value in self
        }
        values["label_types"] = {k: [*v] for k, v in self.label_types.items()}
        values["filter"] = self.filter.to_config()
        return values

    def __reduce__(self) -> tuple[Any, ...]:
        values = {**dict(self), "label_types": dict(self.label_types)}
        return LinkOptions.model_validate, (values,)


OPTIONS = LinkOptions.model_fields
SEARCH_OPTIONS = [
    name for name, field in OPTIONS.items() if field.json_schema_extra == CHANGES_SEARCH
]
DEFAULT_OPTIONS = LinkOptions()


def check_threshold(threshold: float) -> float:
    """Return a threshold; an error if it cannot be a probability."""
    if not 0 <= threshold <= 1:
        raise SapbertError(
            "E331",
            "Expected `threshold` to be a probability, from 0 to 1, but got "
            f"{threshold!r}. Correct it; a limit of the cosine is the option "
            "`least_cosine`.",
        )
    return threshold


def change_options(base: LinkOptions, changes: Mapping[str, Any]) -> LinkOptions:
    """Return options with some values replaced, from a config or a call."""
    for name in changes:
        if name not in OPTIONS:
            raise unknown_setting(name=name, known=OPTIONS)
    return base.replace(**changes)
