"""The one thread that links: jobs of several requests are linked together.

While the thread works on a batch, new jobs wait in the queue and become the next batch.
If that batch had several jobs, more are about to come, so the thread waits some
milliseconds for them; a single client never waits.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from ..errors import SapbertError
from .problems import RequestError

WINDOW = 0.003  # seconds
MOST_ITEMS = 64  # after which a batch is full
CALL = "call"  # kind of a job that is a function


@dataclass
class Job:
    """Items to link with the same settings.

    Attributes:
        kind, settings: Jobs that share both are linked together.
        items: What is linked; of a call its function.
    """

    kind: str
    settings: str
    items: Sequence[Any]
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
        self.jobs: queue.Queue[Job | None] = queue.Queue(waiting)
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

    def submit(self, kind: str, settings: str, items: Sequence[Any]) -> "Future[Any]":
        """Add a job.

        Returns:
            Of the results, one for each item.

        Raises:
            RequestError: If the queue is full, or the thread ends.
        """
        job = Job(kind, settings, items)
        try:
            if not self.alive:
                raise queue.Full
            self.jobs.put_nowait(job)
        except queue.Full:
            raise RequestError(
                "E460",
                "Expected a service with room in its queue, but it is full or ends. "
                "Send the request again later.",
                503,
                retry_after=1,
            ) from None
        return job.future

    def call(self, function: Callable[[], Any]) -> "Future[Any]":
        """Run a function between two batches."""
        return self.submit(CALL, "", [function])

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
                self.on_batch(len(batch))
                self.busy = len(batch) > 1
                for group in group_jobs(batch):
                    self.run_group(group)

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
                    left = end - time.monotonic()
                    job = self.jobs.get(block=left > 0, timeout=max(left, 0))
            except queue.Empty:
                break
            if job is None:
                return batch, True
            # A client that has gone away has cancelled its job.
            if job.future.set_running_or_notify_cancel():
                batch.append(job)
                items += len(job.items)
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
