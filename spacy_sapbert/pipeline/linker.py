"""The component `sapbert_linker`: links the entities that an earlier one detected."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..encoder.encoder import EncoderConfig
from ..errors import Warnings, check_range
from ..linking.options import LinkOptions, change_options
from .annotations import Attrs, set_extensions, write_links
from .default_config import DEFAULTS, check_labels, with_options
from .linker_state import LinkerState
from .long_forms import long_form_text

MAX_BATCH = 1_000_000
MENTIONS = "sapbert_mentions"


@Language.factory(
    "sapbert_linker",
    assigns=[
        "span._.cui",
        "span._.candidates",
        "span._.link_note",
        "span._.codes",
        "token.ent_kb_id",
    ],
    requires=["doc.ents"],
    default_config={key: val for key, val in DEFAULTS.items() if key != "factory"},
    default_score_weights={
        "nel_micro_f": 1.0,
        "nel_micro_r": None,
        "nel_micro_p": None,
        "nel_e2e_f": None,
        "nel_e2e_r": None,
        "nel_e2e_p": None,
    },
)
@with_options
def make_sapbert_linker(
    nlp: Language,
    name: str,
    *,
    kb: str | Path | None,
    kb_digest: str | None,
    reload_seconds: float | None,
    batch_size: int,
    spans_key: str | None,
    cui_attr: str,
    candidates_attr: str,
    note_attr: str,
    codes_attr: str | None,
    kb_ents_attr: str | None,
    long_form_attr: str | None,
    encoder: EncoderConfig,
    scorer: Callable[..., dict[str, Any]] | None,
    **options: Any,
) -> "SapbertLinker":
    """Make the component; see `default_config` for its settings."""
    check_labels(options["label_types"])
    linker = SapbertLinker(
        name,
        kb=kb,
        kb_digest=kb_digest,
        reload_seconds=reload_seconds,
        options=LinkOptions(**options),
        batch_size=batch_size,
        spans_key=spans_key,
        attrs=(cui_attr, candidates_attr, note_attr),
        codes_attr=codes_attr,
        kb_ents_attr=kb_ents_attr,
        long_form_attr=long_form_attr,
        encoder=encoder,
        scorer=scorer,
    )
    warn_of_shared_attributes(linker, nlp)
    for other, component in nlp.components:
        if nlp.get_pipe_meta(other).factory == MENTIONS:
            component.join(nlp, linker)  # type: ignore[attr-defined]
    return linker


def warn_of_shared_attributes(linker: "SapbertLinker", nlp: Language) -> None:
    """Warn if another linker of the pipeline writes the same attributes of the spans.

    Also spans of different groups share an attribute if their offsets are equal.
    """
    for name, other in nlp.components:
        if isinstance(other, SapbertLinker):
            shared = sorted({*linker.attrs} & {*other.attrs})
            if shared:
                names = ", ".join(shared)
                warnings.warn(
                    Warnings.W553.format(linker=linker.name, other=name, attrs=names),
                    UserWarning,
                    stacklevel=2,
                )


class SapbertLinker(LinkerState):
    """Links the spans of a Doc to the concepts of a knowledge base.

    The other arguments are those of `default_config`. Each option of linking is also a
    property that can be set: `linker.threshold = 0.8`.

    name (str): Name of the component.
    options (LinkOptions): How mentions are linked.
    attrs (Attrs): Names of the attributes for CUI, candidates and note.
    RAISES (SapbertError): If a number is out of its range.
    """

    def __init__(
        self,
        name: str,
        *,
        kb: str | Path | None,
        kb_digest: str | None,
        reload_seconds: float | None,
        options: LinkOptions,
        batch_size: int,
        spans_key: str | None,
        attrs: Attrs,
        codes_attr: str | None,
        kb_ents_attr: str | None,
        long_form_attr: str | None,
        encoder: EncoderConfig,
        scorer: Callable[..., dict[str, Any]] | None,
    ) -> None:
        check_range("batch_size", batch_size, 1, MAX_BATCH)
        self.name = name
        self.batch_size = batch_size
        self.spans_key = spans_key
        self.attrs = attrs
        self.codes_attr = codes_attr
        self.kb_ents_attr = kb_ents_attr
        self.long_form_attr = long_form_attr
        self.scorer = scorer
        self.start(
            kb,
            digest=kb_digest,
            options=options,
            encoder=encoder,
            reload_seconds=reload_seconds,
        )
        set_extensions(self.attrs, self.kb_ents_attr, self.codes_attr)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]] | None = None,
        *,
        nlp: Language | None = None,
    ) -> None:
        """Open the knowledge base, and let a copy of it learn from examples.

        get_examples (Callable[[], Iterable[Example]] | None): Examples whose entities
            have a `kb_id_`; without such entities nothing is learned.
        nlp (Language | None): Not used.
        RAISES (SapbertError): If there is no knowledge base, it is damaged, or it has
            no such types, sources or languages as the settings name, or ids as the
            entities have.
        """
        self.kb.check_options(self.options)
        if get_examples is not None:
            self.teach(example.reference for example in get_examples())

    def spans(self, doc: Doc) -> list[Span]:
        """Return the spans to link."""
        if self.spans_key is None:
            return list(doc.ents)
        return list(doc.spans[self.spans_key]) if self.spans_key in doc.spans else []

    def __call__(self, doc: Doc, **settings: Any) -> Doc:
        """Link one Doc.

        doc (Doc): With its entities; its attributes and `ent.kb_id_` are set.
        settings (Any): Fields of `LinkOptions` for this call, as in
            `nlp(text, component_cfg={"sapbert_linker": {"k": 3}})`.
        RAISES (SapbertError): If a setting is not possible.
        """
        self.try_to_link([doc], change_options(self.options, settings))
        return doc

    def pipe(
        self, stream: Iterable[Doc], *, batch_size: int = 128, **settings: Any
    ) -> Iterator[Doc]:
        """Link a stream of Docs, many mentions at once.

        stream (Iterable[Doc]): The Docs.
        batch_size (int): Maximum of Docs in a batch.
        settings (Any): See `__call__`.
        YIELDS (Doc): The same Docs, in order.
        RAISES (SapbertError): If a setting is not possible.
        """
        options = change_options(self.options, settings)
        for docs in self.batches(stream, batch_size):
            if self.try_to_link(docs, options):
                yield from docs

    def batches(self, stream: Iterable[Doc], most: int) -> Iterator[list[Doc]]:
        """Yield batches of at least `batch_size` mentions or of `most` Docs."""
        docs: list[Doc] = []
        mentions = 0
        for doc in stream:
            docs.append(doc)
            mentions += len(self.spans(doc))
            if mentions >= self.batch_size or len(docs) >= most:
                yield docs
                docs, mentions = [], 0
        if docs:
            yield docs

    def try_to_link(self, docs: list[Doc], options: LinkOptions) -> bool:
        """Link Docs; return False if the error handler accepted an error."""
        try:
            self.link_docs(docs, options)
        except Exception as error:
            self.get_error_handler()(self.name, self, docs, error)
            return False
        return True

    def link_docs(self, docs: Sequence[Doc], options: LinkOptions) -> None:
        """Link the mentions of some Docs together and set the attributes."""
        spans = [self.spans(doc) for doc in docs]
        placed = [(number, s) for number, own in enumerate(spans) for s in own]
        key = self.spans_key
        if key is not None and not any(key in doc.spans for doc in docs):
            warnings.warn(Warnings.W556.format(name=self.name, key=key), stacklevel=2)
        if not placed:
            return
        self.reload_in_time()
        kb = self.kb
        options = fit_language(options, docs[0].vocab.lang)
        links = kb.link(
            [long_form_text(s, self.long_form_attr) or s.text for _, s in placed],
            labels=[span.label_ for _, span in placed],
            documents=[number for number, _ in placed],
            options=options,
        )
        results = iter(links)
        for doc, of_doc in zip(docs, spans, strict=True):
            write_links(
                doc,
                of_doc,
                [next(results) for _ in of_doc],
                attrs=self.attrs,
                kb_ents_attr=self.kb_ents_attr,
                codes_attr=self.codes_attr,
                spans_key=self.spans_key,
            )


def fit_language(options: LinkOptions, lang: str) -> LinkOptions:
    """Limit the names to those that fit the language of a document.

    Languages in the filter replace this limit.
    """
    if options.filter.languages:
        return options
    return replace(options, filter=replace(options.filter, document_language=lang))
