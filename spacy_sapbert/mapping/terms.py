"""Terms as people write them in a column → the texts that are looked up.

A step removes what is often no part of a name: numbers of lists, codes, "NOS", "h/o",
sides. Some of it has a meaning, so that a term whose concept lacks it is not the name
of the concept: `list_dropped`. Each language has its own words.
"""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from ..linking.ranking import has_text
from ..linking.text import Rules, list_words, name_form

FAMILY, SUSPECTED, PAST, NEGATED = "family", "suspected", "past", "negated"
CODE, NUMBER, SIDE, UNSPECIFIED = "code", "number", "side", "unspecified"
HARMLESS = "harmless"  # "known", "c/o", a number of a list
# Without one of these, a term says something else than before.
MEANING = (FAMILY, SUSPECTED, PAST, NEGATED, NUMBER)
FOR_PEOPLE = (*MEANING, CODE)  # without one of these, a person decides

# A code that nothing else looks like: E11.9, 250.00, 38341003, LOINC's 4548-4
DOTTED = r"[A-TV-Z]\d[\dA-Z]\.[\dA-Z]{1,4}"
SURE_CODE = rf"(?:{DOTTED}|\d{{3}}\.\d{{1,2}}|\d{{6,18}}|C\d{{7}}|D\d{{6}}(?:\d{{3}})?)"
# and what looks like "B12", and needs a sign that separates it
ANY_CODE = rf"(?:{SURE_CODE}|[A-TV-Z]\d{{2,4}}|\d{{5}}|\d{{3,6}}-\d)"
LABEL = (
    r"(?:ICD[- ]?(?:\d{1,2}|O)?(?:[- ]?(?:CM|GM|PCS|AM|CA))?|SNOMED(?:[- ]?CT)?|SCTID|"
    r"UMLS|CUI|MeSH|O?MIM|ORPHA|LOINC|RxNorm|RXCUI|ATC|HP|MONDO|DOID|NCIT|code)"
)
LABELLED = rf"{LABEL}\s*[:=#]?\s*[A-Z]{{0,2}}:?\d[\w.-]{{1,17}}"
CODES = [
    (CODE, rf"[(\[{{]\s*(?:{SURE_CODE}|\d{{3,6}}-\d|{LABELLED})\s*[)\]}}]"),
    (CODE, rf"^\s*{ANY_CODE}\s*(?:\s[-–—]\s+|\s[-–—]|[-–—]\s|[:|;]\s*)(?=\D)"),
    (CODE, rf"^\s*{LABELLED}(?:\s*[-–—:|,])?\s+(?=\D)"),
    (CODE, rf"^\s*(?:{DOTTED}|\d{{6,18}}|C\d{{7}}|D\d{{6}})(?:\s+|\s*[,/]\s*)(?=\D)"),
    (CODE, rf"[,;]?\s*\b{LABELLED}\s*$"),
    (CODE, rf"\s+(?:[-–—|:;,]\s*)?{SURE_CODE}\s*$|\s*[|:;]\s*{ANY_CODE}\s*$"),
    (CODE, rf"\s+[-–—]\s+{ANY_CODE}\s*$"),
]
LIST_NUMBER = (HARMLESS, r"^\s*(?:[-•*·]|\(?\d{1,2}[).])\s+|\s*\*+\s*$")
# "Asthma (2)" has a footnote, and "Trisomy (21)" has none.
LAST_NUMBER = (NUMBER, r"\s*[(\[]\d{1,2}[)\]]\s*$|\s+\d{1,2}[).]\s*$")

# Words of each language, as regular expressions: what a term starts or ends with, sides
WORDS = json.loads(Path(__file__).with_name("terms.json").read_text("utf8"))
LANGUAGES: tuple[Rules, ...] = ("english", "german", "romance")
# Beside these, "L" and "R" are sides; "l thyroxine" and "R wave" have none.
PAIRED = f"(?:{'|'.join(WORDS['paired'])})s?"
LETTERS = {"left": "l", "right": "r"}

# What people write into a cell that has no term
NO_TERM_FORMS = frozenset(map(name_form, WORDS["no term"]))
MISSING = "NA"  # "Na" is sodium
IN_BRACKETS = re.compile(r"[(\[{][^()\[\]{}]*[)\]}]")
PASSES = 4  # of a step
STRIPPED_KEPT = 5_000  # terms and names
EDGES = " \t\r\n,;:-–—_|/"
SHORTEST_SHOUT = 6  # letters of a term in capitals that is no abbreviation
ENGLISH: tuple[Rules, ...] = ("english",)


class Dropped(NamedTuple):
    """What a step removed: its kind, the text, and for a side which one."""

    kind: str
    text: str
    side: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


Step = tuple[tuple[str, str, re.Pattern[str]], ...]  # kind, side, what goes


def compile_step(*patterns: tuple[str, str] | tuple[str, str, str]) -> Step:
    return tuple(
        (kind, "".join(side), re.compile(pattern, re.IGNORECASE))
        for kind, pattern, *side in patterns
    )


def is_unspecified(words: Sequence[str]) -> str:
    return rf"[,;(\[]?\s*(?<!\w)(?:{'|'.join(words)})(?!\w)\.?\s*[)\]]?"


def starts_with(words: Sequence[str]) -> str:
    word = rf"(?:{'|'.join(words)})(?!(?<=\w)\w)"
    return rf"^\s*[(\[]?{word}[)\]]?\s*[:\-–]?\s*(?=\S{{0,9}}\w\w)"


def ends_with(words: Sequence[str]) -> str:
    return rf"(?:\s*[,;(\[]\s*|\s+[-–—]\s+)(?:{'|'.join(words)})\s*[)\]]?\s*$"


def is_side(words: Sequence[str]) -> str:
    word = rf"(?<![\w/-])(?:{'|'.join(words)})(?!\w)"
    return rf"[,;(\[]?\s*{word}(?:[- ]?sided\b)?\s*[)\]]?"


def is_letter(letter: str) -> str:
    """Return what matches a letter as a side: "R leg", "leg, R", "leg pain (R)"."""
    return (
        rf"^\s*{letter}\b\.?(?=\s+{PAIRED}\b)|(?<=\s){letter}\b\.?(?=\s+{PAIRED}\b)"
        rf"|\s*[,(\[]\s*{letter}\.?\s*[)\]]?\s*$|(?<=\w)\s+\(?{letter}\)\s*$"
    )


CODE_STEP = tuple(
    (kind, "", re.compile(pattern, re.IGNORECASE if LABEL in pattern else 0))
    for kind, pattern in (LIST_NUMBER, *CODES, LAST_NUMBER)
)
NOS_STEPS = {
    rules: compile_step((UNSPECIFIED, is_unspecified(WORDS[rules][UNSPECIFIED])))
    for rules in LANGUAGES
}
STATUS_STEPS = {
    rules: compile_step(
        *((kind, starts_with(some)) for kind, some in WORDS[rules]["start"].items()),
        *((kind, ends_with(some)) for kind, some in WORDS[rules]["end"].items()),
        (SUSPECTED, r"(?<=\w)\s*\(?\?+\)?\s*$"),
        (NEGATED, r"(?<=\w)\s*[(\[]\s*[-\u2013\u2212]\s*[)\]]\s*$"),  # "fever (-)"
    )
    for rules in LANGUAGES
}
SIDE_STEPS = {
    rules: compile_step(
        *((SIDE, is_side(some), side) for side, some in WORDS[rules]["side"].items()),
        *((SIDE, is_letter(letter), side) for side, letter in LETTERS.items()),
    )
    for rules in LANGUAGES
}


def remove(term: str, step: Step) -> tuple[str, list[Dropped]]:
    """Return a term without what a step removes, and what that was."""
    dropped: list[Dropped] = []
    for _ in range(PASSES):  # "h/o ?asthma"
        before = term
        for kind, side, pattern in step:
            found = [match.group().strip(EDGES) for match in pattern.finditer(term)]
            if found:
                dropped += [Dropped(kind, text, side) for text in found]
                term = " ".join(pattern.sub(" ", term).split()).strip(EDGES)
        if term == before:
            break
    return term, dropped


def lower_shouting(term: str) -> str:
    """Return a term of capitals in lower case, unless it may be an abbreviation."""
    letters = sum(map(str.isalpha, term))
    return term.lower() if term.isupper() and letters >= SHORTEST_SHOUT else term


def of_rules(steps: dict[Rules, Step], rules: Collection[Rules]) -> Step:
    return tuple(rule for name, step in steps.items() if name in rules for rule in step)


@cache
def list_steps(rules: tuple[Rules, ...]) -> tuple[Step, ...]:
    """Return the steps, from what belongs to no term to what may belong to it."""
    tables = (NOS_STEPS, STATUS_STEPS, SIDE_STEPS)
    return (CODE_STEP, *(of_rules(table, rules) for table in tables))


def list_readings(term: str, rules: tuple[Rules, ...] = ENGLISH) -> list[str]:
    """Return the texts that are looked up for a term: itself, and what the steps leave.

    "H/O Asthma, NOS (J45.9)" → itself, "H/O Asthma, NOS", "Asthma, NOS", "H/O Asthma",
    "Asthma". None for what says that there is no term: "N/A", "unknown (R69)".

    Args:
        rules: Of the languages that the term may be in.
    """
    readings = [" ".join(term.split())]
    codes, nos, status, sides = list_steps(rules)
    # "Bronchiectasis NOS" is a name in some vocabularies, with a code of its own
    for steps in ((codes, status, sides), (codes, nos, status, sides)):
        text = readings[0]
        for step in steps:
            text, dropped = remove(text, step)
            if not any(each.kind == NEGATED for each in dropped):
                readings.append(text)
            else:
                break
        else:
            readings.append(lower_shouting(text))
    bare = IN_BRACKETS.sub(" ", readings[0])  # "unknown (R69)"
    if not all(map(is_term, filter(has_text, [*readings, bare]))):
        return []
    return [text for text in dict.fromkeys(readings) if has_text(text)]


@lru_cache(maxsize=STRIPPED_KEPT)
def strip_term(
    term: str, rules: tuple[Rules, ...] = ENGLISH
) -> tuple[str, tuple[Dropped, ...]]:
    """Return what all steps leave of a term, and what they remove."""
    text, dropped = " ".join(term.split()), list[Dropped]()
    for step in list_steps(rules):
        text, some = remove(text, step)
        dropped += some
    return text, tuple(dropped)


def list_dropped(
    term: str, name: str, rules: tuple[Rules, ...] = ENGLISH
) -> list[Dropped]:
    """Return what a term says beside a concept, and its name does not.

    "F/H breast cancer" has the family, "Breast cancer" has not, and "Family history of
    breast cancer" has it.
    """
    _, of_name = strip_term(name, rules)
    has = {(each.kind, each.side) for each in of_name}
    words = {*list_words(name, "english")}
    return [
        each
        for each in strip_term(term, rules)[1]
        if each.kind != HARMLESS
        and (each.kind, each.side) not in has
        and not (
            each.kind in (CODE, NUMBER) and {*list_words(each.text, "english")} <= words
        )
    ]


def is_term(text: str) -> bool:
    """Return whether a text can name a concept, unlike "N/A", "unknown" and "-"."""
    text = text.strip()
    return has_text(text) and text != MISSING and name_form(text) not in NO_TERM_FORMS


def split_terms(cell: str, separator: str | None) -> Iterator[str]:
    """Yield the terms of a cell; without a separator there is one."""
    parts = [cell] if not separator else cell.split(separator)
    terms = [part.strip() for part in parts]
    yield from (term for term, _ in groupby(filter(None, terms)))
