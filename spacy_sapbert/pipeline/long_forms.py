"""Long forms of abbreviations in the attributes of a Doc."""

from collections.abc import Iterator, Mapping
from functools import partial

from spacy.tokens import Doc, Span

from ..errors import SapbertError
from ..linking.text import singular_abbreviation
from .schwartz_hearst import LONGEST

MAX_TOKENS = LONGEST + 2  # of a short form: one a character, a blank, and "s"


def set_extensions(long_form_attr: str, abbreviations_attr: str) -> None:
    """Register the attributes of spans and Docs.

    Args:
        long_form_attr: Attribute of spans: the long form.
        abbreviations_attr: Attribute of Docs: the spans with a long form.

    Raises:
        SapbertError: If another component uses the attribute of Docs.
    """
    attrs: tuple[str, ...] = (long_form_attr,)
    if Doc.has_extension(abbreviations_attr):
        getter = Doc.get_extension(abbreviations_attr)[2]
        if not isinstance(getter, partial) or getter.func is not list_abbreviations:
            raise SapbertError(
                "E570",
                f"Expected `doc._.{abbreviations_attr}` to be free, but another "
                "component has registered it. Choose another name with the setting "
                "`abbreviations_attr`.",
            )
        attrs = tuple(dict.fromkeys((*getter.keywords["attrs"], *attrs)))
    if not Span.has_extension(long_form_attr):
        Span.set_extension(long_form_attr, default=None)
    getter = partial(list_abbreviations, attrs=attrs)
    Doc.set_extension(abbreviations_attr, getter=getter, force=True)


def list_abbreviations(doc: Doc, *, attrs: tuple[str, ...]) -> list[Span]:
    """Return the spans of a Doc that have a long form.

    Spans cannot be serialised, so they are found by the keys of `doc.user_data`: the
    name of the attribute and the offsets in characters.

    Returns:
        In the order of the text.
    """
    offsets: list[tuple[int, int]] = []
    for key, value in doc.user_data.items():
        if isinstance(key, tuple) and key[:1] == ("._.",) and len(key) == 4:
            _, attr, start, end = key
            if attr in attrs and end is not None and value:
                offsets.append((start, end))
    spans = (doc.char_span(*span) for span in sorted({*offsets}))
    return [span for span in spans if span is not None]


def find_long_form(short: str, long_forms: Mapping[str, str]) -> str | None:
    """Return the long form of a short form or of its plural, "RCCs"; None if unknown.

    Args:
        long_forms: Long form of each short form, with single blanks.
    """
    short = " ".join(short.split())
    return long_forms.get(short) or long_forms.get(singular_abbreviation(short))


def find_short_forms(
    doc: Doc, long_forms: Mapping[str, str]
) -> Iterator[tuple[Span, str]]:
    """Find the short forms in a Doc, the longest first; also as plurals, "RCCs".

    Args:
        long_forms: Long form of each short form, with single blanks.

    Yields:
        The short form, aligned with tokens, and its long form.
    """
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


def long_form_text(span: Span, attr: str | None = "long_form") -> str | None:
    """Return the long form of a span, with single blanks; None if it has none.

    Args:
        attr: Attribute with the long form, a text or a span; None = none.
    """
    if attr is None or not span._.has(attr):
        return None
    value = span._.get(attr)
    text = value.text if isinstance(value, Span) else value
    return " ".join(text.split()) or None if isinstance(text, str) else None
