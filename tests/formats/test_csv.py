import csv
import io
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span

from spacy_sapbert.formats.csv import write_docs
from spacy_sapbert.formats.entities import describe_docs
from spacy_sapbert.io.formulas import FORMULA, defuse
from tests.pipelines import NLP

CANDIDATE = {
    "cui": "C0004057",
    "name": "Aspirin",
    "alias": "aspirin",
    "score": -0.5,
    "rank": 1,
    "types": ["T109"],
    "codes": {"MSH": ["D001241"]},
    "tie": "id",
    "probability": 0.75,
}


@pytest.fixture
def doc() -> Doc:
    doc = NLP('Took "aspirin", \r\n today')
    doc.ents = [Span(doc, 1, 5, label="DRUG"), Span(doc, 6, 7, label="X")]
    doc.ents[0]._.cui, doc.ents[0]._.candidates = "C0004057", [CANDIDATE]
    doc.ents[1]._.link_note = "below_threshold"
    return doc


def write(docs: Any, *, spans_key: str | None = None, **options: Any) -> Any:
    file = io.BytesIO()
    write_docs(describe_docs(docs, spans_key=spans_key), file, **options)
    return file.getvalue()


def test_csv_a_mention_is_a_row_with_all_its_fields(doc: Doc) -> None:
    lines = list(csv.reader(io.StringIO(write([(7, doc)]).decode(), newline="")))
    header, first, second = lines
    row = dict(zip(header, first, strict=True))
    assert json.loads(row.pop("candidates")) == [CANDIDATE]
    assert json.loads(row.pop("codes")) == {"MSH": ["D001241"]}
    assert row == {
        "id": "7",
        "start": "5",
        "end": "15",
        "text": '"aspirin",',
        "label": "DRUG",
        "cui": "C0004057",
        "name": "Aspirin",
        "score": "-0.5",
        "probability": "0.75",
        "types": '["T109"]',
        "note": "",
        "tie": "id",
        "error": "",
    }
    assert second == [
        *("7", "19", "24", "today", "X", "", "", "", ""),
        *("[]", "{}", "[]", "below_threshold", "", ""),
    ]


def test_csv_lines_end_as_the_standard_says(doc: Doc) -> None:
    data = write([(7, doc)])
    assert data.count(b"\r\n") == 3
    assert b'"""aspirin"","' in data


def test_csv_without_text_has_no_column_for_it(doc: Doc) -> None:
    data = write([(7, doc)], include_text=False).decode()
    assert data.startswith("id,start,end,label,")
    assert "today" not in data


@pytest.mark.parametrize(
    "cell", ["=1+1", "+1+1", "-a", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1", "'=1", "''-"]
)
def test_csv_text_like_a_formula_gets_a_quote(cell: str) -> None:
    assert defuse(cell) == f"'{cell}"


@pytest.mark.parametrize(
    "cell", ["", "a=1", "'quoted'", "'s", "1-2", "é", "-1.5", "+1", "-2e-3", "-5%"]
)
def test_csv_other_texts_stay(cell: str) -> None:
    assert defuse(cell) == cell


@given(st.text())
def test_csv_defusing_can_be_undone(cell: str) -> None:
    shown = defuse(cell)
    assert (shown[1:] if re.match("'" + FORMULA.pattern, shown) else shown) == cell


@given(st.lists(st.text(st.characters(codec="utf8"), min_size=1), max_size=4))
def test_csv_every_text_is_one_cell(texts: list[str]) -> None:
    docs = []
    for text in texts:
        doc = NLP(text)
        doc.spans["sc"] = [doc[:]]
        docs.append((text, doc))
    data = write(docs, spans_key="sc").decode()
    rows = list(csv.DictReader(io.StringIO(data, newline="")))
    assert [row["id"] for row in rows] == [defuse(text) for text in texts]
    assert [row["text"] for row in rows] == [defuse(d[:].text) for _, d in docs]
