"""What people decided for a mention: its concept, or that it has none.

Those who annotate a mention say what it means. What nearly all of them say is sure for
this mention, whatever its candidates look like, until they say something else.
"""

from collections.abc import Mapping
from typing import NamedTuple

from .certainty import SURE
from .text import is_abbreviation, is_acronym, name_form, read_mention

Votes = Mapping[str, int]  # documents by concept, "" = none


class Decision(NamedTuple):
    """What people decided for a mention.

    Attributes:
        cui: The concept; "" = none.
        documents: How many say so.
        total: How many say anything about the mention.
    """

    cui: str
    documents: int
    total: int

    @property
    def probability(self) -> float:
        """The probability of a link to a candidate by this decision."""
        share = self.documents / self.total
        return share if self.cui else 1 - share


def list_keys(mention: str) -> tuple[str, ...]:
    """Return the keys under which people may have decided, the first one that is known.

    Capitals tell an abbreviation from a word, "ALL" from "all"; otherwise the way in
    which a mention is written does not count. What is in doubt, "HTN?", has no key:
    what people say of it does not hold without the question mark.
    """
    if "?" in mention:
        return ()
    form = name_form(mention) or mention
    text = read_mention(mention)
    return (text, form) if is_abbreviation(text) or is_acronym(text) else (form,)


def find_decision(mention: str, votes: Mapping[str, Votes]) -> Decision | None:
    """Return what people decided for a mention; None = they did not, or they differ.

    `votes` are by the keys of `list_keys`. They must have nearly one meaning: the share
    of the documents is at least that of a sure link.
    """
    known = next((votes[key] for key in list_keys(mention) if key in votes), {})
    if not known:
        return None
    cui, documents = min(known.items(), key=lambda item: (-item[1], item[0]))
    total = sum(known.values())
    return Decision(cui, documents, total) if documents / total >= SURE else None
