"""A worker process: receives documents and returns linked Docs."""

import os
import signal
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing.connection import Connection
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from ..errors import Errors, SapbertError
from ..formats.documents import Document
from ..formats.gold import GoldSpan
from .batches import LINKER, ComponentError, find_linker, run_batch

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

# Id, text, place, mentions and, if the document has one, the Doc.
Packed = tuple[Any, str, str, list[GoldSpan] | None, bytes | None]
PackedResult = bytes | ComponentError  # a Doc, or why there is none
# Results, or an error.
Answer = tuple[list[PackedResult], Exception | None]

SIGN_SECONDS = 5.0  # between signs of life
STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")  # signals that end a command


def pack_document(document: Document) -> Packed:
    """Return a document as it is sent to a worker."""
    doc = None if document.doc is None else document.doc.to_bytes()
    return document.id, document.text, document.place, document.spans, doc


def pack_doc(doc: "Doc", attrs: Iterable[str], spans_key: str | None) -> bytes:
    """Return a linked Doc as bytes, with only what output formats write.

    Other components may leave data in a Doc that is large or cannot be serialised.

    doc (Doc): Changed in place.
    attrs (Iterable[str]): The attributes of the linker.
    spans_key (str | None): Its span group.
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


def run_worker(connection: Connection, open_pipeline: "Callable[[], Language]") -> None:
    """Link jobs until the parent process closes the connection.

    connection (Connection): Receives packed documents and names of components to skip,
        and sends results, and None as a sign of life.
    open_pipeline (Callable[[], Language]): Opens a pipeline with a linker.
    """
    # Ctrl-C interrupts the parent, which ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):  # blocked while the process started
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stopping_signals())
    sending = Lock()
    Thread(target=show_life, args=(connection, sending), daemon=True).start()
    nlp: Language | None = None
    with suppress(EOFError, OSError):
        while True:
            packed, skip = connection.recv()
            try:
                if nlp is None:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # the parent has shown them
                        nlp = open_pipeline()
                result: Answer = (run_job(nlp, packed, skip), None)
            except SapbertError as error:
                result = ([], error)
            except Exception as error:  # its message may contain text
                kind = type(error).__name__
                result = ([], SapbertError(Errors.E749.format(kind=kind)))
            with sending:
                connection.send(result)


def stopping_signals() -> set[int]:
    """Return the signals that end a command, as far as the system has them."""
    return {getattr(signal, name) for name in STOPPING if hasattr(signal, name)}


def show_life(connection: Connection, sending: Lock) -> None:
    """Send None again and again; end this process when its parent has ended.

    A killed parent closes its end of the connection, while this process may be busy
    with a job for long.

    sending (Lock): Held while something is sent.
    """
    with suppress(OSError):
        while True:
            with sending:
                connection.send(None)
            time.sleep(SIGN_SECONDS)
    os._exit(1)


def run_job(
    nlp: "Language", packed: list[Packed], skip: list[str]
) -> list[PackedResult]:
    """Link packed documents.

    nlp (Language): The pipeline.
    packed (list[Packed]): From `pack_document`.
    skip (list[str]): Names of components to skip.
    RETURNS (list[PackedResult]): From `pack_doc`, or the errors of components.
    """
    from spacy.tokens import Doc

    linker: Any = nlp.get_pipe(find_linker(nlp) or LINKER)

    def unpack(data: bytes | None) -> "Doc | None":
        return None if data is None else Doc(nlp.vocab).from_bytes(data)

    batch = [
        Document(id, text, unpack(data), spans, place=place)
        for id, text, place, spans, data in packed
    ]
    return [
        found
        if isinstance(found, ComponentError)
        else pack_doc(found, linker.attrs, linker.spans_key)
        for found in run_batch(nlp, batch, skip=skip)
    ]
