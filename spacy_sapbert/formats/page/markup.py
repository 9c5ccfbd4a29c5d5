"""What the page says of an entity; `page.html` has its markup."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...linking.certainty import AMBIGUOUS, DECIDED, judge_link
from ..entities import BY_ID, LinkedDoc, LinkedEntity
from ..gold import NIL
from .groups import NO_CONCEPT, Group, choose_group

BADGE = 36  # characters of a name beside a mention
UNSURE = "unsure"  # the class of links that a reader should check
REASONS = {
    "empty": "the mention has nothing that the encoder can read",
    "no_vector": "the encoder returned no valid vector",
    "filtered": "the filter excludes its concepts",
    "below_threshold": "all scores are below the threshold",
    AMBIGUOUS: "several concepts have the same score",
    "excluded": "what is near differs in a number, a letter, a word or an opposite",
    DECIDED: "people decided that it has none",
}
EVIDENCE = {
    "label": "the semantic types of the label decide",
    DECIDED: "people decided",
    "preferred": "the preferred name decides",
    "source": "the order of the sources decides",
    "coherence": "the other concepts of the document decide",
    BY_ID: "only the order of the ids decides",
}


def shorten(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def is_same(one: str, other: str) -> bool:
    """Return whether two texts differ only in case and blanks."""
    return " ".join(one.split()).casefold() == " ".join(other.split()).casefold()


def format_score(score: float | None) -> str:
    """Return a score with three digits; a dash if there is none."""
    return "–" if score is None else f"{score:.3f}"


def entity_group(entity: LinkedEntity) -> Group:
    return NO_CONCEPT if entity["cui"] is None else choose_group(entity["types"])


def is_unsure(entity: LinkedEntity) -> bool:
    """Return whether a reader should check a link, as `judge_link` says.

    A link that a file has without candidates, score and probability is not judged.
    """
    text, cui, note = entity["text"], entity["cui"], entity["note"]
    if not entity["candidates"] and entity["score"] is entity["probability"] is None:
        return False
    certainty = judge_link(text, cui, entity["candidates"] or [entity], note=note)
    return certainty in ("unsure", "tied")


def entity_flags(entity: LinkedEntity) -> list[str]:
    """Return what a reader should check: a link that is not sure, or a remark."""
    if entity["cui"] is None:
        return []
    flags = [entity["note"]] if entity["note"] else []
    if entity["tie"] == BY_ID:
        flags.append("tie")
    elif is_unsure(entity):
        flags.append("not sure")
    return flags


def entity_kinds(entity: LinkedEntity) -> list[str]:
    """Return the classes of an entity, which the style sheet and the filter use."""
    kinds = {"tie": entity["tie"] == BY_ID, UNSURE: is_unsure(entity)}
    shown = [kind for kind, applies in kinds.items() if applies]
    return ["entity", entity_group(entity).key, *shown]


def badge_text(entity: LinkedEntity) -> str:
    """Return the name of the concept, or its id if the mention is the name."""
    if entity["cui"] is None:
        note = (entity["note"] or "").replace("_", " ")
        return f"{NIL} · {note}" if note else NIL
    name = entity["name"]
    words = name if name and not is_same(name, entity["text"]) else entity["cui"]
    return shorten(words, BADGE)


def list_facts(entity: LinkedEntity) -> list[str]:
    facts: list[str] = []
    if entity["cui"] is not None:
        if entity["score"] is not None:
            facts.append(f"score {format_score(entity['score'])}")
        if entity["probability"] is not None:
            facts.append(f"probability {entity['probability']:.2f}")
        facts += [entity_group(entity).name, *entity["types"]]
    if entity["label"]:
        facts.append(f"label {entity['label']}")
    return facts


def explain(entity: LinkedEntity) -> list[str]:
    """Return sentences on a link that is none, or one of several."""
    note, tie = entity["note"] or "", entity["tie"]
    lines = []
    if entity["cui"] is None:
        reason = REASONS.get(note, note.replace("_", " ") or "no candidate")
        lines.append(f"No concept: {reason}.")
    elif note:
        lines.append(f"Remark: {note.replace('_', ' ')}.")
    if tie and note != AMBIGUOUS:
        lines.append(f"Tie: other concepts have this score; {EVIDENCE.get(tie, tie)}.")
    return lines


def stack_entities(entities: Iterable[LinkedEntity]) -> list[list[LinkedEntity]]:
    """Group entities that overlap, since words of a text are marked only once.

    Of each group the longest is the first, which is marked.
    """
    starts: list[int] = []  # of the marked entities, which do not overlap
    stacks: list[list[LinkedEntity]] = []
    for entity in sorted(entities, key=lambda e: (e["start"] - e["end"], e["start"])):
        last = bisect_left(starts, max(entity["end"], entity["start"] + 1)) - 1
        if last >= 0 and stacks[last][0]["end"] > entity["start"]:
            stacks[last].append(entity)
            continue
        starts.insert(last + 1, entity["start"])
        stacks.insert(last + 1, [entity])
    return stacks


class TextPart(NamedTuple):
    """A piece of a text, and the entity that follows.

    `words` is empty if they are inside those of another entity.
    """

    before: str
    entity: LinkedEntity | None = None
    words: str = ""
    number: int = 0


def iter_parts(doc: LinkedDoc) -> Iterator[TextPart]:
    """Yield the text of a document with its entities, which are numbered from 1."""
    text = doc.text.replace("\0", "\ufffd")
    end = count = 0
    for stack in stack_entities(doc.entities):
        marked = stack[0]
        before = text[end : marked["start"]]
        words = text[marked["start"] : marked["end"]]
        for entity in stack:
            count += 1
            yield TextPart(before, entity, words, count)
            before = words = ""
        end = max(end, marked["end"])
    yield TextPart(text[end:])
