"""Exact search against the graph, by number of rows: `benchmarks.speed indexes`."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import typer

from benchmarks.harness import machine_line, print_table
from spacy_sapbert.kb.indexes.registry import build_index, index_file, load_index
from spacy_sapbert.kb.opening import load_kb
from spacy_sapbert.system.terminal import msg

QUERIES, SINGLES, NEAREST = 256, 20, 32


def time_searches(index: Any, queries: np.ndarray) -> tuple[float, float]:
    """Return queries a second, all at once, and milliseconds of one alone."""
    index.search(queries, NEAREST)
    start = time.perf_counter()
    index.search(queries, NEAREST)
    together = len(queries) / (time.perf_counter() - start)
    start = time.perf_counter()
    for query in queries[:SINGLES]:
        index.search(query[None], NEAREST)
    return together, 1000 * (time.perf_counter() - start) / SINGLES


def measure_indexes(
    kb: Path = typer.Argument(..., help="Knowledge base whose rows are searched."),
    rows: list[int] = typer.Option(
        [10_000, 20_000, 50_000, 100_000], help="Number of rows; may be repeated."
    ),
) -> None:
    """kb/ -> table of backends, by number of rows

    The queries are rows of the knowledge base that the index may not have.

    Example: OMP_NUM_THREADS=1 python -m benchmarks.speed indexes models/kb
    """
    opened = load_kb(kb)
    rng = np.random.default_rng(0)
    queries = opened.vectors(rng.choice(opened.rows, QUERIES, replace=False))
    table = []
    for many in rows:
        some = np.sort(rng.choice(opened.rows, min(many, opened.rows), replace=False))
        vectors = opened.vectors(some)
        speeds = {}
        for backend in ("exact", "hnsw"):
            with TemporaryDirectory() as folder:
                start = time.perf_counter()
                settings = build_index(
                    vectors, Path(folder), backend=backend, settings={}, threads=1
                )
                seconds = time.perf_counter() - start
                index = load_index(
                    Path(folder) / index_file(backend),
                    backend=backend,
                    settings=settings,
                    rows=len(vectors),
                    width=vectors.shape[1],
                )
                found = index.search(queries, 1)[0]
                speeds[backend] = (*time_searches(index, queries), seconds, found)
        exact, graph = speeds["exact"], speeds["hnsw"]
        recall = (exact[3] == graph[3]).mean()
        values = (exact[0], graph[0], exact[0] / graph[0])
        table.append(
            (
                f"{len(vectors):,}",
                *(f"{value:,.0f}" for value in values[:2]),
                f"{values[2]:.2f}",
                f"{exact[1]:.2f} ms",
                f"{graph[1]:.2f} ms",
                f"{graph[2]:.0f} s",
                f"{recall:.3f}",
            )
        )
    msg.text(machine_line())
    header = ("Rows", "exact/s", "hnsw/s", "ratio", "exact, one", "hnsw, one")
    print_table((*header, "hnsw build", "hnsw recall@1"), table)
