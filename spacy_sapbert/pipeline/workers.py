"""Several processes that link: the same Docs in the same order, also after a crash.

spaCy's `nlp.pipe(n_process=…)` hangs if a forked worker dies. `concurrent.futures`
cannot say which job a dead worker had, and its workers outlive a killed parent. Here
each worker has a pipe and one job at a time: after a crash the job goes to a new
worker, and after `MAX_CRASHES` it is an error with the ids of its documents.
"""

import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from ..errors import Errors, SapbertError, Warnings
from ..formats.documents import Document
from .running import Job
from .worker_process import pack_document, run_worker

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

MAX_CRASHES = 3  # of workers with the same job
JOBS_AHEAD = 3  # jobs read for each worker before the first result is yielded
MAX_IDS = 5  # in an error


@contextmanager
def worker_environment(threads: int) -> Iterator[None]:
    """Set the environment that new processes inherit.

    threads (int): Threads of each process, unless `OMP_NUM_THREADS` is set.
    """
    # SIGINT is blocked until the worker ignores it, so that Ctrl-C stops only this
    # process, when the mask is lifted.
    masks = hasattr(signal, "pthread_sigmask")
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masks else set()
    given = "OMP_NUM_THREADS" in os.environ
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    try:
        yield
    finally:
        if not given:
            del os.environ["OMP_NUM_THREADS"]
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, old)


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Worker:
    """A process that links, and the number of its job.

    open_pipeline (Callable[[], Language]): Opens the pipeline in it; is pickled.
    threads (int): Threads of the process.
    """

    def __init__(
        self, open_pipeline: "Callable[[], Language]", *, threads: int
    ) -> None:
        context = multiprocessing.get_context("spawn")  # a fork may hang
        self.connection, theirs = context.Pipe()
        self.process = context.Process(
            target=run_worker, args=(theirs, open_pipeline), daemon=True
        )
        self.job: int | None = None
        with worker_environment(threads):
            self.process.start()
        theirs.close()  # so that the pipe ends with the process

    def stop(self) -> int | None:
        """Kill the process and return its exit code; negative = a signal."""
        self.process.kill()
        self.process.join()
        self.connection.close()
        return self.process.exitcode


class Workers:
    """Processes that link jobs; use it in `with`, which ends them.

    The processes start with the first job and are reused by every call of `run`.

    open_pipeline (Callable[[], Language]): Opens the pipeline in each; is pickled.
    vocab (Vocab): Vocabulary of the Docs that are returned.
    n_process (int): Number of processes.
    """

    def __init__(
        self,
        open_pipeline: "Callable[[], Language]",
        *,
        vocab: "Vocab",
        n_process: int,
    ) -> None:
        self.open_pipeline = open_pipeline
        self.vocab = vocab
        self.n_process = n_process
        self.workers: list[Worker] = []

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def stop(self) -> None:
        """End all processes."""
        for worker in self.workers:
            worker.process.kill()  # all, before the first is joined
        while self.workers:
            self.workers.pop().stop()

    def run(self, jobs: Iterator[Job]) -> "Iterator[tuple[list[Document], list[Doc]]]":
        """Link jobs.

        jobs (Iterator[Job]): Documents, and names of components to skip. Some more jobs
            are read than are yielded.
        YIELDS (tuple[list[Document], list[Doc]]): The documents of each job and their
            Docs, in order.
        RAISES (SapbertError): As in one process, after the results of earlier jobs; or
            if the workers with a job crash again and again.
        """
        from spacy.tokens import Doc

        queue = JobQueue(jobs, size=JOBS_AHEAD * self.n_process)
        try:
            while True:
                self.send_jobs(queue)
                if queue.next in queue.results:
                    documents, result = queue.pop_result()
                    docs = [Doc(self.vocab).from_bytes(data) for data in result]
                    yield documents, docs
                elif queue.open:
                    self.receive_results(queue)
                else:
                    return
        finally:
            # Late results would be taken for those of the next call.
            if queue.open:
                self.stop()

    def send_jobs(self, queue: "JobQueue") -> None:
        """Send jobs to idle workers, and start missing workers."""
        threads = max(1, count_cores() // self.n_process)
        idle = [worker for worker in self.workers if worker.job is None]
        chosen: list[Worker] = []
        while idle or len(self.workers) < self.n_process:
            number = queue.next_job()
            if number is None:
                break
            if not idle:
                idle.append(Worker(self.open_pipeline, threads=threads))
                self.workers.append(idle[0])
            chosen.append(idle.pop())
            chosen[-1].job = number
        for worker in chosen:  # all are started before the first send blocks
            assert worker.job is not None
            batch, skip = queue.open[worker.job]
            # `receive_results` notices a worker that has died meanwhile.
            with suppress(OSError):
                worker.connection.send(([pack_document(d) for d in batch], skip))

    def receive_results(self, queue: "JobQueue") -> None:
        """Wait until workers return results or die."""
        busy = {w.connection: w for w in self.workers if w.job is not None}
        for connection in wait([*busy]):
            worker = busy[connection]  # type: ignore[index]
            number, worker.job = worker.job, None
            assert number is not None
            try:
                docs, error = worker.connection.recv()
                queue.results[number] = docs if error is None else error
            except (EOFError, OSError):
                self.workers.remove(worker)
                queue.record_crash(number, worker.stop())


class JobQueue:
    """Jobs that were read and not yet yielded, and their results.

    jobs (Iterator[Job]): The jobs.
    size (int): Maximum of jobs in the queue.
    """

    def __init__(self, jobs: Iterator[Job], *, size: int) -> None:
        self.jobs = jobs
        self.size = size
        self.open: dict[int, Job] = {}
        self.results: dict[int, list[bytes] | Exception] = {}
        self.waiting: list[int] = []  # jobs without a worker
        self.crashes: dict[int, int] = {}
        self.next = 0  # the next job to yield
        self.read = 0  # jobs read

    def next_job(self) -> int | None:
        """Return the number of a job without a worker; None if there is none now."""
        if not self.waiting and len(self.open) < self.size:
            try:
                self.open[self.read] = next(self.jobs)
                self.waiting.append(self.read)
                self.read += 1
            except StopIteration:
                self.size = 0
            except Exception as error:  # raised after the results of earlier jobs
                self.open[self.read] = ([], [])
                self.results[self.read] = error
                self.size = 0
        return self.waiting.pop() if self.waiting else None

    def pop_result(self) -> tuple[list[Document], list[bytes]]:
        """Remove the next job and return its documents and result.

        RAISES (Exception): If the result is an error.
        """
        (documents, _), result = self.open.pop(self.next), self.results.pop(self.next)
        self.next += 1
        if isinstance(result, Exception):
            raise result
        return documents, result

    def record_crash(self, number: int, exit_code: int | None) -> None:
        """Queue the job of a dead worker again; after `MAX_CRASHES` it is an error."""
        crashes = self.crashes[number] = self.crashes.get(number, 0) + 1
        if crashes < MAX_CRASHES:
            self.waiting.append(number)
            warnings.warn(Warnings.W748.format(code=exit_code), stacklevel=2)
            return
        ids = [document.id for document in self.open[number][0]]
        shown = ", ".join(repr(id) for id in ids[:MAX_IDS])
        more = f" and {len(ids) - MAX_IDS} others" if len(ids) > MAX_IDS else ""
        self.results[number] = SapbertError(
            Errors.E748.format(ids=shown + more, deaths=crashes, code=exit_code)
        )
