"""The component `sapbert_mentions`: marks names of the knowledge base as mentions."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from spacy.util import filter_spans
from spacy.vocab import Vocab

from ..errors import SapbertError, check_range
from ..linking.schwartz_hearst import find_long_forms
from ..linking.stop_names import STOP_NAMES
from ..linking.text import name_form, read_entities, stands_alone
from .abbreviation_detector import find_short_forms
from .kb_component import KbComponent
from .linker import SapbertLinker
from .split_tokens import list_boundaries, split_tokens
from .stop_names import Place, is_shouted, read_stop_names, stop_form

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase

WORD = re.compile(r"\w+")


def has_content_word(name: str, vocab: Vocab) -> bool:
    words = (piece for piece in WORD.findall(name.lower()) if not piece.isdigit())
    return any(not vocab[word].is_stop for word in words)


def follow_long_forms(doc: Doc, places: Iterable[Place]) -> list[Place]:
    """Return places of names, in which the short forms follow their long forms.

    A short form that the text defines is among them only if its long form is a name or
    ends with one.
    """
    text = doc.text
    found = dict.fromkeys(places)
    long_forms = find_long_forms(text)
    if not long_forms:
        return [*found]
    names = {name_form(text[start:end]) for start, end in found}
    for span, long in find_short_forms(doc, long_forms):
        words = name_form(long).split(" ")
        endings = (" ".join(words[first:]) for first in range(len(words)))
        place = (span.start_char, span.end_char)
        found.pop(place, None)
        if not names.isdisjoint(endings):
            found[place] = None
    return sorted(found)


def drop_overlapping(spans: Iterable[Span], others: Iterable[Span]) -> list[Span]:
    taken = {place for span in others for place in range(span.start, span.end)}
    return [span for span in spans if taken.isdisjoint(range(span.start, span.end))]


def extend_group(group: SpanGroup, added: list[Span]) -> SpanGroup:
    """Return a group with more spans at its end, and without those that they overlap.

    An added span has None in the lists of `group.attrs`, and NaN in its arrays.
    """
    old = list(group)
    kept = drop_overlapping(old, added)
    numbers = [number for number, span in enumerate(old) if span in kept]
    attrs = dict(group.attrs)
    for name, values in attrs.items():
        if isinstance(values, list) and len(values) == len(old):
            attrs[name] = [*(values[n] for n in numbers), *[None] * len(added)]
        elif isinstance(values, np.ndarray) and len(values) == len(old):
            none = np.full((len(added), *values.shape[1:]), np.nan)
            attrs[name] = np.concatenate([values[numbers], none])
    return SpanGroup(group.doc, name=group.name, attrs=attrs, spans=[*kept, *added])


@Language.factory(
    "sapbert_mentions",
    assigns=["doc.ents", "doc.spans", "token.ent_iob", "token.ent_type"],
)
class SapbertMentions(KbComponent):
    """Marks the names of a knowledge base in a Doc, the longest ones first.

    A name of two to four letters with capitals, such as "MI" or "AIDS", must be written
    exactly so. Stop words, numbers and `stop_names` are not marked; in capitals a stop
    word, "ALL", is one only in a heading or beside other words in capitals. For other
    ways to write a name see `linking.text`. A token with a name inside is split,
    "-fever".

    Args:
        nlp: The pipeline; its linker shares its knowledge base.
        kb: Folder or name of a knowledge base; None = that of the linker in the same
            pipeline, else the only one installed.
        max_tokens: Maximum of words and other characters in a mention, 1 to 50.
        min_length: Minimum of characters in a mention, except for abbreviations.
        overwrite: Replace entities that a mention overlaps; else they are kept.
        short_forms: Mark a short form that the document defines if its long form is a
            name, and only then; else short forms are marked that are names themselves.
        spans_key: None = doc.ents, else doc.spans[spans_key].
        stop_names: Names that are not marked, or the file with them, see
            `read_stop_names`; the names are saved with the pipeline. None = common
            words of the language, of which there is a list for English.
    """

    settings = (
        "kb",
        "label",
        "max_tokens",
        "min_length",
        "overwrite",
        "short_forms",
        "spans_key",
        "stop_names",
    )

    def __init__(
        self,
        nlp: Language | None,
        name: str = "sapbert_mentions",
        *,
        kb: str | Path | None = None,
        label: str = "CONCEPT",
        max_tokens: int = 8,
        min_length: int = 3,
        overwrite: bool = False,
        short_forms: bool = False,
        spans_key: str | None = None,
        stop_names: list[str] | str | None = None,
    ) -> None:
        check_range(f"components.{name}.max_tokens", max_tokens, 1, 50)
        check_range(f"components.{name}.min_length", min_length, 1, 1000)
        self.label = label
        self.max_tokens = max_tokens
        self.min_length = min_length
        self.overwrite = overwrite
        self.short_forms = short_forms
        self.spans_key = spans_key
        self.lang = getattr(nlp, "lang", "")
        self.stop_names = stop_names
        super().__init__(nlp, name, kb)

    @property
    def stop_names(self) -> frozenset[str]:
        """The forms of names that are not marked; can be set as in the config."""
        return self.stop_forms

    @stop_names.setter
    def stop_names(self, names: Iterable[str] | str | None) -> None:
        names = read_stop_names(names) if isinstance(names, str) else names
        self.given_names = names if names is None else sorted({*names})
        common = STOP_NAMES.get(self.lang, frozenset())
        self.stop_forms = frozenset(map(stop_form, common if names is None else names))

    def setting(self, name: str) -> Any:
        return self.given_names if name == "stop_names" else super().setting(name)

    @property
    def linker(self) -> SapbertLinker | None:
        """The first linker of the pipeline, disabled or not, if there is one."""
        components = [] if self.nlp is None else self.nlp.components
        linkers = (c for _, c in components if isinstance(c, SapbertLinker))
        return next(linkers, None)

    def borrow_kb(self) -> "KnowledgeBase | None":
        return None if self.linker is None else self.linker.kb

    def open_kb(self, source: str | Path | None, digest: str | None) -> "KnowledgeBase":
        try:
            return super().open_kb(source, digest)
        except SapbertError as error:
            if source is not None or error.code != "E310":
                raise
            raise SapbertError(
                "E310",
                f"Expected a knowledge base for {self.name}, but it has no `kb`, and "
                f"its pipeline no linker yet. {error.text} Or add the linker first.",
            ) from None

    def has_own_kb(self) -> bool:
        """Return whether it has one, which the linker does not save too."""
        if not super().has_own_kb():
            return False
        return self.linker is None or self.linker.kb.folder != self.kb.folder

    def open(self) -> None:
        """Open the knowledge base and read its names, before the first text."""
        self.kb.parts.name_index  # noqa: B018

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]] | None = None,
        *,
        nlp: Language | None = None,
        kb: str | None = None,
    ) -> None:
        """Use the knowledge base of `[initialize.components.sapbert_mentions]`.

        That of the linker is opened when first used: it is initialized later.
        """
        self.nlp = nlp or self.nlp
        if kb is not None:
            self.kb = kb

    def __call__(self, doc: Doc) -> Doc:
        """Add entities, or spans of the group, to one Doc."""
        key = self.spans_key
        old = list(doc.ents if key is None else doc.spans.get(key, []))
        places = self.find_places(doc)
        made = [doc.char_span(*place, label=self.label) for place in places]
        if None in made:
            taken = [] if self.overwrite else old
            split_tokens(doc, places, [(s.start_char, s.end_char) for s in taken])
            old = list(doc.ents if key is None else doc.spans.get(key, []))
            made = [doc.char_span(*place, label=self.label) for place in places]
        spans = [span for span in made if span is not None]
        spans = filter_spans(spans if self.overwrite else drop_overlapping(spans, old))
        if key is None:
            doc.ents = sorted([*drop_overlapping(old, spans), *spans])
        elif key in doc.spans:
            doc.spans[key] = extend_group(doc.spans[key], spans)
        else:
            doc.spans[key] = SpanGroup(doc, name=key, spans=sorted(spans))
        return doc

    def find_places(self, doc: Doc) -> list[Place]:
        """Return what may be marked, also inside other such places.

        Other ways to write a name are found too, see `linking.text`. Names in other
        languages than those of the document do not count, see `choose_languages`. A
        name starts and ends where a token does, or stands alone inside of tokens.
        """
        text, offsets = read_entities(doc.text)
        starts, ends = list_boundaries(doc)

        def is_wanted(start: int, end: int) -> bool:
            part = text[start:end]
            form = stop_form(part)
            if form.isupper() and not is_shouted(text, start, end):
                return form not in self.stop_names
            is_listed = not {form, name_form(part)}.isdisjoint(self.stop_names)
            return not is_listed and has_content_word(part, doc.vocab)

        places = []
        for start, end in self.kb.find_written(
            text, doc.vocab.lang, max_tokens=self.max_tokens, min_length=self.min_length
        ):
            place = start, end
            if offsets is not None:
                place = offsets[start], offsets[end]
            of_tokens = place[0] in starts and place[1] in ends
            if (of_tokens or stands_alone(text, start, end)) and is_wanted(start, end):
                places.append(place)
        if self.short_forms:
            found = follow_long_forms(doc, places)
            forms = {place: stop_form(doc.text[slice(*place)]) for place in found}
            places = [place for place in found if forms[place] not in self.stop_names]
        return places
