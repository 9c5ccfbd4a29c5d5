"""Pipelines that link: loaded, completed with what they lack, run over documents."""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import (
    TYPE_CHECKING,
    Any,
)

from ..errors import Errors, SapbertError
from ..formats.documents import Document
from ..linking.options import change_options

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

LINKER = "sapbert_linker"
MENTIONS = "sapbert_mentions"
NAMES = "names"  # the value of `mentions`

# Documents that are run together, and components that are left out for them.
Job = tuple[list[Document], list[str]]


def load_pipeline(name: str | None) -> "Language":
    """Load a pipeline, or begin one.

    name (str | None): A folder or an installed package; None = a blank English one.
    RETURNS (Language): The pipeline.
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
    """List the components of a pipeline that set spans to link.

    nlp (Language): The pipeline.
    what (str): "doc.ents" or "doc.spans".
    RETURNS (list[str]): Names of components that say that they do, or are none of
        spaCy's and do not say what they do.
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
    """Find the first linker of a pipeline.

    nlp (Language): The pipeline.
    RETURNS (str | None): Name of the component, if there is one.
    """
    linkers = (n for n in nlp.pipe_names if nlp.get_pipe_meta(n).factory == LINKER)
    return next(linkers, None)


def complete_pipeline(
    nlp: "Language",
    *,
    kb: str | None = None,
    mentions: str | None = None,
    k: int | None = None,
    threshold: float | None = None,
    filter: dict[str, list[str]] | None = None,
    engine: str | None = None,
    precision: str | None = None,
    detection: bool = True,
) -> Any:
    """Return a pipeline what it lacks to link.

    nlp (Language): Changed in place.
    kb (str | None): Folder or name of a knowledge base, for a pipeline without a
        linker; None = the only one installed.
    mentions (str | None): "names" to detect the names of the knowledge base.
    k (int | None): Candidates for a mention; None = as the linker has it.
    threshold (float | None): Cosine under which a mention has no concept; None =
        as the linker has it.
    filter (dict[str, list[str]] | None): What may be found; None = as the linker
        has it.
    engine (str | None): Runs the encoder, see `create_encoder`; None = as the linker
        has it.
    precision (str | None): The same.
    detection (bool): Entities are to be detected; else all documents come with them.
    RETURNS (SapbertLinker): The linker.
    RAISES (SapbertError): If the pipeline has a linker with a knowledge base already,
        or nothing that detects entities, or a setting is not possible.
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
    """Load a pipeline and give it what it lacks; the same in every process.

    name (str | None): See `load_pipeline`.
    settings (dict[str, Any]): Of `complete_pipeline`.
    RETURNS (Language): The pipeline.
    RAISES (SapbertError): See both.
    """
    nlp = load_pipeline(name)
    complete_pipeline(nlp, **settings)
    return nlp


def linked_spans(spans_key: str | None) -> str:
    """Say what a component assigns that detects what is linked."""
    return "doc.ents" if spans_key is None else "doc.spans"


def check_detection(nlp: "Language", spans_key: str | None) -> None:
    """Check that a pipeline detects entities.

    nlp (Language): The pipeline.
    spans_key (str | None): A span group; None = the entities.
    RAISES (SapbertError): If it does not.
    """
    if not list_detectors(nlp, linked_spans(spans_key)):
        components = ", ".join(nlp.pipe_names)
        raise SapbertError(Errors.E508.format(components=components))


def has_entities(document: Document, spans_key: str | None) -> bool:
    """Return whether somebody said what the entities of a document are.

    document (Document): The document.
    spans_key (str | None): A span group; None = the entities.
    RETURNS (bool): Whether; they may be none.
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

    Those that come with entities skip the components that detect them.

    nlp (Language): The pipeline, with a linker.
    documents (Iterable[Document]): Ids and texts, or Docs.
    batch_size (int): Documents held at once.
    run (Callable | None): Runs jobs in the place of this process, and gives the
        documents of each and a Doc for each of these; see `Workers.run`.
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
    """Gather documents that go through the same components.

    nlp (Language): The pipeline, with a linker.
    documents (Iterable[Document]): The documents.
    batch_size (int): Documents of a job at the most.
    YIELDS (Job): Documents, and components that are left out for them.
    RAISES (SapbertError): If nothing detects entities in a document without.
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


def run_batch(
    nlp: "Language", batch: list[Document], *, skip: list[str]
) -> "list[Doc]":
    """Run a pipeline over some documents together.

    nlp (Language): The pipeline.
    batch (list[Document]): The documents.
    skip (list[str]): Components that are left out.
    RETURNS (list[Doc]): A Doc for each.
    RAISES (SapbertError): If a component fails; with the id of the document.
    """
    from spacy.util import raise_error

    # A component that only writes failures down would lose documents.
    nlp.set_error_handler(raise_error)
    contents = [d.text if d.doc is None else d.doc for d in batch]
    try:
        docs = list(nlp.pipe(contents, batch_size=len(batch), disable=skip))
    except SapbertError:
        raise
    except Exception:  # of any component; which document it was shows one at a time
        docs = []
    if len(docs) != len(batch):
        docs = [run_alone(nlp, document, skip=skip) for document in batch]
    return docs


def run_alone(nlp: "Language", document: Document, *, skip: list[str]) -> "Doc":
    """Run a pipeline over one document.

    nlp (Language): The pipeline.
    document (Document): The document.
    skip (list[str]): Components that are left out.
    RETURNS (Doc): The Doc.
    RAISES (SapbertError): If a component fails; with the id of the document, and
        without what the component says, since that may quote the text.
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
