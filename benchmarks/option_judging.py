"""Documents + a line of the table of `linker_options` → how much of it is right."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from tqdm import tqdm

from benchmarks.option_rows import PLAIN, Row
from spacy_sapbert.errors import Errors, SapbertError
from spacy_sapbert.evaluation.accuracy import combine_parts, score_ranking
from spacy_sapbert.evaluation.compare import bootstrap_interval, mcnemar_test
from spacy_sapbert.evaluation.gold_mentions import GoldMention, Resolve
from training.corpora.registry import change_prefix

KS = (1, 5)
GOLD = "gold"  # the span group of the mentions


class Outcome(NamedTuple):
    """What a line of the table found for the mentions of a file.

    right (np.ndarray): Whether all is among the first k. Shape: (n, k of `KS`).
    decided (list[str | None]): What put each first answer before an equal one; None
        if no other has its score.
    possible (np.ndarray): Whether one of the answers with the best score is right.
        Shape: (n,).
    """

    right: np.ndarray
    decided: list[str | None]
    possible: np.ndarray


def read_golds(doc: Doc, prefix: str) -> list[GoldMention]:
    """Return the mentions of a Doc and what they mean.

    doc (Doc): From `read_docs`.
    prefix (str): Put before ids without a colon.
    RETURNS (list[GoldMention]): In the order of its span group.
    """
    group = doc.spans[GOLD]
    return [
        GoldMention(
            0,
            "",
            span.text,
            [[change_prefix(c, prefix=prefix, drop_prefix="") for c in p] for p in ids],
        )
        for span, ids in zip(group, group.attrs["ids"], strict=True)
    ]


def judge_mention(
    candidates: Sequence[dict[str, Any]],
    parts: Sequence[Any],
    aliases: dict[str, str],
) -> tuple[list[bool], str | None, bool]:
    """Judge what the linker says of a mention, in the order in which it says it.

    candidates (Sequence[dict[str, Any]]): The best first.
    parts (Sequence[frozenset[str]]): What is right.
    aliases (dict[str, str]): Ids that another one stands for.
    RETURNS (tuple[list[bool], str | None, bool]): As the fields of `Outcome`.
    """
    cuis = [aliases.get(found["cui"], found["cui"]) for found in candidates]
    ranking = [(-float(rank), cui) for rank, cui in enumerate(dict.fromkeys(cuis))]
    right = [bool(score_ranking(ranking, parts, k)[0]) for k in KS]
    if not candidates:
        return right, None, False
    best = candidates[0]["score"]
    tied = [
        (best, cui)
        for cui, found in zip(cuis, candidates, strict=True)
        if found["score"] == best
    ]
    possible = bool(score_ranking(list(dict.fromkeys(tied)), parts, 1)[0])
    return right, candidates[0]["tie"], possible


def choose_golds(
    docs: Sequence[Doc], resolve: Resolve, prefix: str
) -> tuple[list[list[Any]], dict[str, int]]:
    """Find out which mentions are judged: those with ids that are all known.

    docs (Sequence[Doc]): The documents.
    resolve (Resolve): Gives the concepts of a mention.
    prefix (str): Put before ids without a colon.
    RETURNS (tuple[list[list[Any]], dict[str, int]]): What is right for each mention of
        each document, empty for those that are left out; and counts.
    RAISES (SapbertError): If none is left.
    """
    chosen: list[list[Any]] = []
    counts = {"documents": len(docs), "mentions": 0, "without_id": 0}
    counts.update(judged=0, widened=0)
    for doc in docs:
        starts, ends = (
            doc.spans[GOLD].attrs[end] for end in ("start_char", "end_char")
        )
        counts["widened"] += sum(
            (span.start_char, span.end_char) != (start, end)
            for span, start, end in zip(doc.spans[GOLD], starts, ends, strict=True)
        )
        parts = [resolve(gold) for gold in read_golds(doc, prefix)]
        known = [combine_parts(p, "parts") if all(p) else [] for p in parts]
        counts["mentions"] += len(parts)
        counts["without_id"] += sum(not part for part in parts)
        counts["judged"] += sum(bool(part) for part in known)
        chosen.append(known)
    if not counts["judged"]:
        raise SapbertError(Errors.E730.format(mentions=counts["mentions"]))
    return chosen, counts


def judge_row(
    nlp: Language,
    docs: Sequence[Doc],
    golds: Sequence[Sequence[Any]],
    row: Row,
    aliases: dict[str, str],
    *,
    name: str = "",
    progress: bool = False,
) -> Outcome:
    """Link the mentions of documents in one way, and judge them.

    nlp (Language): From `make_pipeline`.
    docs (Sequence[Doc]): The documents; they stay as they are.
    golds (Sequence[Sequence[Any]]): From `choose_golds`.
    row (Row): The way.
    aliases (dict[str, str]): Ids that another one stands for.
    name (str): Of the way, for the bar.
    progress (bool): Show a bar.
    RETURNS (Outcome): Of the mentions that are judged.
    """
    disabled = [] if row.abbreviations else ["sapbert_abbreviations"]
    settings = {"sapbert_linker": row.settings}
    judged: list[tuple[list[bool], str | None, bool]] = []
    with nlp.select_pipes(disable=disabled):
        linked = nlp.pipe((doc.copy() for doc in docs), component_cfg=settings)
        bar = tqdm(linked, name, len(docs), disable=not progress, unit=" docs")
        for doc, gold in zip(bar, golds, strict=True):
            found = doc.spans[GOLD].attrs.get("candidates", [])
            judged += [
                judge_mention(candidates, parts, aliases)
                for candidates, parts in zip(found, gold, strict=True)
                if parts
            ]
    right, decided, possible = zip(*judged, strict=True)
    return Outcome(np.array(right), list(decided), np.array(possible))


def describe_row(outcome: Outcome, base: Outcome | None) -> dict[str, Any]:
    """Sum up what a line of the table found.

    outcome (Outcome): Of the line.
    base (Outcome | None): Of the line that it is compared with.
    RETURNS (dict[str, Any]): Accuracy; and the difference at k = 1 with its interval,
        and how likely it is by chance.
    """
    means = outcome.right.mean(axis=0)
    found: dict[str, Any] = {
        f"acc@{k}": round(float(mean), 6) for k, mean in zip(KS, means, strict=True)
    }
    if base is not None:
        change = outcome.right[:, 0].astype(int) - base.right[:, 0]
        better, worse = int((change > 0).sum()), int((change < 0).sum())
        low, high = bootstrap_interval(change)
        found.update(
            difference=round(float(change.mean()), 6),
            interval=[round(low, 6), round(high, 6)],
            better=better,
            worse=worse,
            p=mcnemar_test(worse, better),
        )
    return found


def mean_gains(
    files: Sequence[dict[str, Outcome]], rows: dict[str, Row]
) -> dict[str, float]:
    """Average what lines of the table bring over files.

    files (Sequence[dict[str, Outcome]]): By the names of the lines.
    rows (dict[str, Row]): The lines.
    RETURNS (dict[str, float]): By name, the mean difference of Acc@1 from the line that
        it is compared with.
    """
    return {
        name: fmean(
            float(file[name].right[:, 0].mean() - file[row.base].right[:, 0].mean())
            for file in files
        )
        for name, row in rows.items()
        if row.base is not None
    }


def describe_ties(outcomes: dict[str, Outcome]) -> dict[str, Any]:
    """Say how often the best score is shared, and who gets these mentions right.

    outcomes (dict[str, Outcome]): By the names of the lines; one is `PLAIN`.
    RETURNS (dict[str, Any]): How many ties there are and how many have a right answer;
        and for each line how many it decides by more than the order of ids, how many of
        these it gets right, how many of them the order of ids does, and how many it
        gets right of all.
    """
    plain = outcomes[PLAIN]
    tied = np.array([name is not None for name in plain.decided], dtype=bool)
    lines: dict[str, Any] = {}
    for name, outcome in outcomes.items():
        decides = tied & np.array([d not in (None, "id") for d in outcome.decided])
        lines[name] = {
            "decides": int(decides.sum()),
            "right_where_it_decides": int(outcome.right[decides, 0].sum()),
            "right_there_by_id": int(plain.right[decides, 0].sum()),
            "right": int(outcome.right[tied, 0].sum()),
        }
    possible = int(plain.possible[tied].sum())
    return {"ties": int(tied.sum()), "possible": possible, "lines": lines}
