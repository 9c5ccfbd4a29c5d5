"""What is decided on a term, by the software or a person, and its cells of SSSOM."""

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

from ..formats.gold import GoldDocument, is_no_id
from ..io.tables.spreadsheets import Cell
from ..io.version import __version__
from ..linking.filters import Filter
from ..vocabularies.sssom import COLUMNS, NAME, NOTHING, PERSON, SIMILAR, make_curie
from .lookup import EXACT, LINKED, Found, list_rules, propose
from .terms import CODE, MEANING, SIDE, Dropped, list_dropped

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase

CHOSEN, NO_CONCEPT = "chosen", "no concept"  # statuses that a person gives
PREDICATES = ("exact", "broad", "narrow", "related")  # skos:exactMatch, …


def list_mapping(
    term: str,
    found: Found,
    today: date,
    reviewer: str = "",
    *,
    subject: str = "",
    predicate: str = "",
) -> list[Cell] | None:
    """Return the cells of a mapping; None if nobody and nothing has decided.

    Args:
        term: What is mapped: a literal, or the label of `subject`.
        found: Its status is that of a person too: `CHOSEN`, `NO_CONCEPT`.
        today: When it is written.
        reviewer: Who has decided, if that is a person.
        subject: The id of what is mapped, a CURIE.
        predicate: One of `PREDICATES`; "" and "exact" = that of `choose_predicate`.
    """
    by_person = found.status in (CHOSEN, NO_CONCEPT)
    said = predicate if predicate != "exact" else ""
    if not by_person and found.status not in (EXACT, LINKED):
        return None
    values: dict[str, Cell] = {
        "subject_id": subject or None,
        "subject_label": term,
        "subject_type": None if subject else "rdfs literal",
        "predicate_id": f"skos:{said or choose_predicate(found)}Match",
        "object_id": NOTHING,
        "mapping_justification": PERSON,
        "mapping_date": today.isoformat(),
        "match_string": found.read_as or None,
        "comment": "; ".join(found.dropped) or found.note,
    }
    if by_person:
        values["reviewer_label"] = reviewer or None
    else:
        values["mapping_justification"] = NAME if found.status == EXACT else SIMILAR
        values["mapping_tool"] = "spacy-sapbert"
        values["mapping_tool_version"] = __version__
    if found.cui is not None:
        values["object_id"] = make_curie(found.cui)
    if found.cui is not None and found.candidates:
        first = found.candidates[0]
        values["object_label"] = first["name"]
        values["confidence"] = None if by_person else first["probability"]
        # a concept that a person found has no score
        values["similarity_score"] = first["score"] if first["score"] > 0 else None
    return [values.get(column) for column in COLUMNS]


def choose_predicate(found: Found) -> str:
    """Return what a concept is to its term, if nobody has said it.

    It is exact only if the concept has all that the term says.
    """
    kinds = {part.partition(":")[0] for part in found.dropped}
    if kinds.intersection(MEANING):
        return "related"
    if SIDE in kinds:
        return "broad"
    return "close" if CODE in kinds or found.status == LINKED else "exact"


def list_unsaid(kb: "KnowledgeBase", term: str, cui: str) -> tuple[Dropped, ...]:
    """Return what a term says, and no name of a concept does."""
    rules = list_rules(kb, Filter())
    if not list_dropped(term, "", rules) or (concept := kb.concept(cui)) is None:
        return ()
    unsaid = (tuple(list_dropped(term, name, rules)) for name in concept.aliases)
    return min(unsaid, key=len)


def says_something_else(kb: "KnowledgeBase", document: GoldDocument) -> bool:
    """Return whether a document is a term that says something else than its concept.

    "h/o MI" is not MI, even if a person chose that for it. A side or a code is not
    something else.
    """
    return any(
        part.kind in MEANING
        for mention in document.mentions
        if mention.mention == document.text
        for ids in mention.parts
        for part in list_unsaid(kb, mention.mention, next(filter(kb.concept, ids), ""))
    )


def apply_choice(kb: "KnowledgeBase", term: str, found: Found, chosen: str) -> Found:
    """Return what was found, with the concept that a person chose in its place.

    Another concept than the first candidate may have all that the term says.
    """
    if not chosen:
        return found
    if is_no_id(chosen):
        return replace(found, cui=None, note=None, status=NO_CONCEPT, dropped=())
    same = [one for one in found.candidates if one["cui"] == chosen]
    concept = kb.concept(chosen)
    if not same and concept is not None:
        same = [propose(concept, concept.name, 0.0)]
    first = found.candidates[0]["cui"] if found.candidates else None
    dropped = found.dropped
    if chosen != first:
        dropped = tuple(map(str, list_unsaid(kb, term, chosen)))
    found = replace(found, cui=chosen, note=None, candidates=same)
    return replace(found, status=CHOSEN, dropped=dropped)
