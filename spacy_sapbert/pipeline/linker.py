"""The component: finds the concept of every entity that an earlier one detected."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
)

import srsly
from spacy.language import Language
from spacy.pipeline.pipe import Pipe
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Model

from ..errors import Errors, SapbertError
from ..linking.options import LinkOptions, change_options
from ..system.forks import ProcessLock, TemporaryFolder
from .annotations import Attrs, set_extensions, write_links
from .long_forms import long_form_text

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase

OPENING = ProcessLock()  # a component is pickled, and a lock in it could not be

MOST_MENTIONS = 1_000_000


class SapbertLinker(Pipe):
    """Links the spans of a Doc to the concepts of a knowledge base.

    name (str): Of the component.
    kb (str | Path | None): See `linker_factory.DEFAULT_CONFIG`, also for those
        that follow.
    options (LinkOptions): How mentions are looked up.
    batch_size (int): At least 1.
    spans_key (str | None): Of a span group.
    attrs (Attrs): Names of the attributes for CUI, candidates and note.
    kb_ents_attr (str | None): Name of the attribute for pairs of CUI and score.
    long_form_attr (str | None): Name of the attribute that says what an
        abbreviation means.
    encoder (Model[list[str], Floats2d]): Runs the encoder of the knowledge base.
    scorer (Callable | None): Scores examples.
    RAISES (SapbertError): If a number is out of its range.
    """

    def __init__(
        self,
        name: str,
        *,
        kb: str | Path | None,
        options: LinkOptions,
        batch_size: int,
        spans_key: str | None,
        attrs: Attrs,
        kb_ents_attr: str | None,
        long_form_attr: str | None,
        encoder: Model,
        scorer: Callable[..., dict[str, Any]] | None,
    ) -> None:
        if not 1 <= batch_size <= MOST_MENTIONS:
            raise SapbertError(
                Errors.E313.format(
                    setting="batch_size", low=1, high=MOST_MENTIONS, value=batch_size
                )
            )
        self.name = name
        self.source = kb
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
        """The knowledge base, opened when it is first asked for."""
        with OPENING:
            if self.opened is None:
                from ..kb.knowledge_base import load_kb

                self.opened = load_kb(self.source, encoder=self.encoder)
        return self.opened

    def forget(self) -> None:
        """Look every mention up anew from here on.

        What was found for a mention is remembered, and with it the sixth digit of its
        score, which depends on the mentions that were encoded together with it.
        """
        if self.opened is not None:
            self.opened.contents.found.forget()

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]] | None = None,
        *,
        nlp: Language | None = None,
    ) -> None:
        """Open the knowledge base now, so that what is wrong shows before any text.

        get_examples (Callable | None): Not used.
        nlp (Language | None): Not used.
        RAISES (SapbertError): If there is none, or it is damaged.
        """
        self.kb  # noqa: B018

    def spans(self, doc: Doc) -> list[Span]:
        """Return the spans of a Doc that are to be linked."""
        if self.spans_key is None:
            return list(doc.ents)
        return list(doc.spans[self.spans_key]) if self.spans_key in doc.spans else []

    def __call__(self, doc: Doc, **settings: Any) -> Doc:
        """Link one Doc.

        doc (Doc): With its entities.
        settings (Any): Fields of `LinkOptions` that differ for this call, as in
            `nlp(text, component_cfg={"sapbert_linker": {"k": 3}})`.
        RETURNS (Doc): The same, with the attributes and `ent.kb_id_` set.
        RAISES (SapbertError): If a setting is not possible.
        """
        options = change_options(self.options, settings)
        error_handler = self.get_error_handler()
        try:
            self.link_docs([doc], options)
        except Exception as error:
            error_handler(self.name, self, [doc], error)
        return doc

    def pipe(
        self, stream: Iterable[Doc], *, batch_size: int = 128, **settings: Any
    ) -> Iterator[Doc]:
        """Link a stream of Docs, many mentions at once.

        stream (Iterable[Doc]): The Docs.
        batch_size (int): Docs held back at the most.
        settings (Any): See `__call__`.
        YIELDS (Doc): The same, in order.
        RAISES (SapbertError): If a setting is not possible.
        """
        options = change_options(self.options, settings)
        error_handler = self.get_error_handler()
        for docs in self.batches(stream, batch_size):
            try:
                self.link_docs(docs, options)
            except Exception as error:
                error_handler(self.name, self, docs, error)
            else:
                yield from docs

    def batches(self, stream: Iterable[Doc], most: int) -> Iterator[list[Doc]]:
        """Gather Docs until they have `batch_size` mentions, or are `most`."""
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

    def link_docs(self, docs: Sequence[Doc], options: LinkOptions) -> None:
        """Look up the mentions of some Docs together, and write what was found.

        docs (Sequence[Doc]): Changed in place.
        options (LinkOptions): How to look them up.
        """
        spans = [self.spans(doc) for doc in docs]
        placed = [(number, s) for number, own in enumerate(spans) for s in own]
        if not placed:
            return
        found = self.kb.link(
            [long_form_text(s, self.long_form_attr) or s.text for _, s in placed],
            labels=[span.label_ for _, span in placed],
            documents=[number for number, _ in placed],
            options=options,
        )
        results = iter(found)
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
        """Save the component with its whole knowledge base.

        path (str | Path): A folder.
        exclude (Iterable[str]): "kb" to leave the knowledge base out.
        RAISES (SapbertError): If there is no knowledge base.
        """
        from ..kb.copying import copy_kb

        Path(path).mkdir(parents=True, exist_ok=True)
        if "kb" not in exclude:
            copy_kb(self.kb, Path(path) / "kb")

    def from_disk(
        self, path: str | Path, *, exclude: Iterable[str] = ()
    ) -> "SapbertLinker":
        """Use the knowledge base in a saved component; it is opened when first used.

        path (str | Path): The folder.
        exclude (Iterable[str]): "kb" to keep the knowledge base that is set.
        RETURNS (SapbertLinker): The component.
        """
        folder = Path(path) / "kb"
        if "kb" not in exclude and folder.is_dir():
            self.source, self.opened = folder, None
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialise the component with its whole knowledge base.

        exclude (Iterable[str]): "kb" to leave the knowledge base out.
        RETURNS (bytes): As large as the folder.
        RAISES (SapbertError): If there is no knowledge base.
        """
        from ..kb.copying import kb_to_files

        files = {} if "kb" in exclude else kb_to_files(self.kb)
        return srsly.msgpack_dumps({"kb": files})

    def from_bytes(
        self, data: bytes, *, exclude: Iterable[str] = ()
    ) -> "SapbertLinker":
        """Unpack a serialised component into a temporary folder, which it keeps.

        data (bytes): From `to_bytes`.
        exclude (Iterable[str]): "kb" to keep the knowledge base that is set.
        RETURNS (SapbertLinker): The component.
        RAISES (SapbertError): If the knowledge base in it is damaged.
        """
        from ..kb.copying import unpack_kb

        files = srsly.msgpack_loads(data)["kb"]
        if "kb" in exclude or not files:
            return self
        unpacked = unpack_kb(files)
        self.source, self.opened = unpacked.path, None
        self.unpacked = unpacked
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # What is opened stays in this process; the other opens the same folder.
        state = {**self.__dict__, "opened": None, "unpacked": None, "encoder": None}
        return restore_linker, (self.name, state, self.encoder.attrs["run"])


def restore_linker(name: str, state: dict[str, Any], run: tuple[str, int, str]) -> Any:
    """Make a component of what a pickle holds.

    name (str): Of the component.
    state (dict[str, Any]): Its attributes.
    run (tuple[str, int, str]): How its encoder is run; see `create_encoder`.
    RETURNS (SapbertLinker): The component.
    """
    from ..encoder.name_encoder import create_encoder

    linker = SapbertLinker.__new__(SapbertLinker)
    linker.__dict__.update(state)
    linker.name = name
    linker.encoder = create_encoder(*run)
    set_extensions(linker.attrs, linker.kb_ents_attr)
    return linker
