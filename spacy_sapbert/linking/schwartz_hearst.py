"""Abbreviations that a text defines: "ataxia telangiectasia (AT)", "AT (ataxia …)"."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

SHORTEST, LONGEST = 2, 10  # characters of a short form
SHORT_WORDS = 2
REACH = 400  # characters searched on either side of a bracket, so time is linear

# A bracket; or a blank line or "。", which no definition crosses.
MARK = re.compile(r"[()\[\]（）［］。]|\n[^\S\n]*\n")
OPENING = {")": "(", "]": "[", "）": "（", "］": "［"}
# The end of the definition in a bracket: "(ATM; MIM 208900)".
INNER_END = re.compile(r"[,;:]\s|[，；：]|\sor\s")
# Not after an initial, "E. coli", nor in numbers, "homogentisate 1, 2-dioxygenase".
PHRASE_END = re.compile(r"(?<=\w\w)[.!?;:]$|(?<=\D),$")
TRIMMED = " \t\r\n\f\v\u00a0\"'`“”‘’,;:，；：「」"
COMPARISON = re.compile(r"[<>=≤≥]")  # "(P < 0.05)"
# Short forms without a capital; not "i.e.", whole words, or "(ii)" in a list.
SMALL = re.compile(r"(?![ivx]+$)[^\W_]{2,4}")
WORD = re.compile(r"[^\W_]+")
CHINESE = "\u2e80"  # Chinese, Japanese and Korean characters start here
# Articles and the like before a vowel: "l’insuffisance", "dell’insufficienza".
ELIDED = re.compile(
    r"(?:[cdjlmnst]|\w{0,6}qu|(?:a|co|da|de|ne|que|su)ll|un|quest)['’]", re.IGNORECASE
)
GREEK = {
    letter: unicodedata.name(letter).split()[-1].lower().replace("lamda", "lambda")
    for letter in map(chr, range(ord("α"), ord("ω") + 1))
}
GREEK_LETTERS = {name: letter for letter, name in GREEK.items()}
NUMERALS = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")
ROMAN = {numeral: str(number) for number, numeral in enumerate(NUMERALS, 1)}

Part = tuple[int, int]  # start and end of a part of the text, in characters


def list_brackets(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield the offsets of pairs of brackets, and where the text around them begins.

    That is after the next outer bracket or blank line. Inner ones come first.
    """
    paragraph = 0
    opened: dict[str, list[int]] = {mark: [] for mark in OPENING.values()}
    for match in MARK.finditer(text):
        mark, offset = match.group(), match.start()
        if mark in opened:
            opened[mark].append(offset)
        elif mark not in OPENING:
            paragraph = match.end()
            for offsets in opened.values():
                offsets.clear()
        elif opened[OPENING[mark]]:
            start = opened[OPENING[mark]].pop()
            for offsets in opened.values():
                while offsets and offsets[-1] > start:  # of the other kind, not closed
                    offsets.pop()
            around = (offsets[-1] + 1 for offsets in opened.values() if offsets)
            yield start, offset, max([paragraph, *around])


def trim_part(text: str, start: int, end: int) -> Part:
    """Return a part of a text without blanks, quotes and commas at both ends."""
    while end > start and text[end - 1] in TRIMMED:
        end -= 1
    while start < end and text[start] in TRIMMED:
        start += 1
    return start, end


def is_balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character in "([（［") - (character in ")]）］")
        if depth < 0:
            return False
    return depth == 0


def is_short_form(text: str) -> bool:
    """Return whether one or two words can be a short form; see also `SMALL`."""
    return (
        SHORTEST <= len(text) <= LONGEST
        and text[0].isalnum()
        and any(map(str.isalpha, text))
        and len(text.split()) <= SHORT_WORDS
        and (any(map(str.isupper, text)) or bool(SMALL.fullmatch(text)))
        and not COMPARISON.search(text)
        and is_balanced(text)
    )


def start_of_word(text: str, start: int, at: int) -> int:
    """Return the start of a word: after a blank, or a character of Chinese."""
    while at > start and not text[at - 1].isspace() and text[at - 1] < CHINESE:
        at -= 1
    return at


def is_inside(text: str, at: int) -> bool:
    """Return whether a letter, not the first of a text, is inside of a word."""
    before = text[at - 1]
    return before.isalnum() and not before >= CHINESE > text[at]


def start_of_words(text: str, start: int, end: int, most: int) -> int:
    """Return the start of the last `most` words of a part, within one sentence."""
    first = end
    for word in reversed(list(re.finditer(r"\S+", text[start:end]))[-most:]):
        # the last word may end like a sentence: "Fam. Aden. Pol. (FAP)"
        if first < end and PHRASE_END.search(word.group()):
            break
        first = start + word.start()
    return first


def list_letters(short: str) -> list[str]:
    """Return the letters and digits of a short form; "HSV-II" ends with the digit 2."""
    letters: list[str] = []
    for number, word in enumerate(WORD.findall(short.lower())):
        one = (GREEK_LETTERS | ROMAN).get(word) if len(word) > 1 else None
        letters += [one] if one and number else word
    return letters


@lru_cache(1000)
def compile_letter(letter: str) -> re.Pattern[str]:
    """Compile what a letter or digit of a short form matches in a long form.

    A Greek letter matches its name too, a Latin letter the Greek ones whose names start
    with it, and a digit a Roman numeral: "type II diabetes (T2D)", "type IIa".
    """
    greek = [symbol for symbol, name in GREEK.items() if name[0] == letter]
    roman = [
        rf"(?<![^\W_]){numeral}(?=[a-d]?(?![^\W_]))"
        for numeral, digit in ROMAN.items()
        if digit == letter
    ]
    names = [GREEK[letter]] if letter in GREEK else []
    return re.compile("|".join([letter, *greek, *roman, *names]), re.IGNORECASE)


def match_long_form(short: str, text: str, start: int, end: int) -> int | None:
    """Return the start of the long form of a short form; None if a letter is missing.

    Letters are found from right to left. If the first two are equal and the second is
    inside of a word, the first may be that of the word before: "multiple myeloma (MM)".
    This was right in all 7 cases among 1,691 definitions of NCBI disease and BC5CDR.

    Source: Schwartz and Hearst (2003), findBestLongForm.
    """
    letters = list_letters(short)
    at = second = end
    for number in range(len(letters) - 1, -1, -1):
        pattern = compile_letter(letters[number])
        second = at
        at -= 1
        while at >= start and (
            not (match := pattern.match(text, at))
            or match.end() > second
            or (number == 0 and at > 0 and is_inside(text, at))
        ):
            at -= 1
        if at < start:
            return None
    first = at
    at = start_of_word(text, start, at)  # of "fish-eye disease (ED)", "fish"
    if letters[:1] == letters[1:2] and text[second - 1].isalnum():
        word = WORD.search(text, start_of_words(text, start, at, 1), at)
        if word and pattern.match(text, word.start()):
            return word.start()
    while not text[at].isalnum():
        at += 1
    elided = ELIDED.match(text, at, first)
    return elided.end() if elided else at


def explains(long: str, short: str) -> bool:
    """Return whether a long form can explain a short form.

    Not if it contains it, as in "Dmpk deficient (Dmpk-/-)", or is the short form with
    one more number or letter, as in "C2 (C2D)".
    """
    bare = "".join(filter(str.isalnum, short))
    return (
        len(long) > len(short)
        and f" {short} " not in f" {' '.join(long.split())} "
        and bare not in WORD.findall(long)
        and not (long.startswith(short) and not long[len(short)].islower())
        and is_balanced(long)
    )


def find_explanation(text: str, short: str, part: Part) -> str | None:
    """Return the long form of a short form, if the end of a part of a text is one."""
    if not is_short_form(short):
        return None
    around, end = part
    start, end = trim_part(text, max(around, end - REACH), end)
    letters = sum(map(str.isalnum, short))  # |A| in the paper
    first = start_of_words(text, start, end, min(letters + 5, 2 * letters))
    start_of_long = match_long_form(short, text, first, end)
    if start_of_long is None or not explains(text[start_of_long:end], short):
        return None
    return text[start_of_long:end]


def list_definitions(
    text: str, opening: int, closing: int, around: int
) -> Iterator[tuple[str, Part]]:
    """Yield what may be a short form, and the part that may end with its long form.

    `long form (short form)`, for a plural also without its "s", and `short form (long
    form)`: one word with a capital before the bracket.
    """
    mark = INNER_END.search(text, opening + 1, closing)
    inner = trim_part(text, opening + 1, mark.start() if mark else closing)
    short = text[slice(*inner)]
    yield short, (around, opening)
    if short.endswith("s") and short[:-1].isupper():
        yield short[:-1], (around, opening)
    first = max(around, opening - REACH)
    _, end = trim_part(text, first, opening)
    start, end = trim_part(text, start_of_word(text, first, end), end)
    if any(map(str.isupper, text[start:end])):
        yield text[start:end], inner


def find_long_forms(text: str) -> dict[str, str]:
    """Return the long form of each short form that a text defines, with single blanks.

    The first definition counts. Source: Schwartz and Hearst (2003), A simple algorithm
    for identifying abbreviation definitions in biomedical text.
    """
    long_forms: dict[str, str] = {}
    for opening, closing, around in list_brackets(text):
        if closing - opening > REACH:
            continue
        for short, part in list_definitions(text, opening, closing, around):
            long = find_explanation(text, short, part)
            if long is not None:
                long_forms.setdefault(" ".join(short.split()), " ".join(long.split()))
                break
    return long_forms
