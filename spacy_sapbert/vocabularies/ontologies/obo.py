"""Ontologies in OBO flat file format: `.obo`.

Source: OBO Flat File Format 1.4, and the older tags of 1.0 and 1.2.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from ..facts import Fact
from ..options import SCOPES, ReadOptions
from ..report import Report, read_good_lines, source_of_file
from .ontology import EXACT, Term, facts_of_terms

# possessive: else each character of a long text would be kept for going back
QUOTED = re.compile(r'\s*"((?:[^"\\]++|\\.)*+)"(?=[\s\[{]|$)\s*(\w*)')
# The same with quotes in it that are not escaped, before a scope or a list
LOOSE = re.compile(r'\s*"(.*?)"\s+(?:(EXACT|NARROW|BROAD|RELATED)\b|\[)')
ESCAPE = re.compile(r"\\(.)")
ESCAPED = {"n": "\n", "t": "\t", "W": " "}
VERSION = re.compile(r"data-version:\s*(\S{1,200})")
DATE = re.compile(r"\d{4}-\d\d-\d\d")
LICENCE = re.compile(r"property_value:\s*\S*\blicense\s+(\"[^\"]{1,500}\"|\S{1,500})")
# a comment, or modifiers in braces, after an id
TRAILER = re.compile(r"(?<!\s)\s+[!{].*")
MODIFIERS = re.compile(r'(?<!\s)\s+\{\w[^{}]*="[^{}]*"\}(?:\s*!.*)?$')  # of a name
COMMENT = re.compile(r"(?<=[^\\\s])\s+!.*")
# The id of some files of the Cell Ontology: `xref (ILX:0770149)`
IN_BRACKETS = re.compile(r"xref \((.+)\)")
MATCH = re.compile(r'(?:skos:)?(\w+Match)\s+"?([^"\s]+)')
# what a cross reference of MONDO means, in its modifiers
MONDO = re.compile(r'source="MONDO:(\w+)"')
MONDO_MATCHES = {
    "equivalentTo": EXACT,
    "mondoIsNarrowerThanSource": "broadMatch",
    "subClassOf": "broadMatch",
    "mondoIsBroaderThanSource": "narrowMatch",
    "superClassOf": "narrowMatch",
}


def read_obo(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read the terms of a file."""
    return facts_of_terms(parse_obo(path, report), options, report)


def parse_obo(path: Path, report: Report) -> Iterator[Term]:
    """Yield the terms of a file that have an id; other stanzas are skipped."""
    term: Term | None = None
    in_head = True
    for number, line in read_good_lines(path, report, blank=True):
        line = line.strip()
        if line.startswith("["):
            if term is not None and term.id:
                yield term
            term = Term("") if line == "[Term]" else None
            in_head = False
            continue
        if in_head:
            read_head(line, path, report)
        if term is None or not line or line.startswith("!"):
            continue
        tag, colon, value = line.partition(":")
        try:
            if not colon:
                raise ValueError("a tag and a colon")
            parse_tag(term, tag, value.strip())
        except ValueError as error:
            report.bad_line(path, number, error)
    if term is not None and term.id:
        yield term


def read_head(line: str, path: Path, report: Report) -> None:
    """Read the release and the licence from a line above all terms."""
    source = source_of_file(path.name)
    if match := VERSION.match(line):
        report.add_release(source, (DATE.search(match[1]) or match)[0].split()[-1])
    elif match := LICENCE.match(line):
        report.add_release(source, "", unescape(match[1]).strip('"'))


def parse_id(value: str) -> str:
    """Remove modifiers and comments from an id.

    Args:
        value: E.g. "DOID:162 {source="x"} ! cancer".

    Returns:
        E.g. "DOID:162".

    Raises:
        ValueError: If nothing is left.
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

    Args:
        value: E.g. '"Chikungunya fever" EXACT []'.

    Returns:
        E.g. "Chikungunya fever" and "EXACT".
    """
    match = QUOTED.match(value)
    if match is None or match[2].upper() not in ("", *SCOPES):
        match = LOOSE.match(value) or match
    if not match:
        raise ValueError("a text in double quotes")
    return unescape(match[1]), (match[2] or "").upper()


def parse_tag(term: Term, tag: str, value: str) -> None:
    """Add the value of a tag to a term; unknown tags are ignored."""
    match tag:
        case "id":
            if term.id:
                raise ValueError("one id in a term")
            term.id = parse_id(value)
        case "name":
            term.name = unescape(COMMENT.sub("", MODIFIERS.sub("", value)))
        case "def":
            term.definition = parse_quoted(value)[0] or None
        case "synonym":
            text, scope = parse_quoted(value)
            term.synonyms.append((scope or "RELATED", text))
        case "exact_synonym" | "narrow_synonym" | "broad_synonym" | "related_synonym":
            scope = tag.removesuffix("_synonym").upper()  # OBO 1.0
            term.synonyms.append((scope, parse_quoted(value)[0]))
        case "is_a":
            term.parents.append(parse_id(value))
        case "xref" | "xref_analog" | "xref_unk" | "xref_unknown":
            # a description in quotes may follow
            id = parse_id(IN_BRACKETS.sub(r"\1", value.partition(' "')[0]))
            term.xrefs.append(id)
            for kind in MONDO.findall(value):
                term.matches.append((MONDO_MATCHES.get(kind, "relatedMatch"), id))
        case "property_value":
            if match := MATCH.match(value):
                term.matches.append((match[1], unescape(match[2])))
        case "alt_id":
            term.alternatives.append(parse_id(value))
        case "replaced_by":
            term.replaced_by.append(parse_id(value))
        case "is_obsolete":
            term.obsolete = parse_id(value).lower() == "true"
