"""Names → names as people write them: typing errors, and other words.

Other spellings, plurals and hyphens are the same name, see `linking.text`.
"""

import re
from collections.abc import Callable, Sequence
from random import Random

# Neighbours on a keyboard, QWERTY.
KEYS = {
    "q": "wa", "w": "qeas", "e": "wrsd", "r": "etdf", "t": "ryfg", "y": "tugh",
    "u": "yihj", "i": "uojk", "o": "ipkl", "p": "ol", "a": "qwsz", "s": "awedxz",
    "d": "serfcx", "f": "drtgvc", "g": "ftyhbv", "h": "gyujnb", "j": "huikmn",
    "k": "jiolm", "l": "kop", "z": "asx", "x": "zsdc", "c": "xdfv", "v": "cfgb",
    "b": "vghn", "n": "bhjm", "m": "njk",
}  # fmt: skip
# What optical recognition reads in place of letters.
READ_AS = [
    ("rn", "m"), ("m", "rn"), ("l", "1"), ("i", "l"), ("o", "0"), ("cl", "d"),
    ("d", "cl"), ("h", "b"), ("e", "c"), ("c", "e"), ("u", "ii"), ("n", "ri"),
    ("w", "vv"), ("s", "5"), ("t", "f"), ("a", "o"),
]  # fmt: skip
ADDED = (
    "acute", "chronic", "severe", "mild", "left", "right", "unspecified", "recurrent",
    "the", "history of", "bilateral", "suspected", "primary", "secondary", "possible",
    "known",
)  # fmt: skip

Noise = Callable[[str, Random], str]


def type_wrong(name: str, random: Random) -> str:
    """Drop, add, change or swap a letter, mostly as fingers do on a keyboard."""
    places = [number for number, letter in enumerate(name) if letter.isalpha()]
    if not places:
        return name
    place = random.choice(places)
    near = KEYS.get(name[place].lower()) or "".join(name[i] for i in places)
    if random.random() < 0.3:  # fingers are not all that goes wrong
        near = "".join(name[i] for i in places)
    before, letter, after = name[:place], name[place], name[place + 1 :]
    kind = random.randrange(4)
    if kind == 0:
        return before + after
    if kind == 1:
        return before + random.choice(near) + letter + after
    if kind == 2:
        return before + random.choice(near) + after
    if after:
        return before + after[0] + letter + after[1:]
    return before[:-1] + letter + before[-1:]


def read_wrong(name: str, random: Random) -> str:
    """Change letters that look like others, as optical recognition does."""
    lower = name.lower()
    possible = [pair for pair in READ_AS if pair[0] in lower]
    if not possible:
        return type_wrong(name, random)
    old, new = random.choice(possible)
    place = random.choice([m.start() for m in re.finditer(re.escape(old), lower)])
    return name[:place] + new + name[place + len(old) :]


def mistype(count: int) -> Noise:
    """Return a noise of several letters, one of five read wrong and not typed wrong."""

    def disturb(name: str, random: Random) -> str:
        for _ in range(count):
            name = (read_wrong if random.random() < 0.2 else type_wrong)(name, random)
        return name

    return disturb


def add_word(name: str, random: Random) -> str:
    words = name.split()
    words.insert(random.choice([0, 0, len(words)]), random.choice(ADDED))
    return " ".join(words)


def drop_word(name: str, random: Random) -> str:
    """Drop a word of a name of three words or more."""
    words = name.split()
    if len(words) > 2:
        words.pop(random.randrange(len(words)))
    return " ".join(words)


def turn_words(name: str, random: Random) -> str:
    """Begin a name at another of its words."""
    words = name.replace(",", " ").split()
    first = random.randrange(1, len(words)) if len(words) > 1 else 0
    return " ".join(words[first:] + words[:first])


def join_words(name: str, random: Random) -> str:
    """Write two words as one or with a hyphen, or split a long word."""
    words = name.split()
    if len(words) > 1 and random.random() < 0.6:
        first = random.randrange(len(words) - 1)
        joined = words[first] + random.choice(["", "-"]) + words[first + 1]
        return " ".join([*words[:first], joined, *words[first + 2 :]])
    long = [number for number, word in enumerate(words) if len(word) > 7]
    if not long:
        return name
    number = random.choice(long)
    word = words[number]
    place = random.randrange(3, len(word) - 3)
    words[number] = word[:place] + random.choice([" ", "-"]) + word[place:]
    return " ".join(words)


# Kind → noise, and how often it is learned from.
KINDS: dict[str, tuple[Noise, float]] = {
    "one typing error": (mistype(1), 0.36),
    "two typing errors": (mistype(2), 0.22),
    "three typing errors": (mistype(3), 0.10),
    "words in another order": (turn_words, 0.08),
    "a word added": (add_word, 0.08),
    "a word dropped": (drop_word, 0.03),
    "joined or split": (join_words, 0.03),
}


def disturb_names(names: Sequence[str], random: Random) -> list[tuple[str, str]]:
    """Return the kind of noise of each name, and the disturbed name."""
    shares = [share for _, share in KINDS.values()]
    kinds = random.choices([*KINDS], shares, k=len(names))
    return [
        (kind, KINDS[kind][0](name, random))
        for kind, name in zip(kinds, names, strict=True)
    ]
