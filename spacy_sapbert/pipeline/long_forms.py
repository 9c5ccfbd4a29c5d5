"""Long forms of abbreviations in a Doc: how they are written, and how they are read."""

from collections.abc import Iterator
from functools import partial

from spacy.tokens import Doc, Span

from ..errors import Errors, SapbertError
from .schwartz_hearst import LONGEST

MOST_TOKENS = LONGEST + 2  # in a short form: one a character, white space, and "s"


def set_extensions(long_form_attr: str, abbreviations_attr: str) -> None:
    """Register the attributes of spans and Docs.

    long_form_attr (str): Of spans: the long form.
    abbreviations_attr (str): Of Docs: the spans that have one.
    RAISES (SapbertError): If the attribute of Docs belongs to another component.
    """
    attrs: tuple[str, ...] = (long_form_attr,)
    if Doc.has_extension(abbreviations_attr):
        getter = Doc.get_extension(abbreviations_attr)[2]
        if not isinstance(getter, partial) or getter.func is not list_abbreviations:
            raise SapbertError(Errors.E570.format(attr=abbreviations_attr))
        attrs = tuple(dict.fromkeys((*getter.keywords["attrs"], *attrs)))
    if not Span.has_extension(long_form_attr):
        Span.set_extension(long_form_attr, default=None)
    getter = partial(list_abbreviations, attrs=attrs)
    Doc.set_extension(abbreviations_attr, getter=getter, force=True)


def list_abbreviations(doc: Doc, *, attrs: tuple[str, ...]) -> list[Span]:
    """Return the spans of a Doc that have a long form.

    They are not stored, since spans cannot be serialised: `span._` keeps its values in
    `doc.user_data`, under the name and the offsets in characters.

    doc (Doc): The Doc.
    attrs (tuple[str, ...]): The attributes that can hold it.
    RETURNS (list[Span]): In the order of the text.
    """
    places: list[tuple[int, int]] = []
    for key, value in doc.user_data.items():
        if isinstance(key, tuple) and key[:1] == ("._.",) and len(key) == 4:
            _, attr, start, end = key
            if attr in attrs and end is not None and value:
                places.append((start, end))
    spans = (doc.char_span(*place) for place in sorted({*places}))
    return [span for span in spans if span is not None]


def singular(short: str) -> str:
    """Take the "s" off a short form in capitals, if two characters are left."""
    bare = short[:-1]
    return bare if short.endswith("s") and bare.isupper() and bare[1:] else short


def find_short_forms(
    doc: Doc, long_forms: dict[str, str]
) -> Iterator[tuple[Span, str]]:
    """Find where a Doc has short forms, the longest first; also as plurals, "RCCs".

    doc (Doc): The Doc.
    long_forms (dict[str, str]): Of each short form, with single blanks.
    YIELDS (tuple[Span, str]): The short form, which fits the tokens, and its long form.
    """
    text = doc.text
    forms = {singular(short): long for short, long in reversed(long_forms.items())}
    forms.update(long_forms)
    firsts = {short[0] for short in forms}
    places = [(token.idx, token.idx + len(token)) for token in doc]
    first = 0
    while first < len(places):
        start, _ = places[first]
        size = MOST_TOKENS if text[start : start + 1] in firsts else 0
        first += 1
        for last in reversed(range(first, min(first + size, len(places) + 1))):
            found = text[start : places[last - 1][1]]
            short = " ".join(found.split())
            long = forms.get(short) or forms.get(singular(short))
            if long and not found[-1].isspace():
                yield doc[first - 1 : last], long
                first = last
                break


def long_form_text(span: Span, attr: str | None = "long_form") -> str | None:
    """Read the long form of a span, whichever component has set it.

    span (Span): The span.
    attr (str | None): The attribute that can hold it, as a text, or as a span as
        other components have it; None = there is none.
    RETURNS (str | None): With single blanks; None if it has none.
    """
    if attr is None or not span._.has(attr):
        return None
    value = span._.get(attr)
    text = value.text if isinstance(value, Span) else value
    return " ".join(text.split()) or None if isinstance(text, str) else None
