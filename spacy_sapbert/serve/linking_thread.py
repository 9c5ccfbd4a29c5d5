"""The one thread that links: jobs of several requests are linked together.

While the thread works on a batch, new jobs wait in the queue and become the next batch.
A long job is a batch of its own. Between its parts the thread runs the short jobs that
wait, and it ends a job when nobody waits for its result.
If that batch had several jobs, more are about to come, so the thread waits some
milliseconds for them; a single client never waits.
"""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..errors import SapbertError
from ..linking.parts import GIVE_WAY
from .problems import queue_full

WINDOW = 0.003  # seconds
MOST_ITEMS = 64  # after which a batch is full
CALL = "call"  # kind of a job that is a function


@dataclass
class Job:
    """Items to link with the same settings.

    Attributes:
        kind, settings: Jobs that share both are linked together.
        items: What is linked; of a call its function.
        alone: Whether it is long, or changes what others use, so that no other job
            has it beside it.
        given_up: Whether nobody waits for its result.
    """

    kind: str
    settings: str
    items: Sequence[Any]
    alone: bool = False
    given_up: bool = False
    future: "Future[Any]" = field(default_factory=Future)


Link = Callable[[str, str, list[Any]], list[Any]]


class LinkingThread:
    """Runs jobs in batches, one batch at a time.

    Args:
        link: Gets kind, settings and items, and returns a result for each item.
        waiting: Jobs that may wait; more are refused.
        on_batch: Called with the number of jobs of each batch.
    """

    def __init__(
        self,
        link: Link,
        *,
        waiting: int,
        on_batch: Callable[[int], object] = lambda jobs: None,
    ) -> None:
        self.link = link
        self.on_batch = on_batch
        self.waiting = waiting
        self.jobs: queue.Queue[Job | None] = queue.Queue()
        self.later: deque[Job | None] = deque()  # taken out of `jobs`, before the rest
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
        return self.jobs.qsize() + len(self.later)

    def submit(self, job: Job) -> "Future[Any]":
        """Add a job.

        Returns:
            Of the results, one for each item.

        Raises:
            RequestError: If the queue is full, or the thread ends.
        """
        if not self.alive or self.count_waiting() >= self.waiting:
            raise queue_full()
        self.jobs.put(job)
        return job.future

    def call(
        self, function: Callable[[], Any], *, alone: bool = False
    ) -> "Future[Any]":
        """Run a function between two batches, or `alone` between two long jobs."""
        return self.submit(Job(CALL, "", [function], alone))

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
                give_way = partial(self.run_short, batch[0]) if batch[0].alone else None
                self.run_batch(batch, give_way)

    def run_batch(
        self, batch: list[Job], give_way: Callable[[], None] | None = None
    ) -> None:
        """Run jobs; those that can are linked together."""
        self.on_batch(len(batch))
        token = GIVE_WAY.set(give_way)
        for group in group_jobs(batch):
            self.run_group(group)
        GIVE_WAY.reset(token)

    def run_short(self, long: Job) -> None:
        """Run the short jobs that wait, between two parts of a long one.

        Raises:
            SapbertError: If nobody waits for the result of the long job.
        """
        if long.given_up:
            raise SapbertError(
                "E461", "Expected a client that waits for its answer, but it has gone."
            )
        short: list[Job] = []
        for _ in range(self.jobs.qsize()):
            job = self.jobs.get()
            if job is None or job.alone:
                self.later.append(job)
            elif job.future.set_running_or_notify_cancel():
                short.append(job)
        if short:
            self.run_batch(short)

    def take(self, seconds: float | None) -> Job | None:
        """Return the next job; see `queue.Queue.get`."""
        if self.later:
            return self.later.popleft()
        return self.jobs.get(block=seconds != 0, timeout=seconds)

    def next_batch(self) -> tuple[list[Job], bool]:
        """Wait for jobs; return them, and whether the thread is to end after them."""
        batch: list[Job] = []
        items = 0
        end = 0.0
        while items < MOST_ITEMS:
            try:
                if not batch:
                    job = self.take(None)
                    end = time.monotonic() + (WINDOW if self.busy else 0)
                else:
                    job = self.take(max(end - time.monotonic(), 0))
            except queue.Empty:
                break
            if job is None:
                return batch, True
            if job.alone and batch:
                self.later.appendleft(job)
                break
            # A client that has gone away has cancelled its job.
            if job.future.set_running_or_notify_cancel():
                batch.append(job)
                items += len(job.items)
                if job.alone:
                    break
        return batch, False

    def run_group(self, group: list[Job]) -> None:
        """Link jobs together; if that fails, alone, so that only the bad one fails."""
        if group[0].kind == CALL:
            for job in group:
                run_call(job)
            return
        first = group[0]
        try:
            items = [item for job in group for item in job.items]
            results = self.link(first.kind, first.settings, items)
        except Exception as error:
            if len(group) == 1 or isinstance(error, SapbertError):
                for job in group:
                    job.future.set_exception(error)
            else:
                for job in group:
                    self.run_group([job])
            return
        start = 0
        for job in group:
            job.future.set_result(results[start : start + len(job.items)])
            start += len(job.items)


def group_jobs(jobs: Sequence[Job]) -> list[list[Job]]:
    """Group jobs that can be linked together, in order; a call stays in its place."""
    groups: list[list[Job]] = []
    for job in jobs:
        for group in reversed(groups):
            if (group[0].kind, group[0].settings) == (job.kind, job.settings):
                group.append(job)
                break
            if CALL in (group[0].kind, job.kind):
                groups.append([job])
                break
        else:
            groups.append([job])
    return groups


def run_call(job: Job) -> None:
    """Run the function of a call, and set its result."""
    try:
        job.future.set_result(job.items[0]())
    except Exception as error:
        job.future.set_exception(error)
