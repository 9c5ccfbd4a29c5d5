"""Ontologies in OBO flat file format: `.obo`."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ..errors import Errors, SapbertError
from .concepts import Concept
from .good_lines import read_good_lines
from .ontology import PREFIX, Term, make_choice, read_terms
from .report import Report

QUOTED = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*(\w*)')
ESCAPE = re.compile(r"\\(.)")
ESCAPED = {"n": "\n", "t": "\t", "W": " "}
# a comment, or modifiers in braces, behind an id
TRAILER = re.compile(r"(?<!\s)\s+[!{].*")


def read_obo(
    path: Path,
    *,
    ids: str = "own",
    xref_prefix: str = PREFIX,
    multi_xref: str = "drop",
    scopes: Sequence[str] = ("EXACT",),
    obsolete: bool = False,
    type: str | None = None,
    cui_pattern: str | None = None,
    on_error: str = "fail",
    report: Report | None = None,
) -> Iterator[Concept]:
    """Read an ontology; its terms are held in memory, as ontologies fit there.

    path (Path): The file, plain or `.gz`.
    ids (str): "own", or "xref" to put names under the ids of another vocabulary.
    xref_prefix (str): Prefix of that vocabulary; also with `_CUI` behind it.
    multi_xref (str): Terms with several of its ids: "drop" them, or give their names
        to "all".
    scopes (Sequence[str]): Synonyms kept: EXACT, NARROW, BROAD, RELATED; empty: all.
    obsolete (bool): Keep obsolete terms too.
    type (str | None): Semantic type of all concepts.
    cui_pattern (str | None): Regular expression that an id has to match as a whole;
        None = that of UMLS for its ids, else any.
    on_error (str): "fail", or "skip" to count bad lines and go on.
    report (Report | None): Filled while reading.
    YIELDS (Concept): Each concept, sorted by its id.
    RAISES (SapbertError): With file and line, at the first bad line; if nothing is
        left.
    SOURCE: OBO Flat File Format 1.4.
    """
    report = Report() if report is None else report
    report.path, report.format = str(path), "obo"
    choice = make_choice(
        ids, xref_prefix, multi_xref, scopes, obsolete, type, cui_pattern
    )
    terms = list(parse_obo(path, on_error=on_error, report=report))
    yield from read_terms(terms, choice, path, report)


def parse_obo(path: Path, *, on_error: str, report: Report) -> Iterator[Term]:
    """Read the terms of a file; stanzas of other kinds are passed over.

    path (Path): The file.
    on_error (str): See `read_obo`.
    report (Report): Is told of lines and bad ones.
    YIELDS (Term): Each term that has an id.
    RAISES (SapbertError): With file and line.
    """
    term: Term | None = None
    for number, line in read_good_lines(path, on_error=on_error, report=report):
        line = line.strip()
        if line.startswith("["):
            if term is not None and term.id:
                yield term
            term = Term("") if line == "[Term]" else None
            continue
        if term is None or not line or line.startswith("!"):
            continue
        tag, colon, value = line.partition(":")
        try:
            if not colon:
                raise ValueError("a tag and a colon")
            if tag in TAGS:
                TAGS[tag](term, value.strip())
        except ValueError as error:
            if on_error == "fail":
                raise SapbertError(
                    Errors.E117.format(path=path, line=number, expected=error)
                ) from None
            report.dropped["bad lines"] += 1
    if term is not None and term.id:
        yield term


def bare(value: str) -> str:
    """Take modifiers and comment off a value that is an id.

    value (str): E.g. "DOID:162 {source="x"} ! cancer".
    RETURNS (str): E.g. "DOID:162".
    RAISES (ValueError): If nothing is left.
    """
    value = unescape(TRAILER.sub("", value)).strip()
    if not value:
        raise ValueError("an id")
    return value


def unescape(text: str) -> str:
    r"""Replace `\n`, `\"`, `\:` and the like by what they mean."""
    return ESCAPE.sub(lambda match: ESCAPED.get(match[1], match[1]), text)


def quoted(value: str) -> "tuple[str, str]":
    """Read a quoted text and the word behind it.

    value (str): E.g. '"Chikungunya fever" EXACT []'.
    RETURNS (tuple[str, str]): E.g. "Chikungunya fever" and "EXACT".
    RAISES (ValueError): If there is no quoted text.
    """
    match = QUOTED.match(value)
    if not match:
        raise ValueError("a text in double quotes")
    return unescape(match[1]), match[2].upper()


def set_id(term: Term, value: str) -> None:
    """Take the id of a term; it has one."""
    if term.id:
        raise ValueError("one id in a term")
    term.id = bare(value)


def add_synonym(term: Term, value: str) -> None:
    """Take a synonym; without a scope it is a related one."""
    text, scope = quoted(value)
    term.synonyms.append((scope or "RELATED", text))


def set_name(term: Term, value: str) -> None:
    """Take the name of a term."""
    term.name = unescape(value)


def set_definition(term: Term, value: str) -> None:
    """Take the definition of a term."""
    term.definition = quoted(value)[0] or None


def set_obsolete(term: Term, value: str) -> None:
    """Take whether a term is obsolete."""
    term.obsolete = bare(value).lower() == "true"


def add_xref(term: Term, value: str) -> None:
    """Take a cross reference; a description may stand behind it."""
    term.xrefs.append(bare(value.partition(' "')[0]))


def add_to(place: str) -> Callable[[Term, str], None]:
    """Make a function that takes an id into a list of the term."""

    def add(term: Term, value: str) -> None:
        ids: list[str] = getattr(term, place)
        ids.append(bare(value))

    return add


TAGS: dict[str, Callable[[Term, str], None]] = {
    "id": set_id,
    "name": set_name,
    "def": set_definition,
    "synonym": add_synonym,
    "is_a": add_to("parents"),
    "xref": add_xref,
    "alt_id": add_to("alternatives"),
    "replaced_by": add_to("replaced_by"),
    "is_obsolete": set_obsolete,
}
