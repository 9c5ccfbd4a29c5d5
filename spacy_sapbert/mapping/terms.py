"""Terms as people write them in a column → the texts that are looked up."""

import re
from collections.abc import Callable, Iterator
from itertools import groupby

from ..linking.ranking import has_text
from ..linking.text import name_form

# A code of a classification: E11.9, C50, 250.00, J45.909, 38341003, LOINC's 4548-4
CODE = r"(?:[A-Z]{1,2}\d{2,4}(?:\.[\dA-Z]{1,4})?|\d{3}\.\d{1,2}|\d{6,18}|\d{2,6}-\d)"
BRACKETED_CODE = re.compile(rf"[(\[{{]\s*(?:[\w-]{{2,12}}\s*[:=]?\s*)?{CODE}\s*[)\]}}]")
LEADING_CODE = re.compile(rf"^\s*{CODE}\s*[-–—:|]?\s+(?=\D)")
# Without brackets only what is no part of a name: not "vitamin B12"
SURE_CODE = r"(?:[A-Z]{1,2}\d{2,4}\.[\dA-Z]{1,4}|\d{3}\.\d{1,2}|\d{6,18})"
TRAILING_CODE = re.compile(rf"\s+[-–—:|]?\s*{SURE_CODE}\s*$|\s+[-–—|]\s*{CODE}\s*$")
# "Asthma (2)", "Asthma *", "Asthma 1)": a footnote or a number of a list
TRAILING_NUMBER = re.compile(r"\s*[(\[]\d{1,2}[)\]]\s*$|\s+\d{1,2}[).]\s*$|\s*\*+\s*$")
LEADING_NUMBER = re.compile(r"^\s*(?:[-•*·]|\(?\d{1,2}[).])\s+")
UNSPECIFIED = re.compile(
    r"[,;(\[]?\s*\b(?:n\.?o\.?s|n\.?e\.?c|not otherwise specified|unspecified|"
    r"not elsewhere classified|o\.?n\.?a|n\.?n\.?b|nicht näher bezeichnet|sin "
    r"especificar)\b\.?\s*[)\]]?",
    re.IGNORECASE,
)
STATUS = re.compile(
    r"^\s*(?:h/o|hx(?: of)?|history of|known|s/p|status post|st\.? ?n\.?|z\.? ?n\.?|"
    r"v\.? ?a\.?|r/o|rule out|\?|suspected|susp\.?|query|p/h|f/h|c/o|dx:?)\s*(?=\w\w)",
    re.IGNORECASE,
)
SIDES = re.compile(
    r"[,;(]?\s*\b(?:left|right|bilateral|both|lt|rt|l|r|li|re|bds|links|rechts|"
    r"beidseits|izquierd[oa]|derech[oa]|gauche|droite?)\b\.?(?:[- ]?(?:sided?|seitig))?"
    r"\s*\)?",
    re.IGNORECASE,
)
# What people write into a cell that has no term
NO_TERMS = (
    "n/a, none, nil, null, nan, missing, unknown, unk, not known, not available, "
    "not applicable, not specified, not stated, not recorded, unspecified, "
    "undetermined, other, others, no data, tbd, k.A., keine, keine Angabe, unbekannt, "
    "nicht bekannt, entfällt, desconocido, ninguno, ninguna, no aplica, inconnu, "
    "aucun, aucune, non connu"
)
NO_TERM_FORMS = frozenset(map(name_form, NO_TERMS.split(", ")))
MISSING = "NA"  # "Na" is sodium
EDGES = " \t\r\n,;:-–—_|/"
SHORTEST_SHOUT = 6  # letters of a term in capitals that is no abbreviation

Rule = Callable[[str], str]


def drop(*patterns: re.Pattern[str]) -> Rule:
    """Return a rule that removes what matches."""

    def rule(term: str) -> str:
        for pattern in patterns:
            term = pattern.sub(" ", term)
        return " ".join(term.split()).strip(EDGES)

    return rule


def lower_shouting(term: str) -> str:
    """Return a term of capitals in lower case, unless it may be an abbreviation."""
    letters = sum(map(str.isalpha, term))
    return term.lower() if term.isupper() and letters >= SHORTEST_SHOUT else term


drop_codes = drop(
    *(LEADING_NUMBER, BRACKETED_CODE, LEADING_CODE, TRAILING_CODE, TRAILING_NUMBER)
)
# From what belongs to no term to what may belong to it
RULES: tuple[Rule, ...] = (
    drop_codes,
    drop(STATUS),
    drop(SIDES),
    lower_shouting,
)
# "Bronchiectasis NOS" is a name in some vocabularies, with a code of its own
RULES_WITHOUT_NOS: tuple[Rule, ...] = (drop_codes, drop(UNSPECIFIED), *RULES[1:])


def list_readings(term: str) -> list[str]:
    """Return the texts that are looked up for a term: itself, and what the rules leave.

    "H/O Asthma, NOS (J45.9)" → itself, "H/O Asthma, NOS", "Asthma, NOS", "H/O Asthma",
    "Asthma". None for what says that there is no term: "N/A", "unknown (R69)".
    """
    readings = [" ".join(term.split())]
    for rules in (RULES, RULES_WITHOUT_NOS):
        text = readings[0]
        for rule in rules:
            text = rule(text)
            readings.append(text)
    if not all(map(is_term, filter(has_text, readings))):
        return []
    return [text for text in dict.fromkeys(readings) if has_text(text)]


def is_term(text: str) -> bool:
    """Return whether a text can name a concept, unlike "N/A", "unknown" and "-"."""
    text = text.strip()
    return has_text(text) and text != MISSING and name_form(text) not in NO_TERM_FORMS


def has_side(term: str) -> bool:
    return SIDES.search(term) is not None


def split_terms(cell: str, separator: str | None) -> Iterator[str]:
    """Yield the terms of a cell; without a separator there is one."""
    parts = [cell] if not separator else cell.split(separator)
    terms = [part.strip() for part in parts]
    yield from (term for term, _ in groupby(filter(None, terms)))
