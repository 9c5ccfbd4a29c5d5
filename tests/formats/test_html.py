import io
import re
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.entities import describe_docs
from spacy_sapbert.formats.html import (
    concept_url,
    render_doc,
    write_docs,
)

NLP = spacy.blank("en")
EVIL = "<script>alert('\"&')</script>"


class Page(HTMLParser):
    """Gathers the tags, the links and the text of a page."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags, self.links, self.text = [], [], ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [
            value for key, value in attrs if key in ("href", "src", "srcset", "data")
        ]
        assert not any(key.startswith("on") for key, _ in attrs)

    def handle_data(self, data: Any) -> None:
        self.text += data


def entity(
    start: int, end: int, text: str = "?", cui: str = "C0004057", **fields: Any
) -> Any:
    base = {"label": "DRUG", "name": "Aspirin", "score": 0.5, "note": None}
    return {"start": start, "end": end, "text": text, "cui": cui, **base, **fields}


@pytest.fixture
def doc() -> Doc:
    spacy.blank("en").add_pipe("sapbert_linker")  # registers the attributes
    doc = NLP("Took aspirin today")
    doc.ents = [Span(doc, 1, 2, label="DRUG"), Span(doc, 2, 3, label="DATE")]
    doc.ents[0]._.cui = "C0004057"
    doc.ents[0]._.candidates = [
        {"cui": "C0004057", "name": "Aspirin", "score": 0.98765}
    ]
    doc.ents[1]._.link_note = "below_threshold"
    return doc


def write(docs: Any, *, spans_key: str | None = None, **options: Any) -> Any:
    file = io.BytesIO()
    write_docs(describe_docs(docs, spans_key=spans_key), file, **options)
    return file.getvalue().decode()


def test_html_shows_concept_score_and_reason(doc: Doc) -> None:
    page = Page(write([("n1.txt", doc)]))
    words = " ".join(page.text.split())
    assert "aspirin DRUG C0004057 Aspirin 0.988" in words
    assert "today DATE NIL (below_threshold)" in words
    assert "n1.txt" in words
    assert page.links == ["https://uts.nlm.nih.gov/uts/umls/concept/C0004057"]


def test_html_is_one_page_of_all_documents(doc: Doc) -> None:
    markup = write([("n1", doc), ("n2", doc)])
    page = Page(markup)
    assert markup.startswith("<!DOCTYPE html>")
    assert page.tags.count("html") == page.tags.count("body") == 1
    assert page.tags.count("figure") == 2


def test_html_loads_nothing_from_outside(doc: Doc) -> None:
    markup = write([("n1", doc)])
    assert not {"script", "link", "img", "iframe"} & set(Page(markup).tags)
    assert "@import" not in markup
    assert "url(" not in markup


def test_html_escapes_all_texts() -> None:
    doc = NLP(f"took {EVIL} and {EVIL}")
    doc.ents = [doc.char_span(5, 5 + len(EVIL), label=EVIL, alignment_mode="expand")]
    doc.ents[0]._.cui = EVIL
    doc.ents[0]._.candidates = [{"cui": EVIL, "name": EVIL, "score": 1.0}]
    doc.ents[0]._.link_note = EVIL
    page = Page(write([(EVIL, doc)], links={".+": "https://example.org/{}"}))
    assert "script" not in page.tags
    # caption, mention, label, id, name, note, and once outside of entities
    assert page.text.count(EVIL) == 7
    assert page.links == ["https://example.org/" + quote(EVIL, safe="")]


def test_html_entities_that_overlap_are_all_named_and_the_text_is_there_once() -> None:
    text = "acute heart attack today"
    entities = [
        entity(0, 5, "acute", cui="C1"),
        entity(0, 18, "acute heart attack", cui="C2"),
        entity(6, 11, "heart", cui="C3"),
        entity(12, 24, "attack today", cui="C4"),
    ]
    page = Page(render_doc(text, entities, {}))
    assert page.tags.count("mark") == 1
    assert re.findall(r"C\d", page.text) == ["C2", "C4", "C1", "C3"]
    assert page.text.count("acute heart attack") == 1


@given(st.text(), st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5))))
def test_html_keeps_the_text_whatever_is_in_it(
    text: str, places: list[tuple[int, int]]
) -> None:
    text = text.replace("\0", "")
    entities = [
        entity(start, start + size, text[start : start + size], cui=None, label="")
        for start, size in places
        if start + size <= len(text)
    ]
    for number, item in enumerate(entities):
        item["note"] = str(number)
    markup = render_doc(text, entities, {})
    markup = re.sub(r'<span class="concept">.*?\)</span>', "", markup, flags=re.S)
    assert "<script" not in markup
    shown = Page(markup).text
    if not entities:
        assert "".join(shown.split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("cui", "url"),
    [
        ("C0004057", "https://uts.nlm.nih.gov/uts/umls/concept/C0004057"),
        ("MESH:D003920", "https://meshb.nlm.nih.gov/record/ui?ui=D003920"),
        ("D003920", "https://meshb.nlm.nih.gov/record/ui?ui=D003920"),
        ("C535468", "https://meshb.nlm.nih.gov/record/ui?ui=C535468"),
        ("OMIM:600807", "https://omim.org/entry/600807"),
        ("DOID:0050686", "http://purl.obolibrary.org/obo/DOID_0050686"),
        ("HP:0001250", "http://purl.obolibrary.org/obo/HP_0001250"),
        ("MONDO_0005148", "http://purl.obolibrary.org/obo/MONDO_0005148"),
        ("javascript:alert(1)", None),
        ("C00040571", None),
        ("", None),
    ],
)
def test_html_addresses_by_kind_of_id(cui: str, url: str | None) -> None:
    assert concept_url(cui) == url


def test_html_addresses_are_a_setting_and_quoted() -> None:
    links = {r"X:(.+)": "https://example.org/{}"}
    assert concept_url('X:a/"b"', links) == "https://example.org/a%2F%22b%22"
    assert concept_url("Y 1", {"Y.*": "https://y.org/{}"}) == "https://y.org/Y%201"


def test_html_without_text_is_an_error(doc: Doc) -> None:
    with pytest.raises(SapbertError, match="E503"):
        write([("n1", doc)], include_text=False)
