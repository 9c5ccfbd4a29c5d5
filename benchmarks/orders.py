"""`python -m benchmarks.orders`: models that order the candidates, compared.

All learn from the same features of the same cross-fitted examples, and order the
candidates of documents that none has learned from. LightGBM is compared if it is
installed: pip install lightgbm.
"""

import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer

from benchmarks.harness import machine_line, print_table, run_cli
from benchmarks.teaching import Gold, list_golds, list_pairs, read_all
from spacy_sapbert.evaluation.compare import mcnemar_test
from spacy_sapbert.evaluation.rankers import kb_lookup
from spacy_sapbert.kb.edits.taught import TaughtDocument
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.teaching.documents import resolve_documents
from spacy_sapbert.kb.teaching.examples import (
    FOLDS,
    AnnotatedMentions,
    Example,
    FoldCounts,
    assign_folds,
    list_examples,
    search_names,
)
from spacy_sapbert.kb.teaching.learning import fit_ranker
from spacy_sapbert.kb.teaching.teach import MOST_EXAMPLES, teach_documents
from spacy_sapbert.linking.ranker import CLIP
from spacy_sapbert.system.terminal import msg

HIDDEN = 32
STEPS = 400
TREES = {
    "n_estimators": 300,
    "learning_rate": 0.05,
    "num_leaves": 15,
    "min_child_samples": 20,
    "random_state": 0,
    "n_jobs": 1,
    "verbose": -1,
}
HEADER = ("order", "all", "seen", "unseen", "only it right", "only linear right", "p")
# features of the candidates of a mention → their scores
Score = Callable[[np.ndarray], np.ndarray]


class Query(NamedTuple):
    """A mention to link, its candidates by cosine, and their features."""

    gold: Gold
    cuis: list[str]
    features: np.ndarray


def order_by_cosine(features: np.ndarray) -> np.ndarray:
    """Return the scores of candidates that keep their order."""
    return -np.arange(len(features), dtype=np.float64)


def fit_linear(examples: Sequence[Example]) -> Score:
    """Fit the model that `spacy sapbert teach` fits."""
    return fit_ranker(examples).scores


def fit_network(examples: Sequence[Example]) -> Score:
    """Fit a network of one hidden layer with the loss of the linear model."""
    import torch

    torch.manual_seed(0)
    stacked = np.concatenate([one.features for one in examples])
    mean, scale = stacked.mean(axis=0), stacked.std(axis=0) + 1e-3

    def standardize(features: np.ndarray) -> Any:
        values = ((features - mean) / scale).clip(-CLIP, CLIP)
        return torch.from_numpy(values.astype(np.float32))

    longest = max(len(one.cuis) for one in examples)
    inputs = torch.zeros(len(examples), longest, stacked.shape[1])
    missing = torch.ones(len(examples), longest, dtype=torch.bool)
    for place, one in enumerate(examples):
        inputs[place, : len(one.cuis)] = standardize(one.features)
        missing[place, : len(one.cuis)] = False
    targets = torch.tensor([one.right for one in examples])
    model = torch.nn.Sequential(
        torch.nn.Linear(stacked.shape[1], HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, 1),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=1e-2)
    for _ in range(STEPS):
        optimizer.zero_grad()
        scores = model(inputs).squeeze(-1).masked_fill(missing, -1e9)
        torch.nn.functional.cross_entropy(scores, targets).backward()
        optimizer.step()

    def score(features: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            found: np.ndarray = model(standardize(features)).squeeze(-1).numpy()
        return found

    return score


def fit_trees(examples: Sequence[Example], *, ranking: bool) -> Score:
    """Fit gradient-boosted trees: LambdaMART, or right against wrong candidates."""
    import lightgbm

    features = np.concatenate([one.features for one in examples])
    right = np.zeros(len(features), dtype=np.int32)
    sizes = [len(one.cuis) for one in examples]
    starts = np.cumsum([0, *sizes[:-1]])
    right[starts + np.array([one.right for one in examples])] = 1
    if ranking:
        ranker = lightgbm.LGBMRanker(objective="lambdarank", **TREES)
        ranker.fit(features, right, group=sizes)
    else:
        ranker = lightgbm.LGBMClassifier(**TREES)
        ranker.fit(features, right)

    def score(features: np.ndarray) -> np.ndarray:
        found: np.ndarray = ranker.predict(features, raw_score=True)
        return found

    return score


def make_queries(
    kb: KnowledgeBase,
    before: KnowledgeBase,
    documents: Sequence[TaughtDocument],
    golds: Sequence[Gold],
) -> list[Query]:
    """Find the candidates of mentions as the taught knowledge base does.

    kb (KnowledgeBase): That has learned from the documents; before (KnowledgeBase):
        without them.
    """
    counts, folds = FoldCounts(documents, assign_folds(documents)), range(FOLDS)
    texts = list(dict.fromkeys(gold.text for gold in golds))
    found = dict(
        zip(texts, search_names(kb, before, texts, progress=False), strict=True)
    )
    by_text = {
        text: next(list_examples(kb, counts, text, 0, folds, {"": 1}, ranked))
        for text, ranked in found.items()
    }
    return [
        Query(gold, by_text[gold.text].cuis, by_text[gold.text].features)
        for gold in golds
    ]


def find_hits(queries: Sequence[Query], score: Score) -> np.ndarray:
    """Return which first candidates are right. Shape: (queries,)."""
    hits = []
    for gold, cuis, features in queries:
        first = cuis[int(score(features).argmax())] if cuis else ""
        hits.append(all(first in part for part in gold.parts))
    return np.array(hits, dtype=bool)


def main(
    kb: Path = typer.Argument(..., help="Folder of the knowledge base."),
    learned: Path = typer.Argument(..., help="Annotated documents to learn from."),
    linked: Path = typer.Argument(..., help="Annotated documents to link."),
    prefix: str = typer.Option("", help="Added to ids without a colon."),
) -> None:
    """kb/ + annotated documents -> first candidates that are right, by model

    `p`: McNemar's exact test against the linear model, which `teach` fits.

    Example: python -m benchmarks.orders models/kb-medic ncbi.train.tsv ncbi.dev.tsv
    """
    opened = load_kb(kb)
    annotated = read_all(learned, prefix, "")
    pairs = list_pairs(opened, annotated, {})
    golds = list_golds(opened, read_all(linked, prefix, ""), {}, pairs)
    documents, _ = resolve_documents(annotated, kb_lookup(opened), [])
    with tempfile.TemporaryDirectory() as folder:
        taught, _ = teach_documents(
            opened, annotated, output=Path(folder) / "kb", force=True
        )
        examples = AnnotatedMentions(
            taught, documents, before=opened, most=MOST_EXAMPLES
        ).examples()
        queries = make_queries(taught, opened, documents, golds)
    usable = [one for one in examples if one.right is not None]
    orders: dict[str, Score] = {
        "cosine": order_by_cosine,
        "linear": fit_linear(usable),
        f"network, {HIDDEN} hidden": fit_network(usable),
    }
    if find_spec("lightgbm") is None:
        msg.info("LightGBM is not installed, and not compared")
    else:
        orders["LightGBM, LambdaMART"] = fit_trees(usable, ranking=True)
        orders["LightGBM, binary"] = fit_trees(usable, ranking=False)
    hits = {name: find_hits(queries, score) for name, score in orders.items()}
    seen = np.array([gold.seen for gold in golds])
    rows: list[tuple[str, ...]] = []
    for name, found in hits.items():
        gained = int((found & ~hits["linear"]).sum())
        lost = int((hits["linear"] & ~found).sum())
        groups = (found, found[seen], found[~seen])
        shares = (f"{each.mean():.3f}" if len(each) else "–" for each in groups)
        p = f"{mcnemar_test(gained, lost):.3f}" if name != "linear" else "–"
        rows.append((name, *shares, str(gained), str(lost), p))
    print_table(HEADER, rows)
    typer.echo(f"{len(usable):,} examples, {len(golds):,} mentions")
    typer.echo(machine_line())


if __name__ == "__main__":
    run_cli(main)
