"""Large knowledge bases: how memory, time and recall grow with the number of names."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree, rmtree
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any
from unittest.mock import patch

import numpy as np
import typer

from benchmarks.harness import machine_line, print_table, run_cli
from benchmarks.large_vocabulary import MixedVectors, frequent_words, write_vocabulary
from spacy_sapbert.cli.app import make_app
from spacy_sapbert.encoder.encoder import Encoder, TokenIds
from spacy_sapbert.evaluation.gold_mentions import read_mentions
from spacy_sapbert.kb.building.build import build_kb
from spacy_sapbert.kb.edits.change import add_concepts, remove_concepts
from spacy_sapbert.kb.edits.diff import compare_kbs
from spacy_sapbert.kb.indexes import faiss_graph
from spacy_sapbert.kb.indexes.backend import Index
from spacy_sapbert.kb.indexes.exact import search_blocks
from spacy_sapbert.kb.indexes.registry import (
    build_index,
    index_files,
    load_index,
    make_backend,
)
from spacy_sapbert.kb.indexes.row_file import RowFile, encode_rows
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.system.progress import show_progress
from spacy_sapbert.system.terminal import msg
from spacy_sapbert.system.writing import link_file
from spacy_sapbert.vocabularies.concepts import Concept

FORMS: dict[str, tuple[str, dict[str, int]]] = {
    "exact": ("exact", {}),
    "exact, 16 bits": ("exact", {"compact": 1}),
    "hnsw": ("hnsw", {}),
    "hnsw, PCA 128": ("hnsw", {"pca": 128}),
    "faiss, PCA 128": ("faiss", {}),
    "faiss, full": ("faiss", {"pca": 0}),
}
MENTIONS, NEAREST, SINGLES, BATCH = 1000, 10, 300, 256
WATCH_SECONDS = 5.0
SINGLES_SECONDS = 60.0  # for searching one by one
REPEATS = 3
TOLERANCE = 1e-4  # of a cosine: rows have 16 bits a value
FULL_ROWS = "index.i16"  # the full vectors of a graph with short ones
BLOCK_ROWS = 16_384
LEAST_WEIGHT, MOST_WEIGHT = 0.1, 1.0  # of a qualifier, against its name

HEADER = (
    *("Names", "Index", "Build", "Processor", "Peak", "Disk", "Resident", "Own"),
    *("Open", "p50, p95", "Queries/s", "Recall@1", "@10"),
)

app = make_app(add_completion=False)
app.command("vocabulary")(write_vocabulary)


def read_status() -> dict[str, int]:
    """Return memory of this process in MB: VmHWM = most, RssAnon = its own …"""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    sizes = [line.split() for line in lines if line.endswith(" kB")]
    return {name.rstrip(":"): int(size) // 1024 for name, size, _ in sizes}


def make_rows(path: Path, kb: KnowledgeBase, rows: int, seed: int) -> None:
    """Write vectors: the real ones of a knowledge base, then sums of two of them.

    A sum is that of a name and, with a random weight, of a frequent word of the names.
    """
    if rows == kb.rows and FULL_ROWS in kb.manifest.files:
        link_file(kb.version.path(FULL_ROWS), path)
        return
    rng = np.random.default_rng(seed)
    chosen = np.arange(kb.rows)
    if rows < kb.rows:
        chosen = np.sort(rng.choice(kb.rows, rows, replace=False))
    real = np.concatenate(
        [
            kb.vectors(chosen[first : first + BLOCK_ROWS])
            for first in range(0, len(chosen), BLOCK_ROWS)
        ]
    )
    qualifiers = embed_words(kb) if rows > kb.rows else real
    with open(path, "wb") as file:
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
            file.write(encode_rows(block, compact=True).tobytes())


def embed_words(kb: KnowledgeBase) -> np.ndarray:
    """Return the vectors of frequent words of the names. Shape: (n, width)."""
    token_ids, _ = kb.encoder.tokenize(frequent_words([*kb.concepts()]))
    return kb.encoder.encode([ids for ids in token_ids if ids])


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


class Stopwatch:
    """Measures a step that may be stopped and continued: seconds, and most memory.

    path (Path): Is written every few seconds, so that a killed process counts too.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.before = json.loads(path.read_text("ascii")) if path.is_file() else {}
        self.start = time.perf_counter()
        self.ended = Event()
        Thread(target=self.write_often, daemon=True).start()

    def read(self) -> dict[str, float]:
        """Return the measures so far."""
        seconds = time.perf_counter() - self.start
        return {
            "build": self.before.get("build", 0) + seconds,
            "processor": self.before.get("processor", 0) + time.process_time(),
            "peak": max(self.before.get("peak", 0), read_status()["VmHWM"]),
        }

    def write_often(self) -> None:
        """Write the measures until the step has ended."""
        while not self.ended.wait(WATCH_SECONDS):
            part = self.path.with_suffix(".part")
            part.write_text(json.dumps(self.read()), "ascii")
            part.replace(self.path)


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


@app.command("step", hidden=True)
def measure_step(step: str, text: str) -> None:
    """Build or search an index in this process, and print what it took as JSON."""
    given = json.loads(text)
    folder, rows, width = Path(given["folder"]), given["rows"], given["width"]
    backend, settings = given["backend"], given["settings"]
    faiss_graph.STARTS = given.get("starts", faiss_graph.STARTS)
    if step == "build":
        work = folder / "work"
        work.mkdir(parents=True, exist_ok=True)
        watch = Stopwatch(work / "measured.json")
        vectors = RowFile(Path(given["vectors"]), rows=rows, width=width)
        for name in index_files(backend, settings):
            (folder / name).unlink(missing_ok=True)
        build_index(
            vectors, folder, backend=backend, settings=settings, threads=0, work=work
        )
        measured = watch.read()
        watch.ended.set()
    else:
        start = time.perf_counter()
        paths = {name: folder / name for name in index_files(backend, settings)}
        index = load_index(
            paths, backend=backend, settings=settings, rows=rows, width=width
        )
        measured = {"open": time.perf_counter() - start}
        queries = np.load(given["queries"])
        found, expected = index.search(queries, NEAREST)[1], np.load(given["expected"])
        singles = 1000 * time_singles(index, queries[:SINGLES])
        measured |= {
            "batch": min(BATCH, len(queries)) / time_search(index, queries[:BATCH]),
            "p50": float(np.percentile(singles, 50)),
            "p95": float(np.percentile(singles, 95)),
            "at_1": float((found[:, 0] >= expected[:, 0] - TOLERANCE).mean()),
            "at_10": float((found >= expected[:, -1:] - TOLERANCE).mean()),
            **read_status(),
        }
    print(json.dumps(measured))  # noqa: T201


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

    The vectors are those of the knowledge base (fewer: drawn at random), and beyond
    them sums of such vectors.
    Each index is built and searched in processes of its own. The same command continues
    a run that was stopped; the vectors stay until you remove them.

    Example: python -m benchmarks.scale table models/kb mentions.tsv --out results
    """
    opened = load_kb(kb)
    out.mkdir(parents=True, exist_ok=True)
    queries = embed_mentions(opened, mentions)
    np.save(out / "queries.npy", queries)
    table = []
    for many in rows:
        path, answers = out / f"vectors-{many}-{seed}.i16", out / f"nearest-{many}.npy"
        if not path.is_file():
            part = path.with_suffix(".part")
            part.unlink(missing_ok=True)
            make_rows(part, opened, many, seed)
            part.replace(path)
        vectors = RowFile(path, rows=many, width=queries.shape[1])
        np.save(answers, search_exactly(vectors, queries))
        for name in form:
            backend, own = FORMS[name]
            label = "-".join([name.replace(", ", "-").replace(" ", "-"), str(many)])
            folder, line = out / label, out / f"{label}.json"
            if not line.is_file():
                shape = {"rows": many, "width": vectors.shape[1], "folder": str(folder)}
                settings = make_backend(backend, own).settings
                common = {"backend": backend, "settings": settings, **shape}
                built = run_step("build", vectors=str(path), **common)
                rmtree(folder / "work")
                files = {"queries": str(out / "queries.npy"), "expected": str(answers)}
                size = sum(path.stat().st_size for path in folder.iterdir())
                searched = run_step("search", **files, **common)
                measured = searched | built | {"disk": size}
                line.write_text(json.dumps(measured), "ascii")
                rmtree(folder)
            measured = json.loads(line.read_text("ascii"))
            table.append((f"{many:,}", name, *format_measures(measured)))
            msg.text(" | ".join(table[-1]))
    print_measures(table, len(queries))


def format_measures(measured: dict[str, float]) -> tuple[str, ...]:
    """Format what was measured of an index, from `HEADER[2]` on."""
    building = ("", "", "")
    if "build" in measured:
        building = (
            f"{measured['build']:,.0f} s",
            f"{measured['processor']:,.0f} s",
            f"{measured['peak']:,} MB",
        )
    return (
        *building,
        f"{measured['disk'] / 1e6:,.0f} MB",
        f"{measured['VmRSS']:,} MB",
        f"{measured['RssAnon']:,} MB",
        f"{measured['open']:.2f} s",
        f"{measured['p50']:.2f}, {measured['p95']:.2f} ms",
        f"{measured['batch']:,.0f}",
        f"{measured['at_1']:.4f}",
        f"{measured['at_10']:.4f}",
    )


def print_measures(table: list[tuple[str, ...]], queries: int) -> None:
    """Print the table, and what it was measured with."""
    msg.text(machine_line())
    msg.text(f"{queries:,} mentions; OMP_NUM_THREADS={os.getenv('OMP_NUM_THREADS')}")
    print_table(HEADER, table)


@app.command("measure")
def measure_kb(
    kb: Path = typer.Argument(..., help="Knowledge base with full vectors of 16 bits."),
    mentions: list[Path] = typer.Argument(..., help="Gold mentions to search for."),
    ef: int | None = typer.Option(None, help="Another setting. [that of the index]"),
    starts: int = typer.Option(faiss_graph.STARTS, help="Of a search of faiss."),
) -> None:
    """kb/ + mentions -> what searching its index takes, its recall, and its look-ups

    Example: python -m benchmarks.scale measure kb-10m mentions.tsv

    Example: python -m benchmarks.scale measure kb-10m mentions.tsv --starts 1 --ef 256
    """
    start = time.perf_counter()
    opened = load_kb(kb)
    opening = time.perf_counter() - start
    manifest, full = opened.manifest, opened.version.path(FULL_ROWS)
    index, rows = manifest.index, manifest.counts.rows
    queries = embed_mentions(opened, mentions)
    vectors = RowFile(full, rows=rows, width=manifest.encoder.width)
    shape = {"rows": rows, "width": vectors.shape[1], "folder": str(full.parent)}
    with TemporaryDirectory() as folder:
        files = {name: f"{folder}/{name}.npy" for name in ("queries", "expected")}
        np.save(files["queries"], queries)
        np.save(files["expected"], search_exactly(vectors, queries))
        settings = index.settings | ({"ef": ef} if ef else {})
        common = {"backend": index.backend, "settings": settings, **shape}
        measured = run_step("search", starts=starts, **files, **common)
    measured["disk"] = sum(file.size for file in manifest.files.values())
    row = (f"{rows:,}", index.backend, *format_measures(measured))
    print_measures([row], len(queries))
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


@app.command("edits")
def measure_edits(
    kb: Path = typer.Argument(..., help="Knowledge base; it is not changed."),
) -> None:
    """kb/ -> seconds to add and to remove a concept, and to compare the two

    The files of the copy that is edited are links, so it is made beside the original.

    Example: python -m benchmarks.scale edits kb-10m
    """
    rows = []
    with TemporaryDirectory(dir=kb.parent) as folder:
        copy = Path(folder) / "kb"
        copytree(kb, copy, copy_function=os.link)
        old = edited = load_kb(copy)
        edited.embed(["load the encoder"])
        changes = {
            "add": lambda: add_concepts(edited, [Concept("X1", ["entirely new"])]),
            "remove": lambda: remove_concepts(edited, [next(old.store.cuis())]),
        }
        for name, change in changes.items():
            start = time.perf_counter()
            edited = change()
            rows.append((name, f"{time.perf_counter() - start:.2f} s"))
        start = time.perf_counter()
        found = sum(1 for _ in compare_kbs(load_kb(kb), edited))
        rows.append((f"compare: {found}", f"{time.perf_counter() - start:.2f} s"))
    msg.text(machine_line())
    print_table((f"{len(edited):,} concepts", "Time"), rows)
    msg.text(f"At most {read_status()['VmHWM']:,} MB.")


def mixed_vectors(kbs: list[KnowledgeBase]) -> MixedVectors:
    """Return what makes vectors of generated names from those of knowledge bases.

    kbs (list[KnowledgeBase]): Of one encoder.
    """
    concepts = [concept for kb in kbs for concept in kb.concepts()]
    known: dict[bytes, int] = {}
    parts: list[np.ndarray] = []
    many = 0
    for kb in kbs:
        texts = [*dict.fromkeys(a for c in kb.concepts() for a in c.aliases)]
        for first in show_progress(
            range(0, len(texts), BLOCK_ROWS), unit="blocks", desc="Names"
        ):
            some = texts[first : first + BLOCK_ROWS]
            token_ids, _ = kb.encoder.tokenize(some)
            vectors, _, readable = kb.embed(some)
            for place in np.flatnonzero(readable).tolist():
                key = np.array(token_ids[place], dtype="<i4").tobytes()
                known.setdefault(key, many + place)
            parts.append(vectors)
            many += len(vectors)
    token_ids, _ = kbs[0].encoder.tokenize(frequent_words(concepts))
    for place, ids in enumerate(token_ids):
        known.setdefault(np.array(ids, dtype="<i4").tobytes(), many + place)
    parts.append(kbs[0].encoder.encode(token_ids))
    return MixedVectors(known, np.concatenate(parts))


@app.command("build")
def build_large(
    concepts: Path = typer.Argument(..., help="concepts.jsonl of `vocabulary`."),
    out: Path = typer.Argument(..., help="Folder to write."),
    real: list[Path] = typer.Option(
        ..., help="Knowledge base of a real vocabulary; may be repeated."
    ),
    encoder: str = typer.Option(..., help="Their encoder, with mean pooling."),
    backend: str | None = typer.Option(None),
) -> None:
    """concepts.jsonl -> kb/ without encoding the generated names

    `kb build` in all but the encoder; that the encoder finds generated names again is
    not checked, since their vectors are not its own.

    Example: python -m benchmarks.scale build c.jsonl kb-10m --real kb --encoder minilm
    """
    counts = {"encoded": 0}
    encode = Encoder.encode
    mixed = mixed_vectors([load_kb(kb) for kb in real])

    def mix(encoder: Encoder, names: list[TokenIds]) -> np.ndarray:
        vectors, missing = mixed.mix(names)
        if missing.any():
            places = np.flatnonzero(missing)
            vectors[places] = encode(encoder, [names[i] for i in places])
            counts["encoded"] += len(places)
        return vectors

    start = time.perf_counter()
    with (
        patch.object(Encoder, "encode", mix),
        patch("spacy_sapbert.kb.building.build.probe_kb"),
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
