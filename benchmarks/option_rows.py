"""The lines of the table of `linker_options`: options alone, and put together."""

from collections.abc import Sequence
from typing import Any, NamedTuple

# What the labels of NCBI disease and BC5CDR mean.
LABEL_TYPES = {
    **dict.fromkeys(
        ("Disease", "SpecificDisease", "DiseaseClass", "CompositeMention", "Modifier"),
        ("DISO",),
    ),
    "Chemical": ("CHEM",),
}
PLAIN = "plain"
NOT_CHOSEN = " (not chosen)"
LABEL, LABEL_FILTER = "label", "label as filter"
ABBREVIATIONS = "abbreviations"
FUSIONS: dict[str, dict[str, Any]] = {
    "fusion weighted, 0.1": {"fusion": "weighted", "ngram_weight": 0.1},
    "fusion weighted, 0.2": {"fusion": "weighted", "ngram_weight": 0.2},
    "fusion rrf": {"fusion": "rrf"},
}


class Row(NamedTuple):
    """A line of the table.

    settings (dict[str, Any]): Of the linker, where they differ from its defaults.
    abbreviations (bool): Whether abbreviations are expanded.
    base (str | None): The line that it is compared with.
    """

    settings: dict[str, Any]
    abbreviations: bool = False
    base: str | None = PLAIN


def list_options(
    orders: Sequence[Sequence[str]], *, ngrams: bool = True
) -> dict[str, Row]:
    """List the lines of the table that have one option each.

    orders (Sequence[Sequence[str]]): Of vocabularies, the one that counts most first.
    ngrams (bool): Whether the knowledge base has what fusion needs.
    RETURNS (dict[str, Row]): By name.
    """
    nothing: dict[str, Any] = {"tie_evidence": ()}
    types = {"label_types": LABEL_TYPES}
    by_label = {"tie_evidence": ("label",), "label_types_use": "evidence", **types}
    rows = {
        PLAIN: Row(nothing, base=None),
        "preferred": Row({"tie_evidence": ("preferred",)}),
        LABEL: Row(by_label),
        LABEL_FILTER: Row({**nothing, "label_types_use": "filter", **types}),
    }
    for order in orders:
        settings = {"tie_evidence": ("source",), "source_rank": order}
        rows[f"source: {' > '.join(order)}"] = Row(settings)
    rows["coherence"] = Row({"tie_evidence": ("coherence",)})
    rows[ABBREVIATIONS] = Row(nothing, abbreviations=True)
    for name, settings in FUSIONS.items() if ngrams else ():
        rows[name] = Row({**nothing, **settings})
    return rows


def choose_steps(rows: dict[str, Row], gains: dict[str, float]) -> dict[str, Row]:
    """Put the options together that help, one after the other, but for fusion.

    Evidence that helps orders ties, what helps most first; of the two uses of labels
    and of several orders of vocabularies the best is taken.

    rows (dict[str, Row]): From `list_options`.
    gains (dict[str, float]): What each adds to Acc@1, by its name.
    RETURNS (dict[str, Row]): The lines, each with what those before it have.
    """
    helping = sorted((n for n in gains if gains[n] > 0), key=lambda n: -gains[n])
    as_filter = LABEL_FILTER in helping and gains[LABEL_FILTER] > gains.get(LABEL, 0)
    settings: dict[str, Any] = {"tie_evidence": ()}
    for name in helping:
        evidence = rows[name].settings["tie_evidence"]
        if set(evidence) - {*settings["tie_evidence"]} and not (
            name == LABEL and as_filter
        ):
            both = (*settings["tie_evidence"], *evidence)
            settings = {**settings, **rows[name].settings, "tie_evidence": both}
    steps: dict[str, Row] = {}
    if settings["tie_evidence"]:
        steps[f"ties: {', '.join(settings['tie_evidence'])}"] = Row(settings)
    if as_filter:
        used = rows[LABEL_FILTER].settings
        more = {name: used[name] for name in ("label_types", "label_types_use")}
        base, before = last_row(rows, steps)
        settings = {**before.settings, **more}
        steps[f"+ {LABEL_FILTER}"] = Row(settings, base=base)
    if ABBREVIATIONS in helping:
        base, before = last_row(rows, steps)
        steps[f"+ {ABBREVIATIONS}"] = Row(before.settings, True, base)
    return steps


def last_row(rows: dict[str, Row], steps: dict[str, Row]) -> tuple[str, Row]:
    """Return the last step with its name, or what the first one builds on."""
    return ([(PLAIN, rows[PLAIN]), *steps.items()])[-1]


def list_fusions(rows: dict[str, Row], steps: dict[str, Row]) -> dict[str, Row]:
    """List what fusion may add to the steps.

    Which of them helps is asked for with what goes before: a short form that is
    expanded is nothing that characters could be wrong about.

    rows (dict[str, Row]): From `list_options`.
    steps (dict[str, Row]): From `choose_steps`.
    RETURNS (dict[str, Row]): A line for each fusion.
    """
    base, before = last_row(rows, steps)
    return {
        f"+ {name}": Row({**before.settings, **fusion}, before.abbreviations, base)
        for name, fusion in FUSIONS.items()
        if name in rows
    }


def choose_fusion(fusions: dict[str, Row], gains: dict[str, float]) -> dict[str, Row]:
    """Choose the last step.

    fusions (dict[str, Row]): From `list_fusions`.
    gains (dict[str, float]): What each adds to Acc@1, by its name.
    RETURNS (dict[str, Row]): The best one, also if it does not help: its name says so.
    """
    if not fusions:
        return {}
    best = max(fusions, key=lambda name: gains[name])
    return {best if gains[best] > 0 else f"{best}{NOT_CHOSEN}": fusions[best]}
