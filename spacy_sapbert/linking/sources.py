"""What is known of each vocabulary, in one table.

Its names, who may distribute it, where the pages of its concepts are, and what other
standards call it. The licences are no legal advice: they name the terms to read before
names leave the machine. A vocabulary that is not in the table is unknown, which does
not mean free.
"""

import re
from dataclasses import dataclass
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
UMLS_LICENCE = Licence(
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
CC_BY = Licence("CC BY 4.0", "https://creativecommons.org/licenses/by/4.0/")


@dataclass(frozen=True)
class Source:
    """A vocabulary, or several that have the same licence and nothing else here.

    Args:
        name: As UMLS calls it (SAB), else as the readers do.
        prefix: Of its ids, used to compare them; empty = the name.
        others: Other prefixes that files write.
        licensed: Pattern of the sources of names that have the licence; empty = the
            name. UMLS adds a language: MDRSPA, SCTSPA, LNC-ES-ES.
        bare: Pattern of ids that are often written without a prefix.
        page: Pattern of an id and the address of its page, {} = the groups in turn.
        fhir: Address of its code system in FHIR.
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
    omop: str = ""
    columns: tuple[str, ...] = ()


OBO = "http://purl.obolibrary.org/obo/"
# SOURCE of addresses: https://identifiers.org/PREFIX:ACCESSION, Wimalaratne et al.
# (2018), Uniform resolution of compact identifiers for biomedical data. Code systems:
# https://hl7.org/fhir/R4/terminologies-systems.html
SOURCES: tuple[Source, ...] = (
    Source(
        "UMLS",
        others=("UMLS_CUI",),
        licence=UMLS_LICENCE,
        licensed="MTH|UMLS",
        bare=r"C\d{7}",
        page=(r"(?:UMLS:)?(C\d{7})", "https://uts.nlm.nih.gov/uts/umls/concept/{}"),
        columns=("umls", "umlscui"),
    ),
    Source(
        "MSH",
        "MESH",
        licence=NLM,
        bare=r"[CD](?:\d{6}|\d{9})",
        page=(
            r"(?:MESH:)?([CD]\d{6}(?:\d{3})?)",
            "https://meshb.nlm.nih.gov/record/ui?ui={}",
        ),
        omop="MeSH",
        columns=("mesh", "msh"),
    ),
    Source(
        "SNOMEDCT_US",
        "SNOMEDCT",
        ("SNOMED_CT", "SCTID", "SNOMED"),
        SNOMED,
        "SNOMEDCT.*|SCT[A-Z]+|SNMI|SNM",
        page=(
            r"(?:SNOMEDCT(?:_US)?|SCTID):(\d+)",
            "https://identifiers.org/snomedct:{}",
        ),
        fhir="http://snomed.info/sct",
        omop="SNOMED",
        columns=("snomed", "snomedct", "sctid", "snomedctus"),
    ),
    Source(
        "LNC",
        "LOINC",
        licence=LOINC,
        licensed="LNC(-.+)?|LOINC",
        fhir="http://loinc.org",
        omop="LOINC",
        columns=("loinc", "lnc"),
    ),
    Source(
        "RXNORM",
        licence=NLM,
        page=(
            r"(?:RXNORM|RxCUI):(\d+)",
            "https://mor.nlm.nih.gov/RxNav/search?searchBy=RXCUI&searchTerm={}",
        ),
        fhir="http://www.nlm.nih.gov/research/umls/rxnorm",
        omop="RxNorm",
        columns=("rxnorm", "rxcui"),
    ),
    Source(
        "MDR",
        "MEDDRA",
        licence=MEDDRA,
        licensed="MDR[A-Z]*|MEDDRA",
        omop="MedDRA",
    ),
    Source("CPT", licence=AMA, licensed=r"CPT\d*|CPTSP|HCPT", omop="CPT4"),
    Source(
        "ICD10",
        others=("ICD-10",),
        licence=WHO,
        licensed="ICD10(AE|AM|AMAE|DUT)?",
        page=(r"ICD-?10:([A-Z]\d{2}(?:\.\d{1,2})?)", "https://identifiers.org/icd:{}"),
        fhir="http://hl7.org/fhir/sid/icd-10",
        columns=("icd10",),
    ),
    Source(
        "ICD10CM",
        licence=PUBLIC,
        # it has more digits than ICD-10 of the WHO
        page=(
            r"(?:ICD10CM:)?([A-Z]\d[0-9A-Z])(?:\.([0-9A-Z]{1,4}))?",
            "https://icd.codes/icd10cm/{}{}",
        ),
        fhir="http://hl7.org/fhir/sid/icd-10-cm",
        columns=("icd10cm",),
    ),
    Source(
        "ICD9CM",
        licence=PUBLIC,
        fhir="http://hl7.org/fhir/sid/icd-9-cm",
        columns=("icd9cm",),
    ),
    Source("ICD9", others=("ICD-9",), columns=("icd9",)),
    Source("ICD11", licence=WHO, columns=("icd11",)),
    Source("ICD10GM", columns=("icd10gm",)),
    Source("ICDO3", columns=("icdo3",)),
    Source("ICF", licence=WHO, licensed="ICF(-CY)?|ICPC.*"),
    Source("NDC", licence=PUBLIC),
    Source("ATC", licence=ATC, fhir="http://www.whocc.no/atc", columns=("atc",)),
    Source("OPS", columns=("ops",)),
    Source("CTD", licence=CTD),
    Source(
        "OMIM",
        others=("MIM",),
        page=(r"(?:OMIM|MIM):(\d+)", "https://omim.org/entry/{}"),
        fhir="http://www.omim.org",
        columns=("omim",),
    ),
    Source(
        "HPO",
        "HP",
        licence=Licence(
            "HPO licence: cite it, do not change it", "https://hpo.jax.org/"
        ),
        licensed="HPO?",
        page=(r"HP[:_](\d+)", f"{OBO}HP_{{}}"),
        fhir="http://human-phenotype-ontology.org",
        columns=("hpo",),
    ),
    Source(
        "DOID",
        others=("DO",),
        licence=Licence("CC0 1.0", "https://disease-ontology.org/"),
        licensed="DOID|DO",
        page=(r"DOID[:_](\d+)", f"{OBO}DOID_{{}}"),
        columns=("doid",),
    ),
    Source(
        "MONDO",
        licence=CC_BY,
        page=(r"MONDO[:_](\d+)", f"{OBO}MONDO_{{}}"),
        columns=("mondo",),
    ),
    Source(
        "NCI",
        "NCIT",
        licence=CC_BY,
        licensed="NCIT?",
        page=(r"NCIT?:(C\d+)", "https://identifiers.org/ncit:{}"),
        fhir="http://ncicb.nci.nih.gov/xml/owl/EVS/Thesaurus.owl",
        omop="NCIt",
        columns=("nci",),
    ),
    Source(
        "ORPHA",
        others=("ORDO", "ORPHANET"),
        licence=CC_BY,
        licensed="ORDO|ORPHANET",
        page=(
            r"(?:ORPHA|ORDO|Orphanet)[:_](\d+)",
            "https://identifiers.org/orphanet:{}",
        ),
        columns=("orpha",),
    ),
    Source("GO", licence=CC_BY),
    Source("CHEBI", licence=CC_BY),
    Source(
        "UBERON",
        licence=Licence("CC BY 3.0", "https://creativecommons.org/licenses/by/3.0/"),
    ),
    Source(
        "OMOP",
        page=(r"OMOP:(\d+)", "https://athena.ohdsi.org/search-terms/terms/{}"),
        columns=("omop", "omopconceptid"),
    ),
    Source("HGNC", columns=("hgnc",)),
    Source("CAS", columns=("cas",)),
    Source(
        "DSM-5",
        licence=COMMERCIAL,
        licensed="DSM-5|NANDA-I|NIC|NOC|PNDS|CCC|CDT|MEDCIN|NDDF|MMSL|MMX|GS|MDDB|RCD.*",
    ),
)
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
