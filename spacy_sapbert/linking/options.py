"""Options of linking, shared by the linker, the command line and Python."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ..errors import Errors, SapbertError
from .filters import Filter, check_texts, make_filter
from .fusion import FUSIONS, WEIGHT

EVIDENCE = ("label", "annotated", "preferred", "source", "coherence")
CHOICES: dict[str, tuple[Any, ...]] = {
    "broader": (False, True),
    "label_types_use": ("filter", "evidence"),
    "ambiguous": ("link", "nil"),
    "fusion": (None, *FUSIONS),
}
RANGES = {"k": (1, 1000), "threshold": (-1, 1), "ngram_weight": (0, 1)}
ORDERED = ("tie_evidence", "source_rank", "codes")


@dataclass(frozen=True)
class LinkOptions:
    """How mentions are linked.

    k (int): Maximum of candidates, 1 to 1000.
    threshold (float | None): A mention whose best cosine is lower has no concept, −1 to
        1; None = the threshold of the knowledge base, if it has one.
    broader (bool): Link a mention below the threshold to a parent of its candidates.
    filter (Filter): Limits the concepts and names.
    label_types (Mapping[str, tuple[str, ...]]): Semantic types or groups of each label;
        other labels can have all types.
    label_types_use (str): "filter" = an entity finds only concepts with the types of
        its label; "evidence" = the types only break ties.
    tie_evidence (tuple[str, ...]): Evidence that breaks ties, of `EVIDENCE`, the most
        important first.
    source_rank (tuple[str, ...]): For the evidence "source": vocabularies, the best
        first.
    ambiguous (str): The link of a tie that only the order of the ids breaks: "link" =
        to the first concept, "nil" = no concept.
    fusion (str | None): "weighted" or "rrf": cosine and similarity of characters; None
        = the cosine alone.
    ngram_weight (float): Weight of the characters for the fusion "weighted".
    codes (tuple[str, ...]): Vocabularies whose codes candidates have, in this order;
        empty = all.
    """

    k: int = 10
    threshold: float | None = None
    broader: bool = False
    filter: Filter = Filter()
    label_types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    label_types_use: str = "filter"
    tie_evidence: tuple[str, ...] = ("label", "annotated", "preferred", "source")
    source_rank: tuple[str, ...] = ()
    ambiguous: str = "link"
    fusion: str | None = None
    ngram_weight: float = WEIGHT
    codes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if not isinstance(value, (Filter, tuple)):
                clean = check_option(option.name, value)
                object.__setattr__(self, option.name, clean)

    def search_key(self) -> tuple[Any, ...]:
        """Return the options that change a search: the key of its cache."""
        return self.k, self.threshold, self.fusion, self.ngram_weight


OPTION_NAMES = [option.name for option in fields(LinkOptions)]


def change_options(base: LinkOptions, changes: Mapping[str, Any]) -> LinkOptions:
    """Return options with some values replaced.

    base (LinkOptions): The options.
    changes (Mapping[str, Any]): Values by name, from a config or a call.
    RAISES (SapbertError): If a name is unknown or a value is not possible.
    """
    clean: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in OPTION_NAMES:
            raise SapbertError(Errors.E333.format(known=OPTION_NAMES, got=repr(name)))
        clean[name] = check_option(name, value)
    return replace(base, **clean)


def check_option(name: str, value: Any) -> Any:
    """Check one value and return it as the field of `LinkOptions` holds it.

    RAISES (SapbertError): If it is not possible.
    """
    if name == "filter":
        return make_filter(value)
    if name == "label_types":
        if not isinstance(value, Mapping):
            raise SapbertError(Errors.E334.format(got=type(value).__name__))
        return {
            label: check_texts(f"label_types.{label}", types)
            for label, types in value.items()
        }
    if name in ORDERED:
        # A set has no order.
        check_texts(name, None if isinstance(value, (set, frozenset)) else value)
        if name == "tie_evidence" and (
            unknown := [v for v in value if v not in EVIDENCE]
        ):
            raise SapbertError(
                Errors.E335.format(
                    setting=name, known=list(EVIDENCE), got=repr(unknown[0])
                )
            )
        return tuple(dict.fromkeys(value))
    # 1 is not True here.
    if name in CHOICES and not any(
        value == choice and type(value) is type(choice) for choice in CHOICES[name]
    ):
        raise SapbertError(
            Errors.E335.format(setting=name, known=list(CHOICES[name]), got=repr(value))
        )
    if name in RANGES and (name, value) != ("threshold", None):
        low, high = RANGES[name]
        kinds = int if name == "k" else (int, float)
        number = isinstance(value, kinds) and not isinstance(value, bool)
        if not number or not low <= value <= high:
            raise SapbertError(
                Errors.E313.format(setting=name, low=low, high=high, value=value)
            )
    return value


DEFAULT_OPTIONS = LinkOptions()
