import io
from typing import Any

import pytest
from spacy.tokens import Doc, Span

from spacy_sapbert.formats.entities import describe_docs
from spacy_sapbert.formats.table import WIDEST, shorten, write_docs
from tests.pipelines import NLP


@pytest.fixture
def doc() -> Doc:
    doc = NLP("Took aspirin \x1b[2J today")
    doc.ents = [Span(doc, 1, 2, label="DRUG"), Span(doc, 2, 3, label="SIGN")]
    doc.ents[0]._.cui = "C0004057"
    doc.ents[0]._.candidates = [
        {"cui": "C0004057", "name": "Aspirin", "score": 0.98765}
    ]
    doc.ents[1]._.link_note = "below_threshold"
    return doc


def write(doc: Doc, **options: Any) -> Any:
    file = io.BytesIO()
    write_docs(describe_docs([("note.txt", doc)]), file, **options)
    return file.getvalue().decode()


def cells(text: str) -> Any:
    return [line.split() for line in text.splitlines() if line.strip()]


def test_table_shows_each_entity_in_a_row(doc: Doc) -> None:
    assert [row for row in cells(write(doc)) if "-" not in row[0][:2]] == [
        ["note.txt"],
        ["mention", "label", "CUI", "name", "score", "note"],
        ["aspirin", "DRUG", "C0004057", "Aspirin", "0.988"],
        ["\ufffd[2J", "SIGN", "NIL", "below_threshold"],
    ]


def test_table_shows_ties(doc: Doc) -> None:
    doc.ents[0]._.candidates = [{**doc.ents[0]._.candidates[0], "tie": "id"}]
    doc.ents[0]._.link_note = "truncated"
    doc.ents[1]._.candidates = [{"cui": "C1", "score": 1.0, "tie": "id"}]
    doc.ents[1]._.link_note = "ambiguous"
    rows = [" ".join(row) for row in cells(write(doc))]
    assert "aspirin DRUG C0004057 Aspirin 0.988 truncated, tie: id" in rows
    assert rows[-1].endswith("SIGN NIL ambiguous")


def test_table_does_not_show_ties_that_evidence_decides(doc: Doc) -> None:
    found = {**doc.ents[0]._.candidates[0], "tie": "preferred"}
    doc.ents[0]._.candidates = [found]
    assert "tie" not in write(doc)


def test_table_without_text_shows_places(doc: Doc) -> None:
    text = write(doc, include_text=False)
    assert "5–12" in text
    assert "aspirin" not in text


def test_table_shows_that_there_are_no_entities() -> None:
    assert cells(write(NLP("nothing"))) == [["note.txt"], ["no", "entities"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n\t b", "a b"),
        ("x" * 99, "x" * (WIDEST - 1) + "…"),
        ("x" * WIDEST, "x" * WIDEST),
        ("\x1b]0;title\x07", "\ufffd]0;title\ufffd"),
        ("", ""),
    ],
)
def test_table_cells_are_short_and_cannot_steer_the_terminal(
    text: str, expected: Any
) -> None:
    assert shorten(text) == expected
