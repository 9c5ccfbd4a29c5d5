"""How well a knowledge base says whether an id is the right one for a text.

Pairs of mention and id of annotated documents are right. Wrong are the concepts at
ranks 2 to 10 by cosine, and a concept by chance. `fit` learns the weights of the
models of `spacy_sapbert.verification` from the train documents, `measure` says what
they do with those of dev.
"""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import typer

from benchmarks.harness import machine_line, print_table, run_cli
from benchmarks.order import SETS
from spacy_sapbert.cli.app import make_app
from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.linking.filters import Filter
from spacy_sapbert.linking.probability import fit_logistics
from spacy_sapbert.linking.text import read_mention
from spacy_sapbert.verification import chances
from spacy_sapbert.verification.verdicts import Claim, Verifier

RIGHT, NEAR, UNRELATED = "right", "rank 2–10", "unrelated"
SEED = 5
NEAR_PAIRS = 3  # of each text, by chance
DIGITS = 4
DISEASES = ("ncbi", "bc5cdr-disease")
PREFIXES = ("", "MESH:", "OMIM:")
CALIBRATED = (0.1, 0.3, 0.5, 0.7, 0.9)
MODELS = {
    "right": [
        *("nearest", "mean", "names", "rank", "first", "among_first"),
        *("short", "initials", "spelled", *chances.PAIRED),
        *(f"{name}_{end}" for name in chances.GAPS for end in ("above", "below")),
    ],
    "right_named": ["nearest", "rank", "covered", "initials", "spelled"],
    "related": [
        *("nearest", "mean", "names", "rank", "short", "initials"),
        *("covered", "characters", "cosine_above", "cosine_below"),
        *("spelled", "short_nearest", "short_below"),
    ],
}


class Pair(NamedTuple):
    """A text with an id, and what is known of the id."""

    text: str
    cui: str
    context: str
    kind: str


def read_right(
    kb: KnowledgeBase, data: Path, sets: Sequence[str], part: str
) -> list[Pair]:
    """Read the distinct pairs of mention and concept of annotated documents."""
    pairs: dict[tuple[str, str], Pair] = {}
    for name in sets:
        gold = SETS[name]
        path = data / (gold.train if part == "train" else gold.dev)
        for document in read_corpus(path, "pubtator"):
            for mention in document.mentions:
                if gold.label not in ("", mention.type) or len(mention.parts) != 1:
                    continue
                ids = [p + id for id in mention.parts[0] for p in PREFIXES]
                ids += [id.partition(":")[2] for id in mention.parts[0]]
                known = [concept.cui for id in ids if (concept := kb.concept(id))]
                if not known:
                    continue
                cui = known[0]
                pair = Pair(mention.mention, cui, document.text, RIGHT)
                pairs.setdefault((pair.text, cui), pair)
    return [*pairs.values()]


def add_wrong(kb: KnowledgeBase, right: Sequence[Pair]) -> Iterator[Pair]:
    """Yield pairs with the wrong concepts for each text."""
    random, cuis = Random(SEED), sorted(kb)
    meant: dict[str, set[str]] = defaultdict(set)
    for pair in right:
        meant[pair.text].add(pair.cui)
    for start in range(0, len(right), 256):
        some = right[start : start + 256]
        vectors = kb.embed([read_mention(pair.text) for pair in some]).vectors
        ranked = kb.searcher.nearest.rank(vectors, Filter(), k=10)
        for pair, concepts in zip(some, ranked, strict=True):
            near = [c.entry.cui for c in concepts][:10]
            others = [cui for cui in near[1:] if cui not in meant[pair.text]]
            for cui in random.sample(others, min(NEAR_PAIRS, len(others))):
                yield pair._replace(cui=cui, kind=NEAR)
            other = random.choice(cuis)
            if other not in meant[pair.text] and other not in near:
                yield pair._replace(cui=other, kind=UNRELATED)


def share(mask: np.ndarray) -> str:
    return f"{100 * mask.mean():.1f} %" if len(mask) else "–"


app = make_app(add_completion=False)


@app.command()
def measure(
    kb: Path = typer.Argument(..., help="Knowledge base, taught or not."),
    data: Path = typer.Argument(..., help="Folder with the corpora."),
    sets: list[str] = typer.Option(DISEASES, "--set", help="Of `order.SETS`."),
    contexts: bool = typer.Option(True, help="Give the document of each mention too."),
    part: str = typer.Option("dev", help="dev, or train."),
) -> None:
    """kb/ -> shares of each verdict, calibration and speed"""
    opened = load_kb(kb)
    opened.load()
    right = read_right(opened, data, sets, part)
    pairs = [*right, *add_wrong(opened, right)]
    kinds = np.array([pair.kind for pair in pairs])
    texts, cuis = [pair.text for pair in pairs], [pair.cui for pair in pairs]
    given = [pair.context for pair in pairs] if contexts else None
    start = time.process_time()
    verdicts = Verifier(opened).verify(texts, cuis, contexts=given)
    seconds = time.process_time() - start
    called = np.array([verdict.verdict for verdict in verdicts])
    names = ("right", "near", "unsure", "wrong")
    rows = [
        [kind, f"{(kinds == kind).sum():,}"]
        + [share(called[kinds == kind] == name) for name in names]
        for kind in (RIGHT, NEAR, UNRELATED)
    ]
    probabilities = np.array([verdict.probability or 0.0 for verdict in verdicts])
    counts = Counter(kinds.tolist())
    weights = np.array([weigh_kind(kind, counts) for kind in kinds])
    chosen = np.digitize(probabilities, CALIBRATED)
    gap = (
        sum(
            abs(
                np.sum(
                    weights[chosen == n]
                    * (probabilities[chosen == n] - (kinds[chosen == n] == RIGHT))
                )
            )
            for n in range(len(CALIBRATED) + 1)
        )
        / weights.sum()
    )
    speed = f"{len(pairs):,} pairs, {len(pairs) / seconds:,.0f} a second of one core"
    msg.text(f"{machine_line()}; {opened.rows:,} names; {speed}; error {gap:.3f}.")
    print_table(["pairs", "number", *names], rows)


def weigh_kind(kind: str, counts: Counter[str]) -> float:
    """Return a weight: half of the pairs are right, a quarter near."""
    return (2.0 if kind == RIGHT else 1.0) / counts[kind]


@app.command()
def fit(
    data: Path = typer.Argument(..., help="Folder with the corpora."),
    kb: list[Path] = typer.Argument(..., help="Knowledge bases, not taught."),
    sets: list[str] = typer.Option(DISEASES, "--set", help="Of `order.SETS`."),
    output: Path = typer.Option(..., "--output", "-o", help="weights.json to write."),
) -> None:
    """train documents -> the weights of the models"""
    values: list[dict[str, float]] = []
    named: list[bool] = []
    kinds: list[str] = []
    for path in kb:
        opened = load_kb(path)
        verifier = Verifier(opened)
        right = read_right(opened, data, sets, "train")
        kind_of = {
            Claim(read_mention(pair.text), pair.cui): pair.kind
            for pair in (*add_wrong(opened, right), *right)
        }
        claims = [*kind_of]
        for start in range(0, len(claims), 256):
            some = claims[start : start + 256]
            found = opened.searcher.names.find_named([c.text for c in some], "")
            numbers = opened.store.numbers_of_cuis(c.cui for c in some)
            left = [
                claim
                for claim in some
                if numbers[claim.cui] not in {n.name.concept for n in found[claim.text]}
            ]
            for claim, weighed, excluded in verifier.compare(left):
                if not excluded:
                    values.append(weighed)
                    named.append(bool(found[claim.text]))
                    kinds.append(kind_of[claim])
    counts = Counter(kinds)
    of_kind = np.array(kinds)
    weights = np.array([weigh_kind(kind, counts) for kind in kinds])
    is_named = np.array(named)
    masks = {
        "right": ~is_named,
        "right_named": is_named,
        "related": of_kind != NEAR,
    }
    table = {}
    for model, names in MODELS.items():
        mask = masks[model]
        inputs = np.array([[v[name] for name in names] for v in values])[mask]
        scaled = weights[mask] * mask.sum() / weights[mask].sum()
        slopes, intercept = fit_logistics(inputs, of_kind[mask] == RIGHT, scaled)
        rounded = [round(float(slope), DIGITS) for slope in slopes]
        table[model] = {
            "intercept": round(intercept, DIGITS),
            "weights": dict(zip(names, rounded, strict=True)),
        }
    output.write_text(json.dumps(table, indent=1) + "\n", "utf8")
    msg.good(f"Wrote {output}, of {len(kinds):,} pairs: {dict(counts)}")


if __name__ == "__main__":
    run_cli(app)
