"""Several processes that link: the same Docs in the same order, whoever is killed.

spaCy's `nlp.pipe(n_process=…)` waits for ever for a forked worker that died. Here each
worker has a pipe of its own and one job at a time, so that it is known who died and
over what: the job goes to a fresh worker, and the third death is an error.
"""

import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from typing import (
    TYPE_CHECKING,
    Any,
)

from ..errors import Errors, SapbertError, Warnings
from ..formats.documents import Document
from .running import Job
from .worker_process import pack_document, work

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

MOST_DEATHS = 3  # of workers, over one job
JOBS_AHEAD = 3  # for each worker: jobs that are read and not yet handed out in order
IDS_TOLD = 5  # in an error


@contextmanager
def worker_surroundings(threads: int) -> Iterator[None]:
    """Have processes that are started now work with a few threads, deaf to Ctrl-C.

    threads (int): Threads of each, unless `OMP_NUM_THREADS` says how many.
    """
    # They inherit the mask, so that none is interrupted before it can say that it
    # does not want to be; Ctrl-C reaches this process when the mask is lifted.
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
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Worker:
    """A process that links, and the job that it has.

    open_pipeline (Callable[[], Language]): Gives it its pipeline; it is pickled.
    threads (int): Threads that it works with.
    """

    def __init__(
        self, open_pipeline: "Callable[[], Language]", *, threads: int
    ) -> None:
        context = multiprocessing.get_context("spawn")  # a fork may wait for ever
        self.connection, theirs = context.Pipe()
        self.process = context.Process(
            target=work, args=(theirs, open_pipeline), daemon=True
        )
        self.job: int | None = None
        with worker_surroundings(threads):
            self.process.start()
        theirs.close()  # so that its death is the end of the pipe

    def stop(self) -> int | None:
        """End the process, whatever it does.

        RETURNS (int | None): Its exit code; negative = the signal that ended it.
        """
        self.process.kill()
        self.process.join()
        self.connection.close()
        return self.process.exitcode


class Workers:
    """Processes that link jobs; to be used in `with`, which ends them.

    They begin at the first job, and stay for all that `run` is asked for.

    open_pipeline (Callable[[], Language]): Gives each its pipeline; it is pickled.
    vocab (Vocab): Of the Docs that come back.
    n_process (int): How many.
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
            worker.process.kill()  # all of them, before any is waited for
        while self.workers:
            self.workers.pop().stop()

    def run(self, jobs: Iterator[Job]) -> "Iterator[tuple[list[Document], list[Doc]]]":
        """Link jobs.

        jobs (Iterator[Job]): Documents, and components to leave out; a few more are
            read than are handed out.
        YIELDS (tuple[list[Document], list[Doc]]): The documents of each job, and a Doc
            for each, in order.
        RAISES (SapbertError): As one process does, after all that comes before; or if
            the workers that have a job die again and again.
        """
        from spacy.tokens import Doc

        board = Board(jobs, most=JOBS_AHEAD * self.n_process)
        try:
            while True:
                self.hand_out(board)
                if board.next in board.answers:
                    documents, answer = board.take()
                    docs = [Doc(self.vocab).from_bytes(data) for data in answer]
                    yield documents, docs
                elif board.open:
                    self.listen(board)
                else:
                    return
        finally:
            # Their answers would be taken for those of the next jobs.
            if board.open:
                self.stop()

    def hand_out(self, board: "Board") -> None:
        """Return jobs to the workers that have none, and begin those that are missing.

        board (Board): The jobs.
        """
        threads = max(1, count_cores() // self.n_process)
        idle = [worker for worker in self.workers if worker.job is None]
        given: list[Worker] = []
        while idle or len(self.workers) < self.n_process:
            number = board.draw()
            if number is None:
                break
            if not idle:
                idle.append(Worker(self.open_pipeline, threads=threads))
                self.workers.append(idle[0])
            given.append(idle.pop())
            given[-1].job = number
        for worker in given:  # all have begun before one is waited for
            assert worker.job is not None
            batch, skip = board.open[worker.job]
            # One that has died meanwhile is found by its pipe.
            with suppress(OSError):
                worker.connection.send(([pack_document(d) for d in batch], skip))

    def listen(self, board: "Board") -> None:
        """Wait until workers answer or die.

        board (Board): Gets the answers.
        """
        busy = {w.connection: w for w in self.workers if w.job is not None}
        for connection in wait([*busy]):
            worker = busy[connection]  # type: ignore[index]
            number, worker.job = worker.job, None
            assert number is not None
            try:
                docs, error = worker.connection.recv()
                board.answers[number] = docs if error is None else error
            except (EOFError, OSError):
                self.workers.remove(worker)
                board.bury(number, worker.stop())


class Board:
    """Jobs that were read and are not yet handed out in order, and their answers.

    jobs (Iterator[Job]): Where they come from.
    most (int): How many may be here at once.
    """

    def __init__(self, jobs: Iterator[Job], *, most: int) -> None:
        self.jobs = jobs
        self.most = most
        self.open: dict[int, Job] = {}
        self.answers: dict[int, list[bytes] | Exception] = {}
        self.waiting: list[int] = []  # not given to a worker, or to one that died
        self.deaths: dict[int, int] = {}
        self.next = 0  # the first that was not handed out
        self.read = 0

    def draw(self) -> int | None:
        """Choose a job that nobody has; None if there is none now."""
        if not self.waiting and len(self.open) < self.most and self.most:
            try:
                self.open[self.read] = next(self.jobs)
                self.waiting.append(self.read)
                self.read += 1
            except StopIteration:
                self.most = 0
            except Exception as error:  # told after all that comes before
                self.open[self.read] = ([], [])
                self.answers[self.read] = error
                self.most = 0
        return self.waiting.pop() if self.waiting else None

    def take(self) -> tuple[list[Document], list[bytes]]:
        """Return the documents and the answer of the next job.

        RAISES (Exception): If that is the answer.
        """
        (documents, _), answer = self.open.pop(self.next), self.answers.pop(self.next)
        self.next += 1
        if isinstance(answer, Exception):
            raise answer
        return documents, answer

    def bury(self, number: int, exit_code: int | None) -> None:
        """Write down that a worker died over a job.

        number (int): The job, which waits for another one, or is given up.
        exit_code (int | None): Of the process.
        """
        deaths = self.deaths[number] = self.deaths.get(number, 0) + 1
        if deaths < MOST_DEATHS:
            self.waiting.append(number)
            warnings.warn(Warnings.W748.format(code=exit_code), stacklevel=2)
            return
        ids = [document.id for document in self.open[number][0]]
        told = ", ".join(repr(id) for id in ids[:IDS_TOLD])
        more = f" and {len(ids) - IDS_TOLD} others" if len(ids) > IDS_TOLD else ""
        self.answers[number] = SapbertError(
            Errors.E748.format(ids=told + more, deaths=deaths, code=exit_code)
        )
