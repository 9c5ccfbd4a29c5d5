"""Terms of an ontology → concepts, under their own ids or cross-referenced ones."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from re import Pattern

from ..errors import Errors, SapbertError
from .concepts import Concept
from .merge import sort_concepts
from .report import Report, clean_names, compile_pattern

SCOPES = ("EXACT", "NARROW", "BROAD", "RELATED")
IDS = ("own", "xref")
MULTI_XREF = ("drop", "all")
UMLS = "UMLS"
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
    """Which terms and names become concepts; see `read_ontology`."""

    ids: str
    xref_prefix: str
    multi_xref: str
    scopes: Sequence[str]
    obsolete: bool
    pattern: Pattern[str] | None


def read_ontology(
    parse: Callable[[Path, Report], Iterator[Term]],
    path: Path,
    report: Report,
    *,
    ids: str = "own",
    xref_prefix: str = UMLS,
    multi_xref: str = "drop",
    scopes: Sequence[str] = ("EXACT",),
    obsolete: bool = False,
    type: str | None = None,
    cui_pattern: str | None = None,
) -> Iterator[Concept]:
    """Read an ontology; all its terms are in memory.

    parse (Callable[[Path, Report], Iterator[Term]]): Yields the terms of a file.
    path (Path): The file, plain or `.gz`.
    ids (str): "own", or "xref" to use the ids of another vocabulary.
    xref_prefix (str): Prefix of that vocabulary, with or without `_CUI` after it.
    multi_xref (str): For terms with several of its ids: "drop" the term, or add its
        names to "all" of them.
    scopes (Sequence[str]): Synonyms to keep: EXACT, NARROW, BROAD, RELATED; empty: all.
    obsolete (bool): Keep obsolete terms.
    type (str | None): Semantic type of all concepts.
    cui_pattern (str | None): Regular expression for whole ids; None = that of UMLS for
        its ids, else any.
    YIELDS (Concept): Each concept, sorted by id.
    RAISES (SapbertError): If an option has an unknown value; at the first invalid line
        or node.
    """
    upper = [scope.upper() for scope in scopes] or SCOPES
    for option, values, known in (
        ("ids", [ids], IDS),
        ("multi-xref", [multi_xref], MULTI_XREF),
        ("scopes", upper, SCOPES),
    ):
        for value in values:
            if value not in known:
                names = ", ".join(known)
                raise SapbertError(
                    Errors.E115.format(option=option, known=names, value=value)
                )
    if cui_pattern is None and ids == "xref" and xref_prefix.upper() == UMLS:
        cui_pattern = CUI
    pattern = None if cui_pattern is None else compile_pattern(cui_pattern)
    choice = Choice(ids, xref_prefix, multi_xref, upper, obsolete, pattern)
    terms = list(parse(path, report))
    types = [type] if type else []
    yield from sort_concepts(make_concepts(terms, choice, types, report))


def xref_ids(term: Term, prefix: str) -> list[str]:
    """Return the distinct ids of a term in another vocabulary, without the prefix.

    prefix (str): Of the vocabulary; `UMLS` finds `UMLS:…` and `UMLS_CUI:…`.
    """
    names = {prefix.upper(), f"{prefix.upper()}_CUI"}
    parts = (xref.partition(":") for xref in term.xrefs)
    found = (local for name, _, local in parts if name.upper() in names and local)
    return list(dict.fromkeys(found))


def choose_ids(term: Term, choice: Choice) -> tuple[list[str], str]:
    """Choose the ids of the concepts that get the names of a term.

    RETURNS (tuple[list[str], str]): The ids, and the rule that drops the term, or "".
    """
    own, prefix = choice.ids == "own", choice.xref_prefix
    found = [term.id] if own else xref_ids(term, prefix)
    ids = [i for i in found if not choice.pattern or choice.pattern.fullmatch(i)]
    if term.obsolete and not choice.obsolete:
        return ids, "obsolete terms"
    if not ids and found:
        return ids, "terms with malformed ids"
    if not ids:
        return ids, f"terms without a {prefix} id"
    if len(ids) > 1 and choice.multi_xref == "drop":
        return ids, f"terms with several {prefix} ids"
    return ids, ""


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
    terms: Sequence[Term], choice: Choice, types: list[str], report: Report
) -> Iterator[Concept]:
    """Make the concepts of all terms of a file; an id may come again."""
    chosen = [choose_ids(term, choice) for term in terms]
    kept = {
        term.id: ids
        for term, (ids, rule) in zip(terms, chosen, strict=True)
        if not rule
    }
    retired = find_retired_ids(terms, choice)
    for term, (ids, rule) in zip(terms, chosen, strict=True):
        if rule:
            report.dropped[rule] += 1
            continue
        texts = [text for scope, text in term.synonyms if scope in choice.scopes]
        report.dropped["synonyms of other scopes"] += len(term.synonyms) - len(texts)
        names = clean_names([term.name, *texts], report)
        if not names:
            report.dropped["terms without a name"] += 1
            continue
        parents = {i for parent in term.parents for i in kept.get(parent, ())}
        for cui in ids:
            yield Concept(
                cui,
                list(names),
                types=types,
                codes=term_codes(term, ids),
                parents=sorted(parents - {cui}),
                definition=term.definition,
                retired=list(dict.fromkeys(retired.get(cui, []))),
                sources=term_sources(term, len(names)),
            )
