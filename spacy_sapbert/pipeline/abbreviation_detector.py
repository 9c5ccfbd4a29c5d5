"""The component `sapbert_abbreviations`: finds abbreviations and their long forms."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..errors import SapbertError
from ..linking.schwartz_hearst import LONGEST, find_long_forms
from ..linking.text import name_form, singular_abbreviation

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase

MAX_TOKENS = LONGEST + 2  # of a short form: one a character, a blank, and "s"


@Language.factory(
    "sapbert_abbreviations",
    assigns=["doc._.abbreviations", "span._.long_form"],
)
class SapbertAbbreviations:
    """Sets the long form of short forms that the document defines.

    Attributes of spans belong to offsets, so an entity with the offsets of a short form
    has the long form, whether it is detected before or after.

    Args:
        long_form_attr: Attribute of spans: the long form, a text with single blanks, or
            None. A value that is set is kept.
        abbreviations_attr: Attribute of Docs: the spans with a long form.
    """

    def __init__(
        self,
        nlp: Language | None = None,
        name: str = "sapbert_abbreviations",
        *,
        long_form_attr: str = "long_form",
        abbreviations_attr: str = "abbreviations",
    ) -> None:
        self.name = name
        self.attrs = (long_form_attr, abbreviations_attr)
        set_extensions(*self.attrs)

    def __call__(self, doc: Doc) -> Doc:
        long_form_attr, _ = self.attrs
        long_forms = find_long_forms(doc.text)
        for span, long in find_short_forms(doc, long_forms) if long_forms else ():
            if not span._.get(long_form_attr):
                span._.set(long_form_attr, long)
        return doc

    def __setstate__(self, state: dict[str, Any]) -> None:
        # The attributes are registered again in the other process.
        self.__dict__.update(state)
        set_extensions(*self.attrs)


def set_extensions(long_form_attr: str, abbreviations_attr: str) -> None:
    attrs = {long_form_attr}
    if Doc.has_extension(abbreviations_attr):
        getter: Any = Doc.get_extension(abbreviations_attr)[2]
        if getattr(getter, "func", None) is not list_abbreviations:
            attr, setting = f"doc._.{abbreviations_attr}", "`abbreviations_attr`"
            raise wrong_attribute(
                attr=attr, reason="of another component", setting=setting
            )
        attrs |= getter.keywords["attrs"]  # of other pipelines
    if not Span.has_extension(long_form_attr):
        Span.set_extension(long_form_attr, default=None)
    getter = partial(list_abbreviations, attrs=attrs)
    Doc.set_extension(abbreviations_attr, getter=getter, force=True)


def wrong_attribute(*, attr: str, reason: str, setting: str) -> SapbertError:
    return SapbertError(
        "E331",
        f"Expected attributes that this component alone sets, but `{attr}` is "
        f"{reason}. Choose another name with {setting}.",
    )


def list_abbreviations(doc: Doc, *, attrs: set[str]) -> list[Span]:
    """Return the spans with a long form, by the keys of `doc.user_data`."""
    offsets: set[tuple[int, int]] = set()
    for key, value in doc.user_data.items():
        if isinstance(key, tuple) and key[:1] == ("._.",) and len(key) == 4:
            _, attr, start, end = key
            if attr in attrs and end is not None and value:
                offsets.add((start, end))
    spans = (doc.char_span(*place) for place in sorted(offsets))
    return [span for span in spans if span is not None]


def find_long_form(short: str, long_forms: Mapping[str, str]) -> str | None:
    """Return the long form of a short form or its plural, "RCCs"; None if unknown."""
    short = " ".join(short.split())
    return long_forms.get(short) or long_forms.get(singular_abbreviation(short))


def find_short_forms(
    doc: Doc, long_forms: Mapping[str, str]
) -> Iterator[tuple[Span, str]]:
    """Find the short forms in a Doc, the longest first; also as plurals, "RCCs"."""
    text = doc.text
    pairs = reversed([*long_forms.items()])
    forms = {singular_abbreviation(short): long for short, long in pairs}
    forms.update(long_forms)
    firsts = {short[0] for short in forms}
    offsets = [(token.idx, token.idx + len(token)) for token in doc]
    first = 0
    while first < len(offsets):
        start, _ = offsets[first]
        size = MAX_TOKENS if text[start : start + 1] in firsts else 0
        first += 1
        for last in reversed(range(first, min(first + size, len(offsets) + 1))):
            form = text[start : offsets[last - 1][1]]
            long = find_long_form(form, forms)
            if long and not form[-1].isspace():
                yield doc[first - 1 : last], long
                first = last
                break


def mention_text(span: Span, attr: str | None, kb: "KnowledgeBase") -> str:
    """Return the text that is linked: with long forms in the place of short forms.

    A short form inside of a longer mention stays if its long form is there too, or if
    the mention is a name of the knowledge base that agrees with the long form: "GALT
    deficiency".
    """
    long = long_form_text(span, attr)
    if long is not None or attr is None or len(span) == 1:
        return long or span.text
    text, inside = span.text, list_inside(span, attr)
    for start, end, long in reversed(inside):
        text = f"{text[:start]}{long}{text[end:]}"
    said, names, lang = name_form(span.text), kb.searcher.names, span.vocab.lang
    if any(
        name_form(long) in said or names.is_name_with(span.text, long, lang)
        for _, _, long in inside
    ):
        return span.text
    return text


def list_inside(span: Span, attr: str) -> list[tuple[int, int, str]]:
    """Return the short forms inside of a span: start, end, and the long form."""
    data, begin = span.doc.user_data, span.start_char
    offsets = [(token.idx, token.idx + len(token)) for token in span]
    found: list[tuple[int, int, str]] = []
    first = 0
    while first < len(offsets):
        start, _ = offsets[first]
        for last in range(min(len(offsets), first + MAX_TOKENS), first, -1):
            _, end = offsets[last - 1]
            if ("._.", attr, start, end) not in data:  # as `span._` keeps it
                continue
            long = long_form_text(span[first:last], attr)
            if long is not None:
                found.append((start - begin, end - begin, long))
                first = last - 1
                break
        first += 1
    return found


def long_form_text(span: Span, attr: str | None = "long_form") -> str | None:
    """Return the long form of a span, which `attr` has as a text or a span."""
    if attr is None or not span._.has(attr):
        return None
    value = span._.get(attr)
    text = value.text if isinstance(value, Span) else value
    return " ".join(text.split()) or None if isinstance(text, str) else None
