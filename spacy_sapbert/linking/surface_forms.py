"""Normalised forms of names, which find mentions without an encoder."""

import re
from collections.abc import Iterable, Iterator
from unicodedata import is_normalized, normalize

# Combining accents belong to their letter, so that NFC and NFD give equal pieces.
PIECE = re.compile(r"\w[\w\u0300-\u036f]*|[^\w\s]")
MAX_ABBREVIATION = 4  # letters
# other plurals than those in -s
PLURALS = (("ies", "y"), ("ses", "sis"), ("mata", "ma"))

# A form, and its start and end in the text, in characters.
Window = tuple[str, int, int]


def split_name(text: str) -> Iterator[tuple[str, int, int]]:
    """Split a text into normalised words and single other characters.

    YIELDS (tuple[str, int, int]): The piece in lower case, and its start and end in the
        text, in characters.
    """
    plain = is_normalized("NFC", text)
    for match in PIECE.finditer(text):
        piece = match.group().lower()
        if not plain:
            piece = normalize("NFC", piece)
        # SQLite refuses a lone surrogate.
        piece = piece.encode("utf8", "replace").decode("utf8")
        yield piece, match.start(), match.end()


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


def list_windows(text: str, max_tokens: int) -> Iterator[Window]:
    """Yield the parts of a text that could be a name.

    text (str): The text.
    max_tokens (int): Maximum of words and other characters in a name.
    YIELDS (Window): Parts that start and end with a word, have a letter and do not
        cross a blank line.
    """
    pieces = list(split_name(text))
    words = [piece[0].isalnum() for piece, _, _ in pieces]
    for first, (_, start, _) in enumerate(pieces):
        if not words[first]:
            continue
        form, stop = "", start
        for number in range(first, min(first + max_tokens, len(pieces))):
            piece, begin, end = pieces[number]
            if text.count("\n", stop, begin) > 1:
                break
            form, stop = f"{form} {piece}" if form else piece, end
            if words[number] and end - start > 1 and any(map(str.isalpha, form)):
                yield form, start, end


def means_name(mention: str, spellings: Iterable[str], *, min_length: int) -> bool:
    """Return whether a mention is one of the names with its form.

    mention (str): The mention.
    spellings (Iterable[str]): Names with the same form.
    min_length (int): Minimum of characters, except for abbreviations.
    RETURNS (bool): Whether a name is the same abbreviation, or is not an abbreviation
        and the mention is long enough.
    """
    mention = " ".join(mention.split())
    return any(
        spelling == mention if is_abbreviation(spelling) else len(mention) >= min_length
        for spelling in spellings
    )
