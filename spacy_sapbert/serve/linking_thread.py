"""The one thread that links: jobs of several requests are linked together.

A long request is many jobs, one after the other (`split_items`), so that the jobs of
other requests come between them. While the thread works on a batch, new jobs wait in
the queue and become the next batch. If that batch had several jobs, more are about to
come, so the thread waits some milliseconds for them; a single client never waits.
"""

import queue
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..errors import SapbertError
from .problems import queue_full

WINDOW = 0.003  # seconds
MOST_ITEMS = 64  # short ones; after so many a job, and a batch, is full
SHORT = 300  # characters of an item; a longer one counts as several
T = TypeVar("T", bound=tuple[Any, ...])


@dataclass
class Job:
    """Items to work on.

    Attributes:
        work: Returns a result for each item.
        key: Jobs that share it do the same work, and are done together; None = alone.
    """

    work: Callable[[Sequence[Any]], Sequence[Any]]
    items: Sequence[Any]
    key: Hashable = None
    future: "Future[Any]" = field(default_factory=Future)


class LinkingThread:
    """Runs jobs in batches, one batch at a time.

    Args:
        waiting: Jobs that may wait; more are refused.
        on_batch: Called with the number of jobs of each batch.
    """

    def __init__(
        self,
        *,
        waiting: int,
        on_batch: Callable[[int], object] = lambda jobs: None,
    ) -> None:
        self.on_batch = on_batch
        self.waiting = waiting
        self.jobs: queue.Queue[Job | None] = queue.Queue()
        self.closed = False
        self.busy = False  # the last batch had several jobs
        self.thread = threading.Thread(target=self.run, name="linking", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    @property
    def alive(self) -> bool:
        """Whether jobs are accepted and the thread works on them."""
        return self.thread.is_alive() and not self.closed

    def count_waiting(self) -> int:
        """Return the number of jobs that wait."""
        return self.jobs.qsize()

    def submit(self, job: Job, *, begun: bool = False) -> "Future[Any]":
        """Add a job.

        Args:
            begun: Whether other jobs of the request are done; then a full queue is no
                reason to refuse it.

        Returns:
            Of the results, one for each item.

        Raises:
            RequestError: If the queue is full, or the thread ends.
        """
        full = self.count_waiting() >= self.waiting and not begun
        if full or not self.alive:
            raise queue_full()
        self.jobs.put(job)
        return job.future

    def close(self) -> None:
        """Finish the jobs that were accepted, and end the thread."""
        self.closed = True
        if self.thread.is_alive():
            self.jobs.put(None)
            self.thread.join()

    def run(self) -> None:
        """Run batches until the thread is closed."""
        ends = False
        while not ends:
            batch, ends = self.next_batch()
            if batch:
                self.busy = len(batch) > 1
                self.on_batch(len(batch))
                for group in group_jobs(batch):
                    run_group(group)

    def next_batch(self) -> tuple[list[Job], bool]:
        """Wait for jobs; return them, and whether the thread is to end after them."""
        batch: list[Job] = []
        items = 0
        end = 0.0
        while items < MOST_ITEMS:
            try:
                if not batch:
                    job = self.jobs.get()
                    end = time.monotonic() + (WINDOW if self.busy else 0)
                else:
                    left = max(end - time.monotonic(), 0)
                    job = self.jobs.get(block=left > 0, timeout=left)
            except queue.Empty:
                break
            if job is None:
                return batch, True
            # A client that has gone away has cancelled its job.
            if job.future.set_running_or_notify_cancel():
                batch.append(job)
                items += sum(map(count_short, job.items))
        return batch, False


def count_short(item: tuple[Any, ...]) -> int:
    """Return as how many short items one counts, by the texts that it has."""
    return 1 + sum(len(text) for text in item if isinstance(text, str)) // SHORT


def split_items(items: Sequence[T]) -> Iterator[list[T]]:
    """Yield the items of each job of a request; of one without items an empty list."""
    part: list[T] = []
    count = 0
    for item in items:
        if part and count + count_short(item) > MOST_ITEMS:
            yield part
            part, count = [], 0
        part.append(item)
        count += count_short(item)
    yield part


def group_jobs(jobs: Sequence[Job]) -> list[list[Job]]:
    """Group jobs that can be done together, in order."""
    groups: dict[Hashable, list[Job]] = {}
    for job in jobs:
        groups.setdefault(id(job) if job.key is None else job.key, []).append(job)
    return [*groups.values()]


def run_group(group: list[Job]) -> None:
    """Do jobs together; if that fails, alone, so that only the bad one fails."""
    try:
        items = [item for job in group for item in job.items]
        results = group[0].work(items)
    except Exception as error:
        if len(group) == 1 or isinstance(error, SapbertError):
            for job in group:
                job.future.set_exception(error)
        else:
            for job in group:
                run_group([job])
        return
    start = 0
    for job in group:
        job.future.set_result(results[start : start + len(job.items)])
        start += len(job.items)
