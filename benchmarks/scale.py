"""Large knowledge bases: how memory, time and recall grow with the number of names."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import typer

from benchmarks.harness import machine_line, print_table, run_cli
from spacy_sapbert.evaluation.gold_mentions import read_mentions
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.kb.indexes.backends import Index
from spacy_sapbert.kb.indexes.exact import search_blocks
from spacy_sapbert.kb.indexes.row_file import RowFile
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb

MENTIONS, NEAREST, SINGLES, BATCH = 1000, 10, 300, 256
SINGLES_SECONDS = 60.0  # for searching one by one
REPEATS = 3
TOLERANCE = 1e-4  # of a cosine: rows have 16 bits a value
FULL_ROWS = "index.i16"  # the full vectors of a graph with short ones
BLOCK_ROWS = 16_384


def read_status() -> dict[str, int]:
    """Return memory of this process in MB: VmHWM = most, RssAnon = its own …"""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    sizes = [line.split() for line in lines if line.endswith(" kB")]
    return {name.rstrip(":"): int(size) // 1024 for name, size, _ in sizes}


def embed_mentions(kb: KnowledgeBase, paths: list[Path]) -> np.ndarray:
    """Return the vectors of distinct mentions. Shape: (up to MENTIONS, width)."""
    texts = dict.fromkeys(
        gold.mention for path in paths for gold in read_mentions(path)
    )
    order = np.random.default_rng(0).permutation(len(texts))
    some = [[*texts][place] for place in order[:MENTIONS]]
    embedded = kb.embed(some)
    return np.ascontiguousarray(embedded.vectors[embedded.readable])


def search_exactly(vectors: RowFile, queries: np.ndarray) -> np.ndarray:
    """Return the cosines of the nearest rows, best first. Shape: (n, NEAREST)."""

    def blocks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for first in range(0, len(vectors), BLOCK_ROWS):
            block = vectors[first : first + BLOCK_ROWS]
            yield np.arange(first, first + len(block)), block

    return search_blocks(blocks(), queries, NEAREST)[1]


def time_search(index: Index, queries: np.ndarray) -> float:
    """Return the seconds of a search: the best of some, for other work is not meant."""
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        index.search(queries, 32)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def time_singles(index: Index, queries: np.ndarray) -> np.ndarray:
    """Return the seconds of each query alone, the best of some. Shape: (≤ queries,).

    All queries are searched before one is repeated, so that its part of the graph has
    left the caches of the processor.
    """
    seconds = np.full((REPEATS, len(queries)), np.inf)
    end = time.perf_counter() + SINGLES_SECONDS
    for repeat in range(REPEATS):
        for place, query in enumerate(queries):
            if (start := time.perf_counter()) > end:
                break
            index.search(query[None], 32)
            seconds[repeat, place] = time.perf_counter() - start
    best: np.ndarray = seconds.min(axis=0)
    return best[np.isfinite(best)]


def measure_search(
    index: Index, queries: np.ndarray, expected: np.ndarray
) -> dict[str, str]:
    """Return speed and recall of an index, in words."""
    found = index.search(queries, NEAREST)[1]
    singles = 1000 * time_singles(index, queries[:SINGLES])
    speed = min(BATCH, len(queries)) / time_search(index, queries[:BATCH])
    p50, p95 = np.percentile(singles, [50, 95])
    at_1 = (found[:, 0] >= expected[:, 0] - TOLERANCE).mean()
    at_10 = (found >= expected[:, -1:] - TOLERANCE).mean()
    return {
        "p50, p95": f"{p50:.2f}, {p95:.2f} ms",
        "Queries/s": f"{speed:,.0f}",
        "Recall@1": f"{at_1:.4f}",
        "@10": f"{at_10:.4f}",
    }


def main(
    kb: Path = typer.Argument(..., help="Knowledge base with full vectors of 16 bits."),
    mentions: list[Path] = typer.Argument(..., help="Gold mentions to search for."),
) -> None:
    """kb/ + mentions -> what searching its index takes, its recall, and its look-ups

    Example: python -m benchmarks.scale kb-10m mentions.tsv
    """
    start = time.perf_counter()
    opened = load_kb(kb)
    opening = time.perf_counter() - start
    manifest = opened.manifest
    rows, width = manifest.counts.rows, manifest.encoder.width
    queries = embed_mentions(opened, mentions)
    vectors = RowFile(opened.version.path(FULL_ROWS), rows=rows, width=width)
    expected = search_exactly(vectors, queries)
    start = time.perf_counter()
    index = opened.parts.base_index
    loading = time.perf_counter() - start
    size = sum(file.size for file in manifest.files.values())
    measured = {
        "Names": f"{rows:,}",
        "Index": manifest.index.backend,
        "Disk": f"{size / 1e6:,.0f} MB",
        "Open": f"{loading:.2f} s",
        **measure_search(index, queries, expected),
        "Own memory": f"{read_status()['RssAnon']:,} MB",
    }
    msg.text(machine_line())
    msg.text(
        f"{len(queries):,} mentions; OMP_NUM_THREADS={os.getenv('OMP_NUM_THREADS')}"
    )
    print_table([*measured], [[*measured.values()]])
    found, _ = opened.search(queries, NEAREST)
    data = manifest.files["concepts.db"].size
    msg.text(
        f"Opened and verified in {opening:.2f} s. concepts.db: {data / 1e9:.2f} GB, "
        f"{len(opened):,} concepts. The names of {NEAREST} rows, median and 95 %:"
    )
    for label in ("for the first time", "again"):  # from the disk, from memory
        seconds = []
        for nearest in found.tolist():
            start = time.perf_counter()
            opened.entries(nearest)
            seconds.append(1000 * (time.perf_counter() - start))
        times = np.percentile(seconds, [50, 95])
        msg.text(f"{label}: {times[0]:.3f} ms, {times[1]:.3f} ms")


if __name__ == "__main__":
    run_cli(main)
