"""Normalised forms of names, which find mentions without an encoder."""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from unicodedata import category, is_normalized, normalize

# Combining accents belong to their letter, so that NFC and NFD give equal pieces.
PIECE = re.compile(r"\w[\w\u0300-\u036f]*|[^\w\s]")
# Thai, Lao, Myanmar, Khmer, kana and Chinese characters: words without blanks between
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
)
UNSPACED_CHARACTER = re.compile(f"[{UNSPACED}]")
UNSPACED_PART = re.compile(f"[{UNSPACED}]|[^{UNSPACED}]+")
CHARACTERS_A_WORD = 3  # of such a script
MAX_ABBREVIATION = 4  # letters
START_PIECES = 3  # of a window, which decide whether longer ones are listed
# other plurals than those in -s
PLURALS = (("ies", "y"), ("ses", "sis"), ("mata", "ma"))

# A form, and its start and end in the text, in characters.
Window = tuple[str, int, int]
# A piece, its start and end, and whether it belongs to the same word as the one before.
Piece = tuple[str, int, int, bool]


def split_name(text: str) -> Iterator[tuple[str, int, int]]:
    """Split a text into normalised words and single other characters.

    Yields:
        The piece in lower case, and its start and end in the text, in characters.
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


def list_windows(
    text: str,
    max_tokens: int,
    *,
    find_starts: Callable[[set[str]], Container[str]] | None = None,
) -> Iterator[Window]:
    """Yield the parts of a text that could be a name.

    Args:
        max_tokens: Maximum of words and other characters in a name. Three characters of
            a script without blanks count as a word.
        find_starts: Returns with which of some forms of `START_PIECES` pieces a name
            may start, so that few of the longer parts are listed; None = with all.

    Yields:
        Parts that start and end with a word, have a letter and do not cross a blank
        line. In a script without blanks each character may start or end a word.
    """
    pieces = list(split_unspaced(text))
    words = [piece[0].isalnum() for piece, _, _, _ in pieces]
    # A word of Thai may end with a mark, which is a piece of its own.
    ends = [
        word or category(piece[0][-1])[0] == "M"
        for word, piece in zip(words, pieces, strict=True)
    ]
    starts: Container[str] | None = None
    if find_starts is not None and max_tokens > START_PIECES:
        firsts = range(len(pieces) - START_PIECES)
        starts = find_starts(
            {join_start(pieces, first) for first in firsts if words[first]}
        )
    for first, (_, start, _, _) in enumerate(pieces):
        if not words[first]:
            continue
        form, stop, size = "", start, 0.0
        for number in range(first, len(pieces)):
            piece, begin, end, joined = pieces[number]
            unspaced = UNSPACED_CHARACTER.match(piece) is not None
            size += 1 / CHARACTERS_A_WORD if unspaced else 1
            if size > max_tokens + 1e-6 or text.count("\n", stop, begin) > 1:
                break
            longer = number == first + START_PIECES
            if longer and starts is not None and form not in starts:
                break
            form = f"{form}{piece}" if joined or not form else f"{form} {piece}"
            stop = end
            if ends[number] and end - start > 1 and any(map(str.isalpha, form)):
                yield form, start, end


def join_start(pieces: Sequence[Piece], first: int) -> str:
    """Return the form of some pieces, the first of which has a number."""
    form = pieces[first][0]
    for piece, _, _, joined in pieces[first + 1 : first + START_PIECES]:
        form = f"{form}{piece}" if joined else f"{form} {piece}"
    return form


def split_unspaced(text: str) -> Iterator[Piece]:
    """Split a text as `split_name`, and words of a script without blanks further."""
    for piece, start, end in split_name(text):
        if len(piece) == end - start and UNSPACED_CHARACTER.search(piece):
            for part in UNSPACED_PART.finditer(piece):
                span = start + part.start(), start + part.end()
                yield part.group(), *span, part.start() > 0
        else:
            yield piece, start, end, False


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
