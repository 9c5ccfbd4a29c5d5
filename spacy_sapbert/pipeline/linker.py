"""The component `sapbert_linker`: links the entities that an earlier one detected."""

import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..encoder.encoder import EncoderConfig
from ..errors import SapbertError, check_range
from ..formats.entities import AttributeNames
from ..formats.gold import NIL
from ..formats.page.addresses import UrlTemplate
from ..io.forks import TemporaryFolder
from ..kb.scispacy_names import LINKER as MOVED
from ..kb.scispacy_names import missing_attribute
from ..linking.options import DEFAULT_OPTIONS, OPTIONS, LinkOptions, change_options
from ..linking.settings_base import unknown_setting
from .abbreviation_detector import mention_text, wrong_attribute
from .kb_component import KbComponent
from .linker_config import LINKER_CONFIG, OF_FUNCTIONS

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase
    from ..linking.link import Linked

MAX_BATCH = 1_000_000
ATTRS = ("cui_attr", "candidates_attr", "note_attr", "codes_attr")
# What an attribute is where no linker has set it, in the same order.
UNSET: tuple[Any, ...] = (None, [], None, {})
# A saved config would lose another label, or read it as a different one.
LABEL = re.compile(r"[^\W_]([^:=\r\n]*[^\s:=])?")
F = TypeVar("F", bound=Callable[..., Any])


def with_options(function: F) -> F:
    """Declare the options as arguments: spaCy checks a config by the signature."""
    signature = inspect.signature(function)
    *arguments, _ = signature.parameters.values()
    kind = inspect.Parameter.KEYWORD_ONLY
    # `LinkOptions` checks their values.
    options = [inspect.Parameter(name, kind, annotation=Any) for name in OPTIONS]
    function.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*arguments, *options]
    )
    return function


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
    default_config=LINKER_CONFIG,
    default_score_weights={
        "nel_micro_f": None,
        "nel_micro_r": None,
        "nel_micro_p": None,
        "nel_e2e_f": None,
        "nel_e2e_r": None,
        "nel_e2e_p": None,
    },
)
class SapbertLinker(KbComponent):
    """Links the spans of a Doc to the concepts of a knowledge base.

    The arguments are explained in `linker_config`. Each is also an attribute that can
    be set: `linker.threshold = 0.8`.
    """

    settings = tuple(name for name in LINKER_CONFIG if name not in OF_FUNCTIONS)
    chosen = DEFAULT_OPTIONS
    kb_url_template = UrlTemplate()  # for displaCy

    @with_options
    def __init__(
        self,
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
        long_form_attr: str | None,
        encoder: EncoderConfig,
        scorer: Callable[..., dict[str, Any]] | None,
        **options: Any,
    ) -> None:
        check_range("batch_size", batch_size, 1, MAX_BATCH)
        check_labels(options["label_types"])
        self.options = LinkOptions(**options)
        self.batch_size = batch_size
        self.spans_key = spans_key
        self.attrs = AttributeNames(cui_attr, candidates_attr, note_attr, codes_attr)
        self.long_form_attr = long_form_attr
        self.scorer = scorer
        self.fitted: dict[str, tuple[LinkOptions, LinkOptions]] = {}
        set_extensions(self.attrs)
        super().__init__(
            nlp,
            name,
            kb,
            kb_digest=kb_digest,
            reload_seconds=reload_seconds,
            encoder=encoder,
        )
        for _, component in nlp.components:
            if isinstance(component, SapbertLinker):
                self.warn_of_shared_attributes(component)

    def __setattr__(self, name: str, value: Any) -> None:
        # A misspelt setting would be a new attribute, which changes nothing.
        is_known = name in self.settings or hasattr(type(self), name)
        if not is_known and get_close_matches(name, self.settings, 1, 0.8):
            raise unknown_setting(name=name, known=self.settings)
        if name in MOVED:
            raise missing_attribute(self, name, MOVED)
        super().__setattr__(name, value)

    if not TYPE_CHECKING:  # type checkers would accept any attribute

        def __getattr__(self, name: str) -> Any:
            raise missing_attribute(self, name, MOVED)

    @property
    def options(self) -> LinkOptions:
        """The options of linking."""
        return self.chosen

    @options.setter
    def options(self, options: LinkOptions) -> None:
        before, self.chosen = self.chosen, options
        for name in OPTIONS:
            if getattr(before, name) != getattr(options, name):
                self.write_config(name)

    def setting(self, name: str) -> Any:
        if name in OPTIONS:
            return self.options.to_config()[name]
        return super().setting(name)

    def warn_of_shared_attributes(self, other: "SapbertLinker") -> None:
        """Warn if another linker writes the same attributes.

        Spans of different groups share an attribute too, if their offsets are equal.
        """
        shared = sorted({*self.attrs.used} & {*other.attrs.used})
        if shared:
            warnings.warn(
                "[W553] Expected the linkers of a pipeline to write different "
                f"attributes, but {self.name} and {other.name} both write "
                f"{', '.join(shared)}. The later one replaces the links of the earlier "
                "one; change `cui_attr`, `candidates_attr`, `note_attr` and "
                "`codes_attr`.",
                UserWarning,
                stacklevel=2,
            )

    def warn_of_order(self) -> None:
        """Warn if only components behind this one find the entities that it links."""
        nlp = self.nlp
        if nlp is None or self.spans_key is not None or self.name not in nlp.pipe_names:
            return
        finding = list_detectors(nlp, None)
        before = nlp.pipe_names[: nlp.pipe_names.index(self.name)]
        if finding and not {*finding} & {*before}:
            warnings.warn(
                f"[W556] Expected a component that finds entities before {self.name}, "
                f"but {' and '.join(finding)} come behind it, so nothing is linked. "
                f"Add it with `nlp.add_pipe(…, before={self.name!r})`.",
                stacklevel=2,
            )

    def check_kb(self, kb: "KnowledgeBase") -> None:
        kb.check_options(self.options)

    def open(self) -> None:
        """Open the knowledge base and link a mention, so that all of it is loaded.

        Call it when a service starts, or before processes are forked, which then share
        what is loaded. (`nlp.initialize()` would reset trained components.)
        """
        self.check_kb(self.kb)
        self.kb.load()
        self.kb.link(["a first mention"], options=self.options)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]] | None = None,
        *,
        nlp: Language | None = None,
        kb: str | None = None,
        teach: bool = False,
    ) -> None:
        """Open the knowledge base, as `[initialize.components.sapbert_linker]` says.

        Args:
            get_examples: With `teach`, a copy of the knowledge base learns from their
                entities that have a `kb_id_`.
            kb: Its folder or name; None = that of the component.
        """
        self.nlp = nlp or self.nlp
        if kb is not None:
            self.kb = kb
        self.check_kb(self.kb)
        if teach and get_examples is not None:
            self.teach(example.reference for example in get_examples())

    def teach(self, docs: Iterable[Doc]) -> None:
        """Teach a copy of the knowledge base with Docs, and use it."""
        from .teaching import teach

        golds = [doc for doc in docs if any(span.kb_id for span in self.spans(doc))]
        if not golds:
            return
        temporary = TemporaryFolder(prefix="sapbert-kb-")
        output = temporary.path.resolve() / "kb"
        kb, _ = teach(self.kb, golds, spans_key=self.spans_key, output=output)
        kb.temporary = temporary
        self.kb = kb

    def spans(self, doc: Doc) -> list[Span]:
        if self.spans_key is None:
            return list(doc.ents)
        return list(doc.spans[self.spans_key]) if self.spans_key in doc.spans else []

    def __call__(self, doc: Doc, **settings: Any) -> Doc:
        """Link the entities of one Doc.

        `settings` are fields of `LinkOptions` for this call, as in `nlp(text,
        component_cfg={"sapbert_linker": {"k": 3}})`.
        """
        self.link_docs([doc], settings)
        return doc

    def pipe(
        self, stream: Iterable[Doc], *, batch_size: int = 128, **settings: Any
    ) -> Iterator[Doc]:
        """Link a stream of Docs, many mentions at once; see `__call__`."""
        docs: list[Doc] = []
        mentions = 0
        for doc in stream:
            docs.append(doc)
            mentions += len(self.spans(doc))
            if mentions >= self.batch_size or len(docs) >= batch_size:
                if self.link_docs(docs, settings):
                    yield from docs
                docs, mentions = [], 0
        if docs and self.link_docs(docs, settings):
            yield from docs

    def link_docs(self, docs: list[Doc], settings: dict[str, Any]) -> bool:
        """Predict and set links; return whether that succeeded."""
        try:
            self.reload_in_time()
            self.set_annotations(docs, self.predict(docs, **settings))
        except Exception as error:
            self.get_error_handler()(self.name, self, docs, error)
            return False
        return True

    def predict(self, docs: Sequence[Doc], **settings: Any) -> "list[list[Linked]]":
        """Return the links of the spans of each Doc, which does not change.

        The names that are used depend on the language of the Doc. See `__call__`.
        """
        options = change_options(self.options, settings)
        key = self.spans_key
        if key is not None and not any(key in doc.spans for doc in docs):
            warnings.warn(
                f"[W556] Expected documents with the span group {key!r}, the "
                f"`spans_key` of {self.name}, but got none, so nothing is linked. "
                "Correct `spans_key`, or add the component that sets it before "
                "the linker.",
                stacklevel=2,
            )
        links: list[list[Linked]] = [[] for _ in docs]
        languages: dict[str, list[tuple[int, Span]]] = {}
        for number, doc in enumerate(docs):
            for span in self.spans(doc):
                languages.setdefault(doc.vocab.lang, []).append((number, span))
        if not languages:
            self.warn_of_order()
            return links  # without a knowledge base
        kb = self.kb
        for lang, spans in languages.items():
            results = kb.link(
                [mention_text(span, self.long_form_attr, kb) for _, span in spans],
                labels=[span.label_ for _, span in spans],
                documents=[number for number, _ in spans],
                options=self.fit(options, lang),
            )
            for (number, _), result in zip(spans, results, strict=True):
                links[number].append(result)
        return links

    def fit(self, options: LinkOptions, lang: str) -> LinkOptions:
        """Return `fit_language`, which checks all options, of the last options."""
        base, fitted = self.fitted.get(lang, (None, options))
        if base is not options:
            fitted = fit_language(options, lang)
            self.fitted[lang] = options, fitted
        return fitted

    def set_annotations(
        self, docs: Iterable[Doc], links: "Iterable[Sequence[Linked]]"
    ) -> None:
        """Write the links of the spans of each Doc, as `predict` returns them."""
        for doc, results in zip(docs, links, strict=True):
            spans = self.spans(doc)
            for span, result in zip(spans, results, strict=True):
                for attr, value in zip(self.attrs, list_values(result), strict=True):
                    if attr is not None:
                        span._.set(attr, value)
                if self.spans_key is None:
                    # `ent.kb_id_ = …` would be lost: `doc.ents` creates new spans.
                    for token in span:
                        token.ent_kb_id_ = result.cui or NIL
            if self.spans_key is not None and spans:
                self.write_group(doc, spans, results)

    def write_group(
        self, doc: Doc, spans: Sequence[Span], results: "Sequence[Linked]"
    ) -> None:
        """Write links into a span group: spans of equal offsets share `span._`."""
        assert self.spans_key is not None
        group = doc.spans[self.spans_key]
        links: dict[tuple[int, int], Linked] = {}
        for number, (span, result) in enumerate(zip(spans, results, strict=True)):
            if links.setdefault((span.start_char, span.end_char), result) != result:
                warnings.warn(
                    f"[W559] Expected spans of the group {self.spans_key!r} at "
                    "different places, but two at the same place have different "
                    "links, and share `span._`, which has the last one. Read "
                    "`span.kb_id_` and `group.attrs`, which have those of each "
                    "span.",
                    stacklevel=2,
                )
            # A span of a group is a copy, so `span.kb_id_ = …` would be lost.
            kb_id = result.cui or NIL
            group[number] = Span(
                doc, span.start, span.end, span.label, kb_id=kb_id, span_id=span.id
            )
        columns = zip(*map(list_values, results), strict=True)
        for attr, values in zip(self.attrs, columns, strict=True):
            if attr is not None:
                group.attrs[attr] = [*values]

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        set_extensions(self.attrs)


def name_spans(spans_key: str | None) -> str:
    """Return what spaCy calls entities, or the spans of a group."""
    return "doc.ents" if spans_key is None else "doc.spans"


def list_detectors(nlp: Language, spans_key: str | None) -> list[str]:
    """Return the components that find the spans which a linker links."""
    what = name_spans(spans_key)
    return [name for name in nlp.pipe_names if what in nlp.get_pipe_meta(name).assigns]


def option_property(name: str) -> property:
    def set_option(linker: SapbertLinker, value: Any) -> None:
        linker.options = change_options(linker.options, {name: value})

    return property(lambda linker: getattr(linker.options, name), set_option)


def attribute_property(field: str) -> property:
    def set_name(linker: SapbertLinker, value: str | None) -> None:
        attrs = linker.attrs._replace(**{field: value})  # type: ignore[arg-type]
        set_extensions(attrs)
        linker.attrs = attrs

    return property(lambda linker: getattr(linker.attrs, field), set_name)


for option_name in OPTIONS:
    setattr(SapbertLinker, option_name, option_property(option_name))
for attr_name, field_name in zip(ATTRS, AttributeNames._fields, strict=True):
    setattr(SapbertLinker, attr_name, attribute_property(field_name))


def fit_language(options: LinkOptions, lang: str) -> LinkOptions:
    """Limit the names to those of the language, unless the filter has languages."""
    if options.filter.languages:
        return options
    return options.replace(filter=options.filter.replace(document_language=lang))


def list_values(result: "Linked") -> tuple[Any, ...]:
    return result.cui, result.candidates, result.note, result.codes


def set_extensions(attrs: AttributeNames) -> None:
    for attr, default in zip(attrs, UNSET, strict=True):
        if attr is None:
            continue
        is_new = not Span.has_extension(attr)
        is_twice = attrs.count(attr) > 1
        if is_twice or not (is_new or Span.get_extension(attr)[1:] == (None,) * 3):
            reason = "named twice" if is_twice else "computed by another component"
            setting = f"one of {', '.join(f'`{name}`' for name in ATTRS)}"
            raise wrong_attribute(attr=f"span._.{attr}", reason=reason, setting=setting)
        if is_new:
            Span.set_extension(attr, default=default)


def check_labels(labels: Iterable[str]) -> None:
    """Raise an error if a config file cannot hold one of the labels."""
    for label in labels:
        if not LABEL.fullmatch(label):
            raise SapbertError(
                "E331",
                "Expected labels in `label_types` that a config file can hold, "
                "without `:` or `=` and with a letter or digit first, but got "
                f"{label!r}. Rename the label, or pass `label_types` with each call.",
            )
