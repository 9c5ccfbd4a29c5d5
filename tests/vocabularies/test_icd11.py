"""ICD-11: invented rows in the columns of the simple tabulation."""

from pathlib import Path

import openpyxl
import pytest

from spacy_sapbert.vocabularies.concepts import Concept
from spacy_sapbert.vocabularies.registry import read_vocabulary
from spacy_sapbert.vocabularies.report import Report

ROWS = [
    "Foundation URI|Linearization URI|Code|BlockId|Title|ClassKind|DepthInKind|"
    "IsResidual|ChapterNo|BrowserLink|isLeaf|Primary tabulation|Grouping1|Version:2099",
    "http://id.who.int/icd/entity/1|l|||Fevers|chapter|1|False|01|b|False|||",
    "http://id.who.int/icd/entity/2|l||BlockL1-1A0|- Blue fevers|block|1|False|01|b|||",
    "http://id.who.int/icd/entity/3|l|1A00||- - Blue fever|category|1|False|01|b|||",
    "|l|1A00.Z||- - - Blue fever, unspecified|category|2|True|01|b|True|||",
    "http://id.who.int/icd/entity/4|l|1A01||- - Azure fever|category|1|False|01|b|||",
    "http://id.who.int/icd/entity/5|l|||- Group|category|1|False|X|b|||",
]


def table() -> list[list[str]]:
    width = ROWS[0].count("|") + 1
    rows = [row.split("|") for row in ROWS]
    return [[*row, *[""] * (width - len(row))] for row in rows]


@pytest.mark.parametrize("ending", ["txt", "xlsx"])
def test_read_icd11_titles_with_the_levels_above_them(
    ending: str, tmp_path: Path
) -> None:
    path = tmp_path / f"SimpleTabulation-ICD-11-MMS-en.{ending}"
    if ending == "txt":
        text = "\n".join("\t".join(f'"{cell}"' for cell in row) for row in table())
        path.write_text(text + "\n", "utf-8-sig")
    else:
        book = openpyxl.Workbook()
        for row in table():
            book.active.append([cell or None for cell in row])
        book.save(path)
    report = Report()
    concepts = list(read_vocabulary(path, report=report))
    assert report.format == "icd11"
    assert {each.cui: (each.name, each.parents) for each in concepts} == {
        "Chapter 01": ("Fevers", []),
        "BlockL1-1A0": ("Blue fevers", ["Chapter 01"]),
        "1A00": ("Blue fever", ["BlockL1-1A0"]),
        "1A00.Z": ("Blue fever, unspecified", ["1A00"]),
        "1A01": ("Azure fever", ["BlockL1-1A0"]),
        "5": ("Group", ["Chapter 01"]),
    }
    assert concepts[0] == Concept(
        "1A00",
        ["Blue fever"],
        codes={"ICD11": ["1A00"]},
        parents=["BlockL1-1A0"],
        languages={"ENG": [0]},
        sources={"ICD11": [0]},
    )


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("SimpleTabulation-ICD-11-MMS-es.txt", "SPA"),
        ("SimpleTabulation.txt", None),
        ("SimpleTabulation-2025.txt", None),
    ],
)
def test_read_icd11_language_is_that_of_the_file_name(
    name: str, language: str | None, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text("\n".join("\t".join(row) for row in table()), "utf8")
    concepts = list(read_vocabulary(path, report=Report()))
    assert concepts[0].languages == ({language: [0]} if language else {})
