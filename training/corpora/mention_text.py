"""The text of a mention: abbreviations → long forms, composites → their parts."""

import re

from spacy_sapbert.linking.schwartz_hearst import is_balanced

SEPARATOR = re.compile(r",? (?:and/or|and|or) |, | ?/(?!or\b) ?", re.IGNORECASE)
PREPOSITIONS = frozenset({"of", "in", "on", "to", "from", "with", "for", "at"})
NUMBER = re.compile(r"\d+[a-z]?|[IVX]+[a-z]?|[a-z]", re.IGNORECASE)  # type 1, IIa, B
PROPER_NAME = re.compile(r"[A-Z][a-z]+\S*")
MOST_ROUNDS = 3  # long forms with short forms in them

Words = list[str]
Shared = tuple[Words, list[Words], Words]  # words before all items, items, words after


def find_preposition(words: Words) -> int:
    """Return the place of the last preposition between other words; 0 without one."""
    places = range(1, len(words) - 1)
    return max((n for n in places if words[n].lower() in PREPOSITIONS), default=0)


def share_after_preposition(items: list[Words], place: int) -> Shared:
    """Share the words before the first item: "cancer of the breast and ovary"."""
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

    If the items are proper names, share all words after the last: "Duchenne and Becker
    muscular dystrophy". The last item has at least two words.
    """
    *others, last = items
    size = len(last) - 1
    if all(len(item) == 1 and PROPER_NAME.fullmatch(item[0]) for item in others):
        names = [bool(PROPER_NAME.fullmatch(word)) for word in last]
        size = names.index(False) if names[0] and False in names else size
    return [], [*others, last[:size]], last[size:]


def share_words(items: list[Words]) -> Shared:
    """Find the shared words of the items of a composite; see `split_composite`."""
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
    """Split a mention of several concepts, and add the shared words to each part.

    Items are separated by commas, "and", "or", "and/or" and "/". There must be as many
    as concepts. The first rule that matches decides which words they share:

    1. All have a preposition: none.
    2. The first has one: all words up to it, "cancer of the breast and ovary".
    3. The last has one: all words from it on, and those of these rules for
       the items without them, "benign and malignant tumors of the skin".
    4. The last is one word: all words of the first but one, "cleft lip and palate".
    5. The first ends and the last begins with a number or a single letter: the words
       around them, "type 1 and 2 diabetes".
    6. All are proper names: the words after the last, "Duchenne and Becker muscular
       dystrophy".
    7. Otherwise the last word of the last, "breast and ovarian cancer".

    If no split is possible, the mention is returned alone.

    Source:
        After D'Souza and Ng (2015), and Sung et al. (2020), appendix.
    """
    items = [item.strip() for item in SEPARATOR.split(" ".join(mention.split()))]
    usable = all(items) and all(map(is_balanced, items))
    if count < 2 or len(items) != count or not usable:
        return [mention]
    begin, rest, end = share_words([item.split() for item in items])
    return [
        # "acute renal failure and hepatic failure" has the shared word already
        " ".join([*begin, *item, *(end if item[-len(end) :] != end else [])])
        for item in rest
    ]


def expand_abbreviations(
    mention: str, long_forms: dict[str, str], *, within: tuple[str, ...] = ()
) -> str:
    """Replace each token, or two, that are a short form, also around `/` and commas.

    Short forms in long forms are expanded, too, but not those in `within`, which are
    being expanded, so that the recursion ends.
    """

    def expand(token: str) -> str:
        short = token.rstrip(",")
        if short in within or short not in long_forms:
            return token
        inner = (*within, short)
        long = expand_abbreviations(long_forms[short], long_forms, within=inner)
        return long + token[len(short) :]

    tokens = mention.split()
    if len(within) >= MOST_ROUNDS:
        return " ".join(tokens)
    done: list[str] = []
    while tokens:
        for size in (2, 1):
            token = " ".join(tokens[:size])
            expanded = expand(token)
            if expanded != token:
                break
        else:  # "DMD/BMD" can be a short form as a whole, which was tried first
            expanded = "/".join(map(expand, token.split("/")))
        done.append(expanded)
        del tokens[:size]
    return " ".join(done)
