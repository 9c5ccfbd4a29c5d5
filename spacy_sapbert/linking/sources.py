"""What is known of each vocabulary, in one table: `sources.json`.

Its names, who may distribute it, where the pages of its concepts are, and what other
standards call it. The licences are no legal advice: they name the terms to read before
names leave the machine. A vocabulary that is not in the table is unknown, which does
not mean free.

SOURCE of addresses: https://identifiers.org/PREFIX:ACCESSION, Wimalaratne et al.
(2018), Uniform resolution of compact identifiers for biomedical data. Code systems:
https://hl7.org/fhir/R4/terminologies-systems.html
"""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

TABLE = Path(__file__).with_name("sources.json")


class Licence(NamedTuple):
    """The terms of a vocabulary.

    Attributes:
        limit: Why a copy may not be given to anybody; "" = with attribution it may.
    """

    name: str
    address: str
    limit: str = ""


class Source(NamedTuple):
    """A vocabulary, or several that have the same licence and nothing else here.

    Attributes:
        name: As UMLS calls it (SAB), else as the readers do.
        prefix: Of its ids, used to compare them; empty = the name.
        others: Other prefixes that files write.
        licensed: Pattern of the sources of names that have the licence; empty = the
            name. UMLS adds a language: MDRSPA, SCTSPA, LNC-ES-ES.
        bare: Pattern of ids that are often written without a prefix.
        page: Pattern of an id and the address of its page, {} = the groups in turn.
        fhir: Address of its code system in FHIR.
        fhir_prefixed: Whether its codes in FHIR have the prefix, as in "HP:0001945".
        omop: What OMOP calls it.
        columns: Names of columns with its codes, as `column_key` returns them.
    """

    name: str
    prefix: str = ""
    others: tuple[str, ...] = ()
    licence: Licence | None = None
    licensed: str = ""
    bare: str = ""
    page: tuple[str, str] | None = None
    fhir: str = ""
    fhir_prefixed: bool = False
    omop: str = ""
    columns: tuple[str, ...] = ()


def read_sources() -> tuple[dict[str, Licence], tuple[Source, ...]]:
    """Read the licences, by their key, and the vocabularies."""
    table = json.loads(TABLE.read_text("utf8"))
    licences = {key: Licence(*values) for key, values in table["licences"].items()}
    sources: list[Source] = []
    for row in table["sources"]:
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in row.items()
        }
        if "licence" in values:
            values["licence"] = licences[values["licence"]]
        sources.append(Source(**values))
    return licences, tuple(sources)


LICENCES, SOURCES = read_sources()
UMLS_LICENCE = LICENCES["UMLS"]
# A release at the end of a prefix: SNOMEDCT_US_2018_03_01, NCI2004_11_17
RELEASE = re.compile(r"_?\d{4}(?:_\d\d){0,2}$")
PREFIXES = {
    name: source.prefix or source.name
    for source in SOURCES
    for name in (source.name, *source.others)
}


def normalize_prefix(prefix: str) -> str:
    """Return the prefix used to compare ids: "MSH" and "mesh" → "MESH"."""
    prefix = RELEASE.sub("", prefix.upper())
    return PREFIXES.get(prefix, prefix)


def find_licence(source: str) -> Licence | None:
    """Return the licence of a source of names, e.g. "MSH"; None = unknown."""
    name = source.strip().upper()
    for each in SOURCES:
        if each.licence and re.fullmatch(each.licensed or re.escape(each.name), name):
            return each.licence
    return None
