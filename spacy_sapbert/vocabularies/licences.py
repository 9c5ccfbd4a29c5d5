"""Who may distribute the names of a vocabulary, as its publisher says.

The table is no legal advice: it names the terms to read before names leave the machine.
A vocabulary that is not in it is unknown, which does not mean free.
"""

import re
from typing import NamedTuple


class Licence(NamedTuple):
    """The terms of a vocabulary.

    Attributes:
        limit: Why a copy may not be given to anybody; "" = with attribution it may.
    """

    name: str
    address: str
    limit: str = ""


SNOMED = Licence(
    "SNOMED CT Affiliate License",
    "https://www.snomed.org/get-snomed",
    "each receiver needs a licence of their own",
)
MEDDRA = Licence(
    "MedDRA subscription",
    "https://www.meddra.org/subscription",
    "only subscribers may have it",
)
AMA = Licence(
    "CPT licence of the AMA",
    "https://www.ama-assn.org/practice-management/cpt",
    "each user needs a licence",
)
LOINC = Licence(
    "LOINC and RELMA Terms of Use",
    "https://loinc.org/license/",
    "copies need its copyright notice and must not be changed",
)
UMLS = Licence(
    "UMLS Metathesaurus License",
    "https://uts.nlm.nih.gov/uts/assets/LicenseAgreement.pdf",
    "no part of the Metathesaurus may be distributed",
)
WHO = Licence(
    "terms of the WHO",
    "https://www.who.int/about/policies/publishing/copyright",
    "copies or changes need its permission",
)
ATC = Licence(
    "terms of the WHO Collaborating Centre for Drug Statistics Methodology",
    "https://atcddd.fhi.no/copyright_disclaimer/",
    "copies for others need its permission",
)
CTD = Licence(
    "terms of the Comparative Toxicogenomics Database",
    "https://ctdbase.org/about/legal.jsp",
    "copies for others need its permission",
)
COMMERCIAL = Licence(
    "licence of the publisher",
    "https://www.nlm.nih.gov/research/umls/sourcereleasedocs/",
    "category 3 of the UMLS: its publisher has to permit copies",
)
NLM = Licence(
    "terms of the National Library of Medicine",
    "https://www.nlm.nih.gov/databases/download/terms_and_conditions.html",
)
PUBLIC = Licence("public domain, United States", "https://www.cdc.gov/nchs/icd/")
CC_BY = "https://creativecommons.org/licenses/by/4.0/"
# Patterns of the source of names (SAB), as UMLS and the readers call it: the first
# that matches counts. UMLS adds a language: MDRSPA, SCTSPA, LNC-ES-ES.
LICENCES: tuple[tuple[str, Licence], ...] = (
    (r"SNOMEDCT.*|SCT[A-Z]+|SNMI|SNM", SNOMED),
    (r"MDR[A-Z]*|MEDDRA", MEDDRA),
    (r"CPT\d*|CPTSP|HCPT", AMA),
    (r"LNC(-.+)?|LOINC", LOINC),
    (r"MTH|UMLS", UMLS),
    (r"ICD10(AE|AM|AMAE|DUT)?|ICD11|ICF(-CY)?|ICPC.*", WHO),
    (r"ATC", ATC),
    (r"CTD", CTD),
    (
        r"DSM-5|NANDA-I|NIC|NOC|PNDS|CCC|CDT|MEDCIN|NDDF|MMSL|MMX|GS|MDDB|RCD.*",
        COMMERCIAL,
    ),
    (r"MSH|RXNORM", NLM),
    (r"ICD10CM|ICD9CM|NDC", PUBLIC),
    (
        r"HP|HPO",
        Licence("HPO licence: cite it, do not change it", "https://hpo.jax.org/"),
    ),
    (r"DOID|DO", Licence("CC0 1.0", "https://disease-ontology.org/")),
    (r"MONDO|GO|CHEBI|ORDO|ORPHANET|NCI|NCIT", Licence("CC BY 4.0", CC_BY)),
    (r"UBERON", Licence("CC BY 3.0", "https://creativecommons.org/licenses/by/3.0/")),
)
COMPILED = [(re.compile(pattern), licence) for pattern, licence in LICENCES]


def find_licence(source: str) -> Licence | None:
    """Return the licence of a source of names, e.g. "MSH"; None = unknown."""
    name = source.strip().upper()
    found = (licence for pattern, licence in COMPILED if pattern.fullmatch(name))
    return next(found, None)
