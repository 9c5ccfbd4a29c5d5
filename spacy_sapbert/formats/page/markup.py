"""The markup of one document: its text with marked mentions and their candidates."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from html import escape

from ..entities import (
    AMBIGUOUS,
    BY_ID,
    LinkedCandidate,
    LinkedDoc,
    LinkedEntity,
    read_tie,
)
from ..gold import NIL
from .addresses import concept_url
from .groups import NO_CONCEPT, Group, choose_group

BADGE = 36  # characters of a name beside a mention
CANDIDATES = 10  # that are shown for a mention
LOW_SCORE = 0.8  # links with lower scores are marked, and the filter starts here
BROADER = "broader"  # note of a mention linked to a parent of its candidates
REASONS = {
    "empty": "the mention has nothing that the encoder can read",
    "no_vector": "the encoder returned no valid vector",
    "filtered": "the filter excludes its concepts",
    "below_threshold": "all scores are below the threshold",
    AMBIGUOUS: "several concepts have the same score",
}
EVIDENCE = {
    "label": "the semantic types of the label decide",
    "preferred": "the preferred name decides",
    "source": "the order of the sources decides",
    "coherence": "the other concepts of the document decide",
    BY_ID: "only the order of the ids decides",
}


def shorten(text: str, most: int) -> str:
    """Return a text in one line of at most a number of characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def is_same(one: str, other: str) -> bool:
    """Return whether two texts differ only in case and blanks."""
    return " ".join(one.split()).casefold() == " ".join(other.split()).casefold()


def span(kind: str, markup: str) -> str:
    """Return a span of a class, or nothing if it would be empty."""
    return f'<span class="{kind}">{markup}</span>' if markup else ""


def link_id(cui: str, links: Mapping[str, str]) -> str:
    """Return an id, with a link to its page if it has one."""
    if url := concept_url(cui, links):
        return f'<a class="id" href="{escape(url)}">{escape(cui)}</a>'
    return span("id", escape(cui))


def format_score(score: float | None) -> str:
    """Return a score with three digits; a dash if there is none."""
    return "–" if score is None else f"{score:.3f}"


def entity_group(entity: LinkedEntity) -> Group:
    """Return the group that colours an entity."""
    return NO_CONCEPT if entity["cui"] is None else choose_group(entity["types"])


def entity_flags(entity: LinkedEntity) -> list[str]:
    """Return what a reader should check: a tie, a broader concept, another remark."""
    if entity["cui"] is None:
        return []
    flags = [entity["note"]] if entity["note"] else []
    if entity["tie"] == BY_ID:
        flags.append("tie")
    return flags


def badge_markup(entity: LinkedEntity) -> str:
    """Return what stands beside a mention.

    It is the name of the concept, or its id if the mention is the name.
    """
    note = (entity["note"] or "").replace("_", " ")
    if entity["cui"] is None:
        badge = escape(f"{NIL} · {note}" if note else NIL)
    else:
        name = entity["name"]
        words = name if name and not is_same(name, entity["text"]) else entity["cui"]
        badge = escape(shorten(words, BADGE))
    flags = [shorten(flag.replace("_", " "), BADGE) for flag in entity_flags(entity)]
    badge += "".join(span("flag", escape(flag)) for flag in flags)
    return span("badge", badge)


def explain(entity: LinkedEntity) -> list[str]:
    """Return sentences on a link that is none, broader, or one of several."""
    note, tie = entity["note"] or "", entity["tie"]
    lines = []
    if entity["cui"] is None:
        reason = REASONS.get(note, note.replace("_", " ") or "no candidate")
        lines.append(f"No concept: {reason}.")
    elif note == BROADER:
        lines.append("A broader concept: all scores are below the threshold.")
    elif note:
        lines.append(f"Remark: {note.replace('_', ' ')}.")
    if tie and note != AMBIGUOUS:
        lines.append(f"Tie: other concepts have this score; {EVIDENCE.get(tie, tie)}.")
    return lines


def candidate_markup(
    candidate: LinkedCandidate, links: Mapping[str, str], *, chosen: bool, tied: bool
) -> str:
    """Return the row of a candidate: score, name, the alias that was found, and id.

    Args:
        tied: Its score is that of the first candidate.
    """
    cui, alias = candidate.get("cui") or "", candidate.get("alias") or ""
    name = candidate.get("name") or alias or cui
    shown = span("name", escape(name))
    if alias and not is_same(alias, name):
        shown += f" {span('alias', escape(f'“{alias}”'))}"
    tie = span("flag", "tie") if tied and read_tie(candidate) else ""
    row = span("score", format_score(candidate.get("score")))
    row += span("words", f"{shown} {link_id(cui, links)}{tie}")
    kind = f"candidate {choose_group(candidate.get('types') or ()).key}"
    current = ' aria-current="true"' if chosen else ""
    return f'<span class="{kind}" role="listitem"{current}>{row}</span>'


def card_markup(entity: LinkedEntity, links: Mapping[str, str], *, id: str) -> str:
    """Return the details of an entity, which are shown on hover and focus.

    Args:
        id: Of the element that describes the entity.
    """
    cui, facts = entity["cui"], []
    if cui is None:
        title = span("name", escape(f"“{shorten(entity['text'], 80)}”"))
    else:
        name = span("name", escape(entity["name"] or ""))
        title = f"{name} {link_id(cui, links)}"
        if entity["score"] is not None:
            facts.append(f"score {format_score(entity['score'])}")
        if entity["probability"] is not None:
            facts.append(f"probability {entity['probability']:.2f}")
        facts += [entity_group(entity).name, *entity["types"]]
    if entity["label"]:
        facts.append(f"label {entity['label']}")
    rows = span("title", title) + span("facts", escape(" · ".join(facts)))
    rows += "".join(span("why", escape(line)) for line in explain(entity))
    head = f'<span class="head" id="{id}">{rows}</span>'
    found = entity["candidates"]
    rows = "".join(
        candidate_markup(
            each,
            links,
            chosen=cui is not None and each.get("cui") == cui,
            tied=each.get("score") == found[0].get("score"),
        )
        for each in found[:CANDIDATES]
    )
    if rows:
        rows = f'<span role="list" aria-label="Candidates">{rows}</span>'
    if len(found) > CANDIDATES:
        rows += span("more", f"and {len(found) - CANDIDATES:,} more candidates")
    return span("card", head + rows)


def entity_markup(
    entity: LinkedEntity, links: Mapping[str, str], *, id: str, words: str = ""
) -> str:
    """Return an entity: marked words, badge and card.

    Args:
        words: The words of the text; empty if they are inside those of another entity,
            and the badge quotes them.
    """
    kinds = ["entity", entity_group(entity).key]
    kinds += ["tie"] if entity["tie"] == BY_ID else []
    kinds += [BROADER] if entity["note"] == BROADER else []
    number = entity["score"]
    kinds += ["low"] if number is not None and number < LOW_SCORE else []
    score = "" if number is None else f' data-score="{number:.4f}"'
    inner = f"<mark>{escape(words)}</mark>" if words else ""
    if not words:
        kinds.append("inside")
        inner = span("quote", escape(shorten(entity["text"], BADGE)))
    inner += badge_markup(entity) + card_markup(entity, links, id=id)
    before = "" if words else "<wbr>"  # a line may break between two entities
    return (
        f'{before}<span class="{" ".join(kinds)}" tabindex="0" role="group" '
        f'aria-describedby="{id}"{score}>{inner}</span>'
    )


def stack_entities(entities: Iterable[LinkedEntity]) -> list[list[LinkedEntity]]:
    """Group entities that overlap, since words of a text are marked only once.

    Returns:
        By offset: the entity to mark (the longest, then the first), followed by those
        that overlap it.
    """
    starts: list[int] = []  # of the marked entities, which do not overlap
    stacks: list[list[LinkedEntity]] = []
    for entity in sorted(entities, key=lambda e: (e["start"] - e["end"], e["start"])):
        place = bisect_left(starts, max(entity["end"], entity["start"] + 1)) - 1
        if place >= 0 and stacks[place][0]["end"] > entity["start"]:
            stacks[place].append(entity)
            continue
        starts.insert(place + 1, entity["start"])
        stacks.insert(place + 1, [entity])
    return stacks


def text_markup(doc: LinkedDoc, links: Mapping[str, str], *, id: str) -> Iterator[str]:
    """Yield the text of a document with its entities, in parts.

    Args:
        id: Prefix for the ids of elements.
    """
    text = doc.text.replace("\0", "\ufffd")
    end = count = 0
    for stack in stack_entities(doc.entities):
        marked = stack[0]
        yield escape(text[end : marked["start"]])
        for entity in stack:
            count += 1
            words = text[marked["start"] : marked["end"]] if entity is marked else ""
            yield entity_markup(entity, links, id=f"{id}-{count}", words=words)
        end = max(end, marked["end"])
    yield escape(text[end:])
