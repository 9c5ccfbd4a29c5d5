"""The options of linking, each declared once.

From `LinkOptions` come the default config of the linker, its checks, its properties,
the key of cached searches, `--setting`, the requests of the service, and a list in
docs/linker.md. A new option is a field here, its use, and its test; then run
`python docs/generate.py`.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, PlainValidator

from ..errors import SapbertError
from .declared import (
    Option,
    OrderedTexts,
    SortedTexts,
    check_fields,
    declare,
    order_texts,
    wrong_label_types,
)
from .filters import Filter, make_filter

Evidence = Literal["label", "annotated", "preferred", "source", "coherence"]
EVIDENCE: tuple[Evidence, ...] = get_args(Evidence)


NO_LABELS: Mapping[str, tuple[str, ...]] = MappingProxyType({})


def freeze_labels(
    labels: Mapping[str, tuple[str, ...]],
) -> Mapping[str, tuple[str, ...]]:
    """Return a copy of the types of labels that cannot be changed.

    Raises:
        SapbertError: If a label has none, which would mean all types in a filter.
    """
    for label, types in labels.items():
        if not types:
            raise wrong_label_types(got=f"no type for {label!r}")
    return MappingProxyType(dict(labels))


@dataclass(frozen=True)
class LinkOptions:
    """How mentions are linked.

    Each value is checked, and lists become tuples. docs/linker.md explains all.

    Raises:
        SapbertError: If a value is not possible.

    Examples:
        >>> options = LinkOptions(k=3, filter={"types": ["DISO"]})
        >>> kb.link(["heart attack"], options=options)[0].cui
        'C0027051'
    """

    k: Annotated[
        int, Option("number of candidates for a mention", 1, 1000, changes_search=True)
    ] = 10
    threshold: Annotated[
        float | None,
        Option(
            "score that the first candidate must reach, else the mention has no "
            "concept; null = the threshold of the knowledge base, 0 = link everything",
            low=-1,
            high=1,
            changes_search=True,
        ),
    ] = None
    candidate_threshold: Annotated[
        float | None,
        Option(
            "score that the other candidates must reach to be listed; null = all are "
            "listed",
            low=-1,
            high=1,
        ),
    ] = None
    ambiguous: Annotated[
        Literal["link", "nil"],
        Option(
            '"nil" = a mention has no concept if only the order of the ids breaks the '
            "tie",
        ),
    ] = "link"
    tie_evidence: Annotated[
        tuple[Evidence, ...],
        BeforeValidator(order_texts),
        Option("evidence that breaks ties, the most important first"),
    ] = ("label", "annotated", "preferred", "source")
    source_rank: Annotated[
        OrderedTexts,
        Option('for the evidence "source": vocabularies, the best first'),
    ] = ()
    codes: Annotated[
        OrderedTexts,
        Option(
            'vocabularies whose codes are set, e.g. ["SNOMEDCT_US", "ICD10CM"]; '
            "empty = all",
        ),
    ] = ()
    label_types_use: Annotated[
        Literal["filter", "evidence"],
        Option(
            '"filter" = an entity finds only concepts with the types of its label; '
            '"evidence" = the types only break ties',
        ),
    ] = "filter"
    label_types: Annotated[
        Mapping[str, SortedTexts],
        AfterValidator(freeze_labels),
        Option(
            'semantic types or groups of the labels, e.g. DISEASE = ["T047"]',
        ),
    ] = field(default_factory=lambda: NO_LABELS)
    filter: Annotated[
        Filter,
        PlainValidator(make_filter),
        Option(
            'limits the concepts and names, e.g. types = ["DISO"] or defined = true',
        ),
    ] = Filter()

    def __post_init__(self) -> None:
        check_fields(self)

    def search_key(self) -> Hashable:
        """Return the values on which a search depends, besides mention and filter."""
        return tuple(getattr(self, name) for name in SEARCH_OPTIONS)

    def to_config(self) -> dict[str, Any]:
        """Return the options as a config has them: plain JSON types, by name."""
        values: dict[str, Any] = {}
        for name in OPTIONS:
            value = getattr(self, name)
            values[name] = [*value] if isinstance(value, tuple) else value
        values["label_types"] = {k: [*v] for k, v in self.label_types.items()}
        values["filter"] = self.filter.to_config()
        return values

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "label_types": dict(self.label_types)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state["label_types"] = freeze_labels(state["label_types"])
        self.__dict__.update(state)


OPTIONS = declare(LinkOptions)
SEARCH_OPTIONS = [name for name in OPTIONS if OPTIONS[name].option.changes_search]
DEFAULT_OPTIONS = LinkOptions()


def change_options(base: LinkOptions, changes: Mapping[str, Any]) -> LinkOptions:
    """Return options with some values replaced.

    Args:
        changes: Values by name, from a config or a call.

    Raises:
        SapbertError: If a name is unknown or a value is not possible.
    """
    for name in changes:
        if name not in OPTIONS:
            known = [*OPTIONS]
            raise SapbertError(
                "E333",
                f"Expected one of the settings {known}, but got {repr(name)}. Correct "
                "its name.",
            )
    return replace(base, **changes) if changes else base
