"""Several processes that link documents: the same results in the same order.

spaCy's `nlp.pipe(n_process=…)` hangs if a forked worker dies.
"""

import multiprocessing
import os
import signal
import sys
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from functools import cache
from itertools import islice
from multiprocessing.context import BaseContext
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import SapbertError
from ..formats.documents import Document
from ..io.system import count_cores
from .running import Job, JobResults, Result, link_batch, open_pipeline

if TYPE_CHECKING:
    from spacy.language import Language

    from ..kb.knowledge_base import KnowledgeBase

JOBS_AHEAD = 3  # jobs read for each worker before the first result is yielded
MAX_IDS = 5  # in an error
# Imported once, by the process from which workers are forked.
PRELOADED = ["__main__", "spacy", "torch", "transformers", __name__]

Sent: TypeAlias = tuple[list[Document], Future[list[Result]]]

started: list[Any] = []  # what a worker was started with, to open its pipeline


class Workers:
    """Processes that link jobs; use it in `with`, which ends them.

    They start with the first job. All use this version of the knowledge base, also a
    process that is started later.
    """

    def __init__(
        self, settings: dict[str, Any], kb: "KnowledgeBase", n_process: int
    ) -> None:
        self.n_process = n_process
        # A plain fork may hang; a server that forks has no threads, and imports once.
        context: BaseContext = multiprocessing.get_context("spawn")
        if "forkserver" in multiprocessing.get_all_start_methods():
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload(PRELOADED)
        self.executor = ProcessPoolExecutor(
            n_process,
            mp_context=context,
            initializer=start_worker,
            initargs=(settings, kb.__reduce__(), max(1, count_cores() // n_process)),
        )

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: Any) -> None:
        # Python 3.14 has `kill_workers` for this.
        executor: Any = self.executor
        for process in [*(executor._processes or {}).values()]:
            process.kill()
        executor._result_queue._writer.close()  # ends the wait for a half-sent result
        executor.shutdown(cancel_futures=True)

    def run(self, jobs: Iterable[Job]) -> JobResults:
        """Link jobs in order; some more are read than are yielded.

        An error of a reader follows the results of the jobs before it.
        """
        sent = self.send_jobs(jobs)
        queue = deque(islice(sent, JOBS_AHEAD * self.n_process))
        while queue:
            documents, future = queue[0]
            try:
                results = future.result()
            except BrokenExecutor:
                raise worker_ended(queue, self.n_process) from None
            queue.popleft()
            queue.extend(islice(sent, 1))
            yield documents, results

    def send_jobs(self, jobs: Iterable[Job]) -> Iterator[Sent]:
        try:
            for documents, skip in jobs:
                packed = [pack_document(document) for document in documents]
                yield documents, self.executor.submit(link_packed, packed, skip)
        except Exception as error:  # raised after the results of earlier jobs
            failed: Future[list[Result]] = Future()
            failed.set_exception(error)
            yield [], failed


def worker_ended(queue: Iterable[Sent], n_process: int) -> SapbertError:
    """Return the error of a worker that has ended, with the documents at work."""
    jobs = (job for job, future in queue if not future.done() or future.exception())
    ids = [repr(document.id) for job in islice(jobs, n_process) for document in job]
    shown = ", ".join(ids[:MAX_IDS])
    if len(ids) > MAX_IDS:
        shown += f" and {len(ids) - MAX_IDS} others"
    return SapbertError(
        "E748",
        f"Expected worker processes to link the documents {shown}, but one of them "
        "ended. If the system had no memory left, pass a smaller `--batch-size` or "
        "`--n-process`; else find the document with `--batch-size 1`.",
    )


def pack_document(document: Document) -> Document:
    """Return a document for a worker: a Doc would be sent with its vocabulary."""
    data: Any = None if document.doc is None else document.doc.to_bytes()
    return document._replace(doc=data, fields=None)


def start_worker(
    settings: dict[str, Any], reduced_kb: tuple[Any, ...], threads: int
) -> None:
    """Prepare this process; the first job opens the pipeline, which may fail."""
    started.extend((settings, reduced_kb))
    threads = int(os.environ.setdefault("OMP_NUM_THREADS", str(threads)))
    if torch := sys.modules.get("torch"):  # else it reads the variable when imported
        torch.set_num_threads(threads)
    # Ctrl-C stops the parent, which ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=end_with_parent, daemon=True).start()


def end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@cache
def get_pipeline() -> "Language":
    settings, (reopen_kb, values) = started
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the parent has shown them
        nlp, linker = open_pipeline(**settings)
        linker.kb, linker.reload_seconds = reopen_kb(*values), None
        return nlp


def link_packed(packed: list[Document], skip: list[str]) -> list[Result]:
    """Link the documents of `pack_document` with the pipeline of this process."""
    from spacy.tokens import Doc

    nlp = get_pipeline()
    batch = []
    for document in packed:
        data: Any = document.doc
        doc = None if data is None else Doc(nlp.vocab).from_bytes(data)
        batch.append(document._replace(doc=doc))
    return link_batch(nlp, batch, skip=skip)
