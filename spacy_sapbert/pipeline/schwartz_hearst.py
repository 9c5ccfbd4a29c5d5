"""Abbreviations that a text defines: "ataxia telangiectasia (AT)", "AT (ataxia …)"."""

import re
from collections.abc import Iterator
from typing import NamedTuple

SHORTEST, LONGEST = 2, 10  # characters of a short form
SHORT_WORDS = 2
REACH = 400  # characters looked at on either side of a bracket: time stays linear

# A bracket, or a blank line, which no definition crosses.
MARK = re.compile(r"[()\[\]]|\n[^\S\n]*\n")
OPENING = {")": "(", "]": "["}
# What follows in the brackets is not the definition: "(ATM; MIM 208900)".
INNER_END = re.compile(r"[,;:]\s|\sor\s")
# Not after an initial, "E. coli", nor in numbers, "homogentisate 1, 2-dioxygenase".
PHRASE_END = re.compile(r"(?<=\w\w)[.!?;:]$|(?<=\D),$")
TRIMMED = " \t\r\n\f\v\u00a0\"'`“”‘’,;:"
COMPARISON = re.compile(r"[<>=≤≥]")  # "(P < 0.05)"
# Without a capital, other things are "i.e.", a whole word, or "(ii)" in a list.
SMALL = re.compile(r"(?![ivx]+$)[^\W_]{2,4}")
WORD = re.compile(r"[^\W_]+")

Part = tuple[int, int]  # where a part of the text starts and ends, in characters


class Abbreviation(NamedTuple):
    """A short form and what the text says that it means.

    short (str): As the text has it, e.g. "AT".
    long (str): As the text has it, line ends included, e.g. "ataxia telangiectasia".
    short_start (int): Where they start and end in the text, in characters.
    short_end (int): See above.
    long_start (int): See above.
    long_end (int): See above.
    """

    short: str
    long: str
    short_start: int
    short_end: int
    long_start: int
    long_end: int


Found = Abbreviation | None


def list_brackets(text: str) -> Iterator[tuple[int, int, int]]:
    """Find the brackets that are closed again before the next blank line.

    text (str): Any text.
    YIELDS (tuple[int, int, int]): Where one opens, where it closes, and where the text
        that it stands in begins: after the next bracket around it, or the blank line.
        In the order in which they close: the inner ones first.
    """
    paragraph = 0
    opened: dict[str, list[int]] = {"(": [], "[": []}
    for match in MARK.finditer(text):
        mark, place = match.group(), match.start()
        if mark in opened:
            opened[mark].append(place)
        elif mark not in OPENING:
            paragraph = match.end()
            for places in opened.values():
                places.clear()
        elif opened[OPENING[mark]]:
            start = opened[OPENING[mark]].pop()
            for places in opened.values():
                while places and places[-1] > start:  # of the other kind, never closed
                    places.pop()
            around = (places[-1] + 1 for places in opened.values() if places)
            yield start, place, max([paragraph, *around])


def trim_part(text: str, start: int, end: int) -> Part:
    """Leave out blanks, quotes and commas at both ends.

    text (str): The text.
    start (int): Where the part starts.
    end (int): Where it ends.
    RETURNS (Part): The same or less.
    """
    while end > start and text[end - 1] in TRIMMED:
        end -= 1
    while start < end and text[start] in TRIMMED:
        start += 1
    return start, end


def is_balanced(text: str) -> bool:
    """Return whether a text closes the brackets that it opens, and no others."""
    depth = 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if depth < 0:
            return False
    return depth == 0


def is_short_form(text: str) -> bool:
    """Return whether a text can be a short form.

    text (str): The text.
    RETURNS (bool): Whether it has two to ten characters in one or two words, starts
        with a letter or digit, and has a letter; without a capital it has four
        characters at the most, all of them letters or digits; and compares nothing.
    """
    return (
        SHORTEST <= len(text) <= LONGEST
        and text[0].isalnum()
        and any(map(str.isalpha, text))
        and len(text.split()) <= SHORT_WORDS
        and (any(map(str.isupper, text)) or bool(SMALL.fullmatch(text)))
        and not COMPARISON.search(text)
        and is_balanced(text)
    )


def count_letters(short: str) -> int:
    """Count the letters and digits of a short form, |A| in the paper."""
    return sum(map(str.isalnum, short))


def start_of_words(text: str, start: int, end: int, most: int) -> int:
    """Go back some words, but not into the sentence before.

    text (str): The text.
    start (int): How far to go back at the most.
    end (int): Where to begin.
    most (int): How many words.
    RETURNS (int): Where the first of them starts.
    """
    place = end
    for word in reversed(list(re.finditer(r"\S+", text[start:end]))[-most:]):
        # the last word may end with what also ends sentences: "Fam. Aden. Pol. (FAP)"
        if place < end and PHRASE_END.search(word.group()):
            break
        place = start + word.start()
    return place


def match_long_form(short: str, text: str, start: int, end: int) -> int | None:
    """Find the letters of a short form from right to left; the first starts a word.

    short (str): The short form.
    text (str): The text.
    start (int): Where the long form may start.
    end (int): Where it ends.
    RETURNS (int | None): Where it starts; None if a letter is missing.
    SOURCE: Schwartz and Hearst (2003), findBestLongForm.
    """
    letters = [character.lower() for character in short if character.isalnum()]
    place = end
    for number in range(len(letters) - 1, -1, -1):
        place -= 1
        while place >= start and (
            text[place].lower() != letters[number]
            or (number == 0 and place > 0 and text[place - 1].isalnum())
        ):
            place -= 1
        if place < start:
            return None
    while place > start and not text[place - 1].isspace():
        place -= 1  # "fish-eye disease (ED)": a word is what stands between blanks
    while not text[place].isalnum():
        place += 1
    return place


def explains(long: str, short: str) -> bool:
    """Return whether a long form says more than its short form.

    long (str): The long form.
    short (str): The short form.
    RETURNS (bool): Whether it is longer, does not hold the short form as a word, also
        not without its signs as in "Dmpk deficient (Dmpk-/-)", is not the short form
        with a number or letter more as in "C2 (C2D)", and is no half bracket.
    """
    bare = "".join(filter(str.isalnum, short))
    return (
        len(long) > len(short)
        and f" {short} " not in f" {' '.join(long.split())} "
        and bare not in WORD.findall(long)
        and not (long.startswith(short) and not long[len(short)].islower())
        and is_balanced(long)
    )


def define(text: str, short_part: Part, long_part: Part) -> Found:
    """Make an abbreviation of a short form and the text where its long form may be.

    text (str): The text.
    short_part (Part): Where the short form is.
    long_part (Part): Where the long form may start, and where it ends.
    RETURNS (Found): None if they do not belong together.
    """
    short = text[slice(*short_part)]
    if not is_short_form(short):
        return None
    around, end = long_part
    start, end = trim_part(text, max(around, end - REACH), end)
    letters = count_letters(short)
    first = start_of_words(text, start, end, min(letters + 5, 2 * letters))
    found = match_long_form(short, text, first, end)
    if found is None or not explains(text[found:end], short):
        return None
    return Abbreviation(short, text[found:end], *short_part, found, end)


def find_in_bracket(text: str, around: int, inner: Part, opening: int) -> Found:
    """Look for `long form (short form)`; of a plural, also without its "s".

    text (str): The text.
    around (int): Where the long form may start.
    inner (Part): What the bracket holds, up to a comma or its like.
    opening (int): Where the bracket opens.
    RETURNS (Found): None if it is none.
    """
    start, end = inner
    found = define(text, inner, (around, opening))
    if not found and text[start:end].endswith("s") and text[start : end - 1].isupper():
        found = define(text, (start, end - 1), (around, opening))
    return found


def find_before_bracket(text: str, around: int, inner: Part, opening: int) -> Found:
    """Look for `short form (long form)`: one word with a capital before the bracket.

    text (str): The text.
    around (int): Where the short form may start.
    inner (Part): What the bracket holds, up to a comma or its like.
    opening (int): Where the bracket opens.
    RETURNS (Found): None if it is none.
    """
    around = max(around, opening - REACH)
    _, end = trim_part(text, around, opening)
    start = end
    while start > around and not text[start - 1].isspace():
        start -= 1
    start, end = trim_part(text, start, end)
    if not any(map(str.isupper, text[start:end])):
        return None
    return define(text, (start, end), inner)


def find_abbreviations(text: str) -> list[Abbreviation]:
    """Find the abbreviations that a text defines, in time linear in its length.

    text (str): Any text.
    RETURNS (list[Abbreviation]): Each short form once, by its first definition, in the
        order in which the brackets close.
    SOURCE: Schwartz and Hearst (2003), A simple algorithm for identifying abbreviation
        definitions in biomedical text.
    """
    found: dict[str, Abbreviation] = {}
    for opening, closing, around in list_brackets(text):
        if closing - opening > REACH:
            continue
        end = INNER_END.search(text, opening + 1, closing)
        inner = trim_part(text, opening + 1, end.start() if end else closing)
        one = find_in_bracket(text, around, inner, opening)
        one = one or find_before_bracket(text, around, inner, opening)
        if one:
            found.setdefault(" ".join(one.short.split()), one)
    return list(found.values())


def find_long_forms(text: str) -> dict[str, str]:
    """Return what the abbreviations of a text mean.

    text (str): Any text.
    RETURNS (dict[str, str]): The long form of each short form, with single blanks.
    """
    return {
        " ".join(found.short.split()): " ".join(found.long.split())
        for found in find_abbreviations(text)
    }
