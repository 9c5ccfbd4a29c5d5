"""Large knowledge bases: how memory, time and recall grow with the number of names."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from typing import Any
from unittest.mock import patch

import numpy as np
import typer

from benchmarks.harness import machine_line, print_table, run_cli
from benchmarks.large_vocabulary import MixedVectors, frequent_words, write_vocabulary
from spacy_sapbert.cli.app import make_app
from spacy_sapbert.encoder.name_encoder import (
    NameModel,
    TokenIds,
    encode_token_ids,
    tokenize_names,
)
from spacy_sapbert.evaluation.gold_mentions import read_mentions
from spacy_sapbert.kb.build import build_kb
from spacy_sapbert.kb.indexes.exact import search_blocks
from spacy_sapbert.kb.indexes.registry import (
    build_index,
    complete_settings,
    estimate_size,
    index_files,
    load_index,
)
from spacy_sapbert.kb.indexes.row_file import RowFile, encode_rows
from spacy_sapbert.kb.knowledge_base import KnowledgeBase
from spacy_sapbert.kb.opening import load_kb
from spacy_sapbert.system.progress import show_progress
from spacy_sapbert.system.terminal import msg

FORMS: dict[str, tuple[str, dict[str, int]]] = {
    "exact": ("exact", {}),
    "exact, 16 bits": ("exact", {"compact": 1}),
    "hnsw": ("hnsw", {}),
    "hnsw, PCA 128": ("hnsw", {"pca": 128}),
    "faiss, PCA 128": ("faiss", {}),
    "faiss, full": ("faiss", {"pca": 0}),
}
MENTIONS, NEAREST, SINGLES, BATCH = 1000, 10, 300, 256
TOLERANCE = 1e-4  # of a cosine: rows have 16 bits a value
BLOCK_ROWS = 16_384
LEAST_WEIGHT, MOST_WEIGHT = 0.1, 1.0  # of a qualifier, against its name

app = make_app(add_completion=False)
app.command("vocabulary")(write_vocabulary)


def read_status() -> dict[str, int]:
    """Return memory of this process in MB: VmHWM = most, RssAnon = its own …"""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    sizes = [line.split() for line in lines if line.endswith(" kB")]
    return {name.rstrip(":"): int(size) // 1024 for name, size, _ in sizes}


def make_rows(path: Path, kb: KnowledgeBase, rows: int, seed: int) -> RowFile:
    """Write vectors: the real ones of a knowledge base, then sums of two of them.

    A sum is that of a name and, with a random weight, of a frequent word of the names.
    """
    words = frequent_words([*kb.concepts()])
    token_ids, _ = tokenize_names(kb.encoder, words)
    qualifiers = encode_token_ids(kb.encoder, [ids for ids in token_ids if ids])
    real = np.concatenate(
        [
            kb.vectors(np.arange(first, min(first + BLOCK_ROWS, kb.rows)))
            for first in range(0, kb.rows, BLOCK_ROWS)
        ]
    )
    rng = np.random.default_rng(seed)
    if rows < len(real):
        real = real[np.sort(rng.choice(len(real), rows, replace=False))]
    path.unlink(missing_ok=True)
    stored = RowFile(path, rows=rows, width=real.shape[1], writable=True)
    for first in show_progress(
        range(0, rows, BLOCK_ROWS), unit="blocks", desc="Vectors"
    ):
        numbers = np.arange(first, min(first + BLOCK_ROWS, rows))
        block = real[numbers % len(real)]
        word = qualifiers[rng.integers(len(qualifiers), size=len(numbers))]
        weight = rng.uniform(LEAST_WEIGHT, MOST_WEIGHT, (len(numbers), 1))
        weight[numbers < len(real)] = 0
        block = block + weight.astype(np.float32) * word
        block /= np.linalg.norm(block, axis=1, keepdims=True)
        stored.write(numbers, encode_rows(block, compact=True))
    stored.sync()
    return stored


def embed_mentions(kb: KnowledgeBase, paths: list[Path]) -> np.ndarray:
    """Return the vectors of distinct mentions. Shape: (up to MENTIONS, width)."""
    texts = dict.fromkeys(
        gold.mention for path in paths for gold in read_mentions(path)
    )
    order = np.random.default_rng(0).permutation(len(texts))
    some = [[*texts][place] for place in order[:MENTIONS]]
    vectors, _, readable = kb.embed(some)
    return np.ascontiguousarray(vectors[readable])


def search_exactly(vectors: RowFile, queries: np.ndarray) -> np.ndarray:
    """Return the cosines of the nearest rows, best first. Shape: (n, NEAREST)."""

    def blocks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for first in range(0, len(vectors), BLOCK_ROWS):
            block = vectors[first : first + BLOCK_ROWS]
            yield np.arange(first, first + len(block)), block

    return search_blocks(blocks(), queries, NEAREST)[1]


def run_step(step: str, **settings: Any) -> dict[str, float]:
    """Run a step in a new process and return what it measured."""
    command = [sys.executable, "-m", "benchmarks.scale", "step", step]
    done = subprocess.run(
        [*command, json.dumps(settings)], stdout=subprocess.PIPE, text=True, check=True
    )
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


@app.command("step", hidden=True)
def measure_step(step: str, text: str) -> None:
    """Build or search an index in this process, and print what it took as JSON."""
    given = json.loads(text)
    folder, rows, width = Path(given["folder"]), given["rows"], given["width"]
    backend, own = FORMS[given["form"]]
    settings = complete_settings(backend, own)
    start = time.perf_counter()
    if step == "build":
        vectors = RowFile(Path(given["vectors"]), rows=rows, width=width)
        build_index(vectors, folder, backend=backend, settings=own, threads=0)
        measured: dict[str, float] = {"build": time.perf_counter() - start}
    else:
        paths = {name: folder / name for name in index_files(backend, settings)}
        index = load_index(
            paths, backend=backend, settings=settings, rows=rows, width=width
        )
        measured = {"open": time.perf_counter() - start}
        queries = np.load(given["queries"])
        found, expected = index.search(queries, NEAREST)[1], np.load(given["expected"])
        singles = []
        for query in queries[:SINGLES]:
            start = time.perf_counter()
            index.search(query[None], 32)
            singles.append(1000 * (time.perf_counter() - start))
        start = time.perf_counter()
        index.search(queries[:BATCH], 32)
        measured |= {
            "batch": min(BATCH, len(queries)) / (time.perf_counter() - start),
            "p50": float(np.percentile(singles, 50)),
            "p95": float(np.percentile(singles, 95)),
            "at_1": float((found[:, 0] >= expected[:, 0] - TOLERANCE).mean()),
            "at_10": float((found >= expected[:, -1:] - TOLERANCE).mean()),
        }
    print(json.dumps(measured | read_status()))  # noqa: T201


@app.command("table")
def measure_table(
    kb: Path = typer.Argument(..., help="Knowledge base with the real vectors."),
    mentions: list[Path] = typer.Argument(..., help="Gold mentions to search for."),
    out: Path = typer.Option(..., help="Folder for vectors and indexes."),
    rows: list[int] = typer.Option([100_000, 1_000_000, 10_000_000]),
    form: list[str] = typer.Option([*FORMS], help="Forms of an index."),
    seed: int = typer.Option(0),
) -> None:
    """kb/ + mentions -> table of index backends, by number of names

    The vectors are those of the knowledge base, and beyond them sums of such vectors.
    Each index is built and searched in processes of its own.

    Example: python -m benchmarks.scale table models/kb mentions.tsv --out results
    """
    opened = load_kb(kb)
    out.mkdir(parents=True, exist_ok=True)
    queries = embed_mentions(opened, mentions)
    np.save(out / "queries.npy", queries)
    table = []
    for many in rows:
        path, answers = out / f"vectors-{many}.i16", out / f"nearest-{many}.npy"
        vectors = make_rows(path, opened, many, seed)
        np.save(answers, search_exactly(vectors, queries))
        for name in form:
            backend, own = FORMS[name]
            folder = out / f"{backend}-{many}"
            rmtree(folder, ignore_errors=True)
            folder.mkdir()
            sizes = {"folder": str(folder), "rows": many, "width": vectors.shape[1]}
            common = {"form": name, **sizes}
            built = run_step("build", vectors=str(path), **common)
            files = {"queries": str(out / "queries.npy"), "expected": str(answers)}
            found = run_step("search", **files, **common)
            disk = sum(file.stat().st_size for file in folder.iterdir())
            size = estimate_size(backend, many, vectors.shape[1], own)
            rmtree(folder)
            line = (
                f"{many:,}",
                name,
                f"{built['build']:,.0f} s",
                f"{built['VmHWM']:,} MB",
                f"{disk / 1e6:,.0f} MB",
                f"{size.memory / 1e6:,.0f} MB",
                f"{found['VmRSS']:,} MB",
                f"{found['RssAnon']:,} MB",
                f"{found['open']:.2f} s",
                f"{found['p50']:.2f}, {found['p95']:.2f} ms",
                f"{found['batch']:,.0f}",
                f"{found['at_1']:.4f}",
                f"{found['at_10']:.4f}",
            )
            msg.text(" | ".join(line))
            table.append(line)
        path.unlink()
    msg.text(machine_line())
    msg.text(
        f"{len(queries):,} mentions; OMP_NUM_THREADS={os.getenv('OMP_NUM_THREADS')}"
    )
    header = ("Names", "Index", "Build", "Peak", "Disk", "Estimate", "Resident")
    more = ("Own", "Open", "p50, p95", "Queries/s", "Recall@1", "@10")
    print_table((*header, *more), table)


def mixed_vectors(kb: KnowledgeBase) -> MixedVectors:
    """Return what makes vectors of generated names from those of a knowledge base."""
    concepts = [*kb.concepts()]
    words = frequent_words(concepts)
    texts = [*dict.fromkeys(a for c in concepts for a in c.aliases)]
    known: dict[bytes, int] = {}
    parts: list[np.ndarray] = []
    for first in show_progress(
        range(0, len(texts), BLOCK_ROWS), unit="blocks", desc="Names"
    ):
        some = texts[first : first + BLOCK_ROWS]
        token_ids, _ = tokenize_names(kb.encoder, some)
        vectors, _, readable = kb.embed(some)
        for place in np.flatnonzero(readable).tolist():
            key = np.array(token_ids[place], dtype="<i4").tobytes()
            known.setdefault(key, first + place)
        parts.append(vectors)
    token_ids, _ = tokenize_names(kb.encoder, words)
    for place, ids in enumerate(token_ids):
        known.setdefault(np.array(ids, dtype="<i4").tobytes(), len(texts) + place)
    parts.append(encode_token_ids(kb.encoder, token_ids))
    return MixedVectors(known, np.concatenate(parts))


@app.command("build")
def build_large(
    concepts: Path = typer.Argument(..., help="concepts.jsonl of `vocabulary`."),
    out: Path = typer.Argument(..., help="Folder to write."),
    real: Path = typer.Option(..., help="Knowledge base of the real vocabularies."),
    encoder: str = typer.Option(..., help="Its encoder, with mean pooling."),
    backend: str | None = typer.Option(None),
) -> None:
    """concepts.jsonl -> kb/ without encoding the generated names

    `kb build` in all but the encoder; that the encoder finds generated names again is
    not checked, since their vectors are not its own.

    Example: python -m benchmarks.scale build c.jsonl kb-10m --real kb --encoder minilm
    """
    mixed = mixed_vectors(load_kb(real))
    counts = {"encoded": 0}

    def mix(model: NameModel, names: list[TokenIds]) -> np.ndarray:
        vectors, missing = mixed.mix(names)
        if missing.any():
            places = np.flatnonzero(missing)
            vectors[places] = encode_token_ids(model, [names[i] for i in places])
            counts["encoded"] += len(places)
        return vectors

    start = time.perf_counter()
    with (
        patch("spacy_sapbert.kb.row_vectors.encode_token_ids", mix),
        patch("spacy_sapbert.kb.build.probe_kb"),
    ):
        manifest = build_kb(concepts, out, encoder, backend=backend, progress=True)
    seconds = time.perf_counter() - start
    msg.text(machine_line())
    msg.text(
        f"{manifest.counts.rows:,} names of {manifest.counts.concepts:,} concepts in "
        f"{seconds:,.0f} s, at most {read_status()['VmHWM']:,} MB; "
        f"{counts['encoded']:,} names were encoded."
    )


if __name__ == "__main__":
    run_cli(app)
