"""Gold mentions → the same with a mistake in each."""

import random
import re
from collections.abc import Sequence

from spacy_sapbert.evaluation.gold_mentions import GoldMention

FEWEST_LETTERS = 4  # of a mention that is misspelled
LETTERS = re.compile(r"[^\W\d_]")


def misspell(text: str, seed: int) -> str | None:
    """Make one mistake in a mention, always the same one.

    text (str): The mention.
    seed (int): Another one makes another mistake.
    RETURNS (str | None): The mention with two neighbouring letters swapped, a
        letter left out or a letter doubled; None if it has too few letters.
    """
    places = [match.start() for match in LETTERS.finditer(text)]
    if len(places) < FEWEST_LETTERS:
        return None
    draw = random.Random(f"{seed} {text}")
    edit = draw.choice(("swap", "drop", "double"))
    pairs = [i for i in places if i + 1 in places and text[i] != text[i + 1]]
    if edit == "swap" and pairs:
        i = draw.choice(pairs)
        return text[:i] + text[i + 1] + text[i] + text[i + 2 :]
    i = draw.choice(places)
    return text[:i] + text[i + 1 :] if edit == "drop" else text[: i + 1] + text[i:]


def misspell_mentions(golds: Sequence[GoldMention], seed: int) -> list[GoldMention]:
    """Make a mistake in each mention that is long enough, and leave out the others."""
    changed = ((gold, misspell(gold.mention, seed)) for gold in golds)
    return [gold._replace(mention=text) for gold, text in changed if text]
