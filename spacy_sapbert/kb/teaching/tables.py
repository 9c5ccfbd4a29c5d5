"""What a teaching says, as rows of tables with the sentences of the documents."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ...linking.surface_forms import name_form
from ..knowledge_base import KnowledgeBase
from .documents import AnnotatedDocument
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
    """Where a mention stands, and the text around it."""

    source: str
    document: str
    sentence: str


NOWHERE = Place("", "", "")


def find_places(
    kb: KnowledgeBase, documents: Iterable[AnnotatedDocument]
) -> dict[tuple[str, str], list[Place]]:
    """Return where each mention, normalised, stands with each concept; "" = none."""
    places: dict[tuple[str, str], list[Place]] = defaultdict(list)
    for document in documents:
        for mention in document.mentions:
            ids = [cui for part in mention.parts for cui in part]
            found = (kb.concept(cui) for cui in ids)
            cui = next((concept.cui for concept in found if concept), "")
            sentence = cut_sentence(document.text, mention.written or mention.text)
            place = Place(document.source, document.id, sentence)
            places[name_form(mention.text), cui].append(place)
    return places


def cut_sentence(text: str, mention: str) -> str:
    """Return the text around the first place of a mention, on one line."""
    start = text.find(mention)
    if start < 0:
        return ""
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
        key = (name_form(lost.text), lost.cui)
        for place in places.get(key, [NOWHERE]):
            yield [*row, *place]


def list_contradictions(
    kb: KnowledgeBase, report: TeachingReport, documents: Sequence[AnnotatedDocument]
) -> Iterator[list[str]]:
    """Yield a row for each concept of each mention that has several, with a place."""
    places = find_places(kb, documents)
    for contradiction in report.contradictions:
        for meaning in contradiction.meanings:
            place = places.get((contradiction.form, meaning.cui), [NOWHERE])[0]
            row = [meaning.text, meaning.cui, get_name(kb, meaning.cui)]
            yield [*row, str(meaning.mentions), str(len(meaning.documents)), *place]


def get_name(kb: KnowledgeBase, cui: str) -> str:
    """Return the preferred name of a concept; "" if there is none."""
    concept = kb.concept(cui) if cui else None
    return concept.name if concept else ""
