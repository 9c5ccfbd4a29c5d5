import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.entities import describe_docs
from spacy_sapbert.formats.gold import GoldDocument, GoldMention
from spacy_sapbert.formats.jsonl import read_gold, write_docs
from tests.pipelines import NLP


@pytest.fixture
def doc() -> Doc:
    doc = NLP("Took aspirin 💊 today")
    doc.ents = [Span(doc, 1, 2, label="DRUG"), Span(doc, 2, 3, label="SIGN")]
    doc.ents[0]._.cui = "C0004057"
    doc.ents[0]._.candidates = [
        {
            "cui": "C0004057",
            "name": "Aspirin",
            "alias": "aspirin",
            "score": 1.0,
            "types": ["T109"],
        }
    ]
    doc.ents[1]._.link_note = "empty"
    return doc


def write(docs: Any, *, spans_key: str | None = None, **options: Any) -> Any:
    file = io.BytesIO()
    write_docs(describe_docs(docs, spans_key=spans_key), file, **options)
    return file.getvalue()


def test_jsonl_a_document_is_a_line_with_fields_in_order(doc: Doc) -> None:
    assert write([("n1", doc)]).decode() == (
        '{"id": "n1", "text": "Took aspirin 💊 today", "entities": ['
        '{"start": 5, "end": 12, "text": "aspirin", "label": "DRUG", '
        '"cui": "C0004057", "name": "Aspirin", "score": 1.0, '
        '"probability": null, "types": ["T109"], "codes": {}, "candidates": ['
        '{"cui": "C0004057", "name": "Aspirin", "alias": "aspirin", "score": 1.0, '
        '"types": ["T109"]}], "note": null, "tie": null}, '
        '{"start": 13, "end": 14, "text": "💊", "label": "SIGN", "cui": null, '
        '"name": null, "score": null, "probability": null, "types": [], "codes": {}, '
        '"candidates": [], "note": "empty", "tie": null}]}\n'
    )


def test_jsonl_without_text_no_mention_is_written(doc: Doc) -> None:
    data = json.loads(write([(7, doc)], include_text=False))
    assert list(data) == ["id", "entities"]
    assert all("text" not in entity for entity in data["entities"])
    assert [(e["start"], e["end"]) for e in data["entities"]] == [(5, 12), (13, 14)]


@given(st.lists(st.text(st.characters(codec="utf8")), max_size=4))
def test_jsonl_every_document_stays_a_line_with_true_offsets(texts: list[str]) -> None:
    docs = []
    for text in texts:
        doc = NLP(text)
        doc.spans["sc"] = [doc[i:] for i in range(len(doc))]
        docs.append((None, doc))
    lines = write(docs, spans_key="sc").split(b"\n")
    assert lines.pop() == b""
    assert len(lines) == len(texts)
    for line, text in zip(lines, texts, strict=True):
        data = json.loads(line)
        assert data["text"] == text
        for entity in data["entities"]:
            assert text[entity["start"] : entity["end"]] == entity["text"]


def read(tmp_path: Path, *lines: Any) -> Any:
    path = tmp_path / "linked.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf8")
    return list(read_gold(path))


def test_jsonl_reads_what_it_wrote(doc: Doc, tmp_path: Path) -> None:
    path = tmp_path / "linked.jsonl"
    path.write_bytes(write([("n1", doc), (2, doc)]))
    spans = [
        GoldMention(5, 12, "DRUG", "aspirin", [["C0004057"]], 1),
        GoldMention(13, 14, "SIGN", "💊", [], 1),
    ]
    second = [span._replace(line=2) for span in spans]
    assert list(read_gold(path)) == [
        GoldDocument("n1", doc.text, spans),
        GoldDocument(2, doc.text, second),
    ]


def test_jsonl_reads_lines_with_less_in_them(tmp_path: Path) -> None:
    entity = {"start": 0, "end": 1}
    assert read(tmp_path, {"text": "ab"}, {"text": "ab", "entities": [entity]}) == [
        GoldDocument("linked.jsonl:1", "ab", []),
        GoldDocument("linked.jsonl:2", "ab", [GoldMention(0, 1, "", "a", [], 2)]),
    ]


@pytest.mark.parametrize(
    ("entities", "code"),
    [
        (7, "E117"),
        ([7], "E117"),
        ([{}], "E117"),
        ([{"start": 0}], "E117"),
        ([{"start": 0, "end": 9}], "E117"),
        ([{"start": 1, "end": 1}], "E117"),
        ([{"start": -1, "end": 1}], "E117"),
        ([{"start": False, "end": True}], "E117"),
        ([{"start": 0, "end": 1, "label": 7}], "E117"),
        ([{"start": 0, "end": 1, "cui": ["C1"]}], "E117"),
        ([{"start": 0, "end": 1, "text": "b"}], "E117"),
    ],
)
def test_jsonl_a_bad_line_is_named_and_not_quoted(
    entities: Any, code: str, tmp_path: Path
) -> None:
    lines = {"text": "sentinel"}, {"text": "sentinel", "entities": entities}
    with pytest.raises(SapbertError, match=rf"{code}.*linked.jsonl:2:") as error:
        read(tmp_path, *lines)
    assert "sentinel" not in str(error.value)


def test_jsonl_that_was_written_without_texts_is_an_error(
    doc: Doc, tmp_path: Path
) -> None:
    path = tmp_path / "linked.jsonl"
    path.write_bytes(write([("n1", doc)], include_text=False))
    with pytest.raises(SapbertError, match="E117.*a text as `text`"):
        list(read_gold(path))
