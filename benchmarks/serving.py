"""How fast a service answers many clients: the table of docs/serve.md."""

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

import numpy as np
import typer

from benchmarks.harness import machine_line, print_table, run_cli
from spacy_sapbert.formats.registry import load_reader
from spacy_sapbert.io.terminal import msg

JSON = {"content-type": "application/json"}
COUNTS = ("sapbert_batch_jobs_sum", "sapbert_batch_jobs_count")
SECONDS = "process_cpu_seconds_total"
VALUE = re.compile(rf"^({'|'.join((*COUNTS, SECONDS))}) (\S+)", re.MULTILINE)
HEADER = ("request", "clients", "requests", "errors", "requests/s")


class Load(NamedTuple):
    """What clients have measured."""

    seconds: list[float]  # of each request
    errors: int  # requests without status 200
    elapsed: float  # seconds of all
    jobs: float  # requests that were linked together, on average
    computed: float  # seconds that the service computed


@contextmanager
def serve(kb: Path) -> Iterator[int]:
    """Start a service on a free port, and yield the port."""
    command = [sys.executable, "-m", "spacy_sapbert", "serve", "--port", "0"]
    service = subprocess.Popen(
        [*command, "--kb", str(kb)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")},
    )
    assert service.stderr is not None
    try:
        port = 0
        for line in service.stderr:
            if '"listening"' in line:
                port = int(json.loads(line)["url"].rpartition(":")[2])
                break
        threading.Thread(target=service.stderr.read, daemon=True).start()
        yield port
    finally:
        service.terminate()
        service.wait()


def read_counters(port: int) -> dict[str, float]:
    """Return the counters of batches, and of seconds of the processor."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    return {name: float(value) for name, value in VALUE.findall(text)}


def load_service(
    port: int, path: str, bodies: Sequence[dict[str, Any]], clients: int
) -> Load:
    """Send requests; each client sends the next when one is answered."""
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
                connection.request("POST", path, json.dumps(body), JSON)
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


def main(
    kb: Path = typer.Argument(..., help="Knowledge base."),
    corpora: list[Path] = typer.Argument(..., help="PubTator files."),
    requests: int = typer.Option(640, help="Requests of each kind and load."),
    clients: str = typer.Option("1,8,32", help="Numbers of clients."),
) -> None:
    """Load a service with one, and with many clients that each wait for an answer.

    Every number of clients has texts and mentions of its own, so that the cache has
    none of them; a mention is not sent twice.
    """
    read = load_reader("pubtator")
    documents = [document for path in corpora for document in read(path)]
    texts = [document.text for document in documents]
    spans = (span.mention for document in documents for span in document.spans)
    mentions = [*dict.fromkeys(spans)]
    numbers = [int(number) for number in clients.split(",")]
    rows = []
    with serve(kb) as port:
        warm = [{"texts": [text]} for text in texts[:20]]
        load_service(port, "/link", warm, 1)
        for path, field, items in (
            ("/mentions", "mentions", mentions),
            ("/link", "texts", texts[20:]),
        ):
            each = min(requests, len(items) // len(numbers))
            for place, number in enumerate(numbers):
                own = items[place * each : (place + 1) * each]
                bodies = [{field: [item]} for item in own]
                load = load_service(port, path, bodies, number)
                half, most = np.percentile(load.seconds, [50, 95])
                rows.append(
                    (
                        path,
                        number,
                        f"{each:,}",
                        load.errors,
                        f"{each / load.elapsed:,.0f}",
                        f"{1000 * half:,.0f} ms",
                        f"{1000 * most:,.0f} ms",
                        f"{load.jobs:.1f}",
                        f"{1000 * load.computed / each:,.0f} ms",
                    )
                )
    msg.text(machine_line())
    header = (*HEADER, "p50", "p95", "linked together", "CPU of a request")
    print_table(header, rows)


if __name__ == "__main__":
    run_cli(main)
