"""The lines of the table of `linker_options`: options alone, and put together."""

from statistics import fmean
from typing import Any, Dict, NamedTuple, Optional, Sequence

# What the labels of NCBI disease and BC5CDR mean.
LABEL_TYPES = {
    **dict.fromkeys(
        ("Disease", "SpecificDisease", "DiseaseClass", "CompositeMention", "Modifier"),
        ("DISO",),
    ),
    "Chemical": ("CHEM",),
}
PLAIN = "plain"
LABEL, LABEL_FILTER = "label", "label as filter"
ABBREVIATIONS = "abbreviations"
FUSIONS: Dict[str, Dict[str, Any]] = {
    "fusion weighted, 0.1": {"fusion": "weighted", "ngram_weight": 0.1},
    "fusion weighted, 0.2": {"fusion": "weighted", "ngram_weight": 0.2},
    "fusion rrf": {"fusion": "rrf"},
}


class Row(NamedTuple):
    """A line of the table.

    settings (Dict[str, Any]): Of the linker, where they differ from its defaults.
    abbreviations (bool): Whether abbreviations are expanded.
    base (Optional[str]): The line that it is compared with.
    """

    settings: Dict[str, Any]
    abbreviations: bool = False
    base: Optional[str] = PLAIN


def list_options(
    orders: Sequence[Sequence[str]], *, ngrams: bool = True
) -> Dict[str, Row]:
    """List the lines of the table that have one option each.

    orders (Sequence[Sequence[str]]): Of vocabularies, the one that counts most first.
    ngrams (bool): Whether the knowledge base has what fusion needs.
    RETURNS (Dict[str, Row]): By name.
    """
    nothing: Dict[str, Any] = {"tie_evidence": ()}
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


def mean_gains(files: Sequence[Dict[str, Any]]) -> Dict[str, float]:
    """Average what options bring over files.

    files (Sequence[Dict[str, Any]]): Each with `rows`, from `describe_row`.
    RETURNS (Dict[str, float]): The mean difference of Acc@1 by line.
    """
    lines = [name for name, row in files[0]["rows"].items() if "difference" in row]
    return {
        name: fmean(file["rows"][name]["difference"] for file in files)
        for name in lines
    }


def choose_steps(rows: Dict[str, Row], gains: Dict[str, float]) -> Dict[str, Row]:
    """Put the options together that help, one after the other.

    Evidence that helps orders ties, what helps most first; of the two uses of labels,
    of several orders of vocabularies and of fusions the best is taken.

    rows (Dict[str, Row]): From `list_options`.
    gains (Dict[str, float]): What each adds to Acc@1, by its name.
    RETURNS (Dict[str, Row]): The lines, each with what those before it have.
    """
    helping = sorted((n for n in gains if gains[n] > 0), key=lambda n: -gains[n])
    as_filter = LABEL_FILTER in helping and gains[LABEL_FILTER] > gains.get(LABEL, 0)
    settings: Dict[str, Any] = {"tie_evidence": ()}
    for name in helping:
        evidence = rows[name].settings["tie_evidence"]
        if set(evidence) - {*settings["tie_evidence"]} and not (
            name == LABEL and as_filter
        ):
            both = (*settings["tie_evidence"], *evidence)
            settings = {**settings, **rows[name].settings, "tie_evidence": both}
    steps: Dict[str, Row] = {}
    if settings["tie_evidence"]:
        steps[f"ties: {', '.join(settings['tie_evidence'])}"] = Row(settings)

    def add_step(name: str, more: Dict[str, Any], abbreviations: bool) -> None:
        base = list(steps)[-1] if steps else PLAIN
        before = steps.get(base, rows[PLAIN])
        kept = {**before.settings, **more}
        steps[f"+ {name}"] = Row(kept, before.abbreviations or abbreviations, base)

    if as_filter:
        used = rows[LABEL_FILTER].settings
        names = ("label_types", "label_types_use")
        add_step(LABEL_FILTER, {name: used[name] for name in names}, False)
    if ABBREVIATIONS in helping:
        add_step(ABBREVIATIONS, {}, True)
    best = next((name for name in helping if name in FUSIONS), None)
    if best is not None:
        add_step(best, FUSIONS[best], False)
    return steps
