"""The component `sapbert_linker`: links the entities that an earlier one detected."""

import inspect
import json
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Config

from ..encoder.encoder import EncoderConfig
from ..errors import SapbertError, check_range
from ..formats.entities import AttributeNames
from ..formats.gold import NIL
from ..formats.page.addresses import UrlTemplate
from ..io.forks import TemporaryFolder
from ..linking.options import DEFAULT_OPTIONS, OPTIONS, LinkOptions, change_options
from ..linking.settings_base import describe_values
from .abbreviation_detector import long_form_text, wrong_attribute
from .kb_component import KbComponent, OpenedKb

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase
    from ..linking.link import Linked

MAX_BATCH = 1_000_000
ATTRS = ("cui_attr", "candidates_attr", "note_attr", "codes_attr")
# What an attribute is where no linker has set it, in the same order.
UNSET: tuple[Any, ...] = (None, [], None, {})
# A saved config would lose another label, or read it as a different one.
LABEL = re.compile(r"[^\W_]([^:=\r\n]*[^\s:=])?")
SECTION = "components.sapbert_linker"
CONFIG_WIDTH = 88
VALUES = DEFAULT_OPTIONS.to_config()
SCHEMAS = LinkOptions.schemas()
F = TypeVar("F", bound=Callable[..., Any])


def write_comment(name: str) -> str:
    """Return the comment of an option: what it does, and its range or values."""
    text, schema = f"{OPTIONS[name].description}", SCHEMAS[name]
    if not {"anyOf", "enum", "minimum"}.isdisjoint({*schema, *schema.get("items", ())}):
        text += f" ({describe_values(schema)})"
    lines = textwrap.wrap(text, CONFIG_WIDTH - 2, break_on_hyphens=False)
    return "".join(f"# {line}\n" for line in lines)


def write_options() -> str:
    """Return the lines of the options that are one value each, with comments."""
    return "".join(
        f"{write_comment(name)}{name} = {json.dumps(value)}\n"
        for name, value in VALUES.items()
        if not isinstance(value, dict)
    )


def write_sections() -> str:
    """Return the sections of the options that are several values, with comments."""
    return "\n".join(
        f"{write_comment(name)}[{SECTION}.{name}]\n"
        for name, value in VALUES.items()
        if isinstance(value, dict)
    )


DEFAULT_CONFIG = f"""
[components]

[{SECTION}]
factory = "sapbert_linker"
# folder of a knowledge base, or the name of an installed one; null = the only installed
kb = null
# its digest, from `spacy sapbert kb info`: another version is an error; null = any
kb_digest = null
# look for a new version of the kb when so many seconds have passed; null = never
reload_seconds = null
{write_options()}\
# mentions linked at once, from as many documents as needed
batch_size = 256
# null = doc.ents, else doc.spans[spans_key]
spans_key = null
# the attributes: span._.cui, span._.candidates, span._.link_note
cui_attr = "cui"
candidates_attr = "candidates"
note_attr = "link_note"
# the codes by vocabulary: span._.codes; null = none
codes_attr = "codes"
# attribute with the long form of an abbreviation, which is linked in its place;
# null = never
long_form_attr = "long_form"

{write_sections()}
[{SECTION}.encoder]
@architectures = "spacy-sapbert.Encoder.v1"
# auto = ONNX Runtime on a CPU, where it is installed and the knowledge base has the
# encoder for it; torch; onnx
engine = "auto"
names_per_pass = 64
precision = "float32"

[{SECTION}.scorer]
@scorers = "spacy-sapbert.linker_scorer.v1"
"""
DEFAULTS = Config().from_str(DEFAULT_CONFIG)["components"]["sapbert_linker"]
LINKER_CONFIG = {name: value for name, value in DEFAULTS.items() if name != "factory"}


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
        "nel_micro_f": 1.0,
        "nel_micro_r": None,
        "nel_micro_p": None,
        "nel_e2e_f": None,
        "nel_e2e_r": None,
        "nel_e2e_p": None,
    },
)
class SapbertLinker(KbComponent):
    """Links the spans of a Doc to the concepts of a knowledge base.

    The arguments are explained in `DEFAULT_CONFIG`. Each option of linking is also a
    property that can be set: `linker.threshold = 0.8`.
    """

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
        opened = OpenedKb(
            kb, pin=kb_digest, encoder=encoder, reload_seconds=reload_seconds
        )
        super().__init__(name, opened)
        self.options = LinkOptions(**options)
        self.batch_size = batch_size
        self.spans_key = spans_key
        self.attrs = AttributeNames(cui_attr, candidates_attr, note_attr, codes_attr)
        self.long_form_attr = long_form_attr
        self.scorer = scorer
        self.config = {**self.settings(), "kb": None if kb is None else str(kb)}
        set_extensions(self.attrs)
        for _, component in nlp.components:
            if isinstance(component, SapbertLinker):
                self.warn_of_shared_attributes(component)
            elif isinstance(component, KbComponent):
                component.join(nlp, self)

    def __setattr__(self, name: str, value: Any) -> None:
        # A misspelt option would be a new attribute, which changes nothing.
        if not hasattr(type(self), name) and get_close_matches(name, OPTIONS, 1, 0.8):
            change_options(DEFAULT_OPTIONS, {name: value})  # raises the error
        super().__setattr__(name, value)

    @property
    def kb(self) -> "KnowledgeBase":
        """The knowledge base, opened when first used.

        Set it to the result of `add_concepts` or `remove_concepts` after an edit, or to
        the folder or name of another knowledge base.
        """
        return self.opened.get()

    @kb.setter
    def kb(self, kb: "KnowledgeBase | str | Path") -> None:
        self.opened.use(kb)

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

    def check_kb(self, kb: "KnowledgeBase") -> None:
        kb.check_options(self.options)

    def reload(self) -> bool:
        """Load the new version of the folder, and return whether there was one.

        If it cannot be loaded, has another digest than `kb_digest`, or does not fit the
        options, that is an error, and the linker uses the old one.
        """
        return self.opened.refresh(self.check_kb)

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
        teach: bool = False,
    ) -> None:
        """Open the knowledge base.

        With `teach = true` in `[initialize.components.sapbert_linker]` a copy of it
        learns from the entities of the examples that have a `kb_id_`.
        """
        self.check_kb(self.kb)
        if teach and get_examples is not None:
            self.teach(example.reference for example in get_examples())

    def teach(self, docs: Iterable[Doc]) -> None:
        """Teach a copy of the knowledge base with Docs; use it if it is better."""
        from ..formats.gold_docs import make_gold
        from ..kb.teaching.teach import teach_documents
        from .teaching import annotate

        golds = (make_gold(doc, spans_key=self.spans_key) for doc in docs)
        documents = [annotate(gold) for gold in golds if gold.mentions]
        if not documents:
            return
        temporary = TemporaryFolder(prefix="sapbert-kb-")
        output = temporary.path.resolve() / "kb"
        kb, report = teach_documents(self.kb, documents, output=output)
        if report.changed:
            kb.temporary = temporary
            self.opened.use(kb)

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
            self.opened.refresh_in_time(self.check_kb)
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
            return links  # without a knowledge base
        kb = self.kb
        for lang, spans in languages.items():
            results = kb.link(
                [long_form_text(s, self.long_form_attr) or s.text for _, s in spans],
                labels=[span.label_ for _, span in spans],
                documents=[number for number, _ in spans],
                options=fit_language(options, lang),
            )
            for (number, _), result in zip(spans, results, strict=True):
                links[number].append(result)
        return links

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

    def settings(self) -> dict[str, Any]:
        return {
            "kb_digest": self.opened.pin,
            "reload_seconds": self.opened.reload_seconds,
            "batch_size": self.batch_size,
            "spans_key": self.spans_key,
            "long_form_attr": self.long_form_attr,
            **dict(zip(ATTRS, self.attrs, strict=True)),
            **self.options.to_config(),
        }

    def use_settings(self, settings: dict[str, Any]) -> None:
        merged = {**self.settings(), **settings}
        self.options = LinkOptions(**{name: merged[name] for name in OPTIONS})
        self.batch_size = merged["batch_size"]
        self.spans_key = merged["spans_key"]
        self.long_form_attr = merged["long_form_attr"]
        self.attrs = AttributeNames(*(merged[name] for name in ATTRS))
        set_extensions(self.attrs)
        self.opened.reload_seconds = merged["reload_seconds"]
        source = settings.get("kb") or self.opened.source
        self.opened.choose(source, pin=merged["kb_digest"])

    def saved_source(self) -> str | None:
        return self.opened.installed_name

    def saves_kb(self) -> bool:
        return self.opened.installed_name is None

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)  # type: ignore[misc]  # that of Cython
        set_extensions(self.attrs)


def option_property(name: str) -> property:
    def set_option(linker: SapbertLinker, value: Any) -> None:
        linker.options = change_options(linker.options, {name: value})

    return property(lambda linker: getattr(linker.options, name), set_option)


for option_name in OPTIONS:
    setattr(SapbertLinker, option_name, option_property(option_name))


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
