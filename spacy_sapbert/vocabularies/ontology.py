"""Terms of an ontology → concepts, under their own ids or cross-referenced ones."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from re import Pattern

from ..errors import Errors, SapbertError
from .checks import compile_pattern, nothing_left
from .clean import clean_name, has_letter_or_digit
from .concepts import Concept
from .merge import sort_concepts
from .report import Report

SCOPES = ("EXACT", "NARROW", "BROAD", "RELATED")
IDS = ("own", "xref")
MULTI_XREF = ("drop", "all")
PREFIX = "UMLS"
CUI = r"C\d{7}"


@dataclass(slots=True)
class Term:
    """One term, as a file of either format has it.

    id (str): E.g. "DOID:1816".
    name (str): May be empty.
    synonyms (list[tuple[str, str]]): Scope and text.
    definition (str | None): Of the term.
    parents (list[str]): Ids of `is_a`.
    xrefs (list[str]): E.g. "UMLS_CUI:C0018923".
    alternatives (list[str]): Ids that once were other terms.
    replaced_by (list[str]): Of an obsolete term.
    obsolete (bool): Whether it is one.
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
    """Check the options that both formats take.

    RETURNS (Choice): The options.
    RAISES (SapbertError): If one has a value that there is not.
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
    """Find a term's ids in another vocabulary.

    term (Term): The term.
    prefix (str): Of the vocabulary; `UMLS` finds `UMLS:…` and `UMLS_CUI:…`.
    RETURNS (list[str]): The ids without the prefix, distinct.
    """
    names = {prefix.upper(), f"{prefix.upper()}_CUI"}
    parts = (xref.partition(":") for xref in term.xrefs)
    found = (local for name, _, local in parts if name.upper() in names and local)
    return list(dict.fromkeys(found))


def choose_ids(term: Term, choice: Choice) -> list[str]:
    """Say under which ids a term's names go.

    term (Term): The term.
    choice (Choice): The options.
    RETURNS (list[str]): The ids, maybe none.
    """
    own = choice.ids == "own"
    ids = [term.id] if own else xref_ids(term, choice.xref_prefix)
    if choice.pattern is None:
        return ids
    return [cui for cui in ids if choice.pattern.fullmatch(cui)]


def why_not(term: Term, ids: Sequence[str], choice: Choice) -> str | None:
    """Say by which rule a term is left out.

    term (Term): The term.
    ids (Sequence[str]): From `choose_ids`.
    choice (Choice): The options.
    RETURNS (str | None): The rule; None if it stays.
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
    """Choose and clean the names of a term.

    term (Term): The term.
    choice (Choice): The options.
    report (Report): Is told what is dropped.
    RETURNS (list[str]): Distinct names, the term's own name first.
    """
    names: dict[str, None] = {}
    for scope, text in [("", term.name), *term.synonyms]:
        if scope and scope not in choice.scopes:
            report.dropped["synonyms of other scopes"] += 1
            continue
        name = clean_name(text)
        if not has_letter_or_digit(name):
            report.dropped["names without a letter or digit"] += 1
        elif name in names:
            report.dropped["repeated names"] += 1
        else:
            names[name] = None
            report.rows_kept += 1
    return list(names)


def term_codes(term: Term, ids: Sequence[str]) -> dict[str, list[str]]:
    """List a term's codes by source: its own, and those of its cross references.

    term (Term): The term.
    ids (Sequence[str]): The ids of its concepts, which are no codes.
    RETURNS (dict[str, list[str]]): Codes by source.
    """
    codes: dict[str, list[str]] = {}
    for reference in [term.id, *term.xrefs]:
        source, _, code = reference.partition(":")
        known = codes.setdefault(source, [])
        if code and code not in ids and code not in known and "//" not in code:
            known.append(code)
    return {source: found for source, found in codes.items() if found}


def term_sources(term: Term, names: int) -> dict[str, list[int]]:
    """Say where a term's names come from: the vocabulary that its id is of.

    term (Term): The term.
    names (int): How many names it has.
    RETURNS (dict[str, list[int]]): Places of names by the prefix of the id; empty if it
        has none.
    """
    source, _, code = term.id.partition(":")
    known = source and code and not code.startswith("//")
    return {source: list(range(names))} if known else {}


def retired_ids(terms: Sequence[Term], choice: Choice) -> dict[str, list[str]]:
    """Find which ids once named a term that is there.

    terms (Sequence[Term]): All terms.
    choice (Choice): The options.
    RETURNS (dict[str, list[str]]): By the id of today; nothing for ids of another
        vocabulary, where the ontology cannot know.
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
    """Make concepts of terms, several of one term if so chosen.

    terms (Sequence[Term]): All terms of a file.
    choice (Choice): The options.
    report (Report): Is told what is kept and dropped.
    YIELDS (Concept): In the order of the terms; an id may come again.
    """
    chosen = {term.id: choose_ids(term, choice) for term in terms}
    kept = {term.id for term in terms if why_not(term, chosen[term.id], choice) is None}
    retired = retired_ids(terms, choice)
    for term in terms:
        ids = chosen[term.id]
        rule = why_not(term, ids, choice)
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


def read_terms(
    terms: Sequence[Term], choice: Choice, path: Path, report: Report
) -> Iterator[Concept]:
    """Make sorted concepts of the terms of a file, each id once.

    terms (Sequence[Term]): All terms.
    choice (Choice): The options.
    path (Path): The file, for the error.
    report (Report): Is filled.
    YIELDS (Concept): Each concept, sorted by its id.
    RAISES (SapbertError): If nothing is left.
    """
    for concept in sort_concepts(make_concepts(terms, choice, report)):
        report.concepts += 1
        report.names += len(concept.aliases)
        report.counts["concepts with a definition"] += concept.definition is not None
        report.counts["parents"] += len(concept.parents)
        report.counts["retired ids"] += len(concept.retired)
        yield concept
    if not report.concepts:
        raise SapbertError(nothing_left(report))
