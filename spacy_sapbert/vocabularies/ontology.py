"""Terms of an ontology → concepts, under their own ids or cross-referenced ones."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from re import Pattern

from ..errors import Errors, SapbertError
from .concepts import Concept
from .merge import sort_concepts
from .report import Report, clean_names, compile_pattern, count_concepts

SCOPES = ("EXACT", "NARROW", "BROAD", "RELATED")
IDS = ("own", "xref")
MULTI_XREF = ("drop", "all")
PREFIX = "UMLS"
CUI = r"C\d{7}"


@dataclass(slots=True)
class Term:
    """A term of an ontology.

    id (str): E.g. "DOID:1816".
    name (str): May be empty.
    synonyms (list[tuple[str, str]]): Scope and text.
    parents (list[str]): Ids of `is_a`.
    xrefs (list[str]): Cross references, e.g. "UMLS_CUI:C0018923".
    alternatives (list[str]): Ids that were merged into this one.
    replaced_by (list[str]): Of an obsolete term.
    """

    id: str
    name: str = ""
    synonyms: list[tuple[str, str]] = field(default_factory=list)
    definition: str | None = None
    parents: list[str] = field(default_factory=list)
    xrefs: list[str] = field(default_factory=list)
    alternatives: list[str] = field(default_factory=list)
    replaced_by: list[str] = field(default_factory=list)
    obsolete: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """Which terms and names become concepts; see `obo.read_obo`."""

    ids: str
    xref_prefix: str
    multi_xref: str
    scopes: tuple[str, ...]
    obsolete: bool
    type: str | None
    pattern: Pattern[str] | None


def make_choice(
    ids: str,
    xref_prefix: str,
    multi_xref: str,
    scopes: Sequence[str],
    obsolete: bool,
    type: str | None,
    cui_pattern: str | None,
) -> Choice:
    """Check the options of both formats.

    RAISES (SapbertError): If an option has an unknown value.
    """
    upper = tuple(scope.upper() for scope in scopes) or SCOPES
    for option, values, known in (
        ("ids", (ids,), IDS),
        ("multi-xref", (multi_xref,), MULTI_XREF),
        ("scopes", upper, SCOPES),
    ):
        for value in values:
            if value not in known:
                raise SapbertError(
                    Errors.E115.format(
                        option=option, known=", ".join(known), value=value
                    )
                )
    if cui_pattern is None and ids == "xref" and xref_prefix.upper() == PREFIX:
        cui_pattern = CUI
    pattern = None if cui_pattern is None else compile_pattern(cui_pattern)
    return Choice(ids, xref_prefix, multi_xref, upper, obsolete, type, pattern)


def xref_ids(term: Term, prefix: str) -> list[str]:
    """Return the distinct ids of a term in another vocabulary, without the prefix.

    prefix (str): Of the vocabulary; `UMLS` finds `UMLS:…` and `UMLS_CUI:…`.
    """
    names = {prefix.upper(), f"{prefix.upper()}_CUI"}
    parts = (xref.partition(":") for xref in term.xrefs)
    found = (local for name, _, local in parts if name.upper() in names and local)
    return list(dict.fromkeys(found))


def choose_ids(term: Term, choice: Choice) -> list[str]:
    """Return the ids of the concepts that get the names of a term; may be empty."""
    own = choice.ids == "own"
    ids = [term.id] if own else xref_ids(term, choice.xref_prefix)
    if choice.pattern is None:
        return ids
    return [cui for cui in ids if choice.pattern.fullmatch(cui)]


def find_drop_rule(term: Term, ids: Sequence[str], choice: Choice) -> str | None:
    """Return the rule that drops a term; None if it is kept.

    ids (Sequence[str]): From `choose_ids`.
    """
    if term.obsolete and not choice.obsolete:
        return "obsolete terms"
    if not ids:
        if choice.ids == "own" or xref_ids(term, choice.xref_prefix):
            return "terms with malformed ids"
        return f"terms without a {choice.xref_prefix} id"
    if len(ids) > 1 and choice.multi_xref == "drop":
        return f"terms with several {choice.xref_prefix} ids"
    return None


def term_names(term: Term, choice: Choice, report: Report) -> list[str]:
    """Return the distinct cleaned names of a term, its own name first."""
    texts = [text for scope, text in term.synonyms if scope in choice.scopes]
    dropped = len(term.synonyms) - len(texts)
    report.dropped["synonyms of other scopes"] += dropped
    return clean_names([term.name, *texts], report)


def term_codes(term: Term, ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the codes of a term and of its cross references, by source.

    ids (Sequence[str]): The ids of its concepts, which are left out.
    """
    codes: dict[str, list[str]] = {}
    for reference in [term.id, *term.xrefs]:
        source, _, code = reference.partition(":")
        known = codes.setdefault(source, [])
        if code and code not in ids and code not in known and "//" not in code:
            known.append(code)
    return {source: found for source, found in codes.items() if found}


def term_sources(term: Term, names: int) -> dict[str, list[int]]:
    """Return the prefix of a term's id as the source of all its names, if it has one.

    names (int): Number of names.
    """
    source, _, code = term.id.partition(":")
    known = source and code and not code.startswith("//")
    return {source: list(range(names))} if known else {}


def find_retired_ids(terms: Sequence[Term], choice: Choice) -> dict[str, list[str]]:
    """Return the ids that were merged into another or replaced by it.

    RETURNS (dict[str, list[str]]): Retired ids by the current id; empty if the ids are
        those of another vocabulary.
    """
    retired: dict[str, list[str]] = {}
    if choice.ids == "own":
        for term in terms:
            retired.setdefault(term.id, []).extend(term.alternatives)
            if term.obsolete and not choice.obsolete and len(term.replaced_by) == 1:
                retired.setdefault(term.replaced_by[0], []).append(term.id)
    return retired


def make_concepts(
    terms: Sequence[Term], choice: Choice, report: Report
) -> Iterator[Concept]:
    """Make the concepts of all terms of a file; an id may come again."""
    chosen = {term.id: choose_ids(term, choice) for term in terms}
    kept = {
        term.id
        for term in terms
        if find_drop_rule(term, chosen[term.id], choice) is None
    }
    retired = find_retired_ids(terms, choice)
    for term in terms:
        ids = chosen[term.id]
        rule = find_drop_rule(term, ids, choice)
        if rule is not None:
            report.dropped[rule] += 1
            continue
        names = term_names(term, choice, report)
        if not names:
            report.dropped["terms without a name"] += 1
            continue
        above = [i for parent in term.parents if parent in kept for i in chosen[parent]]
        for cui in ids:
            yield Concept(
                cui,
                list(names),
                types=[choice.type] if choice.type else [],
                codes=term_codes(term, ids),
                parents=sorted(set(above) - {cui}),
                definition=term.definition,
                retired=list(dict.fromkeys(retired.get(cui, []))),
                sources=term_sources(term, len(names)),
            )


def sort_terms(
    terms: Sequence[Term], choice: Choice, report: Report
) -> Iterator[Concept]:
    """Make the concepts of all terms of a file, sorted by id, each once.

    RAISES (SapbertError): If no concept is left.
    """
    concepts = sort_concepts(make_concepts(terms, choice, report))
    yield from count_concepts(concepts, report)
