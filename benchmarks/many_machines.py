"""What engines for many machines cost: the tables of docs/many_machines.md."""

import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

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


class Spent(NamedTuple):
    """What the documents took once the workers were warm.

    seconds (float): From the first document to the last row.
    cpu (float): Seconds of processors, of this process and all that it has started.
    mentions (int): Number of rows.
    """

    seconds: float
    cpu: float
    mentions: int


def read_cpu() -> float:
    """Return the seconds of processors of this process and its descendants (Linux)."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # ended meanwhile
            fields = path.read_text("utf8").rpartition(")")[2].split()
            parents[int(path.parent.name)] = int(fields[1])
            # of the process, and of its children that have ended
            ticks[int(path.parent.name)] = sum(map(int, fields[11:15]))
    ours = {os.getpid()}
    while more := {p for p, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(ticks.get(process, 0) for process in ours) / os.sysconf("SC_CLK_TCK")


@contextmanager
def measure(spent: list[float]) -> Iterator[None]:
    """Append the seconds, and the seconds of processors, of what runs within."""
    start, cpu = time.perf_counter(), read_cpu()
    yield
    spent += [time.perf_counter() - start, read_cpu() - cpu]


def make_pipeline(kb: str) -> Any:
    """Return the pipeline that `LinkBatches` opens."""
    nlp = spacy.blank("en")
    for name in ("sapbert_mentions", "sapbert_abbreviations", "sapbert_linker"):
        nlp.add_pipe(name, config={"kb": kb} if name == "sapbert_linker" else {})
    return nlp


def time_plain(kb: str, documents: pa.Table) -> Spent:
    """Run `nlp.pipe` over the texts and read the links."""
    nlp = make_pipeline(kb)
    texts = documents.column("text").to_pylist()

    def link(texts: list[str]) -> int:
        docs = nlp.pipe(texts, batch_size=64)
        return sum(len([ent._.cui for ent in doc.ents]) for doc in docs)

    link(texts[:WARM_DOCUMENTS])
    spent: list[float] = []
    with measure(spent):
        mentions = link(texts)
    return Spent(spent[0], spent[1], mentions)


def time_batches(kb: str, documents: pa.Table) -> Spent:
    """Run `LinkBatches` in this process."""
    link = LinkBatches(kb=kb)
    link(documents.slice(0, WARM_DOCUMENTS))
    spent: list[float] = []
    with measure(spent):
        batches = documents.to_batches(BATCH_DOCUMENTS)
        mentions = sum(batch.num_rows for batch in link.iterate(batches))
    return Spent(spent[0], spent[1], mentions)


def time_spark(kb: str, documents: pa.Table) -> Spent:
    """Run Spark with two executors."""
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
        spent: list[float] = []
        with measure(spent):
            mentions = run(frame)
        session.stop()
    return Spent(spent[0], spent[1], mentions)


def time_ray(kb: str, documents: pa.Table) -> Spent:
    """Run Ray Data with two actors, from their first batch to the last.

    Each run of Ray Data starts new actors. Of Ray's own processes the time counts, but
    not the processors.
    """
    import ray

    ray.init(num_cpus=WORKERS + 1, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False

    class Timed(LinkBatches):
        """Notes when its batches began and ended; it opens the pipeline at once."""

        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            warm = {"id": [0, 1], "text": ["Fever.", "Headache and fever."]}
            self(pa.table(warm))

        def __call__(self, table: Any) -> Any:
            start, cpu = time.time(), time.process_time()
            rows = super().__call__(table).num_rows
            end, cpu_end = time.time(), time.process_time()
            values = [os.getpid(), start, end, cpu, cpu_end, rows]
            names = ["actor", "start", "end", "cpu", "cpu_end", "rows"]
            return pa.table({n: [v] for n, v in zip(names, values, strict=True)})

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
    cpu = 0.0
    for actor in {row["actor"] for row in rows}:
        own = [row for row in rows if row["actor"] == actor]
        cpu += max(row["cpu_end"] for row in own) - min(row["cpu"] for row in own)
    seconds = max(row["end"] for row in rows) - min(row["start"] for row in rows)
    return Spent(seconds, cpu, sum(row["rows"] for row in rows))


WAYS: dict[str, Callable[[str, pa.Table], Spent]] = {
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
    spent = WAYS[way](kb, table)
    memory = {name: read_memory(os.getpid()).get(name, 0) for name in MEMORY}
    typer.echo(json.dumps({**spent._asdict(), **memory}))


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
    cpus = {
        name: median(sum(p["cpu"] for p in found) / documents for found in runs)
        for name, runs in measured.items()
    }
    plain = {w: name for name, (way, _, w) in chosen.items() if way == "plain"}
    rows = []
    for name, rate in rates.items():
        baseline = plain.get(ROWS[name][2], name)
        mentions = max(sum(p["mentions"] for p in found) for found in measured[name])
        rows.append(
            (
                name,
                f"{rate:,.1f}",
                f"{rates[baseline] / rate - 1:+.1%}",
                f"{cpus[name] * 1000:,.1f} ms",
                f"{cpus[name] / cpus[baseline] - 1:+.1%}",
                f"{mentions:,}",
            )
        )
    msg.text(machine_line())
    over = "over plain"
    header = ("", "Documents/s", over, "CPU a document", over, "Mentions")
    print_table(header, rows)
    characters = sum(map(len, table.column("text").to_pylist())) / documents
    msg.text(f"{documents:,} documents of {characters:,.0f} characters on average")
    if cpu := cpus.get("Spark, 2 executors"):
        print_estimate(1 / cpu, characters)


def print_estimate(rate: float, characters: float) -> None:
    """Print what 100 million notes need.

    rate (float): Documents a second of a core, without waiting.
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


@app.command("overhead")
def overhead(
    kb: str = typer.Argument(..., help="Folder of the knowledge base."),
    corpora: list[Path] = typer.Argument(..., help="PubTator files."),
    documents: int = typer.Option(300, min=1, help="Number of documents."),
    rounds: int = typer.Option(5, min=1, help="Measurements; the medians count."),
) -> None:
    """kb/ + corpora -> processor time of `LinkBatches` over that of the pipeline

    Both take turns in one process, so that other work on the machine changes both.
    """
    table = make_documents(corpora, documents)
    texts = table.column("text").to_pylist()
    nlp, link = make_pipeline(kb), LinkBatches(kb=kb)
    ways: dict[str, Callable[[], Any]] = {
        "plain pipeline": lambda: [len(doc.ents) for doc in nlp.pipe(texts)],
        "LinkBatches": lambda: link(table),
    }
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):  # the first fills the caches
        for name, way in ways.items():
            start = time.process_time()
            way()
            if turn:
                spent[name].append(time.process_time() - start)
    msg.text(machine_line())
    plain = spent["plain pipeline"]
    ratios = [b / a - 1 for a, b in zip(plain, spent["LinkBatches"], strict=True)]
    for name, seconds in spent.items():
        msg.text(f"{name}: {median(seconds) / documents * 1000:.1f} ms a document")
    turns = ", ".join(f"{ratio:+.1%}" for ratio in ratios)
    msg.text(f"over plain: {median(ratios):+.1%} ({turns})")


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
