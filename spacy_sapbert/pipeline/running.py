"""Load a pipeline, add what it needs to link, and run it over documents."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ..errors import Errors, SapbertError
from ..formats.documents import Document
from ..linking.options import change_options

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

LINKER = "sapbert_linker"
MENTIONS = "sapbert_mentions"
NAMES = "names"  # the value of `mentions`

# Documents that are run together, and names of components to skip for them.
Job = tuple[list[Document], list[str]]


def load_pipeline(name: str | None) -> "Language":
    """Load a pipeline from a folder or package; None = a blank English one.

    RAISES (SapbertError): If there is no such pipeline.
    """
    import spacy

    if name is None:
        return spacy.blank("en")
    try:
        return spacy.load(name)
    except SapbertError:
        raise
    except (OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise SapbertError(Errors.E507.format(name=name, reason=reason)) from None


def list_detectors(nlp: "Language", what: str) -> list[str]:
    """Return the names of the components that set spans to link.

    nlp (Language): The pipeline.
    what (str): "doc.ents" or "doc.spans".
    RETURNS (list[str]): Components that declare it in `assigns`, and components that
        are not spaCy's and declare nothing.
    """
    detectors = []
    for name, component in nlp.pipeline:
        assigned = nlp.get_pipe_meta(name).assigns
        # a component may be a function, an object, or an object of a compiled class
        module = getattr(component, "__module__", type(component).__module__)
        if what in assigned or (not assigned and not module.startswith("spacy.")):
            detectors.append(name)
    return detectors


def find_linker(nlp: "Language") -> str | None:
    """Return the name of the first linker of a pipeline, if there is one."""
    linkers = (n for n in nlp.pipe_names if nlp.get_pipe_meta(n).factory == LINKER)
    return next(linkers, None)


def complete_pipeline(
    nlp: "Language",
    *,
    kb: str | None = None,
    kb_digest: str | None = None,
    mentions: str | None = None,
    k: int | None = None,
    threshold: float | None = None,
    filter: dict[str, list[str]] | None = None,
    engine: str | None = None,
    precision: str | None = None,
    detection: bool = True,
) -> Any:
    """Add a linker and a detector of mentions to a pipeline, if they are missing.

    For `k`, `threshold`, `filter`, `engine` and `precision`, None keeps the setting of
    the linker.

    nlp (Language): Changed in place.
    kb (str | None): Folder or name of a knowledge base, for a pipeline without a
        linker; None = the only one installed.
    kb_digest (str | None): The digest that it must have; None = as the linker.
    mentions (str | None): "names" to detect the names of the knowledge base.
    k (int | None): Candidates for a mention.
    threshold (float | None): Cosine below which a mention has no concept.
    filter (dict[str, list[str]] | None): Limits the concepts.
    engine (str | None): Engine of the encoder; see `create_encoder`.
    precision (str | None): Precision of the encoder.
    detection (bool): Require a detector; False = all documents have entities.
    RETURNS (SapbertLinker): The linker.
    RAISES (SapbertError): If the pipeline has a linker with a knowledge base, or no
        detector of entities, or a setting is not possible.
    """
    if mentions not in (None, NAMES):
        raise SapbertError(Errors.E510.format(known=NAMES, value=mentions))
    name = find_linker(nlp)
    if name is None:
        name = LINKER
        nlp.add_pipe(LINKER, config={"kb": kb})
    elif kb is not None:
        raise SapbertError(Errors.E509.format(linker=name))
    linker: Any = nlp.get_pipe(name)
    linker.kb_digest = kb_digest or linker.kb_digest
    given = {"k": k, "threshold": threshold, "filter": filter}
    changes = {name: value for name, value in given.items() if value is not None}
    linker.options = change_options(linker.options, changes)
    if engine is not None or precision is not None:
        from ..encoder.name_encoder import create_encoder

        its_engine, names_per_pass, its_precision = linker.encoder.attrs["run"]
        linker.encoder = create_encoder(
            engine or its_engine, names_per_pass, precision or its_precision
        )
    if mentions == NAMES:
        config = {"spans_key": linker.spans_key}
        nlp.add_pipe(MENTIONS, before=name, config=config)
    if detection:
        check_detection(nlp, linker.spans_key)
    return linker


def open_pipeline(name: str | None, settings: dict[str, Any]) -> "Language":
    """Load a pipeline and complete it; used in every worker process.

    name (str | None): See `load_pipeline`.
    settings (dict[str, Any]): Arguments of `complete_pipeline`.
    """
    nlp = load_pipeline(name)
    complete_pipeline(nlp, **settings)
    return nlp


def linked_spans(spans_key: str | None) -> str:
    """Return what a component assigns that detects the spans to link."""
    return "doc.ents" if spans_key is None else "doc.spans"


def check_detection(nlp: "Language", spans_key: str | None) -> None:
    """Raise an error if no component of a pipeline detects the spans to link."""
    if not list_detectors(nlp, linked_spans(spans_key)):
        components = ", ".join(nlp.pipe_names)
        raise SapbertError(Errors.E508.format(components=components))


def has_entities(document: Document, spans_key: str | None) -> bool:
    """Return whether the entities (or spans of a group) of a document are set.

    They may be set to none.
    """
    if document.doc is None:
        return False
    if spans_key is not None:
        return spans_key in document.doc.spans
    return not len(document.doc) or document.doc.has_annotation("ENT_IOB")


def link_documents(
    nlp: "Language",
    documents: Iterable[Document],
    *,
    batch_size: int,
    run: "Callable[[Iterator[Job]], Iterator[tuple[Any, list[Doc]]]] | None" = None,
) -> "Iterator[tuple[Any, Doc]]":
    """Run a pipeline over documents.

    Documents with entities skip the components that detect entities.

    nlp (Language): The pipeline, with a linker.
    documents (Iterable[Document]): Ids and texts, or Docs.
    batch_size (int): Documents in memory at once.
    run (Callable | None): Runs jobs in other processes; see `Workers.run`.
    YIELDS (tuple[Any, Doc]): Ids and Docs, in order.
    RAISES (SapbertError): If a component fails; with the id of the document.
    """
    jobs = plan_jobs(nlp, documents, batch_size=batch_size)
    results = run(jobs) if run else ((b, run_batch(nlp, b, skip=s)) for b, s in jobs)
    for batch, docs in results:
        for document, doc in zip(batch, docs, strict=True):
            yield document.id, doc


def plan_jobs(
    nlp: "Language", documents: Iterable[Document], *, batch_size: int
) -> Iterator[Job]:
    """Group documents that run through the same components.

    nlp (Language): The pipeline, with a linker.
    documents (Iterable[Document]): The documents.
    batch_size (int): Maximum of documents in a job.
    YIELDS (Job): Documents, and names of components to skip.
    RAISES (SapbertError): If a document has no entities and no component detects them.
    """
    from spacy.util import minibatch

    linker: Any = nlp.get_pipe(find_linker(nlp) or LINKER)
    key = linker.spans_key
    detectors = list_detectors(nlp, linked_spans(key))
    for known, group in groupby(documents, lambda d: has_entities(d, key)):
        if not known:
            check_detection(nlp, key)
        for batch in minibatch(group, batch_size):
            yield batch, detectors if known else []


def raise_component_errors(nlp: "Language") -> None:
    """Let every component raise its errors.

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
) -> "list[Doc]":
    """Run a pipeline over some documents together.

    nlp (Language): The pipeline.
    batch (list[Document]): The documents.
    skip (list[str]): Names of components to skip.
    RAISES (SapbertError): If a component fails; with the id of the document.
    """
    raise_component_errors(nlp)
    contents = [d.text if d.doc is None else d.doc for d in batch]
    try:
        docs = list(nlp.pipe(contents, batch_size=len(batch), disable=skip))
    except SapbertError:
        raise
    except Exception:  # run one at a time to find the document
        docs = []
    if len(docs) != len(batch):
        docs = [run_alone(nlp, document, skip=skip) for document in batch]
    return docs


def run_alone(nlp: "Language", document: Document, *, skip: list[str]) -> "Doc":
    """Run a pipeline over one document.

    RAISES (SapbertError): If a component fails; with the id of the document, without
        the message of the component, which may quote the text.
    """
    name = "tokenizer"
    try:
        doc = nlp.make_doc(document.text) if document.doc is None else document.doc
        for name, component in nlp.pipeline:
            if name not in skip:
                doc = component(doc)
    except SapbertError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise SapbertError(
            Errors.E513.format(id=document.id, component=name, kind=kind)
        ) from None
    return doc
