"""The files of the page, and the requests that only the page sends."""

import io
import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from openpyxl import load_workbook

from spacy_sapbert.serve.page.routes import DIGEST, FILES
from tests.io.test_excel import write_ods

from .conftest import JSON, Client

BYTES = {"content-type": "application/octet-stream"}


def test_the_page_loads_only_files_of_the_service(service: Client) -> None:
    answer = service.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    named = re.findall(r'(?:href|src)="([^"#]*)"', answer.body.decode())
    assert "page.js" in named[2]
    for path in named:  # relative: a proxy may put the service behind a path
        assert path.startswith(f"page/{DIGEST}/")
        assert service.get(f"/{path}").status == 200


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_file_of_the_page_names_no_other_site(service: Client, name: str) -> None:
    answer = service.get(f"/page/{DIGEST}/{name}")
    assert answer.body == FILES[name]
    addresses = {*re.findall(rb"https?://[^\s\"'`)]+", answer.body)}
    assert addresses <= {b"http://www.w3.org/2000/svg"}


def test_a_browser_keeps_script_and_style_until_they_change(service: Client) -> None:
    page = service.get("/")
    assert page.headers["cache-control"] == "no-cache"
    for name in ("page.js", "page.css", "state.js"):
        kept = service.get(f"/page/{DIGEST}/{name}").headers["cache-control"]
        assert "immutable" in kept
        old = service.get(f"/page/older/{name}").headers["cache-control"]
        assert old == "no-cache"
    assert service.get(f"/page/{DIGEST}/none.js").status == 404


@pytest.mark.parametrize("name", sorted(n for n in FILES if n.endswith(".js")))
def test_no_script_parses_html(name: str) -> None:
    words = rb"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|DOMParser"
    assert not re.search(words, FILES[name])


def test_the_page_needs_no_token_but_its_requests_do(strict: Client) -> None:
    assert strict.get("/").status == 200
    assert strict.get(f"/page/{DIGEST}/page.js").status == 200
    assert strict.get("/kb").status == 401
    assert b'id="answers">{}<' in strict.get("/").body


def test_the_page_has_the_first_answers_of_a_service_without_tokens(
    service: Client,
) -> None:
    text = service.get("/").body.decode()
    found = re.search(r'id="answers">(.*?)</script>', text)
    assert found is not None
    answers = json.loads(found[1])
    assert answers == {
        path: service.get(f"/{path}").json() for path in ("kb", "access")
    }


def test_kb_and_roots_describe_the_vocabulary(service: Client) -> None:
    info = service.get("/kb").json()
    assert info["counts"]["concepts"] == 8
    assert info["reviews"] is False
    roots = service.get("/roots").json()["concepts"]
    assert roots == [{"cui": "C0000003", "name": "Heart disease"}]


def test_column_reads_csv_and_excel(service: Client) -> None:
    csv = b'id,term\n1,"fever, high"\n2,\n'
    answer = service.send("POST", "/column/read?name=a.CSV", csv, BYTES)
    expected = {"header": ["id", "term"], "rows": [["1", "fever, high"], ["2", ""]]}
    assert answer.json() == expected


def test_column_reads_opendocument(service: Client, tmp_path: Path) -> None:
    cell = "<table:table-cell office:value-type='string'><text:p>{}</text:p>"
    row = f"<table:table-row>{cell}</table:table-cell></table:table-row>"
    path = write_ods(tmp_path / "a.ods", "".join(map(row.format, ("term", "fever"))))
    answer = service.send("POST", "/column/read?name=a.ods", path.read_bytes(), BYTES)
    assert answer.json() == {"header": ["term"], "rows": [["fever"]]}


def test_column_maps_terms_as_the_command_does(service: Client) -> None:
    terms = ["H/O Fever, NOS (R50.9)", "", "zebra"]
    found = service.post("/column/map", {"terms": terms, "k": 2}).json()["found"]
    assert (found[0]["cui"], found[0]["read_as"]) == ("C0000004", "Fever")
    assert found[0]["status"] == "exact"
    assert found[1]["status"] == "none"
    assert len(found[2]["candidates"]) == 2


def test_column_is_written_with_what_was_chosen(service: Client) -> None:
    terms = ["fever", "=1+1"]
    found = service.post("/column/map", {"terms": terms, "k": 2}).json()["found"]
    body = {
        "header": ["term"],
        "rows": [[term] for term in terms],
        "terms": terms,
        "mapped": {
            term: {"found": one, "chosen": chosen}
            for term, one, chosen in zip(terms, found, ("C0000001", "NIL"), strict=True)
        },
        "kb": "a digest",
    }
    csv = service.post("/column/write?format=csv", body)
    lines = csv.body.decode().splitlines()
    assert lines[0].startswith("term,match_term,match_chosen,match_status,match_id")
    assert lines[1].startswith("fever,fever,C0000001,exact,C0000004,Fever")
    assert lines[2].startswith("'=1+1,'=1+1,NIL,")
    book = load_workbook(
        io.BytesIO(service.post("/column/write?format=xlsx", body).body)
    )
    assert book.active is not None
    assert book.active["C2"].value == "C0000001"
    sssom = service.post("/column/write?format=sssom.tsv", body).body.decode()
    rows = [line.split("\t") for line in sssom.splitlines() if line[0] != "#"]
    assert rows[1][4:7] == [
        "UMLS:C0000001",
        "Myocardial infarction",
        "semapv:ManualMappingCuration",
    ]
    assert rows[2][4] == "sssom:NoTermFound"
    assert service.post("/column/write?format=exe", body).code == "E457"
    for wrong in ({"terms": []}, {"mapped": {}}, {"subject": "x"}, {"header": []}):
        assert service.post("/column/write", {**body, **wrong}).code == "E457"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.xlsx", b"no workbook"),
        ("a.csv", b"a,b\n1,2,3\n"),
        ("a.csv", b"\xff\xfe\x00"),
        ("a.csv", b"\xd0\xcf\x11\xe0 of Excel before 2007"),
        ("a.xls", b"\xd0\xcf\x11\xe0 cut"),
        ("a.ods", b"PK no"),
        ("a.parquet", b"PAR1 no"),
        ("a.docx", b"PK\x03\x04"),
        ("a.csv", b"a\n" + b"1\n" * 20_001),
    ],
)
def test_a_bad_table_is_an_error_with_a_code(
    service: Client, name: str, data: bytes
) -> None:
    answer = service.send("POST", f"/column/read?name={name}", data, BYTES)
    assert answer.status in (413, 422)
    assert re.fullmatch(r"E\d{3}", answer.code)


def test_column_refuses_what_is_no_table(service: Client) -> None:
    for body in (b"{}", b"[", b'{"terms": "fever"}'):
        assert service.send("POST", "/column/map", body, JSON).code == "E457"


@pytest.mark.parametrize(
    ("text", "cui", "alias"),
    [
        ("C0000001", "C0000001", "C0000001"),
        ("c9999999", "C0000001", "C9999999"),  # a retired id
        ("I21", "C0000001", "ICD10CM I21"),
        ("icd10cm:i21", "C0000001", "ICD10CM I21"),
        ("infarction", "C0000001", "Infarction, Myocardial"),
        ("attack", "C0000001", "Heart attack"),  # a word inside a name
        ("disease card", "C0000003", "Cardiac disease"),
        ("fever", "C0000004", "Fever"),
    ],
)
def test_search_knows_ids_codes_and_words_inside_names(
    service: Client, text: str, cui: str, alias: str
) -> None:
    first = service.get(f"/search?q={quote(text)}").json()["concepts"][0]
    assert (first["cui"], first["alias"]) == (cui, alias)


def test_a_concept_has_its_path_from_the_top(service: Client) -> None:
    path = service.get("/concepts/C0000001").json()["path"]
    assert [one["name"] for one in path] == ["Heart disease", "Myocardial infarction"]
