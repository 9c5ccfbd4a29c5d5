"""Speed and memory of the readers of vocabularies, on files that are made up here.

Each file is read in a process of its own, so that its peak of memory is that of the
reader, with the 60 MB or so that Python and the imports take. Seconds are those of the
processor, so that other work of the machine does not count.
"""

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import typer

from benchmarks.harness import machine_line, print_table, run_cli
from benchmarks.read_rrf import WORDS
from spacy_sapbert.system.terminal import msg
from spacy_sapbert.vocabularies.registry import read_vocabulary
from spacy_sapbert.vocabularies.report import Report

FSN, SYNONYM = "900000000000003001", "900000000000013009"
SKOS = "http://www.w3.org/2004/02/skos/core#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


def make_names() -> Iterator[str]:
    """Yield random names without end."""
    random.seed(0)
    words = WORDS.split()
    while True:
        yield " ".join(random.choices(words, k=random.randint(2, 6)))


NAMES = make_names()


def write_lines(path: Path, header: str, lines: Iterator[str]) -> None:
    """Write a text file with a header."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf8") as file:
        file.write(header + "\n")
        file.writelines(f"{line}\n" for line in lines)


def table_rows(rows: int) -> Iterator[list[str]]:
    """Yield rows of a table of one's own."""
    for n in range(rows):
        names = f"{next(NAMES)}|{next(NAMES)}"
        yield [f"X{n:07}", next(NAMES), names, "T047", f"X{n // 10:07}", f"R{n % 999}"]


TABLE = ["id", "name", "synonyms", "type", "parent", "ICD10"]


def make_csv(folder: Path, rows: int) -> Path:
    """Write a table with commas."""
    path = folder / "own.csv"
    write_lines(path, ",".join(TABLE), (",".join(row) for row in table_rows(rows)))
    return path


def make_xlsx(folder: Path, rows: int) -> Path:
    """Write a workbook, which has at most 1,048,576 rows."""
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    sheet = book.create_sheet()
    sheet.append(TABLE)
    for row in table_rows(min(rows, 1_048_575)):
        sheet.append(row)
    book.save(folder / "own.xlsx")
    return folder / "own.xlsx"


def make_omop(folder: Path, rows: int) -> Path:
    """Write half of the rows as concepts, the others as synonyms and relations."""
    count = rows // 2
    write_lines(
        folder / "CONCEPT.csv",
        "concept_id\tconcept_name\tdomain_id\tvocabulary_id\tconcept_class_id\t"
        "standard_concept\tconcept_code\tvalid_start_date\tvalid_end_date\tinvalid_reason",
        (
            f"{n}\t{next(NAMES)}\tCondition\t{'SNOMED' if n % 3 else 'ICD10CM'}\tx\t"
            f"{'S' if n % 3 else ''}\tC{n}\t19700101\t20991231\t"
            for n in range(count)
        ),
    )
    write_lines(
        folder / "CONCEPT_SYNONYM.csv",
        "concept_id\tconcept_synonym_name\tlanguage_concept_id",
        (f"{n}\t{next(NAMES)}\t4180186" for n in range(0, count, 2)),
    )
    write_lines(
        folder / "CONCEPT_RELATIONSHIP.csv",
        "concept_id_1\tconcept_id_2\trelationship_id\tvalid_start_date\t"
        "valid_end_date\tinvalid_reason",
        (
            f"{n}\t{n + 1}\t{'Is a' if n % 3 else 'Maps to'}\t19700101\t20991231\t"
            for n in range(0, count, 2)
        ),
    )
    return folder


def make_snomed(folder: Path, rows: int) -> Path:
    """Write a fifth as concepts, two fifths as names, and a fifth each of two more."""
    count, start = rows // 5, "id\teffectiveTime\tactive\tmoduleId\t"
    base, refset = folder / "Snapshot/Terminology", folder / "Snapshot/Refset/Language"
    write_lines(
        base / "sct2_Concept_Snapshot_X.txt",
        start + "definitionStatusId",
        (f"{n}\t2099\t{int(n % 9 > 0)}\t0\t0" for n in range(count)),
    )
    write_lines(
        base / "sct2_Description_Snapshot-en_X.txt",
        start + "conceptId\tlanguageCode\ttypeId\tterm\tcaseSignificanceId",
        (
            f"{2 * n + k}\t2099\t1\t0\t{n}\ten\t{(FSN, SYNONYM)[k]}\t"
            f"{next(NAMES)}{(' (disorder)', '')[k]}\t0"
            for n in range(count)
            for k in range(2)
        ),
    )
    write_lines(
        base / "sct2_Relationship_Snapshot_X.txt",
        start + "sourceId\tdestinationId\trelationshipGroup\ttypeId\t"
        "characteristicTypeId\tmodifierId",
        (f"{n}\t2099\t1\t0\t{n}\t{n // 10}\t0\t116680003\t0\t0" for n in range(count)),
    )
    write_lines(
        refset / "der2_cRefset_LanguageSnapshot-en_X.txt",
        start + "refsetId\treferencedComponentId\tacceptabilityId",
        (
            f"{n}\t2099\t1\t0\t900000000000509007\t{2 * n + 1}\t900000000000548007"
            for n in range(count)
        ),
    )
    return folder


def make_loinc(folder: Path, rows: int) -> Path:
    """Write half of the rows as terms, and half as their places in the hierarchy."""
    count = rows // 2
    write_lines(
        folder / "LoincTable/Loinc.csv",
        '"LOINC_NUM","COMPONENT","CLASS","STATUS","SHORTNAME","LONG_COMMON_NAME"',
        (
            f'"{n}-1","x","CHEM","ACTIVE","{next(NAMES)}","{next(NAMES)}"'
            for n in range(count)
        ),
    )
    write_lines(
        folder / "AccessoryFiles/x/ComponentHierarchyBySystem.csv",
        '"PATH_TO_ROOT","SEQUENCE","IMMEDIATE_PARENT","CODE","CODE_TEXT"',
        (f'"","1","LP{n // 10}-1","{n}-1","x"' for n in range(count)),
    )
    return folder


def make_rxnorm(folder: Path, rows: int) -> Path:
    """Write two thirds of the rows as names, and a third as relations."""
    count = rows * 2 // 3
    write_lines(
        folder / "RXNCONSO.RRF",
        "0|ENG||||||A||||RXNORM|IN|0|pain||N||",
        (
            f"{n // 2}|ENG||||||A{n}||||{('RXNORM', 'MTHSPL')[n % 2]}|SCD|{n}|"
            f"{next(NAMES)}||N||"
            for n in range(count)
        ),
    )
    write_lines(
        folder / "RXNREL.RRF",
        "0||CUI|RO|1||CUI|isa|R||RXNORM||||N||",
        (
            f"{n // 10}||CUI|RO|{n}||CUI|isa|R{n}||RXNORM||||N||"
            for n in range(rows - count)
        ),
    )
    return folder


def make_claml(folder: Path, rows: int) -> Path:
    """Write classes."""
    path = folder / "claml.xml"
    write_lines(
        path,
        '<ClaML version="2.0.0"><Title name="ICD-10-EN-2099"/>',
        (
            f'<Class code="{n}" kind="category"><SuperClass code="{n // 10}"/>'
            f'<Rubric kind="preferred"><Label xml:lang="en">{next(NAMES)}</Label>'
            f'</Rubric><Rubric kind="inclusion"><Label xml:lang="en">{next(NAMES)}'
            f"</Label></Rubric></Class>{'</ClaML>' * (n == rows - 1)}"
            for n in range(rows)
        ),
    )
    return path


def make_icd11(folder: Path, rows: int) -> Path:
    """Write rows of the simple tabulation."""
    path = folder / "SimpleTabulation-ICD-11-MMS-en.txt"
    write_lines(
        path,
        "Foundation URI\tCode\tBlockId\tTitle\tClassKind\tChapterNo",
        (
            f'"x/{n}"\t"{n}"\t""\t"{"- " * (n % 4)}{next(NAMES)}"\t"category"\t"01"'
            for n in range(rows)
        ),
    )
    return path


def make_nt(folder: Path, rows: int) -> Path:
    """Write statements: three for each concept."""
    path = folder / "skos.nt"
    kinds = (
        lambda n: f"<{RDF}type> <{SKOS}Concept>",
        lambda n: f'<{SKOS}prefLabel> "{next(NAMES)}"@en',
        lambda n: f"<{SKOS}broader> <http://x.org/{n // 10}>",
    )
    write_lines(
        path,
        "# SKOS",
        (f"<http://x.org/{n // 3}> {kinds[n % 3](n // 3)} ." for n in range(rows)),
    )
    return path


def make_owl(folder: Path, rows: int) -> Path:
    """Write classes with a label and a parent: three statements each."""
    path = folder / "x.owl"
    obo = "http://purl.obolibrary.org/obo/X_"
    count = rows // 3
    write_lines(
        path,
        f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:owl="http://www.w3.org/2002/07/owl#" '
        'xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#">',
        (
            f'<owl:Class rdf:about="{obo}{n}"><rdfs:label>{next(NAMES)}</rdfs:label>'
            f'<rdfs:subClassOf rdf:resource="{obo}{n // 10}"/></owl:Class>'
            f"{'</rdf:RDF>' * (n == count - 1)}"
            for n in range(count)
        ),
    )
    return path


def make_sssom(folder: Path, rows: int) -> Path:
    """Write mappings with labels."""
    path = folder / "x.sssom.tsv"
    write_lines(
        path,
        "#mapping_set_id: x\nsubject_id\tpredicate_id\tobject_id\t"
        "mapping_justification\tsubject_label",
        (
            f"A:{n}\tskos:exactMatch\tB:{n}\tsemapv:ManualMappingCuration\t{next(NAMES)}"
            for n in range(rows)
        ),
    )
    return path


MAKERS: dict[str, Callable[[Path, int], Path]] = {
    "table (CSV)": make_csv,
    "table (Excel)": make_xlsx,
    "omop": make_omop,
    "snomed": make_snomed,
    "loinc": make_loinc,
    "rxnorm": make_rxnorm,
    "claml": make_claml,
    "icd11": make_icd11,
    "rdf (N-Triples)": make_nt,
    "rdf (OWL in XML)": make_owl,
    "sssom": make_sssom,
}


def measure(path: Path) -> None:
    """Read a vocabulary, and print what it took as JSON."""
    report, start = Report(), time.process_time()
    for _ in read_vocabulary(path, report=report):
        pass
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    values = {"concepts": report.concepts, "seconds": seconds, "peak": peak}
    typer.echo(json.dumps({**values, "names": report.names}))


def main(
    rows: int = typer.Option(1_000_000, min=10, help="Rows of each vocabulary."),
    only: str | None = typer.Option(None, help="Read only formats with this in them."),
    path: Path | None = typer.Option(None, help="Read this file, and print JSON."),
) -> None:
    """made-up vocabularies -> table of rows a second and memory

    Example: python -m benchmarks.read_vocabularies --rows 1000000
    """
    if path is not None:
        measure(path)
        return
    table = []
    for name, make in MAKERS.items():
        if only and only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            made = make(Path(folder), rows)
            files = [made] if made.is_file() else [*made.rglob("*.*")]
            size = sum(file.stat().st_size for file in files if file.is_file())
            words = ["-m", "benchmarks.read_vocabularies", "--path", str(made)]
            done = subprocess.run(
                [sys.executable, *words], check=True, capture_output=True, text=True
            )
            found = json.loads(done.stdout.splitlines()[-1])
        seconds = found["seconds"]
        table.append(
            (
                name,
                f"{size / 1e6:.0f}",
                f"{found['concepts']:,}",
                f"{found['names']:,}",
                f"{seconds:.0f}",
                f"{rows / seconds:,.0f}",
                f"{found['peak']:.0f}",
            )
        )
        msg.text(" ".join(table[-1]))
    header = ("Format", "MB", "Concepts", "Names", "CPU s", "Rows/s", "Peak MB")
    print_table(header, table)
    msg.text(f"{rows:,} rows each; {machine_line()}")


if __name__ == "__main__":
    run_cli(main)
