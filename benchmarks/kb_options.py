"""Filtered search, and broader concepts for mentions without a concept."""

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import typer

from benchmarks.harness import machine_line, print_table
from spacy_sapbert.encoder.huggingface import read_settings
from spacy_sapbert.evaluation.gold_mentions import read_mentions
from spacy_sapbert.kb.building.build import build_kb
from spacy_sapbert.kb.indexes.exact import search_rows
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.search import MENTIONS_AT_ONCE
from spacy_sapbert.linking.broader import SOFTNESS, rank_parents
from spacy_sapbert.linking.filters import Filter
from spacy_sapbert.linking.options import LinkOptions
from spacy_sapbert.linking.ranking import has_text
from spacy_sapbert.system.terminal import msg
from spacy_sapbert.vocabularies.concepts import read_concepts
from training.data.hold_out import hold_out

MENTIONS, K = 1000, 10  # mentions to link, candidates for each
TOLERANCE = 2e-6  # by which equal cosines in float32 may differ
SHARES = (1, 0.5, 0.1, 0.01, 0.001)  # of the concepts, allowed
EQUAL = 0.999999  # cosine of a name that another concept has in another spelling
UNDER = (1.0, 0.8)  # a table for the mentions with a best cosine under it

Parents = Mapping[str, Sequence[str]]


def measure_filters(
    folder: Path = typer.Argument(..., metavar="KB", help="Knowledge base."),
    mentions: Path = typer.Argument(..., help="Gold mentions."),
) -> None:
    """kb/ + mentions -> table of filters: time, and how often the nearest is found

    Each filter allows a random share of the concepts. "Nearest found" is the share of
    mentions whose best candidate is as near as the nearest allowed name, by exact
    search.

    Example: python -m benchmarks.options filters models/kb mentions.tsv
    """
    distinct = dict.fromkeys(gold.mention for gold in read_mentions(mentions))
    texts = [text for text in distinct if has_text(text)][:MENTIONS]
    kb = load_kb(folder)
    vectors = kb.embed(texts).vectors
    cuis = [concept.cui for concept in kb.concepts()]
    options = LinkOptions(k=K)
    rank = kb.searcher.rank
    rank(texts[:1], vectors[:1], Filter(), options)  # opens the index
    table: list[tuple[str, ...]] = []
    unfiltered = 0.0
    for share in SHARES:
        count = max(1, round(share * len(cuis)))
        allowed = random.Random(0).sample(cuis, count)
        filter = Filter() if share == 1 else Filter(allow=tuple(sorted(allowed)))
        start = time.perf_counter()
        rows = kb.resolve_filter(filter).rows if filter else np.arange(kb.rows)
        resolved = time.perf_counter()
        found = []
        for first in range(0, len(texts), MENTIONS_AT_ONCE):  # as the linker does
            part = slice(first, first + MENTIONS_AT_ONCE)
            found += rank(texts[part], vectors[part], filter, options)[0]
        seconds = time.perf_counter() - resolved
        unfiltered = unfiltered or seconds
        _, exact = search_rows(kb.vectors, rows, vectors, 1)
        right = [
            bool(ranked) and ranked[0].score >= best - TOLERANCE
            for ranked, (best,) in zip(found, exact.tolist(), strict=True)
        ]
        first_use = f"{1000 * (resolved - start):.0f} ms"
        times = (first_use, f"{1000 * seconds / len(texts):.2f} ms")
        rates = (f"{seconds / unfiltered:.1f}", f"{np.mean(right):.3f}")
        table.append((f"{share:.1%}", f"{count:,}", f"{len(rows):,}", *times, *rates))
    msg.text(machine_line())
    header = ("Allowed", "Concepts", "Names", "First use", "A mention", "Ratio")
    print_table((*header, "Nearest found"), table)
    msg.text(f"{len(texts):,} mentions, {K} concepts each, without encoding.")


class Candidates(NamedTuple):
    """The input of a rule.

    scores (dict[str, float]): Cosine of each candidate, the best first.
    parents (Parents): Parents of the candidates that are in the knowledge base.
    every (Parents): All parents of all concepts, held out or not.
    present (set[str]): The concepts of the knowledge base.
    """

    scores: dict[str, float]
    parents: Parents
    every: Parents
    present: set[str]


Rule = Callable[[Candidates], str | None]


def climb(cui: str, parents: Parents, steps: int | None = None) -> list[str]:
    """Return the concepts above a concept, the nearest first; None = to the top."""
    seen, found, level = {cui}, [], [cui]
    while level and steps != 0:
        level = sorted({p for each in level for p in parents.get(each, ())} - seen)
        seen.update(level)
        found += level
        steps = None if steps is None else steps - 1
    return found


def best_candidate(given: Candidates) -> str | None:
    return next(iter(given.scores), None)


def parent_of_best(given: Candidates) -> str | None:
    """Return the first parent by id of the best candidate that has one."""
    above = (given.parents.get(cui) for cui in given.scores)
    return next((min(found) for found in above if found), None)


def common_ancestor(given: Candidates) -> str | None:
    """Return the nearest common ancestor of the best two, or one of them."""
    one, other = ([*given.scores] * 2)[:2]
    above = {other, *climb(other, given.every)} & given.present
    return next((c for c in [one, *climb(one, given.every)] if c in above), None)


def most_children(weigh: Callable[[float, float], float]) -> Rule:
    """Return the rule that finds the parent whose children have the highest sum.

    weigh (Callable[[float, float], float]): A cosine and the best one → a weight.
    """

    def rule(given: Candidates) -> str | None:
        best = max(given.scores.values())
        sums: dict[str, float] = {}
        for cui, score in given.scores.items():
            for parent in given.parents.get(cui, ()):
                sums[parent] = sums.get(parent, 0) + weigh(score, best)
        return min(sums, key=lambda parent: (-sums[parent], parent), default=None)

    return rule


def broader(given: Candidates) -> str | None:
    return next(iter(rank_parents(given.scores, given.parents)), None)


RULES: dict[str, Rule] = {
    "the best candidate": best_candidate,
    "parent of the best candidate": parent_of_best,
    "nearest common ancestor of the best two": common_ancestor,
    "parent with most children, by cosine": most_children(lambda score, best: score),
    "parent with most children, by weight": most_children(
        lambda score, best: math.exp((score - best) / SOFTNESS)
    ),
    "`broader`: by weight, itself counted": broader,
}


def link_missing(
    kb: KnowledgeBase, held_out: Path, seed: int
) -> list[tuple[str, dict[str, float]]]:
    """Link a random name of each of some held-out concepts with a present parent.

    RETURNS (list[tuple[str, dict[str, float]]]): Id of the concept, and the cosine of
        each candidate; without names that another concept has in another spelling,
        e.g. "type-1" and "type - 1"; no concept has the same name.
    """
    concepts = [
        concept
        for concept in read_concepts(held_out)
        if any(parent in kb for parent in concept.parents)
    ]
    chance = random.Random(seed)
    chosen = chance.sample(concepts, min(MENTIONS, len(concepts)))
    names = [chance.choice(concept.aliases) for concept in chosen]
    missing = [
        (concept.cui, {found["cui"]: found["score"] for found in linked.candidates})
        for concept, linked in zip(chosen, kb.link(names, k=K), strict=True)
    ]
    return [one for one in missing if max(one[1].values(), default=1) < EQUAL]


def score_rule(
    rule: Rule,
    missing: Sequence[tuple[str, dict[str, float]]],
    every: Parents,
    present: set[str],
) -> np.ndarray:
    """Compute how often a rule finds a broader concept of held-out concepts.

    RETURNS (np.ndarray): Shares of answers that are a parent, at most two steps above,
        any number of steps above; share of mentions without an answer. Shape: (4,).
    """
    found = []
    for cui, scores in missing:
        parents = {c: [p for p in every[c] if p in present] for c in scores}
        answer = rule(Candidates(scores, parents, every, present))
        above = [answer in climb(cui, every, steps) for steps in (1, 2, None)]
        found.append([*above, answer is None])
    return np.mean(found, axis=0)


def measure_broader(
    concepts: Path = typer.Argument(..., help="concepts.jsonl"),
    encoder: str = typer.Argument(..., help="Folder of the encoder."),
    pooling: str | None = typer.Option(None, help="cls or mean. [as the folder]"),
    share: float = typer.Option(0.2, min=0, max=1, help="Of concepts held out."),
    seed: int = typer.Option(0, help="Seed of the concepts and names."),
) -> None:
    """concepts.jsonl + encoder -> table of rules that find a broader concept

    A share of the concepts is held out of a knowledge base. One name of each held-out
    concept with a parent there is linked.

    Example: python -m benchmarks.options broader corpus/hpo.jsonl models/minilm
    --pooling mean
    """
    settings = read_settings(Path(encoder))
    settings = replace(settings, pooling=pooling) if pooling else settings
    every = {concept.cui: concept.parents for concept in read_concepts(concepts)}
    with TemporaryDirectory() as name:
        kept, held_out = Path(name) / "kept.jsonl", Path(name) / "held_out.jsonl"
        counts = hold_out(concepts, kept, held_out, share=share, seed=seed)
        build_kb(
            kept,
            Path(name) / "kb",
            encoder,
            settings=settings,
            backend="exact",
            precision="bf16",
        )
        present = {concept.cui for concept in read_concepts(kept)}
        missing = link_missing(load_kb(Path(name) / "kb"), held_out, seed)
    msg.text(machine_line())
    msg.text(f"{len(every):,} concepts, {counts['held_out']:,} of them held out.")
    for most in UNDER:
        some = [one for one in missing if max(one[1].values()) < most]
        msg.text(f"{len(some):,} mentions with a best cosine under {most}:")
        rows = [
            (rule, *(f"{x:.3f}" for x in score_rule(RULES[rule], some, every, present)))
            for rule in RULES
            if some
        ]
        print_table(("Answer", "Parent", "Two steps", "Any", "None"), rows)
