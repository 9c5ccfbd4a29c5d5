"""The component `sapbert_linker`: links the entities that an earlier one detected."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copyreg import __newobj__  # type: ignore[attr-defined]
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from weakref import ReferenceType, ref

import srsly
from spacy.language import Language
from spacy.pipeline.pipe import Pipe
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..encoder.encoder import EncoderConfig
from ..errors import SapbertError, check_range
from ..formats.entities import AttributeNames
from ..io.forks import TemporaryFolder
from ..linking.options import OPTIONS, LinkOptions, change_options
from .annotations import set_extensions, write_links
from .default_config import DEFAULTS, check_labels, with_options
from .long_forms import long_form_text
from .opened_kb import OpenedKb
from .saved_settings import FILE as SETTINGS_FILE
from .saved_settings import SavedSettings, loaded_config

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase
    from ..linking.link import Linked

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
    long_form_attr: str | None,
    encoder: EncoderConfig,
    scorer: Callable[..., dict[str, Any]] | None,
    **options: Any,
) -> "SapbertLinker":
    """Make the component; see `default_config` for its settings."""
    check_labels(options["label_types"])
    linker = SapbertLinker(
        name,
        kb=OpenedKb(kb, pin=kb_digest, encoder=encoder, reload_seconds=reload_seconds),
        options=LinkOptions(**options),
        batch_size=batch_size,
        spans_key=spans_key,
        attrs=AttributeNames(cui_attr, candidates_attr, note_attr, codes_attr),
        long_form_attr=long_form_attr,
        scorer=scorer,
    )
    linker.pipeline = ref(nlp)
    warn_of_shared_attributes(linker, nlp)
    for other, component in nlp.components:
        if nlp.get_pipe_meta(other).factory == MENTIONS:
            component.join(nlp, linker)  # type: ignore[attr-defined]
    return linker


def warn_of_shared_attributes(linker: "SapbertLinker", nlp: Language) -> None:
    """Warn if another linker of the pipeline writes the same attributes of the spans.

    Spans of different groups share an attribute too, if their offsets are equal.
    """
    for name, other in nlp.components:
        if isinstance(other, SapbertLinker):
            shared = sorted({*linker.attrs.used} & {*other.attrs.used})
            if shared:
                names = ", ".join(shared)
                warnings.warn(
                    "[W553] Expected the linkers of a pipeline to write different "
                    f"attributes, but {linker.name} and {name} both write {names}. "
                    "The later one replaces the links of the earlier one; change "
                    "`cui_attr`, `candidates_attr`, `note_attr` and `codes_attr`.",
                    UserWarning,
                    stacklevel=2,
                )


class SapbertLinker(Pipe):
    """Links the spans of a Doc to the concepts of a knowledge base.

    The arguments are explained in `default_config`. Each option of linking is also a
    property that can be set: `linker.threshold = 0.8`.

    Raises:
        SapbertError: If a number is out of its range, or the name of an option that is
            set is misspelt.
    """

    def __init__(
        self,
        name: str,
        *,
        kb: OpenedKb,
        options: LinkOptions,
        batch_size: int,
        spans_key: str | None,
        attrs: AttributeNames,
        long_form_attr: str | None,
        scorer: Callable[..., dict[str, Any]] | None,
    ) -> None:
        check_range("batch_size", batch_size, 1, MAX_BATCH)
        self.name = name
        self.opened = kb
        self.options = options
        self.batch_size = batch_size
        self.spans_key = spans_key
        self.attrs = attrs
        self.long_form_attr = long_form_attr
        self.scorer = scorer
        self.config = {**self.settings(), "kb": kb.given}
        # Weak, since a pipeline refers to its components.
        self.pipeline: ReferenceType[Language] | None = None
        set_extensions(attrs)

    def __setattr__(self, name: str, value: Any) -> None:
        # A misspelt option would be a new attribute, which changes nothing.
        if not hasattr(type(self), name) and get_close_matches(name, OPTIONS, 1, 0.8):
            known = [*OPTIONS]
            raise SapbertError(
                "E333",
                f"Expected one of the settings {known}, but got {repr(name)}. Correct "
                "its name.",
            )
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

    def check_kb(self, kb: "KnowledgeBase") -> None:
        """Check that the options fit a knowledge base."""
        kb.check_options(self.options)

    def reload(self) -> bool:
        """Load the knowledge base again if its folder has a new version.

        Returns:
            Whether there was one.

        Raises:
            SapbertError: If the new version cannot be loaded, has another digest than
                `kb_digest`, or does not fit the options. Then the linker uses the old
                version.
        """
        return self.opened.refresh(self.check_kb)

    def open(self) -> None:
        """Open the knowledge base and link a mention, so that all of it is loaded.

        Call it when a service starts, or before processes are forked, which then share
        what is loaded. (`nlp.initialize()` would reset trained components.)

        Raises:
            SapbertError: If there is no knowledge base, it is damaged, or it has no
                such types, sources or languages as the settings name.
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
        """Open the knowledge base, and let a copy of it learn from examples.

        Args:
            get_examples: Examples; those whose entities have a `kb_id_` are learned.
            teach: Learn; a setting of `[initialize.components.sapbert_linker]`.

        Raises:
            SapbertError: See `open`; or if the knowledge base has none of the ids of
                the entities.
        """
        self.check_kb(self.kb)
        if teach and get_examples is not None:
            self.teach(example.reference for example in get_examples())

    def teach(self, docs: Iterable[Doc]) -> None:
        """Teach a copy of the knowledge base with Docs; use it if it is better.

        Args:
            docs: See `teaching.teach`. The copy is saved with the pipeline.
        """
        from .teaching import annotate_docs

        documents = [
            d for d in annotate_docs(docs, spans_key=self.spans_key) if d.mentions
        ]
        if not documents:
            return
        from ..kb.teaching.teach import teach_documents

        temporary = TemporaryFolder(prefix="sapbert-kb-")
        output = temporary.path.resolve() / "kb"
        kb, report = teach_documents(self.kb, documents, output=output)
        if report.changed:
            kb.temporary = temporary
            self.opened.use(kb)

    def spans(self, doc: Doc) -> list[Span]:
        """Return the spans to link."""
        if self.spans_key is None:
            return list(doc.ents)
        return list(doc.spans[self.spans_key]) if self.spans_key in doc.spans else []

    def __call__(self, doc: Doc, **settings: Any) -> Doc:
        """Link one Doc.

        Args:
            doc: With its entities; its attributes and `ent.kb_id_` are set.
            settings: Fields of `LinkOptions` for this call, as in `nlp(text,
                component_cfg={"sapbert_linker": {"k": 3}})`.

        Raises:
            SapbertError: If a setting is not possible.
        """
        self.try_to_link([doc], change_options(self.options, settings))
        return doc

    def pipe(
        self, stream: Iterable[Doc], *, batch_size: int = 128, **settings: Any
    ) -> Iterator[Doc]:
        """Link a stream of Docs, many mentions at once.

        Args:
            batch_size: Maximum of Docs in a batch.
            settings: See `__call__`.

        Yields:
            The same Docs, in order.

        Raises:
            SapbertError: If a setting is not possible.
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
        key = self.spans_key
        if key is not None and not any(key in doc.spans for doc in docs):
            warnings.warn(
                f"[W556] Expected documents with the span group {key!r}, the "
                f"`spans_key` of {self.name}, but got none, so nothing is linked. "
                "Correct `spans_key`, or add the component that sets it before "
                "the linker.",
                stacklevel=2,
            )
        if any(self.spans(doc) for doc in docs):
            self.opened.refresh_in_time(self.check_kb)
            self.set_annotations(docs, self.predict(docs, options))

    def predict(
        self, docs: Sequence[Doc], options: LinkOptions
    ) -> "list[list[Linked]]":
        """Return the links of the spans of each Doc, which does not change.

        The names that are used depend on the language of the Doc.
        """
        kb = self.kb
        links: list[list[Linked]] = [[] for _ in docs]
        for lang in dict.fromkeys(doc.vocab.lang for doc in docs):
            spans = [
                (number, span)
                for number, doc in enumerate(docs)
                if doc.vocab.lang == lang
                for span in self.spans(doc)
            ]
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
            write_links(
                doc,
                self.spans(doc),
                results,
                attrs=self.attrs,
                spans_key=self.spans_key,
            )

    def settings(self) -> dict[str, Any]:
        """Return the settings that can change, as a config has them."""
        opened = self.opened
        kb = None if opened.source is None else str(opened.source)
        return {"kb": kb, "kb_digest": opened.pin, **self.options.to_config()}

    def describe(self) -> SavedSettings:
        """Return the settings to save; a knowledge base is named if it is installed."""
        now = {**self.settings(), "kb": self.opened.installed_name}
        return SavedSettings.compare(self.config, now)

    def copies_kb(self, exclude: Iterable[str]) -> bool:
        """Return whether the knowledge base is saved with the component."""
        return "kb" not in exclude and self.opened.installed_name is None

    def use_saved(
        self,
        saved: SavedSettings,
        config: Mapping[str, Any],
        folder: Path | None,
    ) -> None:
        """Use what was saved, as far as a config has not changed since.

        Args:
            config: See `loaded_config`.
            folder: The knowledge base that was saved with the settings.

        Raises:
            SapbertError: If a value is not possible, or the config names a knowledge
                base that does not exist.
        """
        kept = saved.kept(config)
        merged = self.config | kept
        self.options = LinkOptions(**{name: merged[name] for name in OPTIONS})
        if "kb" not in kept and config["kb"] is not None:
            self.opened.choose(config["kb"], pin=config["kb_digest"])
            self.opened.check()
            return
        source = folder or saved.settings["kb"].saved or self.opened.source
        self.opened.choose(source, pin=merged["kb_digest"])

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save the component to a folder.

        The knowledge base is copied, unless it is an installed one: then the component
        refers to it by name. `exclude` may have "kb".
        """
        from ..kb.folder.copies import save_copy

        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        saved = self.describe()
        if self.copies_kb(exclude):
            save_copy(self.kb, folder / "kb")
        saved.write(folder)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        """Use the knowledge base and the settings of a saved component.

        Settings that `spacy.load` gets, or that its config has with another value than
        when the component was saved, win.

        Raises:
            SapbertError: If there is no knowledge base where the config or the saved
                settings name one.
        """
        folder = Path(path)
        saved = SavedSettings.read(folder)
        if saved is not None:
            kb = folder / "kb"
            packed = "kb" not in exclude and kb.is_dir()
            config = loaded_config(self.pipeline, self.config, folder)
            self.use_saved(saved, config, kb if packed else None)
        self.opened.check(packages=False)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialise the component; see `to_disk`."""
        from ..kb.folder.copies import kb_to_files

        files = kb_to_files(self.kb) if self.copies_kb(exclude) else {}
        settings = self.describe().model_dump_json()
        return srsly.msgpack_dumps({"kb": files, SETTINGS_FILE: settings})

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> Self:
        """Unpack a serialised component into a temporary folder.

        Raises:
            SapbertError: If the knowledge base in it is damaged.
        """
        from ..kb.knowledge_base import open_files

        content = srsly.msgpack_loads(data)
        saved = SavedSettings.parse(content[SETTINGS_FILE], Path(SETTINGS_FILE))
        self.use_saved(saved, {}, None)
        files = content["kb"] if "kb" not in exclude else None
        if files:
            opened = self.opened
            opened.use(open_files(files, opened.encoder, opened.pin))
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        state = {**self.__dict__, "name": self.name, "pipeline": None}
        return __newobj__, (type(self),), state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.name = state.pop("name")
        self.__dict__.update(state)
        set_extensions(self.attrs)


def option_property(name: str) -> property:
    """Return the property of an option of linking; a value that is set is checked."""

    def set_option(linker: SapbertLinker, value: Any) -> None:
        linker.options = change_options(linker.options, {name: value})

    return property(lambda linker: getattr(linker.options, name), set_option)


for option_name in OPTIONS:
    setattr(SapbertLinker, option_name, option_property(option_name))


def fit_language(options: LinkOptions, lang: str) -> LinkOptions:
    """Limit the names to those that fit the language of a document.

    Languages in the filter replace this limit.
    """
    if options.filter.languages:
        return options
    return replace(options, filter=replace(options.filter, document_language=lang))
