"""Broader concepts for mentions that a knowledge base lacks: which rule finds them.

A share of the concepts of a vocabulary is held out of a knowledge base. One name of
each held-out concept that has a parent there is looked up, and what a rule makes of the
candidates is held against what is above the concept.

python -m benchmarks.broader corpus/concepts.jsonl models/encoder --pooling mean
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import typer
from wasabi import msg

from benchmarks.machine import machine_line
from spacy_sapbert.cli.kb import choose_settings
from spacy_sapbert.kb.build import build_kb
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.linking.broader import SOFTNESS, rank_parents
from spacy_sapbert.vocabularies.concepts import read_concepts
from training.data.hold_out import hold_out

EQUAL = 0.999999  # cosine of a name that another concept has in other spelling
Parents = Mapping[str, Sequence[str]]
Weigh = Callable[[float, float], float]


class Held(NamedTuple):
    """A concept that the knowledge base lacks, looked up.

    cui (str): Its id.
    scores (dict[str, float]): Cosine of each candidate, the best first.
    """

    cui: str
    scores: dict[str, float]


class Asked(NamedTuple):
    """What a rule may know.

    scores (dict[str, float]): Cosine of each candidate, the best first.
    parents (Parents): Those of the candidates that are in the knowledge base.
    every (Parents): All parents of all concepts, held out or not.
    there (set[str]): The concepts of the knowledge base.
    """

    scores: dict[str, float]
    parents: Parents
    every: Parents
    there: set[str]


Rule = Callable[[Asked], str | None]


def best_candidate(asked: Asked) -> str | None:
    """Answer with the best candidate, as a linker without a threshold does."""
    return next(iter(asked.scores), None)


def parent_of_best(asked: Asked) -> str | None:
    """Answer with the parent of the best candidate that has one, the first by id."""
    above = (asked.parents.get(cui) for cui in asked.scores)
    return next((min(found) for found in above if found), None)


def common_ancestor(asked: Asked) -> str | None:
    """Answer with the nearest of what is above the two best, or one of them itself."""
    one, other = ([*asked.scores] * 2)[:2]
    above = {other, *climb(other, asked.every)} & asked.there
    steps = [one, *climb(one, asked.every)]
    return next((cui for cui in steps if cui in above), None)


def sum_children(weigh: Weigh) -> Rule:
    """Answer with the parent whose children weigh most.

    weigh (Weigh): A cosine and the best one → a weight.
    RETURNS (Rule): The rule.
    """

    def rule(asked: Asked) -> str | None:
        best = max(asked.scores.values())
        sums: dict[str, float] = {}
        for cui, score in asked.scores.items():
            for parent in asked.parents.get(cui, ()):
                sums[parent] = sums.get(parent, 0) + weigh(score, best)
        return min(sums, key=lambda parent: (-sums[parent], parent), default=None)

    return rule


def most_weight(softness: float) -> Rule:
    """Answer as the linker does, but for how fast weights fall."""

    def rule(asked: Asked) -> str | None:
        ranked = rank_parents(asked.scores, asked.parents, softness=softness)
        return next(iter(ranked), None)

    return rule


def soft_weight(score: float, best: float) -> float:
    """Weigh a candidate as the linker does."""
    return math.exp((score - best) / SOFTNESS)


def climb(cui: str, parents: Parents, steps: int | None = None) -> list[str]:
    """List what is above a concept.

    cui (str): Its id.
    parents (Parents): One step up.
    steps (int | None): How far; None = to the top.
    RETURNS (list[str]): The ids, the nearest first.
    """
    seen: set[str] = {cui}
    found: list[str] = []
    level = [cui]
    while level and steps != 0:
        level = sorted({p for each in level for p in parents.get(each, ())} - seen)
        seen.update(level)
        found += level
        steps = None if steps is None else steps - 1
    return found


RULES: dict[str, Rule] = {
    "the best candidate": best_candidate,
    "parent of the best candidate": parent_of_best,
    "nearest common ancestor of the best two": common_ancestor,
    "parent with most children, by cosine": sum_children(lambda score, best: score),
    "parent with most children, by weight": sum_children(soft_weight),
    "the same, itself counted, softness 0.05": most_weight(0.05),
    f"`broader`: itself counted, softness {SOFTNESS}": most_weight(SOFTNESS),
    "the same, itself counted, softness 0.2": most_weight(0.2),
}


def look_up_held(
    kb: KnowledgeBase, held_out: Path, *, limit: int, k: int, seed: int
) -> list[Held]:
    """Look up a name of each of some concepts that are not there.

    kb (KnowledgeBase): Where.
    held_out (Path): concepts.jsonl of the concepts that are not there.
    limit (int): Of those with a parent that is there, how many at the most.
    k (int): Candidates.
    seed (int): Which ones, and by which names.
    RETURNS (list[Held]): Without those whose name another concept has, but spelled
        otherwise, as "type-1" and "type - 1"; the same one nothing has.
    """
    concepts = [
        concept
        for concept in read_concepts(held_out)
        if any(parent in kb for parent in concept.parents)
    ]
    chance = random.Random(seed)
    chosen = chance.sample(concepts, min(limit, len(concepts)))
    names = [chance.choice(concept.aliases) for concept in chosen]
    held = [
        Held(concept.cui, {c["cui"]: c["score"] for c in linked.candidates})
        for concept, linked in zip(chosen, kb.link(names, k=k), strict=True)
    ]
    return [one for one in held if max(one.scores.values(), default=1) < EQUAL]


def judge_rule(
    rule: Rule, held: Sequence[Held], every: Parents, there: set[str]
) -> list[float]:
    """Tell how often a rule finds something broader.

    rule (Rule): The rule.
    held (Sequence[Held]): What was looked up.
    every (Parents): All parents of all concepts.
    there (set[str]): The concepts of the knowledge base.
    RETURNS (list[float]): Shares of answers that are a parent, at most two steps above,
        any number of steps above; and of those without an answer.
    """
    counts = [0, 0, 0, 0]
    for one in held:
        parents = {cui: [p for p in every[cui] if p in there] for cui in one.scores}
        answer = rule(Asked(one.scores, parents, every, there))
        counts[3] += answer is None
        for place, steps in enumerate((1, 2, None)):
            counts[place] += answer in climb(one.cui, every, steps)
    return [count / len(held) for count in counts]


def main(
    concepts: Path = typer.Argument(..., help="concepts.jsonl"),
    encoder: str = typer.Argument(..., help="Folder of the encoder."),
    pooling: str | None = typer.Option(
        None, help="cls or mean. [as the encoder's folder says, else cls]"
    ),
    precision: str = typer.Option("bf16", help="Of the encoder: float32 or bf16."),
    share: float = typer.Option(0.2, min=0, max=1, help="Of concepts held out."),
    limit: int = typer.Option(1000, min=1, help="Held-out concepts looked up."),
    k: int = typer.Option(10, min=1, max=1000, help="Candidates for each."),
    under: list[float] = typer.Option(
        [1.0, 0.8], help="Only mentions with a best cosine under it; may be repeated."
    ),
    seed: int = typer.Option(0, help="Which concepts, and by which names."),
) -> None:
    """concepts.jsonl + encoder -> table of rules and what they find"""
    every = {concept.cui: concept.parents for concept in read_concepts(concepts)}
    with TemporaryDirectory() as name:
        folder = Path(name)
        kept, held_out = folder / "kept.jsonl", folder / "held_out.jsonl"
        counts = hold_out(concepts, kept, held_out, share=share, seed=seed)
        build_kb(
            kept,
            folder / "kb",
            encoder,
            settings=choose_settings(encoder, pooling, None, None),
            backend="exact",
            precision=precision,
        )
        there = {concept.cui for concept in read_concepts(kept)}
        kb = load_kb(folder / "kb")
        held = look_up_held(kb, held_out, limit=limit, k=k, seed=seed)
    msg.text(machine_line())
    out = counts["held_out"]
    msg.text(f"{len(every):,} concepts, {out:,} of them held out.")
    header = ("Answer", "Parent", "Two steps", "Any", "None")
    for most in under:
        some = [one for one in held if max(one.scores.values()) < most]
        rows = [
            (name, *(f"{value:.3f}" for value in judge_rule(rule, some, every, there)))
            for name, rule in RULES.items()
            if some
        ]
        msg.text(f"{len(some):,} mentions with a best cosine under {most}:")
        msg.table(rows, header=header, divider=True, aligns=("l", *"rrrr"), max_col=50)


if __name__ == "__main__":
    typer.run(main)
