"""Filtered search: how long it takes, and whether it finds what is there.

Filters that allow random shares of all concepts are searched with the mentions of a
file and held against exact search of the names that each filter leaves.

python -m benchmarks.filters models/kb mentions.tsv
"""

import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import typer
from spacy_sapbert.kb.layers import search_rows
from wasabi import msg

from benchmarks.machine import machine_line
from spacy_sapbert.evaluation.gold_mentions import read_mentions
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.linking.candidates import Hit, has_text
from spacy_sapbert.linking.filters import Filter
from spacy_sapbert.linking.options import LinkOptions
from spacy_sapbert.linking.ranking import MENTIONS_AT_ONCE, rank_vectors

TOLERANCE = 2e-6  # of two cosines in float32 that are the same


def search_all(
    kb: KnowledgeBase, texts: list[str], vectors: np.ndarray, wanted: Filter, k: int
) -> tuple[list[list[Hit]], float]:
    """Search for mentions as the linker does.

    kb (KnowledgeBase): Where.
    texts (list[str]): The mentions.
    vectors (np.ndarray): Theirs. Shape: (n, width).
    wanted (Filter): What they may find.
    k (int): Concepts for each.
    RETURNS (tuple[list[list[Hit]], float]): What was found, and the seconds.
    """
    options = LinkOptions(k=k)
    found: list[list[Hit]] = []
    start = time.perf_counter()
    for first in range(0, len(texts), MENTIONS_AT_ONCE):
        part = slice(first, first + MENTIONS_AT_ONCE)
        found += rank_vectors(kb.contents, texts[part], vectors[part], options, wanted)
    return found, time.perf_counter() - start


def share_right(
    kb: KnowledgeBase, vectors: np.ndarray, rows: np.ndarray, found: list[list[Hit]]
) -> float:
    """Tell how often the best hit is as near as the nearest name that is left.

    kb (KnowledgeBase): Where.
    vectors (np.ndarray): Of the mentions. Shape: (n, width).
    rows (np.ndarray): What the filter leaves. Shape: (m,).
    found (list[list[Hit]]): What was found.
    RETURNS (float): 0 to 1.
    """
    _, exact = search_rows(kb.vectors, rows, vectors, 1)
    right = [
        bool(hits) and hits[0].score >= best - TOLERANCE
        for hits, (best,) in zip(found, exact.tolist(), strict=True)
    ]
    return sum(right) / len(right)


def measure(
    kb: KnowledgeBase, texts: list[str], shares: list[float], *, k: int, seed: int
) -> list[dict[str, Any]]:
    """Measure filters that leave some shares of the concepts.

    kb (KnowledgeBase): Where.
    texts (list[str]): Distinct mentions with a letter or digit.
    shares (list[float]): 1 = no filter.
    k (int): Concepts for each mention.
    seed (int): Of the choice of concepts.
    RETURNS (list[dict[str, Any]]): For each share what is left, the seconds and the
        share of mentions that found the nearest name.
    """
    vectors = kb.encode(texts)
    cuis = list(kb.store.layers[0].cuis())
    results: list[dict[str, Any]] = []
    search_all(kb, texts[:1], vectors[:1], Filter(), k)  # opens the index
    for share in shares:
        count = max(1, round(share * len(cuis)))
        chosen = random.Random(seed).sample(cuis, count)
        wanted = Filter() if share == 1 else Filter(allow=tuple(sorted(chosen)))
        start = time.perf_counter()
        rows = kb.contents.admitted(wanted).rows if wanted else np.arange(kb.rows)
        prepared = time.perf_counter() - start
        found, seconds = search_all(kb, texts, vectors, wanted, k)
        results.append(
            {
                "share": share,
                "concepts": count,
                "names": len(rows),
                "prepared": prepared,
                "milliseconds": 1000 * seconds / len(texts),
                "right": share_right(kb, vectors, rows, found),
            }
        )
    return results


def main(
    kb: Path = typer.Argument(..., help="Folder of the knowledge base."),
    mentions: Path = typer.Argument(..., help="Gold mentions."),
    limit: int = typer.Option(1000, min=1, help="Distinct mentions."),
    k: int = typer.Option(10, min=1, help="Concepts for each."),
    seed: int = typer.Option(0, help="Of the concepts that are allowed."),
) -> None:
    """kb/ + mentions -> table of shares, time and what is found"""
    golds = (gold.mention for gold in read_mentions(mentions))
    texts = [text for text in dict.fromkeys(golds) if has_text(text)][:limit]
    results = measure(load_kb(kb), texts, [1, 0.5, 0.1, 0.01, 0.001], k=k, seed=seed)
    msg.text(machine_line())
    rows = [
        (
            f"{result['share']:.1%}",
            f"{result['concepts']:,}",
            f"{result['names']:,}",
            f"{1000 * result['prepared']:.0f} ms",
            f"{result['milliseconds']:.2f} ms",
            f"{result['milliseconds'] / results[0]['milliseconds']:.2f}",
            f"{result['right']:.3f}",
        )
        for result in results
    ]
    header = (
        "Allowed",
        "Concepts",
        "Names",
        "First use",
        "A mention",
        "Ratio",
        "Nearest found",
    )
    msg.table(rows, header=header, divider=True, aligns=("r",) * len(header))
    msg.text(f"{len(texts):,} mentions, {k} concepts each, without encoding.")


if __name__ == "__main__":
    typer.run(main)
