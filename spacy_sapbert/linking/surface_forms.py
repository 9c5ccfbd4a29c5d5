"""Normalised forms of names, which find mentions without an encoder."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from unicodedata import is_normalized, normalize

# Combining accents belong to their letter, so that NFC and NFD give equal pieces.
PIECE = re.compile(r"\w[\w\u0300-\u036f]*|[^\w\s]")
# Thai, Lao, Myanmar, Khmer, kana and Chinese characters: words without blanks between
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
)
SURROGATE = re.compile("[\ud800-\udfff]")
UNSPACED_CHARACTER = re.compile(f"[{UNSPACED}]")
UNSPACED_PART = re.compile(f"[{UNSPACED}]|[^{UNSPACED}]+")
CHARACTERS_A_WORD = 3  # of such a script
MAX_ABBREVIATION = 4  # letters
# other plurals than those in -s
PLURALS = (("ies", "y"), ("ses", "sis"), ("mata", "ma"))

# A form, and its start and end in the text, in characters.
Window = tuple[str, int, int]


def split_name(text: str) -> Iterator[tuple[str, int, int]]:
    """Split a text into normalised words and single other characters.

    Yields:
        The piece in lower case, and its start and end in the text, in characters.
    """
    plain = is_normalized("NFC", text)
    # SQLite refuses a lone surrogate.
    encodable = SURROGATE.search(text) is None
    for match in PIECE.finditer(text):
        piece = match.group().lower()
        if not plain:
            piece = normalize("NFC", piece)
        if not encodable:
            piece = piece.encode("utf8", "replace").decode("utf8")
        yield piece, *match.span()


def name_form(text: str) -> str:
    """Return the normalised form: pieces in lower case with single blanks between."""
    return " ".join(piece for piece, _, _ in split_name(text))


def singular_forms(form: str) -> Iterator[str]:
    """Yield what the singular of an English form may be, if it can be a plural.

    "heart attacks" → "heart attack"; "metastases" → "metastase" and "metastasis".
    """
    last = form.rpartition(" ")[2]
    if len(last) <= 4:
        return
    if last.endswith("s") and last[-2] not in "sui":
        yield form[:-1]
    for plural, singular in PLURALS:
        if last.endswith(plural):
            yield form.removesuffix(plural) + singular


def is_abbreviation(name: str) -> bool:
    """Return whether a name is an abbreviation: "AIDS", "MI", "mRNA".

    It has two to four letters and a capital after the first character.
    """
    letters = sum(character.isalpha() for character in name)
    return 2 <= letters <= MAX_ABBREVIATION and any(
        character.isupper() for character in name[1:]
    )


class Pieces(NamedTuple):
    """The pieces of a text, as of `split_name`, with words of some scripts split.

    Attributes:
        forms: In lower case.
        spans: Their starts and ends in the text, in characters.
        joined: Numbers of those that belong to the same word as the one before.
    """

    forms: list[str]
    spans: list[tuple[int, int]]
    joined: frozenset[int]

    def join(self, first: int, last: int) -> Window:
        """Return the form, start and end of pieces that follow each other."""
        forms = self.forms[first : last + 1]
        if self.joined:
            numbers = range(first + 1, last + 1)
            forms[1:] = [
                form if number in self.joined else f" {form}"
                for number, form in zip(numbers, forms[1:], strict=True)
            ]
        form = ("" if self.joined else " ").join(forms)
        return form, self.spans[first][0], self.spans[last][1]


def split_unspaced(text: str) -> Pieces:
    """Split a text as `split_name`, and words of a script without blanks further."""
    if text.isascii():  # the same in half of the time
        spans = [match.span() for match in PIECE.finditer(text)]
        return Pieces([*map(str.lower, PIECE.findall(text))], spans, frozenset())
    forms: list[str] = []
    spans = []
    joined: list[int] = []
    unspaced = UNSPACED_CHARACTER.search(text) is not None
    for piece, start, end in split_name(text):
        if unspaced and len(piece) == end - start and UNSPACED_CHARACTER.search(piece):
            for part in UNSPACED_PART.finditer(piece):
                if part.start() > 0:
                    joined.append(len(forms))
                forms.append(part.group())
                spans.append((start + part.start(), start + part.end()))
        else:
            forms.append(piece)
            spans.append((start, end))
    return Pieces(forms, spans, frozenset(joined))


def means_name(mention: str, spellings: Iterable[str], *, min_length: int) -> bool:
    """Return whether a mention is one of the names with its form.

    Args:
        min_length: Minimum of characters, except for abbreviations; a character of a
            script without blanks counts as three.

    Returns:
        Whether a name is the same abbreviation, or is not an abbreviation and the
        mention is long enough.
    """
    mention = " ".join(mention.split())
    length = len(mention)
    length += (CHARACTERS_A_WORD - 1) * len(UNSPACED_CHARACTER.findall(mention))
    return any(
        spelling == mention if is_abbreviation(spelling) else length >= min_length
        for spelling in spellings
    )
