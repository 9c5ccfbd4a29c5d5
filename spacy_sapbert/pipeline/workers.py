"""Several processes that link: the same Docs in the same order, also after a crash.

spaCy's `nlp.pipe(n_process=…)` hangs if a forked worker dies. `concurrent.futures`
notices it, and lacks two things that are here:

- It cannot say which job ended a worker. So the jobs without a result are repeated one
  at a time, and the one that ends `MAX_CRASHES` workers is an error with its ids.
- Its workers outlive a killed parent. So each waits for the end of its parent.
"""

import multiprocessing
import os
import signal
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice
from multiprocessing.context import BaseContext
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..errors import SapbertError
from ..formats.documents import Document
from .batches import Result
from .running import Job
from .worker_process import (
    PackedResult,
    link_packed,
    pack_document,
    start_worker,
    stopping_signals,
    unpack_result,
)

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.vocab import Vocab

MAX_CRASHES = 2  # of workers that had one job alone
JOBS_AHEAD = 3  # jobs read for each worker before the first result is yielded
MAX_IDS = 5  # in an error
# Imported once, by the process from which workers are forked.
PRELOADED = ["__main__", "spacy", "torch", "transformers", link_packed.__module__]


Results: TypeAlias = Future[list[PackedResult]]


class Started(NamedTuple):
    """A job that was sent to the pool."""

    documents: list[Document]
    skip: list[str]
    future: Results


class Workers:
    """Processes that link jobs; use it in `with`, which ends them.

    The processes start with the first job and are reused by every call of `run`.

    Args:
        open_pipeline: Opens the pipeline in each process; is pickled.
        vocab: Vocabulary of the Docs that are returned.
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
        self.executor = self.make_executor()

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def make_executor(self) -> ProcessPoolExecutor:
        """Return a new pool. Its processes start when they get jobs."""
        # A plain fork may hang; a server that forks has no threads, and imports once.
        context: BaseContext = multiprocessing.get_context("spawn")
        if "forkserver" in multiprocessing.get_all_start_methods():
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload(PRELOADED)
        return ProcessPoolExecutor(
            self.n_process,
            mp_context=context,
            initializer=start_worker,
            initargs=(self.open_pipeline,),
        )

    def stop(self) -> None:
        """End all processes, also those that work."""
        # Python 3.14 has `kill_workers` for this.
        for process in [*(self.executor._processes or {}).values()]:
            process.kill()
        self.executor.shutdown(cancel_futures=True)

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[list[Document], list[Result]]]:
        """Link jobs.

        Args:
            jobs: Some more are read than are yielded.

        Yields:
            The documents of each job and their Docs, or the errors of components, in
            order.

        Raises:
            SapbertError: As in one process, after the results of earlier jobs; or if
                a job ends its worker again and again.
        """
        queue: deque[Started] = deque()
        started = self.start_jobs(jobs)
        try:
            queue.extend(islice(started, JOBS_AHEAD * self.n_process))
            while queue:
                try:
                    results = queue[0].future.result()
                except BrokenExecutor:
                    self.repeat_jobs(queue)
                    continue
                documents = queue.popleft().documents
                queue.extend(islice(started, 1))
                yield documents, [unpack_result(r, self.vocab) for r in results]
        finally:
            for job in queue:
                job.future.cancel()

    def start_jobs(self, jobs: Iterable[Job]) -> Iterator[Started]:
        """Send each job that is asked for to the pool."""
        try:
            for documents, skip in jobs:
                yield Started(documents, skip, self.submit(documents, skip))
        except Exception as error:  # raised after the results of earlier jobs
            yield Started([], [], failed_future(error))

    def submit(self, documents: list[Document], skip: list[str]) -> Results:
        packed = [pack_document(document) for document in documents]
        try:
            with worker_environment(max(1, count_cores() // self.n_process)):
                return self.executor.submit(link_packed, packed, skip)
        except BrokenExecutor as error:
            return failed_future(error)

    def repeat_jobs(self, queue: deque[Started]) -> None:
        """Repeat the jobs that have no result because a worker has ended."""
        warnings.warn(
            "[W748] A worker process ended before its work. Its documents and "
            "those of the other workers are linked again, one batch at a time.",
            stacklevel=3,
        )
        for number, job in enumerate(queue):
            if is_broken(job.future):
                repeated = self.run_alone(job.documents, job.skip)
                queue[number] = job._replace(future=repeated)
                if repeated.exception() is not None:
                    break  # the run ends with it

    def run_alone(self, documents: list[Document], skip: list[str]) -> Results:
        """Repeat a job after a crash, without other jobs beside it."""
        for _ in range(MAX_CRASHES):
            if is_broken(future := self.submit(documents, skip)):
                self.stop()
                self.executor = self.make_executor()
                future = self.submit(documents, skip)
            wait([future])
            if not is_broken(future):
                return future
        shown = ", ".join(repr(document.id) for document in documents[:MAX_IDS])
        if len(documents) > MAX_IDS:
            shown += f" and {len(documents) - MAX_IDS} others"
        ended = SapbertError(
            "E748",
            f"Expected a worker process to link the documents {shown}, but "
            f"{MAX_CRASHES} of them ended over it. If the system had no memory left, "
            "pass a smaller `--batch-size` or `--n-process`; else find the document "
            "with `--batch-size 1`.",
        )
        return failed_future(ended)


def failed_future(error: Exception) -> Results:
    future: Results = Future()
    future.set_exception(error)
    return future


def is_broken(future: Results) -> bool:
    """Return whether a job has no result because a worker has ended."""
    return future.done() and isinstance(future.exception(), BrokenExecutor)


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def worker_environment(threads: int) -> Iterator[None]:
    """Set the environment that new processes inherit.

    Args:
        threads: Threads of each process, unless `OMP_NUM_THREADS` is set.
    """
    # A new process cannot be stopped before `start_worker`, which ignores Ctrl-C. So
    # Ctrl-C stops this process alone, which ends its workers.
    masks = hasattr(signal, "pthread_sigmask")
    old = signal.pthread_sigmask(signal.SIG_BLOCK, stopping_signals()) if masks else ()
    given = "OMP_NUM_THREADS" in os.environ
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    try:
        yield
    finally:
        if not given:
            del os.environ["OMP_NUM_THREADS"]
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, old)
