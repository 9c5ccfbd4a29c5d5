"""Ontologies in OBO flat file format: `.obo`."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import Errors, SapbertError
from .concepts import Concept
from .ontology import PREFIX, Term, make_choice, sort_terms
from .report import Report, read_good_lines, start_report

QUOTED = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*(\w*)')
ESCAPE = re.compile(r"\\(.)")
ESCAPED = {"n": "\n", "t": "\t", "W": " "}
# a comment, or modifiers in braces, after an id
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
    """Read an ontology; all its terms are in memory.

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
    on_error (str): "fail", or "skip" to count invalid lines and continue.
    report (Report | None): Filled while reading.
    YIELDS (Concept): Each concept, sorted by id.
    RAISES (SapbertError): With file and line, at the first invalid line; if no concept
        is left.
    SOURCE: OBO Flat File Format 1.4.
    """
    report = start_report(report, path, "obo")
    choice = make_choice(
        ids, xref_prefix, multi_xref, scopes, obsolete, type, cui_pattern
    )
    terms = list(parse_obo(path, on_error=on_error, report=report))
    yield from sort_terms(terms, choice, report)


def parse_obo(path: Path, *, on_error: str, report: Report) -> Iterator[Term]:
    """Yield the terms of a file that have an id; other stanzas are skipped."""
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
            parse_tag(term, tag, value.strip())
        except ValueError as error:
            if on_error == "fail":
                raise SapbertError(
                    Errors.E117.format(path=path, line=number, expected=error)
                ) from None
            report.dropped["bad lines"] += 1
    if term is not None and term.id:
        yield term


def parse_id(value: str) -> str:
    """Remove modifiers and comments from an id.

    value (str): E.g. "DOID:162 {source="x"} ! cancer".
    RETURNS (str): E.g. "DOID:162".
    RAISES (ValueError): If nothing is left.
    """
    value = unescape(TRAILER.sub("", value)).strip()
    if not value:
        raise ValueError("an id")
    return value


def unescape(text: str) -> str:
    r"""Replace `\n`, `\"`, `\:` and other escapes by their characters."""
    return ESCAPE.sub(lambda match: ESCAPED.get(match[1], match[1]), text)


def parse_quoted(value: str) -> tuple[str, str]:
    """Parse a quoted text and the word after it.

    value (str): E.g. '"Chikungunya fever" EXACT []'.
    RETURNS (tuple[str, str]): E.g. "Chikungunya fever" and "EXACT".
    RAISES (ValueError): If there is no quoted text.
    """
    match = QUOTED.match(value)
    if not match:
        raise ValueError("a text in double quotes")
    return unescape(match[1]), match[2].upper()


def parse_tag(term: Term, tag: str, value: str) -> None:
    """Add the value of a tag to a term; unknown tags are ignored.

    RAISES (ValueError): With what was expected.
    """
    match tag:
        case "id":
            if term.id:
                raise ValueError("one id in a term")
            term.id = parse_id(value)
        case "name":
            term.name = unescape(value)
        case "def":
            term.definition = parse_quoted(value)[0] or None
        case "synonym":
            text, scope = parse_quoted(value)
            term.synonyms.append((scope or "RELATED", text))
        case "is_a":
            term.parents.append(parse_id(value))
        case "xref":
            # a description in quotes may follow
            term.xrefs.append(parse_id(value.partition(' "')[0]))
        case "alt_id":
            term.alternatives.append(parse_id(value))
        case "replaced_by":
            term.replaced_by.append(parse_id(value))
        case "is_obsolete":
            term.obsolete = parse_id(value).lower() == "true"
