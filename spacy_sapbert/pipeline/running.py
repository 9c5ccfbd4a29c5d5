"""Load a pipeline, add what it needs to link, and run it over documents."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import SapbertError, check_choice
from ..formats.convert import make_blank
from ..formats.documents import Document, OnError, raise_error
from ..formats.entities import LinkedDoc, describe_docs
from ..linking.options import change_options

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc


LINKER = "sapbert_linker"
MENTIONS = "sapbert_mentions"
ABBREVIATIONS = "sapbert_abbreviations"
LONG_FORM = "span._.long_form"
SCISPACY_DETECTOR = "abbreviation_detector"  # it does not declare what it assigns
KB_FILE = "CURRENT"  # that a knowledge base has
NAMES = "names"  # the value of `mentions`
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})

# Documents that are run together, and names of components to skip for them.
Job = tuple[list[Document], list[str]]


class ComponentError(SapbertError):
    """A component failed on a document; the others may be linked."""


# A linked document, or why there is none; and those of the documents of a job.
Result = LinkedDoc | ComponentError
JobResults: TypeAlias = Iterator[tuple[list[Document], list[Result]]]


def find_linker(nlp: "Language") -> str | None:
    from .linker import SapbertLinker

    linkers = (n for n, c in nlp.pipeline if isinstance(c, SapbertLinker))
    return next(linkers, None)


def get_linker(nlp: "Language") -> Any:
    """Return the first linker of a pipeline; if there is none, spaCy raises."""
    return nlp.get_pipe(find_linker(nlp) or LINKER)


def load_pipeline(name: str | None, *, lang: str | None = None) -> "Language":
    """Load a pipeline from a folder or package; without a name, make a blank one."""
    import spacy

    if name is None:
        return make_blank(lang or "en")
    if lang is not None:
        raise SapbertError(
            "E331",
            "Expected `--lang` without `--pipeline`, but got both. Remove one of the "
            "two.",
        )
    try:
        return spacy.load(name)
    except SapbertError:
        raise
    except (OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        if (Path(name) / KB_FILE).is_file():
            reason = "it is a knowledge base."
        raise SapbertError(
            "E507",
            f"Expected a pipeline under {name!r}, but it could not be loaded: "
            f"{reason} Name a folder that `nlp.to_disk` wrote, or install the package.",
        ) from None


def finds_long_forms(nlp: "Language") -> bool:
    metas = [nlp.get_pipe_meta(name) for name in nlp.pipe_names]
    return any(
        LONG_FORM in meta.assigns or meta.factory == SCISPACY_DETECTOR for meta in metas
    )


def complete_pipeline(
    nlp: "Language",
    *,
    kb: str | None = None,
    kb_digest: str | None = None,
    mentions: str | None = None,
    options: Mapping[str, Any] = NO_OPTIONS,
    engine: str | None = None,
    precision: str | None = None,
    device: str | None = None,
    detection: bool = True,
) -> Any:
    """Add a linker and a detector of mentions to a pipeline; return the linker.

    What the pipeline has is kept. With the linker a detector of abbreviations is added,
    if there is none. `detection` is whether there must be a detector of mentions.
    """
    if mentions is not None:
        check_choice("mentions", [NAMES], mentions)
    name = find_linker(nlp)
    if name is None:
        name = LINKER
        nlp.add_pipe(LINKER, config={"kb": kb})
        if not finds_long_forms(nlp):
            nlp.add_pipe(ABBREVIATIONS, before=name)
    elif kb is not None:
        raise SapbertError(
            "E423",
            f"Expected a pipeline without a linker with a knowledge base, but {name} "
            "of the pipeline has its own. Name the pipeline in place of the knowledge "
            "base, or change the linker's setting `kb`.",
        )
    linker: Any = nlp.get_pipe(name)
    linker.kb_digest = kb_digest or linker.kb_digest
    linker.options = change_options(linker.options, options)
    given = {"engine": engine, "precision": precision, "device": device}
    changes: Any = {name: value for name, value in given.items() if value is not None}
    linker.encoder = replace(linker.encoder, **changes)
    factories = [nlp.get_pipe_meta(name).factory for name in nlp.pipe_names]
    if mentions == NAMES and MENTIONS not in factories:
        config = {"spans_key": linker.spans_key}
        nlp.add_pipe(MENTIONS, before=name, config=config)
    if detection:
        check_detection(nlp, linker.spans_key)
    return linker


def open_pipeline(
    name: str | None,
    *,
    lang: str | None = None,
    mentions: str | None = None,
    **settings: Any,
) -> "tuple[Language, Any]":
    """Load a pipeline and complete it; a blank one detects names."""
    nlp = load_pipeline(name, lang=lang)
    if name is None:
        mentions = mentions or NAMES
    return nlp, complete_pipeline(nlp, mentions=mentions, **settings)


def check_detection(nlp: "Language", spans_key: str | None) -> None:
    from .linker import list_detectors, name_spans

    if not list_detectors(nlp, spans_key):
        what = name_spans(spans_key)
        components = ", ".join(nlp.pipe_names)
        raise SapbertError(
            "E508",
            f"Expected a component that declares that it sets {what}, but none of "
            f"these does: {components}. If one of them sets it, declare it with "
            "`assigns` in its `@Language.factory`; else choose another `--pipeline`, "
            "or pass `--mentions names` to detect the names of the knowledge base.",
        )


def has_entities(document: Document, spans_key: str | None) -> bool:
    """Return whether the entities or spans of a document are set, maybe to none."""
    if document.mentions is not None:
        return True
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
    run: Callable[[Iterator[Job]], JobResults] | None = None,
    on_error: OnError = raise_error,
) -> Iterator[LinkedDoc]:
    """Run a pipeline with a linker over documents, and yield what is linked.

    Documents with entities skip the components that detect entities. `run` runs jobs in
    other processes, see `Workers.run`. A document that cannot be read, or whose
    component fails, has an error in place of a text and mentions.
    """
    jobs = plan_jobs(nlp, documents, batch_size=batch_size)
    done = run(jobs) if run else ((b, link_batch(nlp, b, skip=s)) for b, s in jobs)
    for batch, results in done:
        for document, result in zip(batch, results, strict=True):
            fields = document.fields
            if isinstance(result, ComponentError):
                on_error(result)
                result = LinkedDoc(document.id, document.text, [], error=str(result))
            elif document.error:
                result = result._replace(error=document.error)
            yield result if fields is None else result._replace(fields=fields)


def plan_jobs(
    nlp: "Language", documents: Iterable[Document], *, batch_size: int
) -> Iterator[Job]:
    """Group documents that run through the same components."""
    from spacy.util import minibatch

    from .linker import list_detectors

    key = get_linker(nlp).spans_key
    detectors = list_detectors(nlp, key)
    for known, group in groupby(documents, lambda d: has_entities(d, key)):
        if not known:
            check_detection(nlp, key)
        for batch in minibatch(group, batch_size):
            yield batch, detectors if known else []


def prepare_document(nlp: "Language", document: Document) -> "str | Doc":
    """Return the text of a document, or a Doc with its mentions and no concepts."""
    if document.doc is None and document.mentions is None:
        return document.text
    from ..formats.gold_docs import clear_concepts, set_mentions

    key = get_linker(nlp).spans_key
    if document.doc is None:
        return set_mentions(nlp.make_doc(document.text), document.mentions or [], key)
    clear_concepts(document.doc, key)
    return document.doc


def raise_component_errors(nlp: "Language") -> None:
    """Make every component raise its errors; one that logs them loses documents."""
    from spacy.util import raise_error

    nlp.default_error_handler = raise_error
    for _, component in nlp.pipeline:
        if hasattr(component, "set_error_handler"):
            # spaCy's parser and NER have the method, but no place for the handler,
            # so theirs is always the default one, which raises.
            with suppress(AttributeError):
                component.set_error_handler(raise_error)


def link_batch(
    nlp: "Language", batch: list[Document], *, skip: Sequence[str] = ()
) -> list[Result]:
    linker = get_linker(nlp)
    results: list[Result] = []
    for document, doc in zip(batch, run_batch(nlp, batch, skip=skip), strict=True):
        if isinstance(doc, ComponentError):
            results.append(doc)
        else:
            named = [(document.id, doc)]
            results += describe_docs(
                named, spans_key=linker.spans_key, names=linker.attrs
            )
    return results


def run_batch(
    nlp: "Language", batch: list[Document], *, skip: Sequence[str] = ()
) -> "list[Doc | ComponentError]":
    raise_component_errors(nlp)
    docs: list[Doc | ComponentError] = []
    try:
        contents = [prepare_document(nlp, document) for document in batch]
        docs += nlp.pipe(contents, batch_size=len(batch), disable=skip)
    except SapbertError:
        raise
    except Exception:
        docs = []
    if len(docs) == len(batch):
        return docs
    docs = []
    for document in batch:  # one at a time, to find the one that failed
        try:
            docs.append(run_alone(nlp, document, skip=skip))
        except ComponentError as error:
            docs.append(error)
    return docs


def run_alone(nlp: "Language", document: Document, *, skip: Sequence[str]) -> "Doc":
    """Run a pipeline over a document; its error does not quote the text."""
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
            f"its component {name!r} failed with {kind}. Remove the document, or "
            "correct the component: `nlp(text)` in Python shows the place.",
        ) from None
    return doc
