"""A worker process: receives documents and returns linked Docs."""

import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from threading import Thread
from typing import TYPE_CHECKING, Any

from ..errors import SapbertError
from ..formats.documents import Document
from ..formats.gold import GoldSpan
from .batches import LINKER, ComponentError, Result, find_linker, run_batch

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

# Id, text, place, mentions and, if the document has one, the Doc.
Packed = tuple[Any, str, str, list[GoldSpan] | None, bytes | None]
PackedResult = bytes | ComponentError  # a Doc, or why there is none

STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")  # signals that end a command

state: "dict[str, Callable[[], Language]]" = {}  # of this process


def stopping_signals() -> set[int]:
    """Return the signals that end a command, as far as the system has them."""
    return {getattr(signal, name) for name in STOPPING if hasattr(signal, name)}


def start_worker(open_pipeline: "Callable[[], Language]") -> None:
    """Prepare this process; the first job opens the pipeline, which may fail."""
    state["open"] = open_pipeline
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):  # see `worker_environment`
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stopping_signals())
    Thread(target=end_with_parent, daemon=True).start()


@cache
def get_pipeline() -> "Language":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the parent has shown them
        return state["open"]()


def end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def pack_document(document: Document) -> Packed:
    """Return a document as it is sent to a worker."""
    doc = None if document.doc is None else document.doc.to_bytes()
    return document.id, document.text, document.place, document.spans, doc


def unpack_result(result: PackedResult, vocab: "Vocab") -> Result:
    """Return the Doc that a worker has sent, or the error of a component."""
    from spacy.tokens import Doc

    return (
        result if isinstance(result, ComponentError) else Doc(vocab).from_bytes(result)
    )


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


def link_packed(packed: list[Packed], skip: list[str]) -> list[PackedResult]:
    """Link packed documents with the pipeline of this process.

    Raises:
        SapbertError: Of the pipeline; or E749, since the message of another error may
            contain text of a document.
    """
    try:
        return run_job(get_pipeline(), packed, skip)
    except SapbertError:
        raise
    except Exception as error:
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

    def unpack(data: bytes | None) -> "Doc | None":
        return None if data is None else Doc(nlp.vocab).from_bytes(data)

    batch = [
        Document(id, text, unpack(data), spans, place=place)
        for id, text, place, spans, data in packed
    ]
    return [
        result
        if isinstance(result, ComponentError)
        else pack_doc(result, linker.attrs, linker.spans_key)
        for result in run_batch(nlp, batch, skip=skip)
    ]
