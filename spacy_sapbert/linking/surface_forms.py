"""The normalised form of a name, by which mentions are found without an encoder."""

import re
from collections.abc import Iterable, Iterator
from unicodedata import is_normalized, normalize

# A letter keeps the combining accents after it, so that NFC and NFD give equal pieces.
PIECE = re.compile(r"\w[\w\u0300-\u036f]*|[^\w\s]")
LONGEST_ABBREVIATION = 4  # letters

# A form, and where its words start and end in the text, in characters.
Window = tuple[str, int, int]


def split_name(text: str) -> Iterator[tuple[str, int, int]]:
    """Split a text into words and single other characters, normalised.

    text (str): Any text.
    YIELDS (tuple[str, int, int]): The piece in lower case, and where it starts and
        ends in the text, in characters.
    """
    plain = is_normalized("NFC", text)
    for match in PIECE.finditer(text):
        piece = match.group().lower()
        if not plain:
            piece = normalize("NFC", piece)
        # A lone surrogate is no text to SQLite.
        piece = piece.encode("utf8", "replace").decode("utf8")
        yield piece, match.start(), match.end()


def name_form(text: str) -> str:
    """Return the form under which a name is looked up.

    text (str): A name, or a part of a text that may be one.
    RETURNS (str): Its pieces in lower case, with single blanks between them.
    """
    return " ".join(piece for piece, _, _ in split_name(text))


def is_abbreviation(name: str) -> bool:
    """Return whether a name means what it does by its capitals: "AIDS", "MI", "mRNA".

    name (str): A name as it is written.
    RETURNS (bool): Whether it has two to four letters and a capital after the first
        character.
    """
    letters = sum(character.isalpha() for character in name)
    return 2 <= letters <= LONGEST_ABBREVIATION and any(
        character.isupper() for character in name[1:]
    )


def list_windows(text: str, max_tokens: int) -> Iterator[Window]:
    """List the parts of a text that could be a name.

    text (str): The text.
    max_tokens (int): Words and other characters in a name at the most.
    YIELDS (Window): Each part that starts and ends with a word, has a letter and does
        not cross a blank line.
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
    """Return whether a mention means one of the names that it equals but for case.

    mention (str): The mention.
    spellings (Iterable[str]): How the knowledge base writes names of the same form.
    min_length (int): Characters of a mention that is no abbreviation.
    RETURNS (bool): Whether one is the very same abbreviation, or is none at all and
        the mention is long enough.
    """
    mention = " ".join(mention.split())
    return any(
        spelling == mention if is_abbreviation(spelling) else len(mention) >= min_length
        for spelling in spellings
    )
