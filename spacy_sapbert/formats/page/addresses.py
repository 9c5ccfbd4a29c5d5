"""Web addresses of concepts."""

import re
from collections.abc import Mapping
from urllib.parse import quote

from ...errors import Errors, SapbertError

# Which page shows a concept: pattern of the id → address, {} = the groups in turn,
# or the whole id. The first pattern that matches counts.
# SOURCE: https://identifiers.org/PREFIX:ACCESSION, Wimalaratne et al. (2018), Uniform
# resolution of compact identifiers for biomedical data.
ADDRESSES: dict[str, str] = {
    r"(C\d{7})": "https://uts.nlm.nih.gov/uts/umls/concept/{}",
    r"UMLS:(C\d{7})": "https://uts.nlm.nih.gov/uts/umls/concept/{}",
    r"(?:MESH:)?([CD]\d{6}(?:\d{3})?)": "https://meshb.nlm.nih.gov/record/ui?ui={}",
    r"(?:OMIM|MIM):(\d+)": "https://omim.org/entry/{}",
    r"(DOID|HP|MONDO)[:_](\d+)": "http://purl.obolibrary.org/obo/{}_{}",
    # ICD-10-CM has more digits than ICD-10 of the WHO
    r"(?:ICD10CM:)?([A-Z]\d[0-9A-Z])(?:\.([0-9A-Z]{1,4}))?": (
        "https://icd.codes/icd10cm/{}{}"
    ),
    r"OMOP:(\d+)": "https://athena.ohdsi.org/search-terms/terms/{}",
    r"(?:RXNORM|RxCUI):(\d+)": (
        "https://mor.nlm.nih.gov/RxNav/search?searchBy=RXCUI&searchTerm={}"
    ),
    # vocabularies that identifiers.org calls otherwise
    r"ICD-?10:([A-Z]\d{2}(?:\.\d{1,2})?)": "https://identifiers.org/icd:{}",
    r"NCIT?:(C\d+)": "https://identifiers.org/ncit:{}",
    r"(?:SNOMEDCT(?:_US)?|SCTID):(\d+)": "https://identifiers.org/snomedct:{}",
    r"(?:ORPHA|ORDO|Orphanet)[:_](\d+)": "https://identifiers.org/orphanet:{}",
    # all others with a prefix
    r"([A-Za-z]\w*):(\w[\w.-]*)": "https://identifiers.org/{}:{}",
}
WEB = ("https://", "http://")


def merge_addresses(links: Mapping[str, str]) -> dict[str, str]:
    """Return `ADDRESSES` with others, which are tried first.

    Args:
        links: See `ADDRESSES`.

    Raises:
        SapbertError: If a pattern is invalid, or an address not one of the web, or with
            more places than the pattern has groups.
    """
    for pattern, address in links.items():
        try:
            groups = re.compile(pattern).groups or 1
            address.format(*[""] * groups)
        except (re.error, IndexError, KeyError, ValueError):
            groups = 0
        if not groups or not address.startswith(WEB):
            raise SapbertError(Errors.E523.format(pattern=pattern, address=address))
    rest = {key: ADDRESSES[key] for key in ADDRESSES if key not in links}
    return {**links, **rest}


def concept_url(cui: str, links: Mapping[str, str] = ADDRESSES) -> str | None:
    """Return the address of a concept's page; None if no pattern matches.

    Args:
        links: See `ADDRESSES`.
    """
    for pattern, address in links.items():
        if match := re.fullmatch(pattern, cui):
            parts = match.groups(default="") or (cui,)
            return address.format(*(quote(part, safe="") for part in parts))
    return None
