"""What engines for many machines cost: the tables of docs/many_machines.md."""

import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import spacy
import typer

from benchmarks.harness import machine_line, print_table, read_memory, run_cli
from spacy_sapbert import LinkBatches
from spacy_sapbert.cli.app import make_app
from spacy_sapbert.formats.registry import load_reader
from spacy_sapbert.system.terminal import msg

app = make_app(add_completion=False)
BATCH_DOCUMENTS = 500  # of an engine
WARM_DOCUMENTS = 200
SENTENCE = re.compile(r"(?<=[.!?])\s+")
WORKERS = 2
REPORTED = 10_000  # documents
NOTES, CHARACTERS = 100_000_000, 2_500  # of the calculation on paper
PRICE, CORES = 0.0816, 2  # of an m7g.large, US dollars an hour; us-east-1, June 2026
NIGHT = 8  # hours


def make_documents(corpora: Iterable[Path], count: int) -> pa.Table:
    """Make documents of the sentences of corpora, as long as those of the corpora.

    corpora (Iterable[Path]): PubTator files.
    count (int): Number of documents. The first are equal for any number.
    """
    read = load_reader("pubtator")
    texts = [document.text for path in corpora for document in read(path)]
    sentences = [each for text in texts for each in SENTENCE.split(text)]
    chance = random.Random(0)
    made = []
    for _ in range(count):
        size = len(chance.choice(texts))
        text = ""
        while len(text) < size:
            text += f"{chance.choice(sentences)} "
        made.append(text)
    return pa.table({"id": range(count), "text": made})


def make_pipeline(kb: str) -> Any:
    """Return the pipeline that `LinkBatches` opens."""
    nlp = spacy.blank("en")
    for name in ("sapbert_mentions", "sapbert_abbreviations", "sapbert_linker"):
        nlp.add_pipe(name, config={"kb": kb} if name == "sapbert_linker" else {})
    return nlp


def time_plain(kb: str, documents: pa.Table) -> tuple[float, int]:
    """Run `nlp.pipe` over the texts and read the links.

    RETURNS (tuple[float, int]): Seconds, and the number of mentions.
    """
    nlp = make_pipeline(kb)
    texts = documents.column("text").to_pylist()

    def link(texts: list[str]) -> int:
        docs = nlp.pipe(texts, batch_size=64)
        return sum(len([ent._.cui for ent in doc.ents]) for doc in docs)

    link(texts[:WARM_DOCUMENTS])
    start = time.perf_counter()
    mentions = link(texts)
    return time.perf_counter() - start, mentions


def time_batches(kb: str, documents: pa.Table) -> tuple[float, int]:
    """Run `LinkBatches` in this process; see `time_plain`."""
    link = LinkBatches(kb=kb)
    link(documents.slice(0, WARM_DOCUMENTS))
    start = time.perf_counter()
    batches = documents.to_batches(BATCH_DOCUMENTS)
    mentions = sum(batch.num_rows for batch in link.iterate(batches))
    return time.perf_counter() - start, mentions


def time_spark(kb: str, documents: pa.Table) -> tuple[float, int]:
    """Run Spark with two executors; see `time_plain`."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    with TemporaryDirectory() as folder:
        session = (
            SparkSession.builder.master(f"local-cluster[{WORKERS},1,1024]")
            .config("spark.ui.enabled", "false")
            .config("spark.local.dir", folder)
            .config("spark.sql.execution.arrow.maxRecordsPerBatch", BATCH_DOCUMENTS)
            .config("spark.sql.files.maxPartitionBytes", "4m")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
        link = LinkBatches(kb=kb)
        pq.write_table(documents, f"{folder}/documents.parquet", row_group_size=1000)
        frame = session.read.parquet(f"{folder}/documents.parquet").repartition(8)

        def run(frame: Any) -> int:
            rows = frame.mapInArrow(link.iterate, link.spark_schema())
            rows.write.mode("overwrite").parquet(f"{folder}/linked.parquet")
            return int(session.read.parquet(f"{folder}/linked.parquet").count())

        run(frame.limit(WARM_DOCUMENTS).repartition(8))
        start = time.perf_counter()
        mentions = run(frame)
        seconds = time.perf_counter() - start
        session.stop()
    return seconds, mentions


def time_ray(kb: str, documents: pa.Table) -> tuple[float, int]:
    """Run Ray Data with two actors; see `time_plain`."""
    import ray

    ray.init(num_cpus=WORKERS + 1, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False

    class Timed(LinkBatches):
        """Notes when the first batch began, so that opening does not count."""

        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            warm = {"id": [0, 1], "text": ["Fever.", "Headache and fever."]}
            self(pa.table(warm))

        def __call__(self, table: Any) -> Any:
            start = time.time()
            rows = super().__call__(table)
            spent = {"start": start, "end": time.time(), "rows": rows.num_rows}
            return pa.table({name: [value] for name, value in spent.items()})

    with TemporaryDirectory() as folder:
        pq.write_table(documents, f"{folder}/documents.parquet", row_group_size=1000)
        data = ray.data.read_parquet(f"{folder}/documents.parquet").repartition(8)
        rows = data.map_batches(
            Timed,
            fn_constructor_kwargs={"kb": kb},
            batch_format="pyarrow",
            batch_size=BATCH_DOCUMENTS,
            compute=ray.data.ActorPoolStrategy(size=WORKERS),
        ).take_all()
    ray.shutdown()
    seconds = max(row["end"] for row in rows) - min(row["start"] for row in rows)
    return seconds, sum(row["rows"] for row in rows)


WAYS: dict[str, Callable[[str, pa.Table], tuple[float, int]]] = {
    "plain": time_plain,
    "batches": time_batches,
    "spark": time_spark,
    "ray": time_ray,
}
# name: the way, how many processes do it with a part of the documents each, and how
# many workers that are
ROWS = {
    "plain pipeline, 1 process": ("plain", 1, 1),
    "`LinkBatches`, 1 process": ("batches", 1, 1),
    "plain pipeline, 2 processes": ("plain", 2, 2),
    "`LinkBatches`, 2 processes": ("batches", 2, 2),
    "Spark, 2 executors": ("spark", 1, 2),
    "Ray, 2 actors": ("ray", 1, 2),
}
MEMORY = ("Rss", "Pss", "Private_Dirty")


@app.command("one", hidden=True)
def one(way: str, kb: str, documents: Path, first: int, count: int) -> None:
    """documents -> seconds, mentions and memory of one process, as JSON"""
    table = pq.read_table(documents).slice(first, count)
    seconds, mentions = WAYS[way](kb, table)
    memory = {name: read_memory(os.getpid()).get(name, 0) for name in MEMORY}
    found = {"seconds": seconds, "mentions": mentions, **memory}
    typer.echo(json.dumps(found))


def run_way(way: str, processes: int, kb: str, path: Path, count: int) -> Any:
    """Run a way in new processes at the same time; return what each measured."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "SPARK_LOCAL_IP": "127.0.0.1"}
    part = count // processes
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.many_machines", "one", way, kb]
            + [str(path), str(number * part), str(part)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for number in range(processes)
    ]
    found = []
    for process in started:
        output, errors = process.communicate()
        if process.returncode:
            msg.fail(errors[-2000:], exits=1)
        found.append(json.loads(output.splitlines()[-1]))
    return found


@app.command("speed")
def speed(
    kb: str = typer.Argument(..., help="Folder of the knowledge base."),
    corpora: list[Path] = typer.Argument(..., help="PubTator files."),
    documents: int = typer.Option(20_000, min=1000, help="Number of documents."),
    rounds: int = typer.Option(1, min=1, help="Measurements; the medians count."),
    only: str = typer.Option("", help="Ways to measure, with commas between."),
) -> None:
    """kb/ + corpora -> table of documents a second, overhead, and 100 million notes

    Each way runs in new processes with one thread each and warm workers; the ways take
    turns.
    """
    chosen = {n: w for n, w in ROWS.items() if not only or w[0] in only.split(",")}
    measured: dict[str, list[Any]] = {name: [] for name in chosen}
    with TemporaryDirectory() as folder:
        path = Path(folder, "documents.parquet")
        table = make_documents(corpora, documents)
        pq.write_table(table, path)
        for _ in range(rounds):
            for name, (way, processes, _) in chosen.items():
                measured[name].append(run_way(way, processes, kb, path, documents))
                load = os.getloadavg()[0]
                msg.text(f"{name}: {measured[name][-1]}; load {load:.1f}")
    rates = {
        name: median(documents / max(p["seconds"] for p in found) for found in runs)
        for name, runs in measured.items()
    }
    plain = {w: rates[n] for n, (way, _, w) in chosen.items() if way == "plain"}
    rows = []
    for name, rate in rates.items():
        baseline = plain.get(ROWS[name][2])
        over = f"{baseline / rate - 1:+.1%}" if baseline else ""
        mentions = max(sum(p["mentions"] for p in found) for found in measured[name])
        rows.append((name, f"{rate:,.1f}", over, f"{mentions:,}"))
    msg.text(machine_line())
    print_table(("", "Documents/s", "Time over plain", "Mentions"), rows)
    characters = sum(map(len, table.column("text").to_pylist())) / documents
    msg.text(f"{documents:,} documents of {characters:,.0f} characters on average")
    if spark := rates.get("Spark, 2 executors"):
        print_estimate(spark / WORKERS, characters)


def print_estimate(rate: float, characters: float) -> None:
    """Print what 100 million notes need.

    rate (float): Documents a second of one core.
    characters (float): Length of these documents.
    """
    hours = NOTES * CHARACTERS / characters / rate / 3600
    dollars = hours / CORES * PRICE
    machines = hours / CORES / NIGHT
    msg.text(
        f"{NOTES:,} notes of {CHARACTERS:,} characters: {hours:,.0f} hours of a core, "
        f"{machines:,.0f} machines of {CORES} cores for {NIGHT} hours, "
        f"{dollars:,.0f} US dollars at {PRICE} an hour"
    )


@app.command("memory")
def memory(
    kb: str = typer.Argument(..., help="Folder of the knowledge base."),
    documents: int = typer.Option(50_000, help="Number of documents."),
) -> None:
    """kb/ -> memory of a worker over short documents with two new words in each"""
    link = LinkBatches(kb=kb)
    chance = random.Random(0)
    rows = []

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, documents, BATCH_DOCUMENTS):
            numbers = range(start, start + BATCH_DOCUMENTS)
            new = [f"Fever of {chance.random()} {chance.random()}" for _ in numbers]
            yield pa.record_batch({"id": numbers, "text": new})

    start = time.perf_counter()
    for number, _ in enumerate(link.iterate(batches()), 1):
        done = number * BATCH_DOCUMENTS
        if done == BATCH_DOCUMENTS or done % REPORTED == 0:
            seconds = f"{time.perf_counter() - start:,.0f} s"
            used = read_memory(os.getpid())
            memory = [f"{used.get(name, 0) / 1000:,.1f} MB" for name in MEMORY]
            rows.append((f"{done:,}", seconds, *memory))
    msg.text(machine_line())
    print_table(("Documents", "Time", *MEMORY), rows)


if __name__ == "__main__":
    run_cli(app)
