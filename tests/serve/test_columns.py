"""A column of terms: what was shown is what is written, and the user's cells stay."""

import csv
import datetime
import io
import json
from typing import Any
from urllib.parse import urlencode

import pytest
from openpyxl import Workbook, load_workbook

from spacy_sapbert import load_kb
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.vocabularies.concepts import Concept
from tests.mapping.test_lookup import CODED, CODED_TERMS

from .conftest import JSON, LocalClient

BYTES = {"content-type": "application/octet-stream"}
FEVER, INFARCT = "C0000004", "C0000001"


def map_terms(client: LocalClient, terms: list[str], **settings: Any) -> dict[str, Any]:
    """Map terms as the page does, and return the body of a download."""
    answer = client.post("/column/map", {"terms": terms, "k": 2, **settings}).json()
    return {
        "header": ["term"],
        "rows": [[term] for term in terms],
        "terms": terms,
        "mapped": {
            term: {"found": found}
            for term, found in zip(terms, answer["found"], strict=True)
        },
        "kb": answer["kb"],
    }


def download(client: LocalClient, body: Any, format: str = "csv") -> bytes:
    answer = client.post(f"/column/write?format={format}", body)
    assert answer.status == 200, answer.body
    return answer.body


def read_csv(data: bytes) -> list[dict[str, str]]:
    return [*csv.DictReader(io.StringIO(data.decode()))]


def test_a_download_has_what_was_shown_although_another_version_is_used(
    open_local, own_kb
):
    """The terms were mapped again, with the knowledge base of the moment."""
    client = open_local(own_kb)
    body = map_terms(client, ["ward fever"])
    shown = body["mapped"]["ward fever"]["found"]["candidates"][0]
    add_concepts(load_kb(own_kb), [Concept("L0000001", ["Ward fever"])])
    newer = open_local(own_kb)
    again = map_terms(newer, ["ward fever"])["mapped"]["ward fever"]
    assert again["found"]["cui"] == "L0000001"
    (row,) = read_csv(download(newer, body))
    assert (row["match_1_id"], row["match_1_name"]) == (shown["cui"], shown["name"])
    body["mapped"]["ward fever"]["chosen"] = shown["cui"]
    data = download(newer, body, "sssom.tsv")
    assert f'#object_source_version: "{body["kb"]}"' in data.decode()


def test_ids_are_known_alike_by_map_column_and_reconcile(open_local, make_kb, tmp_path):
    client = open_local(make_kb(tmp_path, CODED, backend="exact"))
    terms = [*{term: status for term, status, _ in CODED_TERMS}]
    found = client.post("/column/map", {"terms": terms, "k": 5}).json()["found"]
    queries = json.dumps({str(n): {"query": term} for n, term in enumerate(terms)})
    form = {"content-type": "application/x-www-form-urlencoded"}
    body = urlencode({"queries": queries}).encode()
    answers = client.send("POST", "/reconcile", body, form).json()
    for (term, status, cuis), one, answer in zip(
        CODED_TERMS, found, answers.values(), strict=True
    ):
        assert (one["status"], [c["cui"] for c in one["candidates"]]) == (status, cuis)
        results = answer["result"]
        assert [result["id"] for result in results] == cuis, term
        assert [result["match"] for result in results] == [status != "review"] * len(
            cuis
        )


CELLS = [-1.5, 7, True, datetime.date(2026, 1, 2), None, "=1+1", "-1.5", "0012"]
SENT = [-1.5, 7, True, {"date": "2026-01-02"}, "", "=1+1", "-1.5", "0012"]


def test_the_cells_of_a_user_keep_their_types(local):
    book = Workbook()
    sheet: Any = book.active
    sheet.append(["term", *"abcdefgh"])
    sheet.append(["Fever", *CELLS])
    sheet["G2"].data_type = "s"  # a text, and no formula
    file = io.BytesIO()
    book.save(file)
    path = "/column/read?ending=.xlsx"
    table = local.send("POST", path, file.getvalue(), BYTES).json()
    assert table["rows"] == [["Fever", *SENT]]
    body = {**map_terms(local, ["Fever"]), **table}
    sheet = load_workbook(io.BytesIO(download(local, body, "xlsx"))).active
    day = datetime.datetime(2026, 1, 2)
    row = [cell.value for cell in sheet[2]][1:9]
    assert row == [*CELLS[:3], day, *CELLS[4:]]
    assert sheet["G2"].data_type == "s"
    (written,) = read_csv(download(local, body))
    texts = ["-1.5", "7", "TRUE", "2026-01-02", "", "=1+1", "-1.5", "0012"]
    assert [written[name] for name in "abcdefgh"] == texts
    bad = {**body, "rows": [["Fever", *SENT[:3], {"date": "soon"}, *SENT[4:]]]}
    assert local.post("/column/write", bad).status == 422


def test_the_most_rows_of_a_table_are_written_and_read(local):
    """A body of 3 MB, which is more than other requests may send."""
    body = map_terms(local, ["Fever"])
    terms = [f"Fever {number:05} {'x' * 2_000}" for number in range(700)]
    body |= {"terms": terms, "rows": [[term] for term in terms]}
    body |= {"mapped": dict.fromkeys(terms, body["mapped"]["Fever"])}
    assert len(json.dumps(body)) > 3 << 20
    assert len(read_csv(download(local, body))) == 700
    assert local.send("POST", "/column/map", b" " * (5 << 20), JSON).status == 413
    data = b"a\n" + b"1\n" * 20_000
    assert local.send("POST", "/column/read?ending=.csv", data, BYTES).status == 200


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"a,b\n1,2,3\n", "E117 table.csv:2: Expected 2 fields, as the first line has"),
        (b"\xd0\xcf\x11\xe0 of Excel before 2007", "E110 Expected a table"),
        (
            b"a\n" + b"1\n" * 20_001,
            "E458 Expected at most 20,000 rows in a request, but got 20,001.",
        ),
    ],
)
def test_a_bad_table_is_an_error_with_a_code(local, data, told):
    answer = local.send("POST", "/column/read?ending=.csv", data, BYTES)
    assert answer.status == (413 if "E458" in told else 422)
    assert f"{answer.code} {answer.json()['error']['message']}".startswith(told)
