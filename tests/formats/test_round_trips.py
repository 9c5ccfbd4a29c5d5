"""What is written is read back, where a format carries it."""

import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span, SpanGroup

from spacy_sapbert.formats.entities import BREAKS
from spacy_sapbert.formats.gold_docs import read_docs
from spacy_sapbert.formats.registry import list_formats, write_linked
from tests.pipelines import NLP

READERS = {
    name: format
    for name, format in list_formats("write").items()
    if format.returned != "–"
}
TRIMMED = ("pubtator", "brat")  # blanks around a mention are not part of it
QUOTED = {"A|B+C D": "A%7CB%2BC%20D"}
CUIS = [None, "C0004057", "MESH:D001241", "KB:1", *QUOTED]
BLANKS = ["\r\n", "\n", "\r", "\t", " ", "  ", "\u2028", "\x85"]
MARKS = ["\U0001f469\u200d\U0001f52c", "\U0001f48a", "e\u0301", "\ufeff", "\0"]
LETTERS = st.text(st.characters(codec="utf8"), max_size=5)
TEXTS = st.lists(st.one_of(st.sampled_from(BLANKS + MARKS), LETTERS), max_size=12).map(
    "".join
)


def one_line(text: str) -> Any:
    return BREAKS.sub(" ", text).strip()


@st.composite
def linked_docs(draw: st.DrawFn) -> Any:
    docs = []
    for number in range(draw(st.integers(1, 3))):
        doc = NLP(draw(TEXTS))
        spans = []
        for _ in range(draw(st.integers(0, 4)) if len(doc) else 0):
            start = draw(st.integers(0, len(doc) - 1))
            end = draw(st.integers(start + 1, len(doc)))
            label = draw(st.sampled_from(["DRUG", "Störung", "T047,T191"]))
            kb_id = draw(st.sampled_from(CUIS)) or "NIL"
            spans.append(Span(doc, start, end, label=label, kb_id=kb_id))
        doc.spans["sc"] = SpanGroup(doc, name="sc", spans=spans)
        docs.append((f"d{number}", doc))
    return docs


def expected_mentions(doc: Doc, name: str) -> Any:
    found = []
    for span in doc.spans["sc"]:
        start, end, kb_id = span.start_char, span.end_char, span.kb_id_
        if name in TRIMMED:
            text = span.text
            if name == "brat" and not start and text.startswith("\ufeff"):
                text = " " + text[1:]
            start, end = end - len(text.lstrip()), start + len(text.rstrip())
            kb_id = QUOTED.get(kb_id, kb_id)
        if start < end:
            found.append((start, end, span.label_, kb_id))
    return sorted(found)


def mentions_read(doc: Doc) -> Any:
    group = doc.spans["gold"]
    places = zip(group.attrs["start_char"], group.attrs["end_char"], strict=True)
    return sorted(
        (*place, span.label_, span.kb_id_)
        for place, span in zip(places, group, strict=True)
    )


@pytest.mark.parametrize("name", READERS)
@given(docs=linked_docs())
def test_round_trip_keeps_offsets_labels_and_ids(name: str, docs: Any) -> None:
    if library := READERS[name].library:
        pytest.importorskip(library[0])
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "out"
        write_linked(docs, path, format=name, spans_key="sc")
        found = list(read_docs(path, NLP, format=name))
    assert [key for key, _ in found] == [key for key, _ in docs]
    for (_, doc), (_, back) in zip(docs, found, strict=True):
        assert mentions_read(back) == expected_mentions(doc, name)
        if name in ("jsonl", "biocjson"):
            assert back.text == doc.text
        if name == "pubtator":
            assert (
                BREAKS.sub(" ", back.text).strip() == BREAKS.sub(" ", doc.text).strip()
            )
        assert back.text.startswith("\ufeff") or len(back.text) >= len(doc.text)


@pytest.mark.parametrize("name", READERS)
def test_round_trip_through_gzip(name: str, tmp_path: Path) -> None:
    if library := READERS[name].library:
        pytest.importorskip(library[0])
    if name == "brat":
        pytest.skip("brat is a folder")
    doc = NLP("Took aspirin 💊")
    doc.ents = [Span(doc, 1, 2, label="DRUG", kb_id="C0004057")]
    path = tmp_path / "linked.gz"
    write_linked([("n", doc)], path, format=name)
    assert path.read_bytes()[:2] == b"\x1f\x8b"
    ((_, back),) = read_docs(path, NLP, format=name)
    assert [(e.start_char, e.text, e.label_, e.kb_id_) for e in back.ents] == [
        (5, "aspirin", "DRUG", "C0004057")
    ]
