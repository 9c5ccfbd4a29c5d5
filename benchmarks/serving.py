"""How fast a service answers many clients: the table of docs/speed.md."""

import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import numpy as np
import typer

from benchmarks.harness import machine_line, print_table, run_cli
from spacy_sapbert.formats.registry import load_reader
from spacy_sapbert.io.terminal import msg

JSON = {"content-type": "application/json"}
FORM = {"content-type": "application/x-www-form-urlencoded"}
TOGETHER = 10  # queries of a request of OpenRefine
COUNTS = ("sapbert_batch_jobs_sum", "sapbert_batch_jobs_count")
SECONDS = "process_cpu_seconds_total"
VALUE = re.compile(rf"^({'|'.join((*COUNTS, SECONDS))}) (\S+)", re.MULTILINE)
HEADER = (
    *("request", "processes", "clients", "requests/s", "p50 ms", "p95 ms"),
    *("linked together", "CPU ms of a request", "errors"),
)


class Load(NamedTuple):
    """What clients have measured."""

    seconds: list[float]  # of each request
    errors: int  # requests without status 200
    elapsed: float  # seconds of all
    jobs: float  # requests that were linked together, on average
    computed: float  # seconds that the service computed


@contextmanager
def serve(kb: Path, options: Sequence[str]) -> Iterator[int]:
    """Start a service on a free port, and yield the port.

    Args:
        options: More options of `serve`.
    """
    command = [sys.executable, "-m", "spacy_sapbert", "serve", "--port", "0"]
    service = subprocess.Popen(
        [*command, str(kb), *options],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")},
    )
    assert service.stderr is not None
    try:
        port, line = 0, ""
        for line in service.stderr:
            if '"listening"' in line:
                port = int(json.loads(line)["url"].rpartition(":")[2])
                break
        if not port:
            raise RuntimeError(line.strip())
        threading.Thread(target=service.stderr.read, daemon=True).start()
        yield port
    finally:
        service.terminate()
        service.wait()


def read_counters(port: int) -> dict[str, float]:
    """Return the counters of batches, and of seconds of the processor.

    A service of several processes has none.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    found = {name: float(value) for name, value in VALUE.findall(text)}
    return dict.fromkeys((*COUNTS, SECONDS), 0.0) | found


def load_service(port: int, path: str, bodies: Sequence[bytes], clients: int) -> Load:
    """Send requests; each client sends the next when one is answered."""
    headers = FORM if path == "/reconcile" else JSON
    left = iter(bodies)
    lock = threading.Lock()
    seconds: list[float] = []
    errors: list[int] = []

    def send() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        while True:
            with lock:
                body = next(left, None)
            if body is None:
                return
            started = time.perf_counter()
            try:
                connection.request("POST", path, body, headers)
                answer = connection.getresponse()
                answer.read()
                status = answer.status
            except OSError:
                status = 0
                connection.close()
            seconds.append(time.perf_counter() - started)
            if status != 200:
                errors.append(status)

    before = read_counters(port)
    threads = [threading.Thread(target=send) for _ in range(clients)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - started
    after = read_counters(port)
    changes = {name: after[name] - before[name] for name in after}
    jobs, batches = (changes[name] for name in COUNTS)
    return Load(seconds, len(errors), elapsed, jobs / max(batches, 1), changes[SECONDS])


def make_bodies(path: str, items: Sequence[str]) -> list[bytes]:
    """Return the bodies of requests: one for each item, of OpenRefine for ten."""
    if path != "/reconcile":
        field = "texts" if path == "/link" else "mentions"
        return [json.dumps({field: [item]}).encode() for item in items]
    batches = [items[at : at + TOGETHER] for at in range(0, len(items), TOGETHER)]
    queries = [
        {f"q{place}": {"query": item} for place, item in enumerate(batch)}
        for batch in batches
    ]
    return [urlencode({"queries": json.dumps(one)}).encode() for one in queries]


def describe_load(load: Load) -> tuple[str, ...]:
    """Return the figures of a load, see `HEADER`; several processes do not count."""
    requests = len(load.seconds)
    half, most = np.percentile(load.seconds, [50, 95])
    counted = [f"{load.jobs:.1f}", f"{1000 * load.computed / requests:,.1f}"]
    return (
        f"{requests / load.elapsed:,.0f}",
        f"{1000 * half:,.0f}",
        f"{1000 * most:,.0f}",
        *(counted if load.jobs else ["–", "–"]),
        str(load.errors),
    )


def main(
    kb: Path = typer.Argument(..., help="Knowledge base."),
    corpora: list[Path] = typer.Argument(..., help="PubTator files."),
    requests: int = typer.Option(640, help="Requests of each kind and load."),
    clients: str = typer.Option("1,8,32", help="Numbers of clients."),
    workers: str = typer.Option("1,2", help="Numbers of processes of the service."),
    serve_option: list[str] = typer.Option(
        [], help="An option of `serve` and its value, e.g. engine=torch. Repeatable."
    ),
) -> None:
    """Load a service with one, and with many clients that each wait for an answer.

    Every number of clients has texts and mentions of its own, so that the cache has
    none of them; a mention is not sent twice.
    """
    read = load_reader("pubtator")
    documents = [document for path in corpora for document in read(path)]
    texts = [document.text for document in documents]
    spans = (span.mention for document in documents for span in document.mentions)
    mentions = [*dict.fromkeys(spans)]
    numbers = [int(number) for number in clients.split(",")]
    half_way = len(mentions) // 2
    items = {
        "/mentions": mentions[:half_way],
        "/reconcile": mentions[half_way:],
        "/link": texts[20:],
    }
    rows: list[tuple[Any, ...]] = []
    for processes in map(int, workers.split(",")):
        options = [f"--{option}" for option in (*serve_option, f"workers={processes}")]
        with serve(kb, options) as port:
            load_service(port, "/link", make_bodies("/link", texts[:20]), 1)
            for path in items:
                share = len(items[path]) // len(numbers)
                for place, number in enumerate(numbers):
                    own = items[path][place * share : (place + 1) * share]
                    bodies = make_bodies(path, own)[:requests]
                    load = load_service(port, path, bodies, number)
                    figures = describe_load(load)
                    rows.append((path, processes, number, *figures))
    msg.text(machine_line())
    rows.sort(key=lambda row: str(row[0]))  # one process and two below each other
    print_table(HEADER, rows)


if __name__ == "__main__":
    run_cli(main)
