"""Terms of an ontology → facts of concepts, under their own ids or other ones."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ...linking.sources import normalize_prefix
from ..concepts import BROADER, NARROWER, RELATED
from ..facts import ABOVE, ALSO, CODE, DEFINITION, NAME, NODE, REPLACED_BY, Fact
from ..ids import CUI, id_key
from ..options import SCOPES, ReadOptions, compile_pattern
from ..report import Report

UMLS = "UMLS"
EXACT = "exactMatch"
WRONG = "wrongMatch"
# What an id of another vocabulary is, by the predicate of SKOS
RELATION_OF = {
    "broadMatch": BROADER,
    "narrowMatch": NARROWER,
    "closeMatch": RELATED,
    "relatedMatch": RELATED,
}


@dataclass(slots=True)
class Term:
    """A term of an ontology.

    Attributes:
        id: E.g. "DOID:1816".
        name: May be empty.
        parents: Ids of `is_a`.
        xrefs: Cross references, e.g. "UMLS_CUI:C0018923".
        matches: What a cross reference means, in SKOS or `WRONG`, and its id, e.g.
            "exactMatch" and "MESH:D003924".
        alternatives: Ids that were merged into this one.
        languages: The names of which the language is known.
    """

    id: str
    name: str = ""
    synonyms: list[tuple[str, str]] = field(default_factory=list)
    definition: str | None = None
    parents: list[str] = field(default_factory=list)
    xrefs: list[str] = field(default_factory=list)
    matches: list[tuple[str, str]] = field(default_factory=list)
    alternatives: list[str] = field(default_factory=list)
    replaced_by: list[str] = field(default_factory=list)
    obsolete: bool = False
    languages: dict[str, list[str]] = field(default_factory=dict)


def facts_of_terms(
    terms: Iterable[Term | Fact], options: ReadOptions, report: Report
) -> Iterator[Fact]:
    """Yield the facts of the terms of an ontology.

    A term is a node of the hierarchy: its parents are concepts only if they are in the
    file and not left out, and their ids may be others than those of the terms.

    Args:
        terms: Terms, and facts that are not in a term, such as the one ABOVE it.
    """
    is_umls = options.ids == "xref" and options.xref_prefix.upper() == UMLS
    text = options.cui_pattern or (CUI if is_umls else None)
    pattern = None if text is None else compile_pattern(text)
    for term in terms:
        if isinstance(term, Fact):
            yield term
            continue
        related = sort_references(term, report) if term.matches else {}
        yield from retired_facts(term, options)
        ids, rule = choose_ids(term, options, pattern)
        if rule:
            report.dropped[rule] += 1
        else:
            yield from term_facts(term, ids, related, options, report)


def retired_facts(term: Term, options: ReadOptions) -> Iterator[Fact]:
    """Yield the ids that a term replaced, and those that replaced it."""
    if options.ids == "own":
        for old in term.alternatives:
            yield Fact(old, REPLACED_BY, term.id, source="alternative id")
        if term.obsolete and not options.obsolete:
            for new in term.replaced_by:
                yield Fact(term.id, REPLACED_BY, new, source="replaced by")


def term_facts(
    term: Term,
    ids: list[str],
    related: Mapping[str, str],
    options: ReadOptions,
    report: Report,
) -> Iterator[Fact]:
    """Yield the facts of a term for each of its concepts.

    `related` has the ids that do not mean the same, and what they are.
    """
    scopes = options.scopes or SCOPES
    texts = [text for scope, text in term.synonyms if scope in scopes]
    report.dropped["synonyms of other scopes"] += len(term.synonyms) - len(texts)
    source, _, code = term.id.partition(":")
    source = source if code and not code.startswith("//") else ""
    left_out = {"", *ids}
    for parent in term.parents:
        yield Fact(term.id, ABOVE, parent)
    for cui in ids:
        yield Fact(cui, NODE, term.id)
        for text in filter(None, (term.name, *texts)):
            yield Fact(cui, NAME, text, 0, source)
        for language, names in term.languages.items():
            for text in names:
                yield Fact(cui, ALSO, text, 0, source, language)
        for reference in (term.id, *term.xrefs, *related):
            vocabulary, _, code = reference.partition(":")
            if code not in left_out and "//" not in code:
                kind = related.get(reference, CODE)
                yield Fact(cui, kind, code, 0, vocabulary)
        if term.definition:
            yield Fact(cui, DEFINITION, term.definition)


def sort_references(term: Term, report: Report) -> dict[str, str]:
    """Keep the cross references of a term that mean the same, and return the others.

    Where a file says which ids of a vocabulary match exactly, its other ids are only
    related.

    Returns:
        What each other id is, one of `RELATIONS`.
    """
    kinds: dict[str, set[str]] = {}
    for kind, id in term.matches:
        kinds.setdefault(id_key(id), set()).add(kind)
    exact = {key for key, relations in kinds.items() if EXACT in relations}
    prefixes = {key.partition(":")[0] for key in exact}
    # a match need not be repeated as cross reference
    references: dict[str, str] = {}
    for xref in term.xrefs:
        references.setdefault(id_key(xref), xref)
    for key in (*sorted(exact), *kinds):
        references.setdefault(key, key)
    same, related = [], {}
    for key, id in references.items():
        relations = kinds.get(key, set())
        if key in exact or not (relations or key.partition(":")[0] in prefixes):
            same.append(id)
        elif WRONG in relations:
            report.dropped["cross references that are wrong"] += 1
        else:
            found = {RELATION_OF.get(kind, RELATED) for kind in relations}
            related[id] = found.pop() if len(found) == 1 else RELATED
    term.xrefs = same
    return related


def xref_ids(term: Term, prefix: str) -> list[str]:
    """Return the distinct ids of a term in another vocabulary, without the prefix.

    The prefix `UMLS` finds `UMLS:…` and `UMLS_CUI:…`.
    """
    name = normalize_prefix(prefix)
    parts = (xref.partition(":") for xref in term.xrefs)
    ids = (local for other, _, local in parts if normalize_prefix(other) == name)
    return list(dict.fromkeys(filter(None, ids)))


def choose_ids(
    term: Term, options: ReadOptions, pattern: re.Pattern[str] | None
) -> tuple[list[str], str]:
    """Choose the ids of the concepts that get the names of a term.

    Returns:
        The ids, and the rule that drops the term, or "".
    """
    own_ids, prefix = options.ids == "own", options.xref_prefix
    found = [term.id] if own_ids else xref_ids(term, prefix)
    ids = [id for id in found if pattern is None or pattern.fullmatch(id)]
    if term.obsolete and not options.obsolete:
        return ids, "obsolete terms"
    if not ids and found:
        return ids, "terms with malformed ids"
    if not ids:
        return ids, f"terms without a {prefix} id"
    if len(ids) > 1 and options.multi_xref == "drop":
        return ids, f"terms with several {prefix} ids"
    return ids, ""
