"""Annotated ids that a knowledge base lacks: where they are, and what may be meant."""

from collections import Counter
from typing import TYPE_CHECKING

from ..evaluation.gold_mentions import make_resolver
from ..evaluation.rankers import kb_lookup
from ..formats.gold import GoldMention
from ..io.progress import format_count
from ..io.tables.headers import show_id
from ..io.terminal import msg
from ..kb.ids import find_id

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase

MOST_LISTED = 10


class UnknownIds:
    """The ids of mentions that stand for no concept, after `aliases`."""

    def __init__(
        self, kb: "KnowledgeBase", aliases: dict[str, str] | None = None
    ) -> None:
        self.kb = kb
        self.resolve = make_resolver(kb_lookup(kb), aliases or {})
        self.counts = Counter[str]()
        self.places: dict[str, str] = {}  # where each was first: "reviewed.csv:12"

    def add(self, mention: GoldMention, file: str) -> None:
        """Count the first id of each part of a mention that has no concept."""
        for part, concepts in zip(mention.parts, self.resolve(mention), strict=True):
            if part and not concepts:
                self.counts[part[0]] += 1
                place = f"{file}:{mention.line}" if mention.line else file
                self.places.setdefault(part[0], place)

    def report(self) -> None:
        """Print the commonest ids, where each is, and what is written almost so."""
        listed = []
        for id, number in self.counts.most_common(MOST_LISTED):
            said = self.places[id]
            if number > 1:
                said = f"{format_count(number, 'mention')}, the first in {said}"
            if hint := find_id(self.kb.store, id).hint:
                said += f"; {hint}"
            listed.append(f"{show_id(id)} ({said})")
        if listed:
            more = " …" * (len(self.counts) > MOST_LISTED)
            msg.warn(f"Unknown ids: {', '.join(listed)}{more}")
