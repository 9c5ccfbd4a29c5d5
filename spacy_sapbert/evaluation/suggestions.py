"""What would make a mention have the concept that it should have."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..linking.link import BROADER
from ..linking.options import EVIDENCE
from ..pipeline.annotations import NIL
from .trace import Lookup
from .trials import Located, Mend, kb_command, make_mend, works

LONGEST_SHORT_FORM = 10  # characters of what looks like an abbreviation
EQUAL = 0.999999  # cosine of a mention that is a name
MOST_CONCEPTS = 1000  # that `k` can ask for
MORE = 10  # times as many candidates, where the index missed one

LEFT_OUT = {
    "types": "`filter.types` (`--types`) leaves it out: its types are {types}.",
    "label_types": "`label_types` of {label} leaves it out: its types are {types}. Add "
    'one of them, or set `label_types_use = "evidence"`.',
    "sources": "`filter.sources` (`--sources`) leaves the sources of its names out.",
    "languages": "`filter.languages` (`--languages`) leaves their languages out.",
    "allow": "`filter.allow` (`--allow`) does not list it.",
    "deny": "`filter.deny` (`--deny`) lists it.",
}


def find_mends(lookup: Lookup, located: Located) -> list[Mend]:
    """List what would mend a link.

    lookup (Lookup): The answer.
    located (Located): From `locate_expected`.
    RETURNS (list[Mend]): None if the link is right. What was tried and works comes
        first.
    """
    if located["state"] == "found":
        return []
    if located["asked"] == NIL:
        return list(mend_nil(lookup))
    mends = [mend for source in SOURCES for mend in source(lookup, located)]
    return sorted(mends, key=lambda mend: mend["tried"] is not True)


def mend_nil(lookup: Lookup) -> Iterator[Mend]:
    """Say how the mention would have no concept."""
    best = lookup.best
    assert best is not None
    if lookup.linked.note == BROADER:
        yield make_mend("Set `broader = false`.", tried=True)
        return
    yield make_mend(
        f"Raise `threshold` above {best['score']:.3f}; other mentions lose theirs too."
    )
    if best["tie"] == "id":
        yield make_mend('Set `ambiguous = "nil"`: nothing but ids decides this tie.')
    yield make_mend(f"Leave {best['cui']} out with `filter.deny`, if nobody means it.")


def mend_text(lookup: Lookup, located: Located) -> Iterator[Mend]:
    """Say what is wrong with what was looked up."""
    question = lookup.question
    if question.defined and not question.long_form:
        asked = question._replace(long_form=question.defined)
        yield make_mend(
            f'The text says that it means "{question.defined}", but nothing puts that '
            "in its place. Add the component `sapbert_abbreviations` to the pipeline, "
            "before the linker.",
            tried=works(lookup, located, asked),
        )
    elif not question.long_form and is_short_form(question.mention):
        yield make_mend(
            "It looks like an abbreviation. If the document says what it means, link "
            "it with the component `sapbert_abbreviations` and the whole document."
        )
    if lookup.cut:
        length = lookup.kb.meta["encoder"]["max_length"]
        yield make_mend(
            f"It was cut, since the knowledge base reads {length} wordpieces. Mark a "
            "shorter mention, or build the knowledge base with more."
        )
    if located["state"] == "not_looked_up":
        yield make_mend("The mention has nothing that the encoder reads. Mark another.")


def is_short_form(text: str) -> bool:
    """Return whether a text looks like an abbreviation: short, and mostly capitals."""
    capitals = sum(character.isupper() for character in text)
    return len(text) <= LONGEST_SHORT_FORM and 2 * capitals > len(text) > 1


def mend_absent(lookup: Lookup, located: Located) -> Iterator[Mend]:
    """Say how a concept or a name comes back that is not there."""
    cui, gone = located["cui"] or located["asked"], located["removed_alias"]
    if located["state"] in ("unknown", "removed"):
        known = located["state"] == "removed"
        name = gone or lookup.question.text
        yield make_mend(
            "The concept was removed. Add it again, with all the names that it shall "
            "have."
            if known
            else "Check the id, build the knowledge base from a vocabulary that has "
            "it, or add the concept.",
            command=kb_command(lookup, "add", "--cui", cui, "--alias", name),
        )
    elif gone:
        yield make_mend(
            f'Its name "{gone}" was removed. Add it again.',
            command=kb_command(lookup, "add", "--cui", cui, "--alias", gone),
        )


def mend_filter(lookup: Lookup, located: Located) -> Iterator[Mend]:
    """Say which setting leaves the concept out."""
    if not located["filtered_by"]:
        return
    types = " and ".join(located["types"]) or "none"
    label = lookup.question.label
    for field in located["filtered_by"]:
        changes: dict[str, Any] = {"label_types": {}}
        if field != "label_types":
            changes = {"filter": replace(lookup.options.filter, **{field: ()})}
        what = LEFT_OUT[field].format(types=types, label=label)
        yield make_mend(what, tried=works(lookup, located, **changes))


def mend_nothing(lookup: Lookup, located: Located) -> Iterator[Mend]:
    """Say how the best candidate would count."""
    best = lookup.best
    if located["state"] != "nil" or best is None:
        return
    if lookup.linked.note == "ambiguous":
        yield make_mend(
            'Set `ambiguous = "link"`, or settle the tie with `label_types` or '
            "`source_rank`.",
            tried=works(lookup, located, ambiguous="link"),
        )
    if lookup.threshold is not None and best["score"] < lookup.threshold:
        yield make_mend(
            f"Its cosine {best['score']:.3f} is under the `threshold` of "
            f"{lookup.threshold:.3f}. Lower it, which costs right answers elsewhere, "
            "or add the name.",
            tried=works(lookup, located, threshold=-1),
        )


def mend_tie(lookup: Lookup, located: Located) -> Iterator[Mend]:
    """Say what tells the concept from another that has the name too, or is as near."""
    best, options = lookup.best, lookup.options
    if located["state"] not in ("tied", "behind", "missed") or best is None:
        return
    theirs = lookup.kb.store.types([best["cui"]]).get(best["cui"], [])
    own = tuple(sorted({*located["types"]} - {*theirs}))
    if own and works(
        lookup, located, filter=replace(options.filter, types=own), label_types={}
    ):
        label = lookup.question.label or "LABEL"
        listed = ", ".join(f'"{kind}"' for kind in own)
        yield make_mend(
            f"Their types differ. Set `label_types = {{{label} = [{listed}]}}`: an "
            "entity with that label then finds nothing else.",
            tried=True,
        )
    if best["score"] >= EQUAL or located["state"] == "tied":
        concept = lookup.kb.concept(best["cui"])
        arguments = [best["cui"]]
        if concept is not None and len(concept.aliases) > 1:
            arguments += ["--alias", best["alias"]]
        yield make_mend(
            f'{best["cui"]} ({best["name"]}) has the name "{best["alias"]}". If your '
            "texts never mean that by it, remove the name there.",
            command=kb_command(lookup, "remove", *arguments),
        )


def mend_evidence(lookup: Lookup, located: Located) -> Iterator[Mend]:
    """Say in which order of the evidence the tie would be settled otherwise."""
    best, options = lookup.best, lookup.options
    if located["state"] != "tied" or best is None:
        return
    entries = {hit.entry.cui: hit.entry for hit in lookup.hits}
    own, theirs = (
        lookup.kb.store.sources_of(entries[cui])
        for cui in (located["cui"], best["cui"])
    )
    source = next((source for source in own if source not in theirs), None)
    given = options.tie_evidence
    orders = [(name, *(o for o in given if o != name)) for name in EVIDENCE]
    trials = [(order, options.source_rank) for order in orders]
    if source is not None:
        trials += [
            (order, (source, *options.source_rank)) for order in (given, *orders)
        ]
    for order, ranks in trials:
        if works(lookup, located, tie_evidence=order, source_rank=ranks):
            wanted = {"tie_evidence": (given, order)}
            wanted["source_rank"] = (options.source_rank, ranks)
            changes = (
                f"`{name} = {json.dumps(new)}`"
                for name, (old, new) in wanted.items()
                if new != old
            )
            yield make_mend(f"Set {' and '.join(changes)}.", tried=True)
            return


def mend_search(lookup: Lookup, located: Located) -> Iterator[Mend]:
    """Say which way to search finds the concept."""
    if located["state"] not in ("behind", "missed") or lookup.best is None:
        return
    options, best = lookup.options, lookup.best["cui"]
    if located["state"] == "missed":
        more = min(options.k * MORE, MOST_CONCEPTS)
        yield make_mend(
            f"The index passed it over. Set `k = {more}`, or build the knowledge base "
            "with a larger `ef`, or with `--backend exact`.",
            tried=works(lookup, located, k=more),
        )
    if lookup.kb.meta.get("ngrams"):
        for fusion in (None, "weighted", "rrf"):
            if fusion != options.fusion and works(lookup, located, fusion=fusion):
                value = "null" if fusion is None else f'"{fusion}"'
                yield make_mend(f"Set `fusion = {value}`.", tried=True)
                break
    deny = tuple(sorted({*options.filter.deny, best}))
    denied = replace(options.filter, deny=deny)
    if works(lookup, located, filter=denied):
        yield make_mend(
            f"Leave {best} out with `filter.deny` (`--deny`), if nobody means it.",
            tried=True,
        )


def mend_name(lookup: Lookup, located: Located) -> Iterator[Mend]:
    """Say that a name is missing."""
    states = ("behind", "missed", "nil", "unreadable")
    if located["state"] not in states or lookup.vector is None:
        return
    if (located["score"] or 0) >= EQUAL:
        return
    best, text = lookup.best, lookup.question.text
    what = "None of its names is like the mention. Add the mention as one."
    if best is not None and best["cui"] == located["cui"]:
        what = "Add the mention as a name: then its cosine is 1."
    elif best is not None and best["score"] >= EQUAL:
        what = (
            f"Add the mention as a name. It is one of {best['cui']} too: a tie, which "
            "`label_types`, `tie_evidence` or `source_rank` must settle."
        )
    elif is_short_form(lookup.question.mention) and not lookup.question.long_form:
        what = "Add it as a name, if it means this wherever your texts have it."
    command = kb_command(lookup, "add", "--cui", located["cui"], "--alias", text)
    yield make_mend(what, command=command)


def mend_depth(lookup: Lookup, located: Located) -> Iterator[Mend]:
    """Say how far down the concept would be a candidate."""
    rank, k = located["exact_rank"], lookup.options.k
    if lookup.options.fusion is None and rank and k < rank <= MOST_CONCEPTS:
        yield make_mend(
            f"With `k = {rank}` it would be the last candidate, for a component that "
            "orders the candidates again."
        )


SOURCES = (
    mend_text,
    mend_absent,
    mend_filter,
    mend_nothing,
    mend_tie,
    mend_evidence,
    mend_search,
    mend_name,
    mend_depth,
)
