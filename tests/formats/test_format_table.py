import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span, SpanGroup

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats import gold
from spacy_sapbert.formats.corpus import open_corpus
from spacy_sapbert.formats.entities import BREAKS
from spacy_sapbert.formats.format_table import (
    guess_format,
    list_formats,
    load_reader,
    load_writer,
    write_linked,
)
from spacy_sapbert.formats.gold_docs import read_docs
from tests.pipelines import NLP

BINARY = {"parquet"}
WRITERS = list_formats("write")
READERS = {n: each for n, each in WRITERS.items() if each.returned != "–"}
LIBRARIES = {name: format.library for name, format in WRITERS.items() if format.library}


def need_library(name: str) -> None:
    if name in LIBRARIES:
        pytest.importorskip(LIBRARIES[name][0])


def test_formats_leave_nothing_where_a_document_fails(tmp_path):
    def docs() -> Any:
        yield 1, NLP("a")
        raise ZeroDivisionError

    for name in WRITERS:
        need_library(name)
        with pytest.raises(ZeroDivisionError):
            write_linked(docs(), tmp_path / name, format=name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["html", "omop", "pubtator", "brat"])
def test_formats_that_need_the_text_raise_an_error(name, tmp_path):
    with pytest.raises(SapbertError, match=f"E110.*{name}"):
        write_linked([], tmp_path / "out", format=name, include_text=False)
    assert list(tmp_path.iterdir()) == []


def test_formats_are_guessed_from_the_ending_or_an_error():
    names = "a.jsonl", "a.jsonl.gz", "t.txt", "a.xml.gz", "a.parquet"
    found = [guess_format(Path(name)) for name in names]
    assert found == ["jsonl", "jsonl", "table", "biocxml", "parquet"]
    for path in ("a.gz", "a.docx"):
        with pytest.raises(SapbertError, match="E110.*--format"):
            guess_format(Path(path))
    for load, done in ((load_reader, "read"), (load_writer, "written")):
        with pytest.raises(SapbertError, match=f"E110.*be {done}, .*'docx'"):
            load("docx")


TRIMMED = ("pubtator", "brat")  # blanks around a mention are not part of it
QUOTED = {"A|B+C D": "A%7CB%2BC%20D"}
CUIS = [None, "C0004057", "MESH:D001241", "KB:1", *QUOTED]
BLANKS = ["\r\n", "\n", "\r", "\t", " ", "  ", "\u2028", "\x85"]
MARKS = ["\U0001f469\u200d\U0001f52c", "\U0001f48a", "e\u0301", "\ufeff", "\0"]
LETTERS = st.text(st.characters(codec="utf8"), max_size=5)
TEXTS = st.lists(st.one_of(st.sampled_from(BLANKS + MARKS), LETTERS), max_size=12).map(
    "".join
)


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
        docs.append((f"{number}", doc))  # a note id, as OMOP has them
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
        if not WRITERS[name].ids:
            kb_id = ""
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


@pytest.mark.parametrize("name", WRITERS)
@given(docs=linked_docs(), packed=st.booleans())
def test_any_docs_are_written_and_read_again(name, docs, packed):
    need_library(name)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / ("out.gz" if packed and name not in BINARY else "out")
        write_linked(docs, path, format=name, spans_key="sc")
        if name not in READERS:
            return
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


BY_HAND = {  # files that no writer writes
    "ids.ann": "T1\tX 0 5\tfever\n"
    "N1\tReference T1 A\nN2\tReference T1 B\nN3\tReference T1 C\n",
    "mentions.ann": "".join(f"T{n}\tX 0 5\tfever\n" for n in range(3)),
}


# whose mentions may be longer than the document
COUNTED = ("jsonl", "biocxml", "biocjson", "doccano")


@pytest.mark.parametrize("name", [*READERS, *BY_HAND])
@pytest.mark.parametrize(("limit", "most"), [("MENTIONS", 3), ("RECORD_BYTES", 15)])
def test_a_document_has_mentions_up_to_a_limit(
    name, limit, most, tmp_path, monkeypatch
):
    path = tmp_path / name
    if text := BY_HAND.get(name):
        path.write_text(text)
        path.with_suffix(".txt").write_text("fever")
    else:
        doc = NLP("fever fever fever")
        doc.ents = [Span(doc, n, n + 1, label="X", kb_id="C1") for n in range(3)]
        write_linked([doc], path, format=name)
    format = "brat" if name.endswith(".ann") else name
    monkeypatch.setattr(gold, limit, most)
    (expected,) = open_corpus(path, format)
    assert expected.id == "1" or name in BY_HAND  # the number of the Doc
    monkeypatch.setattr(gold, limit, most - 1)
    if limit == "RECORD_BYTES" and name not in COUNTED:
        assert [*open_corpus(path, format)] == [expected]
    else:
        with pytest.raises(SapbertError, match="E007|E117.*at most"):
            list(open_corpus(path, format))
