"""What `spacy sapbert explain` shows on the terminal."""

from collections.abc import Sequence
from typing import Any

from wasabi import table

from ..evaluation.expected_concept import STATES
from ..pipeline.annotations import NIL

DECIDED = {
    "label": "its types are those of the label",
    "preferred": "the preferred name of one, another name of the other",
    "source": "the vocabularies that the names come from",
    "coherence": "what else the document has",
    "id": "nothing but the order of the ids",
}
RELATIONS = {
    "narrower": "what was found is narrower: below it in the hierarchy",
    "broader": "what was found is broader: above it in the hierarchy",
    "sibling": "both have a parent in common",
}
NOTES = {
    "empty": "nothing to look up",
    "no_vector": "the encoder gives no usable vector",
    "filtered": "what it would be is filtered out",
    "below_threshold": "the best is under the threshold",
    "broader": "a broader one, since the best is under the threshold",
    "ambiguous": "only the order of the ids would decide",
    "cut": "the mention was cut",
}


def printable(text: str) -> str:
    """Put a text in one line, without what steers the terminal."""
    text = " ".join(text.split())
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def draw_table(header: Sequence[str], rows: list[list[str]], right: int) -> str:
    """Draw a table, the first columns of it right-aligned."""
    from ..formats.table import WIDEST, shorten

    cells = [[shorten(cell) for cell in row] for row in rows]
    aligns = ["r" if place < right else "l" for place in range(len(header))]
    drawn = table(cells, header=header, divider=True, aligns=aligns, max_col=WIDEST)
    return str(drawn).strip("\n")


def draw_candidates(found: list[dict[str, Any]]) -> str:
    """Draw the candidates."""
    fused = bool(found) and "characters" in found[0]
    header = ["rank", "score", "behind", *(["characters", "fused"] if fused else [])]
    rows = [
        [
            str(c["rank"]),
            f"{c['score']:.3f}",
            f"{c['margin']:.3f}" if c["rank"] > 1 else "",
            *([f"{c['characters']:.3f}", f"{c['order']:.4f}"] if fused else []),
            c["cui"],
            c["name"],
            c["alias"],
            ", ".join(c["types"]),
            c["tie"] or "",
            "added" if c["local"] else "",
        ]
        for c in found
    ]
    names = ["CUI", "name", "alias", "types", "tie", "local"]
    return draw_table([*header, *names], rows, len(header))


def draw_tie(tie: dict[str, Any]) -> str:
    """Draw the concepts that are equally near."""
    far = any(c["distance"] is not None for c in tie["concepts"])
    rows = [
        [
            c["cui"],
            c["name"],
            c["alias"],
            "yes" if c["preferred"] else "no",
            ", ".join(c["types"]),
            ", ".join(c["sources"]),
            *([str(c["distance"])] if far else []),
        ]
        for c in tie["concepts"]
    ]
    header = ["CUI", "name", "alias", "preferred", "types", "sources"]
    return draw_table([*header, *(["distance"] if far else [])], rows, 0)


def draw_passed(hits: list[dict[str, Any]], last: str, values: list[str]) -> str:
    """Draw names that were not found, and why."""
    rows = [
        [f"{hit['score']:.3f}", hit["cui"], hit["name"], hit["alias"], value]
        for hit, value in zip(hits, values, strict=True)
    ]
    return draw_table(["score", "CUI", "name", "alias", last], rows, 1)


def list_facts(explanation: dict[str, Any]) -> list[list[str]]:
    """List what can be told in a line each.

    explanation (dict[str, Any]): From `explain_mention`.
    RETURNS (list[list[str]]): A word and a text each.
    """
    asked, found = explanation["looked_up"], explanation["candidates"]
    threshold, active = explanation["threshold"], explanation["filter"]["active"]
    pieces = " ".join(asked["wordpieces"]) or "none that the encoder knows"
    if asked["cut"]:
        pieces += " … (cut)"
    if asked["unknown"]:
        pieces += f" ({asked['unknown']} unknown)"
    facts = [["mention", explanation["mention"]]]
    if explanation["label"]:
        facts.append(["label", explanation["label"]])
    if asked["long_form"]:
        facts.append(["long form", f"{asked['long_form']}, looked up in its place"])
    elif asked["defined"]:
        facts.append(["long form", f"{asked['defined']}, not looked up"])
    facts.append(["wordpieces", pieces])
    if concepts := explanation["document"]["concepts"]:
        facts.append(["document", f"has {', '.join(concepts)} without doubt"])
    note = NOTES.get(explanation["note"], "")
    best = found[0] if found else None
    if above := explanation["broader"]:
        facts.append(["concept", f"{above['cui']} {above['name']}: {note}"])
        facts.append(["above", ", ".join(above["children"])])
    elif explanation["cui"] and best:
        facts.append(["concept", f"{best['cui']} {best['name']}"])
        facts.append(["by its name", best["alias"]])
    else:
        facts.append(["concept", f"{NIL}: {note}"])
    if best:
        score = f"{best['score']:.3f}"
        if best["probability"] is not None:
            score += f", right with a probability of {best['probability']:.2f}"
        facts.append(["score", score])
        if threshold["value"] is not None:
            side = "above" if threshold["margin"] >= 0 else "under"
            whose = "the knowledge base's" if threshold["from"] == "kb" else "set"
            far = f"{abs(threshold['margin']):.3f} {side} {threshold['value']:.3f}"
            facts.append(["threshold", f"{far}, {whose}"])
    if explanation["tie"]:
        facts.append(["tie", DECIDED[explanation["tie"]["decided_by"]]])
    if active:
        parts = (
            f"{name} {', '.join(v) if isinstance(v, list) else f'({v} ids)'}"
            for name, v in active.items()
        )
        count = len(explanation["filter"]["taken"])
        left = f"; leaves out {count} as near or nearer" if count else ""
        facts.append(["filter", "; ".join(parts) + left])
    if explanation["index"]["compared"]:
        count = len(explanation["index"]["missed"])
        what = f"missed {count} concepts, see below" if count else "missed nothing"
        facts.append(["index", what])
    return facts


def list_expected(expected: dict[str, Any]) -> list[list[str]]:
    """List where the expected concept stands; see `list_facts`."""
    facts = [["expected", f"{expected['asked']}: {STATES[expected['state']]}"]]
    if expected["asked"] == NIL:
        word = "no concept" if expected["state"] == "found" else "it has one"
        return [["expected", f"{NIL}: {word}"]]
    if expected["cui"] not in (None, expected["asked"]):
        facts.append(["now", f"{expected['cui']}; {expected['asked']} was retired"])
    if expected["name"]:
        types = f" ({', '.join(expected['types'])})" if expected["types"] else ""
        facts.append(["name", expected["name"] + types])
    if expected["alias"] is not None:
        behind = expected["margin"]
        far = f", {behind:.3f} behind" if behind is not None and behind > 0 else ""
        facts.append(["nearest", f"{expected['alias']}, {expected['score']:.3f}{far}"])
        rank = expected["rank"]
        place = f"number {rank}" if rank else "none of the candidates"
        if expected["names_nearer"]:
            nearer = f"{expected['names_nearer']:,} names are nearer"
            if expected["exact_rank"]:
                nearer += f", of {expected['exact_rank'] - 1:,} concepts"
            place += f"; {nearer}"
        facts.append(["rank", place])
    if expected["filtered_by"]:
        facts.append(["left out by", ", ".join(expected["filtered_by"])])
    if expected["removed_alias"]:
        facts.append(["removed", expected["removed_alias"]])
    if expected["relation"]:
        facts.append(["hierarchy", RELATIONS[expected["relation"]]])
    return facts


def draw_facts(facts: list[list[str]]) -> str:
    """Put facts in lines."""
    return "\n".join(f"{word:<11}  {printable(text)}" for word, text in facts)


def draw_mends(mends: list[dict[str, Any]]) -> str:
    """Put what mends it in numbered lines."""
    tried = {None: "", True: " (tried: works)", False: " (tried: not enough alone)"}
    lines = ["what mends it"]
    for number, mend in enumerate(mends, 1):
        lines.append(f"{number}. {printable(mend['what'])}{tried[mend['tried']]}")
        if mend["command"]:
            lines.append(f"   {printable(mend['command'])}")
    return "\n".join(lines)


def show_explanation(explanation: dict[str, Any]) -> str:
    """Draw an explanation.

    explanation (dict[str, Any]): From `explain_mention`.
    RETURNS (str): Lines and tables.
    """
    parts = [draw_facts(list_facts(explanation))]
    if explanation["candidates"]:
        parts.append(draw_candidates(explanation["candidates"]))
    if explanation["tie"]:
        parts.append("equally near\n" + draw_tie(explanation["tie"]))
    if taken := explanation["filter"]["taken"]:
        by = [", ".join(hit["by"]) for hit in taken]
        parts.append("filtered out\n" + draw_passed(taken, "left out by", by))
    if missed := explanation["index"]["missed"]:
        why = [""] * len(missed)
        parts.append("missed by the index\n" + draw_passed(missed, "", why))
    if removed := explanation["removed"]:
        whole = ["the concept" if hit["whole"] else "the name" for hit in removed]
        parts.append("removed\n" + draw_passed(removed, "removed", whole))
    if explanation["expected"]:
        parts.append(draw_facts(list_expected(explanation["expected"])))
    if explanation["mends"]:
        parts.append(draw_mends(explanation["mends"]))
    return "\n\n".join(parts)
