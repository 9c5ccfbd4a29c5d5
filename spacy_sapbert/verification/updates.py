"""Links of an old release → the same links with the ids of a new one.

Only those whose answer can change are linked again: those of changed concepts, and
those whose text shares most of its words with a name that was added or removed.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from ..io.cache import LruCache
from ..kb.database import is_encodable
from ..kb.edits.diff import compare_kbs
from ..kb.knowledge_base import KnowledgeBase
from ..linking.difference import LITTLE
from ..linking.link import Linked
from ..linking.ranking import has_text
from ..linking.text import WORDS_KEPT, list_words, read_mention

KEPT, MOVED, RELINKED, REVIEW = "kept", "moved", "relinked", "review"
STATUSES = {
    KEPT: "the id is as it was",
    MOVED: "the new release retired the id for another one",
    RELINKED: "the text is linked to another concept now",
    REVIEW: "a person must decide",
}
NAMING = ("added", "removed", "retired", "renamed", "names")  # they change answers
SHARED = 0.5  # of the weight of the words of two texts, from which on they are near
RAREST = 3  # words of a text by which changed names are looked up
LINKS_AT_ONCE = 5_000
LINKS_KEPT = 500_000  # that were not linked again, about 300 bytes each
ANSWERS_KEPT = 10_000  # texts that were linked again, about 4 KB of JSON each


class Link(NamedTuple):
    """A text and its concept; None = it was linked to none."""

    text: str
    cui: str | None
    by_person: bool = False


@dataclass(frozen=True)
class Update:
    """What becomes of a link.

    Attributes:
        status: One of `STATUSES`.
        cui, name: The concept in the new release; of a link by a person whose id is
            gone, the old one.
        other, other_name: The other concept, if there are two: what the text is linked
            to now, or was.
        why: One sentence; "" = nothing changed.
        linked: The new link; None = the text was not linked again.
    """

    status: str
    cui: str | None
    name: str | None = None
    other: str | None = None
    other_name: str | None = None
    why: str = ""
    linked: Linked | None = None


class ChangedNames:
    """Names that were added or removed, found by the words that a text shares."""

    def __init__(self, names: Iterable[str], kb: KnowledgeBase) -> None:
        self.weigh = lru_cache(WORDS_KEPT)(
            lambda word: kb.parts.words.weigh([word], english=False)[word]
        )
        self.names: list[frozenset[str]] = []
        self.totals: list[float] = []  # the weight of the words of each name
        self.places: dict[str, list[int]] = defaultdict(list)
        for words in {list_content(name) for name in names}:
            for word in words:
                self.places[word].append(len(self.names))
            self.names.append(words)
            self.totals.append(sum(map(self.weigh, words)))

    def is_near(self, text: str) -> bool:
        """Return whether a text has most of its words in common with a name."""
        words = {word: self.weigh(word) for word in list_content(text)}
        total = sum(words.values())
        rarest = sorted(words, key=lambda word: (-words[word], word))[:RAREST]
        near = {place for word in rarest for place in self.places.get(word, ())}
        return any(self.share(words, total, place) >= SHARED for place in near)

    def share(self, words: Mapping[str, float], total: float, place: int) -> float:
        """Return the share that words have in common with a name; 0 if it is small."""
        least, most = sorted((total, self.totals[place]))
        if least < SHARED * most:
            return 0.0
        shared = sum(words[word] for word in self.names[place] if word in words)
        return shared / (least + most - shared or 1)


def list_content(text: str) -> frozenset[str]:
    """Return the words of a text with a meaning of their own, folded as in English."""
    words = frozenset(list_words(text, "english"))
    return words - LITTLE or words


class Updater:
    """Updates links of a knowledge base to another one, of a later release.

    Examples:
        >>> kb = load_kb("models/sample/kb")
        >>> [link] = Updater(kb, kb).update([("heart attack", "C0027051")])
        >>> link.status, link.cui
        ('kept', 'C0027051')
    """

    def __init__(self, old: KnowledgeBase, new: KnowledgeBase) -> None:
        self.old, self.new = old, new
        self.changed: set[str] = set()
        self.added: set[str] = set()
        names: list[str] = []
        for change, cui, before, after, _ in compare_kbs(old, new):
            if change not in NAMING:
                continue
            self.changed.add(cui)
            if change == "names":
                names += [*before, *after]
            elif change == "added":
                self.added.add(cui)
                names += new[cui].aliases
            elif change in ("removed", "retired"):
                names += old[cui].aliases
        self.names = ChangedNames(names, new)
        self.decided: LruCache[Link, Update] = LruCache(LINKS_KEPT)
        self.answers: LruCache[str, str] = LruCache(ANSWERS_KEPT)
        self.linked = 0  # texts; one that comes again after many others counts twice

    def update(self, links: Sequence[tuple[Any, ...]]) -> list[Update]:
        """Return what becomes of links in the new release.

        Args:
            links: Texts with their ids (None = no concept), and maybe True if a person
                chose the id: it changes only to the id for which it was retired.

        Returns:
            One for each link, in their order.
        """
        given = [Link(*link) for link in links]
        return [
            update
            for start in range(0, len(given), LINKS_AT_ONCE)
            for update in self.decide(given[start : start + LINKS_AT_ONCE])
        ]

    def decide(self, links: Sequence[Link]) -> list[Update]:
        decided = self.decided.get_many(links)
        distinct = [link for link in dict.fromkeys(links) if link not in decided]
        cuis = {link.cui for link in distinct if link.cui and is_encodable(link.cui)}
        names = self.new.store.names_of_cuis(cuis)
        current = self.new.store.current_cuis(cuis)
        names |= self.new.store.names_of_cuis(current.values())
        said = self.new.store.find_replacements(current)
        again = {
            link: read_mention(link.text)
            for link in distinct
            if has_text(link.text) and self.can_change(link, names, current)
        }
        answers = self.link(dict.fromkeys(again.values()))
        added = {
            link: self.judge(
                link,
                names,
                current.get(link.cui or ""),
                said.get(link.cui or "", ""),
                answers[again[link]] if link in again else None,
            )
            for link in distinct
        }
        small = {link: update for link, update in added.items() if not update.linked}
        self.decided.put_many(small)
        decided |= added
        return [decided[link] for link in links]

    def link(self, texts: Iterable[str]) -> Mapping[str, Linked]:
        """Link texts with the new release, those that were not linked before."""
        kept = self.answers.get_many(texts)
        missing = [text for text in texts if text not in kept]
        added = dict(zip(missing, self.new.link(missing), strict=True))
        self.answers.put_many({text: json.dumps(added[text]) for text in missing})
        self.linked += len(missing)
        return added | {text: Linked(*json.loads(kept[text])) for text in kept}

    def can_change(
        self, link: Link, names: Mapping[str, str], current: Mapping[str, str]
    ) -> bool:
        """Return whether the text of a link must be linked again.

        Not of a retired id, whose replacement holds, nor of an id that only the new
        release has: it was updated before.
        """
        if link.cui in self.added or link.cui in current:
            return False
        gone = link.cui is not None and link.cui not in names
        return gone or link.cui in self.changed or self.names.is_near(link.text)

    def judge(
        self,
        link: Link,
        names: Mapping[str, str],
        current: str | None,
        said: str,
        linked: Linked | None,
    ) -> Update:
        """Return what becomes of a link.

        `said` is what of the release replaced it, `linked` the new link of its text. A
        person's id changes only to its official replacement.
        """
        if current is not None:
            why = f"The new release retired {link.cui} for {current}"
            why += f" ({said})." if said else "."
            return Update(MOVED, current, names.get(current), why=why)
        name = names.get(link.cui or "")
        first = linked.accepted[0] if linked is not None and linked.accepted else None
        cui, now = (first["cui"], first["name"]) if first else (None, None)
        if link.cui is not None and name is None:
            why = f"The new release has no {link.cui}."
            if link.by_person:
                return Update(REVIEW, link.cui, None, cui, now, why, linked)
            return Update(REVIEW, cui, now, link.cui, None, why, linked)
        if linked is None or cui == link.cui:
            return Update(KEPT, link.cui, name, linked=linked)
        why = f"The text is linked to {cui or 'no concept'} now."
        if link.cui and self.has_lost(link.text, link.cui):
            why = f"{link.cui} lost this name. {why}"
        if link.by_person:
            return Update(REVIEW, link.cui, name, cui, now, why, linked)
        return Update(RELINKED, cui, now, link.cui, name, why, linked)

    def has_lost(self, text: str, cui: str) -> bool:
        """Return whether a text was a name of a concept, and is none now."""
        before, now = (
            kb.searcher.names.is_name(text, cui) for kb in (self.old, self.new)
        )
        return before and not now
