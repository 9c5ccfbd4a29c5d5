"""What a worker process does: documents in, linked Docs out, until nobody is there."""

import signal
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from ..errors import Errors, SapbertError
from ..formats.documents import Document
from .running import LINKER, find_linker, run_batch

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

# Id and text, and the Doc of a document that comes with one.
Packed = tuple[Any, str, bytes | None]
# Docs, or why there are none.
Answer = tuple[list[bytes], Exception | None]


def pack_document(document: Document) -> Packed:
    """Make of a document what goes to a worker."""
    doc = None if document.doc is None else document.doc.to_bytes()
    return document.id, document.text, doc


def pack_doc(doc: "Doc", attrs: Iterable[str], spans_key: str | None) -> bytes:
    """Make of a linked Doc what comes back: all that formats write.

    What other components left in it may be large, or nothing that bytes can hold.

    doc (Doc): Changed in place.
    attrs (Iterable[str]): The attributes of the linker.
    spans_key (str | None): Its span group.
    RETURNS (bytes): The Doc.
    """
    ours = {*attrs}
    doc.user_data = {
        key: value
        for key, value in doc.user_data.items()
        if isinstance(key, tuple) and key[0] == "._." and key[1] in ours
    }
    for key in [key for key in doc.spans if key != spans_key]:
        del doc.spans[key]
    data: bytes = doc.to_bytes(exclude=["tensor"])
    return data


def work(connection: Connection, open_pipeline: "Callable[[], Language]") -> None:
    """Link what comes until nobody is there any more; what a worker process runs.

    connection (Connection): Gives packed documents and names of components to leave
        out, and takes answers.
    open_pipeline (Callable[[], Language]): Gives the pipeline, with a linker.
    """
    # The parent is interrupted, and ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nlp: Language | None = None
    with suppress(EOFError, OSError):
        while True:
            packed, skip = connection.recv()
            try:
                if nlp is None:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # the parent has said it all
                        nlp = open_pipeline()
                answer: Answer = (answer_job(nlp, packed, skip), None)
            except SapbertError as error:
                answer = ([], error)
            except Exception as error:  # nothing that it says may be told
                kind = type(error).__name__
                answer = ([], SapbertError(Errors.E749.format(kind=kind)))
            connection.send(answer)


def answer_job(nlp: "Language", packed: list[Packed], skip: list[str]) -> list[bytes]:
    """Link packed documents in a worker.

    nlp (Language): The pipeline.
    packed (list[Packed]): From `pack_document`.
    skip (list[str]): Components that are left out.
    RETURNS (list[bytes]): From `pack_doc`.
    RAISES (SapbertError): If a component fails; with the id of the document.
    """
    from spacy.tokens import Doc

    linker: Any = nlp.get_pipe(find_linker(nlp) or LINKER)

    def unpack(data: bytes | None) -> "Doc | None":
        return None if data is None else Doc(nlp.vocab).from_bytes(data)

    batch = [Document(number, text, unpack(data)) for number, text, data in packed]
    docs = run_batch(nlp, batch, skip=skip)
    return [pack_doc(doc, linker.attrs, linker.spans_key) for doc in docs]
