"""Run the components of a pipeline over some documents together."""

from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import SapbertError
from ..formats.documents import Document

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

LINKER = "sapbert_linker"
# A linked Doc, or why there is none.
Result: TypeAlias = "Doc | ComponentError"


class ComponentError(SapbertError):
    """A component failed on a document; the others may be linked."""


def find_linker(nlp: "Language") -> str | None:
    """Return the name of the first linker of a pipeline, if there is one."""
    linkers = (n for n in nlp.pipe_names if nlp.get_pipe_meta(n).factory == LINKER)
    return next(linkers, None)


def prepare_document(nlp: "Language", document: Document) -> "str | Doc":
    """Return the text of a document, or a Doc with its mentions and no concepts."""
    if document.doc is None and document.spans is None:
        return document.text
    from ..formats.gold_docs import clear_concepts, set_mentions

    linker: Any = nlp.get_pipe(find_linker(nlp) or LINKER)
    if document.doc is None:
        doc = nlp.make_doc(document.text)
        return set_mentions(doc, document.spans or [], linker.spans_key)
    clear_concepts(document.doc, linker.spans_key)
    return document.doc


def raise_component_errors(nlp: "Language") -> None:
    """Make every component raise its errors.

    A component that only logs its errors would lose documents.
    """
    from spacy.util import raise_error

    nlp.default_error_handler = raise_error
    for _, component in nlp.pipeline:
        if hasattr(component, "set_error_handler"):
            # spaCy's parser and NER have the method, but no place for the handler,
            # so theirs is always the default one, which raises.
            with suppress(AttributeError):
                component.set_error_handler(raise_error)


def run_batch(
    nlp: "Language", batch: list[Document], *, skip: list[str]
) -> "list[Result]":
    """Run a pipeline over some documents together.

    Returns:
        The Doc of each document, or the error of its component.

    Raises:
        SapbertError: If the linker cannot work on any document.
    """
    raise_component_errors(nlp)
    docs: list[Result] = []
    try:
        contents = [prepare_document(nlp, document) for document in batch]
        docs += nlp.pipe(contents, batch_size=len(batch), disable=skip)
    except SapbertError:
        raise
    except Exception:  # run one at a time to find the document
        docs = []
    if len(docs) != len(batch):
        docs = [run_or_fail(nlp, document, skip=skip) for document in batch]
    return docs


def run_or_fail(nlp: "Language", document: Document, *, skip: list[str]) -> "Result":
    """Return the Doc of one document, or the error of its component."""
    try:
        return run_alone(nlp, document, skip=skip)
    except ComponentError as error:
        return error


def run_alone(nlp: "Language", document: Document, *, skip: list[str]) -> "Doc":
    """Run a pipeline over one document.

    Raises:
        ComponentError: If a component fails; with the id of the document, without the
            message of the component, which may quote the text.
    """
    name = "tokenizer"
    try:
        content = prepare_document(nlp, document)
        doc = nlp.make_doc(content) if isinstance(content, str) else content
        for name, component in nlp.pipeline:
            if name not in skip:
                doc = component(doc)
    except SapbertError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise ComponentError(
            "E513",
            f"Expected the pipeline to work on document {document.describe()}, but "
            f"its component {name!r} failed with {kind}. Remove the document, pass "
            "`--on-error skip` to count such documents and continue, or correct the "
            "component: `nlp(text)` in Python shows the place.",
        ) from None
    return doc
