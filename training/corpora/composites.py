"""Mentions of several concepts, "breast and ovarian cancer", split into their parts."""

import re

from spacy_sapbert.pipeline.schwartz_hearst import is_balanced

SEPARATOR = re.compile(r",? (?:and/or|and|or) |, | ?/(?!or\b) ?", re.IGNORECASE)
PREPOSITIONS = frozenset({"of", "in", "on", "to", "from", "with", "for", "at"})
NUMBER = re.compile(r"\d+[a-z]?|[IVX]+[a-z]?|[a-z]", re.IGNORECASE)  # type 1, IIa, B
PROPER_NAME = re.compile(r"[A-Z][a-z]+\S*")

Words = list[str]
Shared = tuple[Words, list[Words], Words]  # words before all items, items, words after


def find_preposition(words: Words) -> int:
    """Find the last preposition that has a word on either side.

    words (Words): Of an item.
    RETURNS (int): Its place; 0 if there is none.
    """
    places = range(1, len(words) - 1)
    return max((n for n in places if words[n].lower() in PREPOSITIONS), default=0)


def share_after_preposition(items: list[Words], place: int) -> Shared:
    """Share what stands before the first item: "cancer of the breast and ovary".

    items (list[Words]): The items.
    place (int): Of the preposition in the first item.
    RETURNS (Shared): What is shared, with "the", and what is not, without "both".
    """
    begin, rest = items[0][: place + 1], items[0][place + 1 :]
    items = [
        item[1:] if item[0].lower() == "both" and len(item) > 1 else item
        for item in [rest, *items[1:]]
    ]
    if items[0][0].lower() == "the" and len(items[0]) > 1:
        items = [[word for word in item if word.lower() != "the"] for item in items]
        begin = [*begin, "the"]
    return begin, items, []


def share_head(items: list[Words]) -> Shared:
    """Share the last word of the last item: "breast and soft tissue tumors".

    Of proper names all that follows the last: "Duchenne and Becker muscular dystrophy".

    items (list[Words]): The items; the last has two words or more.
    RETURNS (Shared): What is shared and what is not.
    """
    *others, last = items
    size = len(last) - 1
    if all(len(item) == 1 and PROPER_NAME.fullmatch(item[0]) for item in others):
        names = [bool(PROPER_NAME.fullmatch(word)) for word in last]
        size = names.index(False) if names[0] and False in names else size
    return [], [*others, last[:size]], last[size:]


def share_words(items: list[Words]) -> Shared:
    """Find the words that all items of a composite share.

    items (list[Words]): What stands between the separators.
    RETURNS (Shared): What is shared and what is not.
    """
    first, last = items[0], items[-1]
    before, after = find_preposition(first), find_preposition(last)
    if before and after:
        return [], items, []
    if before:
        return share_after_preposition(items, before)
    if after:
        begin, rest, end = share_words([*items[:-1], last[:after]])
        return begin, rest, end + last[after:]
    if len(last) == 1:
        return first[:-1], [first[-1:], *items[1:]], []
    if len(first) > 1 and NUMBER.fullmatch(first[-1]) and NUMBER.fullmatch(last[0]):
        return first[:-1], [first[-1:], *items[1:-1], last[:1]], last[1:]
    return share_head(items)


def split_composite(mention: str, count: int) -> list[str]:
    """Split a mention of several concepts, each part with the words that all share.

    Items are what stands between commas, "and", "or", "and/or" and "/". There must be
    as many as concepts. The first of these rules that fits tells what they share:

    1. Each has a preposition: nothing.
    2. The first has one: all up to it, "cancer of the breast and ovary".
    3. The last has one: all from it on, and what the others say without that,
       "benign and malignant tumors of the skin".
    4. The last is one word: all words of the first but one, "cleft lip and palate".
    5. The first ends and the last begins with a number or a single letter: what is
       around them, "type 1 and 2 diabetes".
    6. All are proper names: what follows the last, "Duchenne and Becker muscular
       dystrophy".
    7. The last word of the last, "breast and ovarian cancer".

    mention (str): The mention.
    count (int): How many concepts it means.
    RETURNS (list[str]): As many parts; the mention alone if it cannot be split so.
    SOURCE: After D'Souza and Ng (2015), and Sung et al. (2020), appendix.
    """
    items = [item.strip() for item in SEPARATOR.split(" ".join(mention.split()))]
    usable = all(items) and all(map(is_balanced, items))
    if count < 2 or len(items) != count or not usable:
        return [mention]
    begin, rest, end = share_words([item.split() for item in items])
    return [
        # "acute renal failure and hepatic failure": it has the word already
        " ".join([*begin, *item, *(end if item[-len(end) :] != end else [])])
        for item in rest
    ]
