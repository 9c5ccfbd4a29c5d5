"""The component: finds the concept of every entity that an earlier one detected."""

import re
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import srsly
from spacy.language import Language
from spacy.pipeline.pipe import Pipe
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Config, Model

from .annotations import Attrs, set_extensions, write_links
from .errors import Errors, SapbertError
from .long_forms import long_form_text
from .options import DEFAULT_OPTIONS, LinkOptions, change_options

if TYPE_CHECKING:
    from .kb import KnowledgeBase

OPENING = threading.Lock()  # a component is pickled, and a lock in it could not be

MOST_MENTIONS = 1_000_000
KEY = re.compile(r"\w([^:=\r\n]*[^\s:=])?")  # what a config file can hold
DEFAULT_CONFIG = """
[components]

[components.sapbert_linker]
factory = "sapbert_linker"
# folder of a knowledge base, or the name of an installed one; null = the only installed
kb = null
# concepts kept for a mention
k = 10
# cosine under which a mention has no concept; null = as calibrated for the kb
threshold = null
# "nil" = a mention has no concept where only the order of the ids would choose it
ambiguous = "link"
# what orders concepts with equal scores, the most important first: "label",
# "preferred", "source" and, by what else the document has, "coherence"
tie_evidence = ["label", "preferred", "source"]
# for the evidence "source": the vocabularies whose names count most, the best first
source_rank = []
# "filter" = entities find only the types of their label; "evidence" = they prefer them
label_types_use = "filter"
# null = the cosine alone; "weighted" or "rrf" = with the likeness of characters
fusion = null
ngram_weight = 0.1
# mentions looked up at once, of as many documents as it takes
batch_size = 256
# null = doc.ents, else doc.spans[spans_key]
spans_key = null
# the attributes: span._.cui, span._.candidates, span._.link_note
cui_attr = "cui"
candidates_attr = "candidates"
note_attr = "link_note"
# a list of (cui, score) as scispaCy has it, for example in "kb_ents"; null = none
kb_ents_attr = null
# the long form of an abbreviation, looked up in its place where a component set it;
# null = it never is
long_form_attr = "long_form"

# what may be found, e.g. types = ["DISO"]; types, sources, languages, allow, deny
[components.sapbert_linker.filter]

# semantic types or groups of the labels, e.g. DISEASE = ["T047"]
[components.sapbert_linker.label_types]

[components.sapbert_linker.encoder]
@architectures = "spacy-sapbert.TransformerEncoder.v1"
names_per_pass = 64
precision = "float32"

[components.sapbert_linker.scorer]
@scorers = "spacy-sapbert.linker_scorer.v1"
"""
DEFAULTS = Config().from_str(DEFAULT_CONFIG)["components"]["sapbert_linker"]


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
    kb: Optional[Union[str, Path]],
    k: int,
    threshold: Optional[float],
    ambiguous: str,
    tie_evidence: List[str],
    source_rank: List[str],
    label_types_use: str,
    fusion: Optional[str],
    ngram_weight: float,
    batch_size: int,
    spans_key: Optional[str],
    cui_attr: str,
    candidates_attr: str,
    note_attr: str,
    kb_ents_attr: Optional[str],
    long_form_attr: Optional[str],
    filter: Dict[str, List[str]],
    label_types: Dict[str, List[str]],
    encoder: Model,
    scorer: Optional[Callable[..., Dict[str, Any]]],
) -> "SapbertLinker":
    """Make the component; see `DEFAULT_CONFIG` for its settings."""
    for label in label_types:
        # These would be lost, or read as something else, when the config is saved.
        if (
            set(":=\n\r") & {*label}
            or label != label.strip()
            or not label[:1].isalnum()
        ):
            raise SapbertError(Errors.E551.format(label=label))
    options = change_options(
        DEFAULT_OPTIONS,
        {
            "k": k,
            "threshold": threshold,
            "filter": filter,
            "label_types": label_types,
            "label_types_use": label_types_use,
            "tie_evidence": tie_evidence,
            "source_rank": source_rank,
            "ambiguous": ambiguous,
            "fusion": fusion,
            "ngram_weight": ngram_weight,
        },
    )
    return SapbertLinker(
        name,
        kb=kb,
        options=options,
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

    name (str): Of the component.
    kb (Optional[Union[str, Path]]): See `DEFAULT_CONFIG`, also for those that follow.
    options (LinkOptions): How mentions are looked up.
    batch_size (int): At least 1.
    spans_key (Optional[str]): Of a span group.
    attrs (Attrs): Names of the attributes for CUI, candidates and note.
    kb_ents_attr (Optional[str]): Name of the attribute for pairs of CUI and score.
    long_form_attr (Optional[str]): Name of the attribute that says what an
        abbreviation means.
    encoder (Model[List[str], Floats2d]): Runs the encoder of the knowledge base.
    scorer (Optional[Callable]): Scores examples.
    RAISES (SapbertError): If a number is out of its range.
    """

    def __init__(
        self,
        name: str,
        *,
        kb: Optional[Union[str, Path]],
        options: LinkOptions,
        batch_size: int,
        spans_key: Optional[str],
        attrs: Attrs,
        kb_ents_attr: Optional[str],
        long_form_attr: Optional[str],
        encoder: Model,
        scorer: Optional[Callable[..., Dict[str, Any]]],
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
        self.opened: Optional[KnowledgeBase] = None
        self.unpacked: Optional[TemporaryDirectory] = None
        set_extensions(self.attrs, self.kb_ents_attr)

    @property
    def kb(self) -> "KnowledgeBase":
        """The knowledge base, opened when it is first asked for."""
        with OPENING:
            if self.opened is None:
                from .kb import load_kb

                self.opened = load_kb(self.source, encoder=self.encoder)
        return self.opened

    def initialize(
        self,
        get_examples: Optional[Callable[[], Iterable[Example]]] = None,
        *,
        nlp: Optional[Language] = None,
    ) -> None:
        """Open the knowledge base now, so that what is wrong shows before any text.

        get_examples (Optional[Callable]): Not used.
        nlp (Optional[Language]): Not used.
        RAISES (SapbertError): If there is none, or it is damaged.
        """
        self.kb  # noqa: B018

    def spans(self, doc: Doc) -> List[Span]:
        """Give the spans of a Doc that are to be linked."""
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

    def batches(self, stream: Iterable[Doc], most: int) -> Iterator[List[Doc]]:
        """Gather Docs until they have `batch_size` mentions, or are `most`."""
        docs: List[Doc] = []
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

    def to_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> None:
        """Save the component with its whole knowledge base.

        path (Union[str, Path]): A folder.
        exclude (Iterable[str]): "kb" to leave the knowledge base out.
        RAISES (SapbertError): If there is no knowledge base.
        """
        from .transport import copy_kb

        Path(path).mkdir(parents=True, exist_ok=True)
        if "kb" not in exclude:
            copy_kb(self.kb, Path(path) / "kb")

    def from_disk(
        self, path: Union[str, Path], *, exclude: Iterable[str] = ()
    ) -> "SapbertLinker":
        """Use the knowledge base in a saved component; it is opened when first used.

        path (Union[str, Path]): The folder.
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
        from .transport import kb_to_files

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
        from .transport import unpack_kb

        files = srsly.msgpack_loads(data)["kb"]
        if "kb" in exclude or not files:
            return self
        unpacked = unpack_kb(files)
        self.source, self.opened = Path(unpacked.name), None
        self.unpacked = unpacked
        return self

    def __reduce__(self) -> Tuple[Any, ...]:
        # What is opened stays in this process; the other opens the same folder.
        state = {**self.__dict__, "opened": None, "unpacked": None, "encoder": None}
        attrs = self.encoder.attrs
        run = (attrs["names_per_pass"], attrs["precision"])
        return restore_linker, (self.name, state, run)


def restore_linker(name: str, state: Dict[str, Any], run: Tuple[int, str]) -> Any:
    """Make a component of what a pickle holds.

    name (str): Of the component.
    state (Dict[str, Any]): Its attributes.
    run (Tuple[int, str]): The settings of its encoder.
    RETURNS (SapbertLinker): The component.
    """
    from .encoder import create_transformer_encoder

    linker = SapbertLinker.__new__(SapbertLinker)
    linker.__dict__.update(state)
    linker.name = name
    linker.encoder = create_transformer_encoder(*run)
    set_extensions(linker.attrs, linker.kb_ents_attr)
    return linker
