"""Several processes that link documents: the same Docs in the same order.

spaCy's `nlp.pipe(n_process=…)` hangs if a forked worker dies; `concurrent.futures`
notices it.
"""

import multiprocessing
import os
import signal
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from functools import cache
from itertools import islice
from multiprocessing.context import BaseContext
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import SapbertError
from ..formats.documents import Document
from ..formats.gold import GoldSpan
from .running import LINKER, ComponentError, Job, Result, find_linker, run_batch

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

JOBS_AHEAD = 3  # jobs read for each worker before the first result is yielded
MAX_IDS = 5  # in an error
# Imported once, by the process from which workers are forked.
PRELOADED = ["__main__", "spacy", "torch", "transformers", __name__]

# Id, text, place, mentions and, if the document has one, the Doc.
Packed = tuple[Any, str, str, list[GoldSpan] | None, bytes | None]
PackedResult = bytes | ComponentError  # a Doc, or why there is none
Started: TypeAlias = tuple[list[Document], Future[list[PackedResult]]]

state: "dict[str, Callable[[], Language]]" = {}  # of a worker


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
        self.vocab = vocab
        self.n_process = n_process
        # A plain fork may hang; a server that forks has no threads, and imports once.
        context: BaseContext = multiprocessing.get_context("spawn")
        if "forkserver" in multiprocessing.get_all_start_methods():
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload(PRELOADED)
        threads = max(1, count_cores() // n_process)
        self.executor = ProcessPoolExecutor(
            n_process,
            mp_context=context,
            initializer=start_worker,
            initargs=(open_pipeline, threads),
        )

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: Any) -> None:
        # Python 3.14 has `kill_workers` for this.
        for process in [*(self.executor._processes or {}).values()]:
            process.kill()
        self.executor.shutdown(cancel_futures=True)

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[list[Document], list[Result]]]:
        """Link jobs; some more are read than are yielded.

        Yields:
            The documents of each job and their Docs, or the errors of components, in
            order. An error of a reader follows the results of the jobs before it.
        """
        started = self.start_jobs(jobs)
        queue = deque(islice(started, JOBS_AHEAD * self.n_process))
        try:
            while queue:
                documents, future = queue[0]
                try:
                    results = future.result()
                except BrokenExecutor:
                    raise worker_ended(queue, self.n_process) from None
                queue.popleft()
                queue.extend(islice(started, 1))
                yield documents, [unpack_result(r, self.vocab) for r in results]
        finally:
            for _, future in queue:
                future.cancel()

    def start_jobs(self, jobs: Iterable[Job]) -> Iterator[Started]:
        """Send each job that is asked for to the pool."""
        try:
            for documents, skip in jobs:
                packed = [pack_document(document) for document in documents]
                yield documents, self.executor.submit(link_packed, packed, skip)
        except Exception as error:  # raised after the results of earlier jobs
            failed: Future[list[PackedResult]] = Future()
            failed.set_exception(error)
            yield [], failed


def worker_ended(queue: Iterable[Started], n_process: int) -> SapbertError:
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


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def start_worker(open_pipeline: "Callable[[], Language]", threads: int) -> None:
    """Prepare this process; the first job opens the pipeline, which may fail."""
    import torch

    state["open"] = open_pipeline
    threads = int(os.environ.setdefault("OMP_NUM_THREADS", str(threads)))
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the parent has shown them
        return state["open"]()


def link_packed(packed: list[Packed], skip: list[str]) -> list[PackedResult]:
    """Link packed documents with the pipeline of this process."""
    try:
        return run_job(get_pipeline(), packed, skip)
    except SapbertError:
        raise
    except Exception as error:  # whose message may contain text of a document
        kind = type(error).__name__
        raise SapbertError(
            "E749",
            "Expected a worker process to open the pipeline and to return its "
            f"documents, but it failed with {kind}. `--n-process 1` shows the place.",
        ) from None


def run_job(
    nlp: "Language", packed: list[Packed], skip: list[str]
) -> list[PackedResult]:
    """Link packed documents; `skip` has the names of components to skip."""
    from spacy.tokens import Doc

    linker: Any = nlp.get_pipe(find_linker(nlp) or LINKER)
    batch = []
    for id, text, place, spans, data in packed:
        doc = None if data is None else Doc(nlp.vocab).from_bytes(data)
        batch.append(Document(id, text, doc, spans, place=place))
    return [
        result
        if isinstance(result, ComponentError)
        else pack_doc(result, linker.attrs, linker.spans_key)
        for result in run_batch(nlp, batch, skip=skip)
    ]


def pack_document(document: Document) -> Packed:
    """Return a document as it is sent to a worker."""
    doc = None if document.doc is None else document.doc.to_bytes()
    return document.id, document.text, document.place, document.spans, doc


def pack_doc(doc: "Doc", attrs: Iterable[str], spans_key: str | None) -> bytes:
    """Return a linked Doc as bytes, with only what output formats write.

    Other components may leave data in a Doc that is large or cannot be serialised.

    Args:
        doc: Changed in place.
        attrs: The attributes of the linker.
        spans_key: Its span group.
    """
    names = {*attrs}
    doc.user_data = {
        key: value
        for key, value in doc.user_data.items()
        if isinstance(key, tuple) and key[0] == "._." and key[1] in names
    }
    for key in [key for key in doc.spans if key != spans_key]:
        del doc.spans[key]
    data: bytes = doc.to_bytes(exclude=["tensor"])
    return data


def unpack_result(result: PackedResult, vocab: "Vocab") -> Result:
    """Return the Doc that a worker has sent, or the error of a component."""
    from spacy.tokens import Doc

    if isinstance(result, ComponentError):
        return result
    return Doc(vocab).from_bytes(result)
