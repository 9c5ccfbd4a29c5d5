"""RxNorm: invented drugs in the columns of its tables."""

from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept
from spacy_sapbert.vocabularies.registry import guess_format
from tests.vocabularies.whole import read_by_id as read

TABLES = {
    "RXNCONSO": """20|ENG||||||A1||||RXNORM|IN|20|bluamin||N||
20|ENG||||||A2||||RXNORM|SY|20|bluaminum||N||
20|ENG||||||A3||||ATC|IN|Z99ZZ|bluamin||N||
20|ENG||||||A4||||MTHSPL|SU|XYZ|BLUAMIN||O||
3|ENG||||||A5||||RXNORM|BN|3|Azurex||N||
100|ENG||||||A7||||RXNORM|PSN|100|bluamin 5 MG Tablet||N||
100|ENG||||||A6||||RXNORM|SCD|100|bluamin 5 MG Oral Tablet||N||
""",
    "RXNSTY": "20|T121|A1|Substance|AT1||\n",
    "RXNREL": """20||CUI|RO|3||CUI|tradename_of|R1||RXNORM||||N||
20||CUI|RO|100||CUI|isa|R2||RXNORM||||N||
100||CUI|RO|20||CUI|isa|R3||RXNORM||||O||
20||CUI|RO|100||CUI|ingredient_of|R4||RXNORM||||N||
""",
    "RXNSAT": """100|||A6|AUI|100|||NDC|RXNORM|00000000001|N||
100|||A6|AUI|100|||NDC|MTHSPL|0000-0000-01|N||
100|||A6|AUI|100|||NDC|VANDF|000000000001|N||
20|||A1|AUI|20|||UMLSCUI|RXNORM|C0000020|N||
20|||A1|AUI|20|||RXN_ACTIVATED|RXNORM|x|N||
""",
    "RXNCUI": "7|01JAN|02JAN|1|20|\n8|01JAN|02JAN|2|20|\n9|01JAN|02JAN|1|9|\n",
}


def write(folder: Path, **others: str) -> Path:
    (folder / "rrf").mkdir(exist_ok=True)
    for name, text in {**TABLES, **others}.items():
        (folder / "rrf" / f"{name}.RRF").write_text(text, "utf8")
    return folder


def test_read_rxnorm_names_types_codes_parents_and_retired_ids(tmp_path: Path) -> None:
    assert guess_format(write(tmp_path)) == "rxnorm"
    concepts, report = read(tmp_path)
    assert concepts == {
        "RXNORM:20": Concept(
            "RXNORM:20",
            ["bluamin", "bluaminum"],
            types=["T121"],
            codes={"RXNORM": ["20"], "ATC": ["Z99ZZ"], "UMLS": ["C0000020"]},
            retired=["RXNORM:7"],
            languages={"ENG": [0, 1]},
            sources={"RXNORM": [0, 1], "ATC": [0]},
        ),
        "RXNORM:3": Concept(
            "RXNORM:3",
            ["Azurex"],
            codes={"RXNORM": ["3"]},
            languages={"ENG": [0]},
            sources={"RXNORM": [0]},
        ),
        "RXNORM:100": Concept(
            "RXNORM:100",
            ["bluamin 5 MG Oral Tablet", "bluamin 5 MG Tablet"],
            codes={"RXNORM": ["100"], "NDC": ["00000000001"]},
            parents=["RXNORM:20"],
            languages={"ENG": [0, 1]},
            sources={"RXNORM": [0, 1]},
        ),
    }
    assert report.dropped["suppressed rows"] == 1
    assert report.dropped["suppressed relations"] == 1


def test_read_rxnorm_trade_names_and_filters(tmp_path: Path) -> None:
    path = write(tmp_path) / "rrf" / "RXNCONSO.RRF"
    concepts, _ = read(path, trade_names=True, sources=["RXNORM"])
    assert concepts["RXNORM:20"].aliases == ["bluamin", "bluaminum", "Azurex"]
    assert "ATC" not in concepts["RXNORM:20"].codes
    assert concepts["RXNORM:3"].aliases == ["Azurex"]
    concepts, report = read(path, ingredient_names=True, sources=["RXNORM"])
    assert concepts["RXNORM:20"].aliases == ["bluamin", "bluaminum"]
    assert concepts["RXNORM:3"].aliases == ["Azurex", "bluamin", "bluaminum"]
    assert report.counts["names of brands and ingredients"] == 2
    concepts, _ = read(path, term_types=["BN"])
    assert [*concepts] == ["RXNORM:3"]
    with pytest.raises(SapbertError, match="E105.*ATX.*Did you mean ATC"):
        read(path, sources=["ATX"])


def test_read_rxnorm_bad_rows_are_an_error_or_counted(tmp_path: Path) -> None:
    path = write(tmp_path, RXNSTY="20|T121\n")
    with pytest.raises(SapbertError, match=r"E117.*RXNSTY\.RRF:1"):
        read(path)
    _, report = read(path, on_error="skip")
    assert report.dropped["rows of RXNSTY with a wrong number of fields"] == 1
