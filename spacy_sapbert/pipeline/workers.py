"""Several processes that link: the same Docs in the same order, also after a crash.

spaCy's `nlp.pipe(n_process=…)` hangs if a forked worker dies. `concurrent.futures`
cannot say which job a dead worker had, and its workers outlive a killed parent. Here
each worker has a pipe and one job at a time: after a crash the job goes to a new
worker, and after `MAX_CRASHES` it is an error with the ids of its documents. A worker
sends signs of life, also while it works; without them it is stopped, and is replaced
too.
"""

import multiprocessing
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from threading import Thread
from typing import TYPE_CHECKING, Any

from ..errors import Errors, SapbertError, Warnings
from ..formats.documents import Document
from .batches import ComponentError, Result
from .running import Job
from .worker_process import (
    Packed,
    PackedResult,
    pack_document,
    run_worker,
    stopping_signals,
)

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.vocab import Vocab

MAX_CRASHES = 3  # of workers with the same job
JOBS_AHEAD = 3  # jobs read for each worker before the first result is yielded
MAX_IDS = 5  # in an error
# Without a sign of life: a new process imports torch first, and one call in C, e.g. of
# a regular expression, holds back all threads of Python.
MAX_SILENCE = 600.0
WAIT_SECONDS = 1.0  # for results; longer only if this process was stopped itself


@contextmanager
def worker_environment(threads: int) -> Iterator[None]:
    """Set the environment that new processes inherit.

    threads (int): Threads of each process, unless `OMP_NUM_THREADS` is set.
    """
    # Ctrl-C and the like are blocked until the worker is known and ignores Ctrl-C, so
    # that they stop this process, when the mask is lifted, and it ends the worker.
    masks = hasattr(signal, "pthread_sigmask")
    blocked = stopping_signals()
    old = signal.pthread_sigmask(signal.SIG_BLOCK, blocked) if masks else set()
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
    """

    def __init__(self, open_pipeline: "Callable[[], Language]") -> None:
        context = multiprocessing.get_context("spawn")  # a fork may hang
        self.connection, theirs = context.Pipe()
        self.process = context.Process(
            target=run_worker, args=(theirs, open_pipeline), daemon=True
        )
        self.job: int | None = None
        self.silence = 0.0  # seconds of waiting since the last sign of life
        self.sender: Thread | None = None
        self.process.start()
        theirs.close()  # so that the pipe ends with the process

    def start_job(self, number: int, batch: list[Document], skip: list[str]) -> None:
        """Send a job in a thread: a process that is stopped or starts reads it late."""
        self.job, self.silence = number, 0.0
        packed = [pack_document(document) for document in batch]
        self.sender = Thread(target=self.send, args=((packed, skip),), daemon=True)
        self.sender.start()

    def send(self, job: tuple[list[Packed], list[str]]) -> None:
        """Send a job; `Workers.receive_results` notices a process that has died."""
        with suppress(OSError):
            self.connection.send(job)

    def stop(self) -> int | None:
        """Kill the process and return its exit code; negative = a signal."""
        self.process.kill()
        self.process.join()
        if self.sender is not None:
            self.sender.join()
        self.connection.close()
        return self.process.exitcode


class Workers:
    """Processes that link jobs; use it in `with`, which ends them.

    The processes start with the first job and are reused by every call of `run`.

    open_pipeline (Callable[[], Language]): Opens the pipeline in each; is pickled.
    vocab (Vocab): Vocabulary of the Docs that are returned.
    n_process (int): Number of processes.
    max_silence (float): Seconds without a sign of life after which a process that has a
        job is replaced.
    """

    def __init__(
        self,
        open_pipeline: "Callable[[], Language]",
        *,
        vocab: "Vocab",
        n_process: int,
        max_silence: float = MAX_SILENCE,
    ) -> None:
        self.open_pipeline = open_pipeline
        self.vocab = vocab
        self.n_process = n_process
        self.max_silence = max_silence
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

    def run(
        self, jobs: Iterator[Job]
    ) -> "Iterator[tuple[list[Document], list[Result]]]":
        """Link jobs.

        jobs (Iterator[Job]): Documents, and names of components to skip. Some more jobs
            are read than are yielded.
        YIELDS (tuple[list[Document], list[Result]]): The documents of each job and
            their Docs, or the errors of components, in order.
        RAISES (SapbertError): As in one process, after the results of earlier jobs; or
            if the workers with a job crash again and again.
        """
        queue = JobQueue(jobs, size=JOBS_AHEAD * self.n_process)
        try:
            while True:
                self.send_jobs(queue)
                if queue.next in queue.results:
                    documents, result = queue.pop_result()
                    yield documents, [self.unpack_result(found) for found in result]
                elif queue.open:
                    self.receive_results(queue)
                else:
                    return
        finally:
            # Late results would be taken for those of the next call.
            if queue.open:
                self.stop()

    def unpack_result(self, found: PackedResult) -> Result:
        """Return the Doc that a worker has sent, or the error of a component."""
        from spacy.tokens import Doc

        if isinstance(found, ComponentError):
            return found
        doc: Doc = Doc(self.vocab).from_bytes(found)
        return doc

    def send_jobs(self, queue: "JobQueue") -> None:
        """Send jobs to idle workers, and start missing workers."""
        threads = max(1, count_cores() // self.n_process)
        idle = [worker for worker in self.workers if worker.job is None]
        while idle or len(self.workers) < self.n_process:
            number = queue.next_job()
            if number is None:
                break
            if not idle:
                with worker_environment(threads):
                    idle.append(Worker(self.open_pipeline))
                    self.workers.append(idle[0])
            idle.pop().start_job(number, *queue.open[number])

    def receive_results(self, queue: "JobQueue") -> None:
        """Wait a while for workers that return results, die or are stopped."""
        busy = [worker for worker in self.workers if worker.job is not None]
        start = time.monotonic()
        ready = wait([worker.connection for worker in busy], timeout=WAIT_SECONDS)
        # Ctrl-Z may have stopped all processes for hours.
        waited = min(time.monotonic() - start, WAIT_SECONDS)
        for worker in busy:
            number = worker.job
            assert number is not None
            worker.silence += waited
            if worker.connection in ready:
                worker.silence = 0.0
                try:
                    result = worker.connection.recv()
                except (EOFError, OSError):
                    self.workers.remove(worker)
                    queue.record_crash(number, worker.stop())
                    continue
                if result is not None:  # a sign of life
                    docs, error = result
                    worker.job = None
                    queue.results[number] = docs if error is None else error
            elif worker.silence >= self.max_silence:
                self.workers.remove(worker)
                worker.stop()
                queue.record_crash(number, None, silence=worker.silence)


class JobQueue:
    """Jobs that were read and not yet yielded, and their results.

    jobs (Iterator[Job]): The jobs.
    size (int): Maximum of jobs in the queue.
    """

    def __init__(self, jobs: Iterator[Job], *, size: int) -> None:
        self.jobs = jobs
        self.size = size
        self.open: dict[int, Job] = {}
        self.results: dict[int, list[PackedResult] | Exception] = {}
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

    def pop_result(self) -> tuple[list[Document], list[PackedResult]]:
        """Remove the next job and return its documents and result.

        RAISES (Exception): If the result is an error.
        """
        (documents, _), result = self.open.pop(self.next), self.results.pop(self.next)
        self.next += 1
        if isinstance(result, Exception):
            raise result
        return documents, result

    def record_crash(
        self, number: int, exit_code: int | None, *, silence: float | None = None
    ) -> None:
        """Queue the job of a dead worker again; after `MAX_CRASHES` it is an error.

        silence (float | None): Seconds without a sign of life, if that was the reason.
        """
        crashes = self.crashes[number] = self.crashes.get(number, 0) + 1
        died = {"code": exit_code, "seconds": silence}
        if crashes < MAX_CRASHES:
            self.waiting.append(number)
            warning = Warnings.W748 if silence is None else Warnings.W571
            warnings.warn(warning.format(**died), stacklevel=2)
            return
        ids = [document.id for document in self.open[number][0]]
        shown = ", ".join(repr(id) for id in ids[:MAX_IDS])
        more = f" and {len(ids) - MAX_IDS} others" if len(ids) > MAX_IDS else ""
        text = Errors.E748 if silence is None else Errors.E571
        self.results[number] = SapbertError(
            text.format(ids=shown + more, deaths=crashes, **died)
        )
