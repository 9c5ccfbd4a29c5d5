"""An id as somebody wrote it → the concepts that have it, or what may be meant."""

import re
from collections.abc import Iterable
from itertools import islice, pairwise
from typing import NamedTuple

from ..linking.sources import normalize_prefix
from ..vocabularies.ids import rewrite_id, split_id
from .database import is_encodable
from .store import Store

MOST_MEANT = 3
DOTLESS = re.compile(r"([A-TV-Z]\d[0-9AB])([0-9A-Z]{1,4})", re.IGNORECASE)  # ICD-10
SNOMED_ID = re.compile(r"(?:\w+:)?(\d{6,18})")
ZEROS = re.compile(r"(\D*)0*(\d+)")  # which a spreadsheet or a person may leave out
PARTS = re.compile(r"[|;,+\s]+")
LISTED = re.compile(r"[,;|]")  # between several ids
# What a column of terms may have: no blank, a digit, and more than a small number
IN_COLUMN = re.compile(r"(?!\d{1,4}$)(?=\D*\d)\S+")
LONG = 5  # characters of an id or code that is one in any case: "p53" is not P53
# The dihedral group and the permutations of Verhoeff (1969).
PRODUCTS = (
    *("0123456789", "1234067895", "2340178956", "3401289567", "4012395678"),
    *("5987604321", "6598710432", "7659821043", "8765932104", "9876543210"),
)
PERMUTED = (
    *("0123456789", "1576283094", "5803796142", "8916043527"),
    *("9453126870", "4286573901", "2793806415", "7046913258"),
)


class FoundId(NamedTuple):
    """What an id is.

    Attributes:
        cuis: The concepts that have it, as id, retired id or code.
        names: What each of these has: an id, or a vocabulary and its code.
        replaced: Whether it was retired for the concept.
        relation: Of a code to the concept: "broader" or "narrower"; "" = it is its own.
        meant: Known ids or codes that are written almost so, if there is no concept.
        damaged: Whether it is a SNOMED CT id whose check digit is wrong.
    """

    cuis: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    replaced: bool = False
    relation: str = ""
    meant: tuple[str, ...] = ()
    damaged: bool = False

    @property
    def is_code(self) -> bool:
        """Whether it is the code of a concept, which can be a name of another."""
        return bool(self.cuis) and not self.replaced and self.names != self.cuis

    @property
    def hint(self) -> str:
        """What may be meant, in words; "" = nothing is written almost so."""
        return f"{self.meant[0]} is written almost so" if self.meant else ""


def find_id(store: Store, id: str) -> FoundId:
    """Find the concepts that have an id."""
    id = id.strip()
    found = look_up(store, id)
    if found.cuis:
        return found
    number = SNOMED_ID.fullmatch(id)
    damaged = number is not None and not has_check_digit(number[1])
    meant = (other for other in list_spellings(store, id) if look_up(store, other).cuis)
    return FoundId(meant=(*islice(meant, MOST_MEANT),), damaged=damaged)


def read_term(store: Store, text: str, *, is_search: bool = False) -> FoundId:
    """Find the concepts whose id or code a term is, as a column or a search has it.

    The prefix of its vocabulary may be there or not, and small letters for capitals.

    Args:
        is_search: A person chooses: small numbers are codes too, and short words.
    """
    text = text.strip()
    if " " in text or not (is_search or IN_COLUMN.fullmatch(text)):
        return FoundId()
    like = next(iter(store.preferred_names(1)), ("", ""))[0]
    spellings = [text]
    if is_search or len(text) >= LONG:
        spellings.append(text.upper())
    if text.endswith(".0") and len(text) > LONG:  # a number of a spreadsheet
        spellings.append(text.removesuffix(".0"))
    for spelled in dict.fromkeys(spellings):
        prefix, local = split_id(spelled)
        vocabulary = normalize_prefix(prefix)
        forms = [spelled, rewrite_id(spelled, like), spelled.replace("_", ":", 1)]
        # one knowledge base may have ids of several vocabularies
        if prefix and normalize_prefix(split_id(local)[0]) == vocabulary:
            forms += [local, f"{vocabulary}:{local}"]
        for id in dict.fromkeys(forms):
            if (found := look_up(store, id)).cuis:
                return found
    return FoundId()


def look_up(store: Store, id: str) -> FoundId:
    """Find the concepts that have exactly this id or code."""
    if not id or not is_encodable(id):
        return FoundId()
    if store.numbers_of_cuis([id]):
        return FoundId((id,), (id,))
    if current := store.current_cuis([id]).get(id):
        return FoundId((current,), (id,), replaced=True)
    prefix, _, code = id.partition(":")
    wanted = normalize_prefix(prefix)

    def choose(known: list[str]) -> tuple[list[str], list[str]]:
        """Return the vocabularies of the prefix, and its codes, with it or without."""
        same = [
            source for source in known if code and normalize_prefix(source) == wanted
        ]
        return (same, [id, code]) if same else (known, [id])

    if rows := store.find_codes(*choose(store.sources_of_codes)):
        names = {cui: f"{source} {code}" for cui, source, code in reversed(rows)}
        cuis = dict.fromkeys(cui for cui, *_ in rows)
        return FoundId((*cuis,), tuple(names[cui] for cui in cuis))
    sources, codes = choose(store.sources_of_related_codes)
    related = [row for c in codes for row in store.find_related_codes(sources, c)]
    relation = related[0][1] if related else ""
    cuis = dict.fromkeys(cui for cui, of_code in related if of_code == relation)
    return FoundId((*cuis,), (id,) * len(cuis), relation=relation)


def list_spellings(store: Store, id: str) -> dict[str, None]:
    """Return other ways to write an id: prefix, case, blanks, dot, zeros, digit."""
    if LISTED.search(id):
        return dict.fromkeys(filter(None, PARTS.split(id)))
    compact = "".join(id.split())
    like = next(iter(store.preferred_names(1)), ("", ""))[0]
    prefix = like.rpartition(":")[0]
    found: list[str] = []
    curie = compact.replace("_", ":", 1)  # "HP_0001945", as in addresses of OBO
    for text in (compact, compact.upper(), compact.lower(), curie):
        bare = text.rpartition(":")[2]
        found += [text, rewrite_id(text, like), bare, f"{prefix}:{bare}"]
        if dotless := DOTLESS.fullmatch(text):
            found.append(f"{dotless[1]}.{dotless[2]}".upper())
        # without a dot, and a number of a spreadsheet
        found += [text.replace(".", ""), text.removesuffix(".0")]
    if number := SNOMED_ID.fullmatch(compact):
        head = compact[: number.start(1)]
        found += [head + other for other in repair_digits(number[1])]
    short, full = ZEROS.fullmatch(compact), ZEROS.fullmatch(like)
    if short and full:
        found.append(short[1] + short[2].zfill(len(like) - len(full[1])))
    found += PARTS.split(id)  # of two ids
    return dict.fromkeys(filter(None, found))


def has_check_digit(number: str) -> bool:
    """Return whether the last digit of a SNOMED CT id fits the others.

    Source: Verhoeff, Error detecting decimal codes (1969).
    """
    value = 0
    for place, digit in enumerate(reversed(number)):
        value = int(PRODUCTS[value][int(PERMUTED[place % 8][int(digit)])])
    return value == 0


def repair_digits(number: str) -> Iterable[str]:
    """Yield numbers with a right check digit and one digit changed, or two swapped."""
    swapped = [
        number[:place] + b + a + number[place + 2 :]
        for place, (a, b) in enumerate(pairwise(number))
    ]
    changed = [
        number[:place] + digit + number[place + 1 :]
        for place in range(len(number))
        for digit in "0123456789"
    ]
    return (n for n in (*swapped, *changed) if n != number and has_check_digit(n))
