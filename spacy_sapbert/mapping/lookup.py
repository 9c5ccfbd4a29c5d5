"""Terms → their links, each term looked up once, in a file that a stopped run left."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import SapbertError, refused_by_system
from ..kb.knowledge_base import KnowledgeBase
from ..linking.link import Linked
from ..linking.options import LinkOptions
from ..linking.text import list_words
from .found import EXACT, LINKED, NONE, REVIEW, Found
from .terms import has_side, list_readings

TERMS_AT_ONCE = 256
NO_THRESHOLD = "no_threshold"  # a note


class Query(NamedTuple):
    """A term, and the types and languages that its row allows; empty = all."""

    term: str
    types: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()


def map_queries(
    kb: KnowledgeBase, queries: Iterable[Query], options: LinkOptions
) -> Iterator[Found]:
    """Look up terms; the best of their readings counts.

    A reading that is a name comes before all others, then the one with the highest
    score, of equal ones the first. But "left heart failure" is rather "Left-sided heart
    failure" than the name "Heart failure": a reading keeps its side if the name that it
    finds has all of its words.

    Yields:
        One for each query.
    """
    batch: list[Query] = []
    for query in queries:
        batch.append(query)
        if len(batch) == TERMS_AT_ONCE:
            yield from map_batch(kb, batch, options)
            batch = []
    yield from map_batch(kb, batch, options)


def map_batch(
    kb: KnowledgeBase, queries: Sequence[Query], options: LinkOptions
) -> list[Found]:
    """Look up some terms, together if they allow the same concepts."""
    results: list[Found] = [Found("", NONE, None, "empty", []) for _ in queries]
    groups: dict[tuple[tuple[str, ...], ...], list[int]] = {}
    for index, query in enumerate(queries):
        groups.setdefault((query.types, query.languages), []).append(index)
    sure = has_threshold(kb, options)
    for (types, languages), indices in groups.items():
        allowed = options.filter
        allowed = replace(allowed, types=types or allowed.types)
        allowed = replace(allowed, languages=languages or allowed.languages)
        readings = [list_readings(queries[index].term) for index in indices]
        texts = list(
            dict.fromkeys(text for texts_of_term in readings for text in texts_of_term)
        )
        links = kb.link(texts, options=options, filter=allowed)
        by_text = dict(zip(texts, links, strict=True))
        for index, texts_of_term in zip(indices, readings, strict=True):
            if texts_of_term:
                sided = has_side(queries[index].term)
                named = {t: is_name(kb, t, by_text[t]) for t in texts_of_term}
                best = max(
                    texts_of_term,
                    key=lambda text: quality(text, by_text[text], named[text], sided),
                )
                results[index] = describe(best, by_text[best], named[best], sure)
    return results


def has_threshold(kb: KnowledgeBase, options: LinkOptions) -> bool:
    """Return whether there is a threshold: an option, or of the knowledge base."""
    thresholds = (options.threshold, kb.manifest.threshold, kb.ranker)
    return any(threshold is not None for threshold in thresholds)


def is_name(kb: KnowledgeBase, text: str, linked: Linked) -> bool:
    """Return whether a text is a way to write the name of its first candidate."""
    if not linked.candidates:
        return False
    first = linked.candidates[0]
    return kb.searcher.names.is_name(text, first["cui"], first["alias"])


def quality(text: str, linked: Linked, named: bool, sided: bool) -> tuple[int, float]:
    """Return the sort key of a reading: how far it is a name, and its score.

    Args:
        named: Whether it is the name of its first candidate.
        sided: Whether the term names a side.
    """
    if not linked.candidates:
        return 0, -2.0
    first = linked.candidates[0]
    if sided and has_side(text):
        return 2 * (words(text) <= words(first["alias"])), first["score"]
    return named * (1 if sided else 2), first["score"]


def words(text: str) -> set[str]:
    """Return the folded words of a text."""
    return {*list_words(text, "english")}


def describe(text: str, linked: Linked, named: bool, sure: bool) -> Found:
    """Return what a reading found, and what a person has to do.

    Args:
        named: Whether it is the name of its first candidate.
        sure: Whether there is a threshold; without one, only names are links.
    """
    cui, note, candidates = linked.cui, linked.note, linked.candidates
    status = REVIEW if candidates else NONE
    if cui is not None and named:
        status = EXACT
    elif cui is not None and sure:
        status = LINKED
    elif cui is not None:
        cui, note = None, NO_THRESHOLD
    return Found(text, status, cui, note, candidates)


class SavedLookups:
    """The look-ups of a run, in a file beside its output, so that it can go on.

    A line for each look-up. What a stop left of the last line is looked up again.
    """

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        """Open the file.

        Args:
            path: The file; it is deleted by `finish`.
            settings: What the look-ups depend on, in plain JSON types.

        Raises:
            SapbertError: If it has look-ups with other settings.
        """
        self.path = path
        text = json.dumps(settings, sort_keys=True)
        digest = sha256(text.encode("utf8", "replace")).hexdigest()
        self.found: dict[Query, Found] = {}
        whole = self.read(digest) if path.exists() else 0
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)  # it has texts
        self.file = os.fdopen(handle, "r+b")
        self.file.truncate(whole)
        self.file.seek(whole)
        if not whole:
            self.write({"settings": digest})

    def read(self, digest: str) -> int:
        """Read the file, and return the number of bytes of its whole lines."""
        whole = 0
        with self.path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                try:
                    data = json.loads(line)
                    if not whole:
                        same = data["settings"] == digest
                    else:
                        term, types, languages = data["query"]
                        query = Query(term, tuple(types), tuple(languages))
                        self.found[query] = Found(*data["found"])
                except (KeyError, TypeError, ValueError):
                    same = False
                if not same:
                    raise SapbertError(
                        "E440",
                        "Expected look-ups of the same table, knowledge base and "
                        f"settings in {self.path}, but got others. Delete the file to "
                        "begin anew.",
                    )
                whole += len(line)
        return whole

    def write(self, data: dict[str, Any]) -> None:
        line = json.dumps(data, ensure_ascii=True)
        try:
            self.file.write(line.encode("utf8") + b"\n")
            self.file.flush()
        except OSError as error:
            values = {"path": self.path, "reason": error.strerror or error}
            raise refused_by_system(**values) from error

    def add(self, query: Query, found: Found) -> None:
        """Keep a look-up."""
        self.found[query] = found
        self.write({"query": query, "found": found})

    def close(self) -> None:
        """Close the file; the next run goes on with it."""
        with suppress(OSError):  # what cannot be written is looked up again
            self.file.close()

    def finish(self) -> None:
        """Delete the file."""
        self.close()
        self.path.unlink(missing_ok=True)
