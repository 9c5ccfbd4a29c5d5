"""What `map` and `verify` write of small tables, in `tables.json`.

Each case has a table, the number of a row, and its cells without scores: a reader
checks that its status and its concept fit the term. After a change, delete the file,
run this test, remove what `pytest --disturb` changes, and read what git shows.
"""

import csv
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spacy_sapbert.io.tables.files import write_table
from spacy_sapbert.io.version import __version__
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.linking.options import LinkOptions
from spacy_sapbert.mapping.run import TermColumns, map_table
from spacy_sapbert.verification.verified_tables import PairColumns, verify_table
from tests.golden import check_golden

FILE = Path(__file__).parent / "tables.json"
NUMBER = re.compile(r"\d\.\d+")  # a score or a probability
TERMS = [
    ("HEART ATTACK (I21.9)", "", ""),
    ("Fever, NOS (R50.9)", "T184, T047", ""),
    ("", "", ""),
    ("head pain; fever;fever", "", ""),
    ("=1+1", "", ""),
    ("MI", "", ""),
    ("left heart disease", "", ""),
    ("fever", "T047", ""),
    ("N/A", "", ""),
    ("Aspirins", "T121", ""),
    ("diabetis", "", ""),
    ("--", "T047", ""),
]
# text, id, label, context
PAIRS = [
    ("Heart attack", "C0000001", "Myocardial infarction", ""),
    ("Fever", "C0000001", "Fever", ""),
    ("Heart attack", "C9999999", "", ""),
    ("Fever", "c0000004", "Pyrexia", ""),
    ("Fever", "", "Fever", ""),
    ("n/a", "C0000004", "Fever", ""),
    ("Fever", "C0000004; C0000007", "", ""),
    ("Heart attack", "C0000003", "", ""),
    ("HP", "C0000007", "", "a head pain (HP)"),
    ("MI", "C0000002", "Heart attack", ""),
    ("Fever", "C7777777", "", ""),
    ("Fever", "C0000001", "Fever", ""),
    ("<b>Fever</b>", "C0000001", "", ""),
    ("(heart attack).", " C0000001 ", "", ""),
    ("Heart disease", "ICD10CM:I21", "Fever", "a head pain (HP)"),
    ("HP", "C0000007", "", ""),
]


def write_all(kb: Any, cold: Any, folder: Path) -> Iterator[Path]:
    """Write tables with what was found, and yield their paths."""
    terms, pairs = folder / "terms.csv", folder / "pairs.csv"
    header = ["match_id", "term", "types", "match_x"]
    write_table(terms, header, [["old", *row] for row in TERMS])
    columns = TermColumns("Term", "types", separator=";")
    for name, options in {
        "mapped": LinkOptions(k=2),
        "sure": LinkOptions(k=1, threshold=0.95),
        "mappings.sssom": LinkOptions(threshold=0.95),
    }.items():
        ending = "tsv" if "." in name else "csv"
        path = folder / f"{name}.{ending}"
        map_table(kb, terms, path, columns, options)
        yield path
    rows = [["cold", "", ""], ["Colds", "", ""], ["snow (2)", "", ""]]
    write_table(terms, ["term", "a", "b"], rows)
    path = folder / "ordered.csv"
    map_table(cold, terms, path, TermColumns("term"), LinkOptions(k=3))
    yield path
    write_table(pairs, ["text", "id", "label", "context"], PAIRS)
    for ending in ("csv", "html"):
        path = folder / f"verified.{ending}"
        columns = PairColumns("text", "id", "label", "context")
        verify_table(kb, pairs, path, columns)
        yield path


def read_table(path: Path, digest: str) -> Iterator[Any]:
    """Yield the rows of a table, or the cells of a page, without scores."""
    text = path.read_text("utf8").replace(digest, "DIGEST")
    if path.suffix == ".html":
        for row in re.findall("<tr>.*?</tr>", text, re.DOTALL):
            cells = [re.sub("<.*?>", "", c) for c in re.findall("<td.*?</td>", row)]
            yield [cell for cell in cells if not NUMBER.fullmatch(cell)]
    elif ".sssom" in path.name:
        today = datetime.now(tz=UTC).date().isoformat()
        text = text.replace(today, "TODAY").replace(f"\t{__version__}\t", "\tVERSION\t")
        for line in text.splitlines():
            yield [NUMBER.sub("NUMBER", cell) for cell in line.split("\t")]
    else:
        for row in csv.DictReader(text.splitlines()):
            yield {k: v for k, v in row.items() if v and not NUMBER.fullmatch(v)}


def test_tables_are_those_of_the_last_version(kb, cold_kb, tmp_path):
    check_golden(
        FILE,
        [
            [path.name, number, row]
            for path in write_all(kb, load_kb(cold_kb), tmp_path)
            for number, row in enumerate(read_table(path, kb.manifest.digest))
        ],
    )
