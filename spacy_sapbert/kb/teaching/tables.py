"""What a teaching says, as rows of tables with the sentences of the documents."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ...linking.text import name_form
from ..knowledge_base import KnowledgeBase
from .documents import AnnotatedDocument, hash_note
from .report import TeachingReport

AROUND = 80  # characters before and after a mention
LOST_HEADER = (
    *("mention", "concept", "name", "first_now", "first_now_name", "mentions"),
    *("source", "document", "sentence"),
)
CONTRADICTIONS_HEADER = (
    *("mention", "concept", "name", "mentions", "documents"),
    *("source", "document", "sentence"),
)


class Place(NamedTuple):
    """Where a mention stands, and the text around it.

    Attributes:
        note: See `hash_note`.
        text: What the linker searches for.
    """

    note: str
    text: str
    source: str
    document: str
    sentence: str


NOWHERE = Place("", "", "", "", "")


def find_places(
    kb: KnowledgeBase, documents: Iterable[AnnotatedDocument]
) -> dict[tuple[str, str], list[Place]]:
    """Return where each mention, normalised, stands with each concept; "" = none."""
    places: dict[tuple[str, str], list[Place]] = defaultdict(list)
    for document in documents:
        note = hash_note(document)
        places_of: Counter[str] = Counter()  # mentions written so until now
        for mention in document.mentions:
            written = mention.written or mention.text
            sentence = cut_sentence(document.text, written, places_of[written])
            places_of[written] += 1
            ids = [cui for part in mention.parts for cui in part]
            found = (kb.concept(cui) for cui in ids)
            cui = next((concept.cui for concept in found if concept), "")
            place = Place(note, mention.text, document.source, document.id, sentence)
            places[name_form(mention.text), cui].append(place)
    return places


def cut_sentence(text: str, mention: str, number: int) -> str:
    """Return the text around a place of a mention, on one line.

    Args:
        number: Of the place, from 0 on. The last is returned if there are fewer.
    """
    starts = [match.start() for match in re.finditer(re.escape(mention), text)]
    if not starts:
        return ""
    start = starts[min(number, len(starts) - 1)]
    first = max(start - AROUND, 0)
    return " ".join(text[first : start + len(mention) + AROUND].split())


def list_lost(
    kb: KnowledgeBase, report: TeachingReport, documents: Sequence[AnnotatedDocument]
) -> Iterator[list[str]]:
    """Yield a row for each place of each mention that was right and is wrong now."""
    places = find_places(kb, documents)
    for lost in report.lost:
        row = [lost.text, lost.cui, get_name(kb, lost.cui)]
        row += [lost.now, get_name(kb, lost.now), str(lost.mentions)]
        found = [
            place
            for place in places.get((name_form(lost.text), lost.cui), ())
            if place.text == lost.text and report.folds.get(place.note) in lost.folds
        ]
        for place in found or [NOWHERE]:
            yield [*row, *place[2:]]


def list_contradictions(
    kb: KnowledgeBase, report: TeachingReport, documents: Sequence[AnnotatedDocument]
) -> Iterator[list[str]]:
    """Yield a row for each concept of each mention that has several, with a place."""
    places = find_places(kb, documents)
    for contradiction in report.contradictions:
        for meaning in contradiction.meanings:
            place = places.get((contradiction.form, meaning.cui), [NOWHERE])[0]
            row = [meaning.text, meaning.cui, get_name(kb, meaning.cui)]
            counts = [str(meaning.mentions), str(len(meaning.documents))]
            yield [*row, *counts, *place[2:]]


def get_name(kb: KnowledgeBase, cui: str) -> str:
    """Return the preferred name of a concept; "" if there is none."""
    concept = kb.concept(cui) if cui else None
    return concept.name if concept else ""
