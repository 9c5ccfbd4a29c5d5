"""The component `sapbert_linker`: links the entities that an earlier one detected."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import srsly
from spacy.language import Language
from spacy.pipeline.pipe import Pipe
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Model

from ..errors import check_range
from ..linking.options import (
    DEFAULT_OPTIONS,
    OPTION_NAMES,
    LinkOptions,
    change_options,
)
from ..system.forks import ProcessLock, TemporaryFolder
from .annotations import Attrs, set_extensions, write_links
from .default_config import DEFAULTS, check_labels
from .long_forms import long_form_text

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase

OPENING = ProcessLock()  # not in the component: a lock cannot be pickled
MAX_BATCH = 1_000_000


@Language.factory(
    "sapbert_linker",
    assigns=["span._.cui", "span._.candidates", "token.ent_kb_id"],
    requires=["doc.ents"],
    default_config={key: val for key, val in DEFAULTS.items() if key != "factory"},
    default_score_weights={
        "nel_micro_f": 1.0,
        "nel_micro_r": None,
        "nel_micro_p": None,
    },
)
def make_sapbert_linker(
    nlp: Language,
    name: str,
    kb: str | Path | None,
    kb_digest: str | None,
    k: int,
    threshold: float | None,
    broader: bool,
    ambiguous: str,
    tie_evidence: list[str],
    source_rank: list[str],
    label_types_use: str,
    fusion: str | None,
    ngram_weight: float,
    batch_size: int,
    spans_key: str | None,
    cui_attr: str,
    candidates_attr: str,
    note_attr: str,
    kb_ents_attr: str | None,
    long_form_attr: str | None,
    filter: dict[str, list[str]],
    label_types: dict[str, list[str]],
    encoder: Model,
    scorer: Callable[..., dict[str, Any]] | None,
) -> "SapbertLinker":
    """Make the component; see `default_config` for its settings."""
    settings = locals()
    check_labels(label_types)
    return SapbertLinker(
        name,
        kb=kb,
        kb_digest=kb_digest,
        options=change_options(DEFAULT_OPTIONS, {n: settings[n] for n in OPTION_NAMES}),
        batch_size=batch_size,
        spans_key=spans_key,
        attrs=(cui_attr, candidates_attr, note_attr),
        kb_ents_attr=kb_ents_attr,
        long_form_attr=long_form_attr,
        encoder=encoder,
        scorer=scorer,
    )


class SapbertLinker(Pipe):
    """Links the spans of a Doc to the concepts of a knowledge base.

    The other arguments are those of `default_config`.

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
        options: LinkOptions,
        batch_size: int,
        spans_key: str | None,
        attrs: Attrs,
        kb_ents_attr: str | None,
        long_form_attr: str | None,
        encoder: Model,
        scorer: Callable[..., dict[str, Any]] | None,
    ) -> None:
        check_range("batch_size", batch_size, 1, MAX_BATCH)
        self.name = name
        self.source = kb
        self.kb_digest = kb_digest
        self.options = options
        self.batch_size = batch_size
        self.spans_key = spans_key
        self.attrs = attrs
        self.kb_ents_attr = kb_ents_attr
        self.long_form_attr = long_form_attr
        self.encoder = encoder
        self.scorer = scorer
        self.opened: KnowledgeBase | None = None
        self.unpacked: TemporaryFolder | None = None
        set_extensions(self.attrs, self.kb_ents_attr)

    @property
    def kb(self) -> "KnowledgeBase":
        """The knowledge base, opened when first used.

        Set it to the result of `add_concepts` or `remove_concepts` after an edit.
        """
        with OPENING:
            if self.opened is None:
                from ..kb.opening import load_kb

                self.opened = load_kb(
                    self.source, encoder=self.encoder, digest=self.kb_digest
                )
        return self.opened

    @kb.setter
    def kb(self, kb: "KnowledgeBase") -> None:
        with OPENING:
            self.source, self.opened = kb.folder, kb
            self.kb_digest = self.kb_digest and kb.manifest.digest

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]] | None = None,
        *,
        nlp: Language | None = None,
    ) -> None:
        """Open the knowledge base, so that errors show before the first text.

        RAISES (SapbertError): If there is none, or it is damaged.
        """
        self.kb  # noqa: B018

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
        if not placed:
            return
        links = self.kb.link(
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
                spans_key=self.spans_key,
            )

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save the component to a folder; `exclude` may have "kb", its only part."""
        from ..kb.folder.copying import copy_kb

        Path(path).mkdir(parents=True, exist_ok=True)
        if "kb" not in exclude:
            copy_kb(self.kb, Path(path) / "kb")

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        """Use the knowledge base of a saved component; see `to_disk`."""
        folder = Path(path) / "kb"
        if "kb" not in exclude and folder.is_dir():
            self.source, self.opened = folder, None
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialise the component with its knowledge base; see `to_disk`."""
        from ..kb.folder.copying import kb_to_files

        files = {} if "kb" in exclude else kb_to_files(self.kb)
        return srsly.msgpack_dumps({"kb": files})

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> Self:
        """Unpack a serialised component into a temporary folder; see `from_disk`.

        RAISES (SapbertError): If the knowledge base in it is damaged.
        """
        from ..kb.folder.copying import unpack_kb

        files = srsly.msgpack_loads(data)["kb"]
        if "kb" in exclude or not files:
            return self
        unpacked = unpack_kb(files)
        self.source, self.opened = unpacked.path, None
        self.unpacked = unpacked
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # The other process opens the same version of the same folder.
        state = {**self.__dict__, "opened": None, "unpacked": None, "encoder": None}
        if self.opened is not None:
            state["kb_digest"] = self.opened.manifest.digest
        return restore_linker, (self.name, state, self.encoder.attrs["run"])


def restore_linker(name: str, state: dict[str, Any], run: tuple[str, int, str]) -> Any:
    """Return a component from a pickle.

    state (dict[str, Any]): Its attributes.
    run (tuple[str, int, str]): Arguments of `create_encoder`.
    """
    from ..encoder.name_encoder import create_encoder

    linker = SapbertLinker.__new__(SapbertLinker)
    linker.__dict__.update(state)
    linker.name = name
    linker.encoder = create_encoder(*run)
    set_extensions(linker.attrs, linker.kb_ents_attr)
    return linker
