"""How mentions are looked up: what the linker, the command line and Python all set."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ..errors import Errors, SapbertError
from .filters import Filter, check_texts, make_filter
from .fusion import FUSIONS, WEIGHT

EVIDENCE = ("label", "preferred", "source", "coherence")
CHOICES: dict[str, tuple[Any, ...]] = {
    "broader": (False, True),
    "label_types_use": ("filter", "evidence"),
    "ambiguous": ("link", "nil"),
    "fusion": (None, *FUSIONS),
}
RANGES = {"k": (1, 1000), "threshold": (-1, 1), "ngram_weight": (0, 1)}
ORDERED = ("tie_evidence", "source_rank")


@dataclass(frozen=True)
class LinkOptions:
    """How mentions are looked up.

    k (int): Concepts for each at the most, 1 to 1000.
    threshold (float | None): Cosine under which the best one does not count, −1 to
        1; None = the one of the knowledge base, if it has one.
    broader (bool): A mention whose best candidate is under the threshold has the
        parent of its candidates for which most speaks, if there is one.
    filter (Filter): What may be found.
    label_types (Mapping[str, tuple[str, ...]]): The semantic types or groups that
        entities with a label can have; a label that is not there can have all.
    label_types_use (str): "filter" = such an entity finds no other concept;
        "evidence" = they only order concepts with equal scores.
    tie_evidence (tuple[str, ...]): What orders concepts with equal scores, of
        `EVIDENCE`, the most important first.
    source_rank (tuple[str, ...]): For the evidence "source": the vocabularies whose
        names count most, the best first.
    ambiguous (str): What becomes of a tie that only the order of the ids decides:
        "link" = the first of them, "nil" = no concept.
    fusion (str | None): How cosine and likeness of characters are put together:
        "weighted", or "rrf" by their ranks; None = the cosine alone.
    ngram_weight (float): For the fusion "weighted": the share of the characters.
    """

    k: int = 10
    threshold: float | None = None
    broader: bool = False
    filter: Filter = Filter()
    label_types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    label_types_use: str = "filter"
    tie_evidence: tuple[str, ...] = ("label", "preferred", "source")
    source_rank: tuple[str, ...] = ()
    ambiguous: str = "link"
    fusion: str | None = None
    ngram_weight: float = WEIGHT


OPTION_NAMES = [option.name for option in fields(LinkOptions)]
DEFAULT_OPTIONS = LinkOptions()


def change_options(base: LinkOptions, changes: Mapping[str, Any]) -> LinkOptions:
    """Check settings, and put them over others.

    base (LinkOptions): What holds where nothing is said.
    changes (Mapping[str, Any]): Values by name, as a config or a call has them.
    RETURNS (LinkOptions): The options.
    RAISES (SapbertError): If a name is unknown or a value not possible.
    """
    clean: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in OPTION_NAMES:
            raise SapbertError(Errors.E333.format(known=OPTION_NAMES, got=repr(name)))
        clean[name] = check_option(name, value)
    return replace(base, **clean)


def check_option(name: str, value: Any) -> Any:
    """Check one setting.

    name (str): A field of `LinkOptions`.
    value (Any): What was given.
    RETURNS (Any): As the field holds it.
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
    # A one is no True here.
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
