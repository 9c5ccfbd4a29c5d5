"""What the columns of a vocabulary's table may be, and the tables that are known."""

from ...io.tables.columns import Layout, Roles
from ...io.tables.headers import column_key
from ...linking.sources import SOURCES

ID, NAME, SYNONYMS, CODES = "id", "name", "synonyms", "codes"
STATUS = "status"  # of a name in MedCAT: P = preferred
# names of columns → the name of the vocabulary in UMLS
CODE_COLUMNS = {name: source.name for source in SOURCES for name in source.columns}


def find_source(name: str) -> str:
    """Return the vocabulary of a column with codes, or "" if its name is none."""
    key = column_key(name)
    for ending in ("", "codes", "code", "ids", "id"):
        if key.endswith(ending) and (
            source := CODE_COLUMNS.get(key.removesuffix(ending) if ending else key)
        ):
            return source
    return ""


# SOURCES: the HGNC's explanation of its downloads; DrugBank's open data; the reports of
# CTD; OHDSI's Usagi; MedCAT's concept databases; Apache cTAKES, custom dictionaries;
# ReadMe.txt of the NCI Thesaurus; MedDRA Distribution File Format Document.
LAYOUTS = (
    Layout(
        "HGNC",
        "id=hgnc_id,name=symbol,synonyms=name,synonyms=alias_symbol,"
        "synonyms=alias_name,synonyms=prev_symbol,synonyms=prev_name,"
        "type=locus_group,codes.NCBIGENE=entrez_id,codes.ENSEMBL=ensembl_gene_id,"
        "codes.UNIPROT=uniprot_ids,codes.OMIM=omim_id",
        header=("hgnc_id", "symbol", "name"),
        separator="|",
        never={"status": ("entry withdrawn",)},
    ),
    Layout(
        "HGNC",
        "id=HGNC ID,name=Approved symbol,synonyms=Approved name,"
        "synonyms=Alias symbols,synonyms=Alias names,synonyms=Previous symbols,"
        "synonyms=Previous name,codes.NCBIGENE=NCBI Gene ID,"
        "codes.ENSEMBL=Ensembl gene ID,codes.OMIM=OMIM ID",
        header=("HGNC ID", "Approved symbol"),
        separator=", ",
        never={"Status": ("entry withdrawn", "symbol withdrawn")},
    ),
    Layout(
        "DrugBank",
        "id=DrugBank ID,name=Common name,synonyms=Synonyms,codes.CAS=CAS,"
        "codes.UNII=UNII",
        header=("DrugBank ID", "Common name"),
        prefix="DRUGBANK:",
        separator="|",
    ),
    Layout(
        "DrugBank",
        "id=drugbank_id,name=name,synonyms=synonyms,type=type,definition=description,"
        "codes.ATC=atc_codes,codes.CAS=cas_number",
        header=("drugbank_id", "name"),
        prefix="DRUGBANK:",
        separator="|",
    ),
    *(
        Layout(
            "CTD",
            f"id={kind}ID,name={kind}Name,synonyms=Synonyms,definition=Definition,"
            "parent=ParentIDs,retired=AltDiseaseIDs,codes.CAS=CasRN",
            header=(f"{kind}ID", f"{kind}Name", "ParentIDs"),
            separator="|",
        )
        for kind in ("Disease", "Chemical")
    ),
    Layout(
        "Usagi",
        "id=conceptId,name=conceptName,synonyms=sourceName,type=domainId",
        header=("sourceName", "conceptId", "conceptName", "mappingStatus"),
        prefix="OMOP:",
        only={"mappingStatus": ("approved",)},
        never={
            "conceptId": ("", "0"),
            "equivalence": ("wider", "narrower", "inexact", "unmatched"),
        },
    ),
    Layout(
        "MedCAT",
        "id=cui,name=name,type=type_ids,definition=description,status=name_status",
        header=("cui", "name", "name_status"),
        separator="|",
    ),
    Layout(
        "MedCAT",
        "id=cui,synonyms=str,type=tui,definition=desc",
        header=("cui", "str"),
        separator="|",
    ),
    *(
        Layout(
            *("cTAKES", columns),
            files="*.bsv",
            width=width,
            delimiter="|",
            comment="//",
        )
        for width, columns in (
            (2, "id=1,name=2"),
            (3, "id=1,type=2,name=3"),
            (4, "id=1,type=2,synonyms=3,name=4"),
        )
    ),
    Layout(
        "NCIt",
        "id=1,parent=3,synonyms=4,definition=5,type=8",
        files="*thesaurus*.txt",
        id=r"C\d+",
        delimiter="\t",
        prefix="NCIT:",
        separator="|",
        never={"7": ("obsolete_concept", "retired_concept")},
    ),
    *(
        Layout(
            *("MedDRA", columns),
            files=f"{file}.asc",
            id=r"\d+",
            delimiter="$",
            prefix="MEDDRA:",
            only=only,
        )
        for file, columns, only in (
            *(
                (file, "id=1,name=2,codes.MDR=1", {})
                for file in ("pt", "hlt", "hlgt", "soc")
            ),
            ("llt", "id=3,synonyms=2,codes.MDR=1", {"10": ("y",)}),
            *(
                (file, "id=2,parent=1", {})
                for file in ("hlt_pt", "hlgt_hlt", "soc_hlgt")
            ),
        )
    ),
)
ROLES = Roles(
    names={
        ID: (
            *("id", "code", "cui", "conceptid", "conceptcode", "identifier", "termid"),
            *("key", "uri", "schlüssel", "schluessel", "kode", "código", "codigo"),
        ),
        NAME: (
            *("name", "preferred", "preferredname", "preferredterm", "preferredlabel"),
            *("preflabel", "label", "term", "title", "conceptname", "canonicalname"),
            *("display", "bezeichnung", "benennung", "libellé", "libelle", "nombre"),
            "description",
        ),
        SYNONYMS: (
            *("synonyms", "synonym", "alias", "aliases", "altlabel", "altlabels"),
            *("alternativename", "alternativenames", "alternativelabel", "othernames"),
            *("exactsynonym", "exactsynonyms", "synonyme", "sinónimos", "sinonimos"),
            "alt",
        ),
        "type": (
            *("type", "types", "semantictype", "semantictypes", "tui", "semantictag"),
            *("domain", "domainid", "category", "class", "typeids"),
        ),
        "parent": (
            *("parent", "parents", "parentid", "parentids", "parentcode", "broader"),
            *("isa", "superclass"),
        ),
        "definition": (
            *("definition", "def", "scopenote", "description", "beschreibung"),
        ),
        "language": ("language", "lang", "lat", "languagecode", "sprache", "idioma"),
        "retired": ("retired", "retiredid", "retiredids", "replaces"),
        STATUS: ("namestatus",),
    },
    needed=((ID,), (NAME, SYNONYMS)),
    example="id=Code,name=Preferred",
    repeated=(SYNONYMS, CODES),
    coded=CODES,
    find_source=find_source,
    layouts=LAYOUTS,
)
