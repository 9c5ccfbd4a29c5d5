import io
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.entities import LinkedDoc
from spacy_sapbert.formats.page.addresses import UrlTemplate, concept_url
from spacy_sapbert.formats.page.groups import name_type
from spacy_sapbert.formats.page.write import write_docs

VOID = ("meta", "link", "img", "input", "wbr", "br", "hr")


class Page(HTMLParser):
    """Builds the tree of a page; checks that elements are closed in order."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.builder, self.open = TreeBuilder(), ["page"]
        self.handle_data = self.builder.data
        self.builder.start("page", {})
        self.feed(markup)
        self.close()
        self.handle_endtag("page")

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert not any(key.startswith("on") or key == "style" for key, _ in attrs)
        assert len(dict(attrs)) == len(attrs)
        self.builder.start(tag, {key: value or "" for key, value in attrs})
        self.open.append(tag)
        if tag in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.builder.end(tag)


def find_kind(page: Element, kind: str) -> list[Element]:
    """Return the elements of a class, in order."""
    return [each for each in page.iter() if kind in each.get("class", "").split()]


def entity(start: int, text: str, cui: str | None = "C0004057", **fields: Any) -> Any:
    base = {"label": "DRUG", "name": cui and "Aspirin", "score": cui and 0.5}
    empty = {"probability": None, "types": [], "codes": {}, "candidates": []}
    rest = {"note": None, "tie": None}
    end = start + len(text)
    place = {"start": start, "end": end, "text": text, "cui": cui}
    return {**place, **base, **empty, **rest, **fields}


def write(*docs: LinkedDoc, **options: Any) -> Element:
    file = io.BytesIO()
    write_docs(docs, file, **options)
    return Page(file.getvalue().decode()).builder.close()


def write_one(text: str, *entities: Any, **options: Any) -> Element:
    return write(LinkedDoc("n1", text, list(entities), lang="en"), **options)


def test_page_names_groups_and_types():
    names = [name_type(type) for type in ("CHEM", "T047", "other")]
    assert names == ["Chemicals and drugs", "Disease or Syndrome", "other"]


def test_page_policy_allows_its_own_style_and_script_and_no_network():
    page = write_one("a", entity(0, "a"))
    (policy,) = (
        meta.get("content").split("; ")
        for meta in page.iter("meta")
        if meta.get("http-equiv") == "Content-Security-Policy"
    )
    code = {"style", "script"}
    own = {each.tag: each.text for each in page.iter() if each.tag in code}
    assert own.keys() == code
    hashes = {
        tag: b64encode(sha256(text.encode()).digest()).decode()
        for tag, text in own.items()
    }
    assert policy == [
        "default-src 'none'",
        f"style-src 'sha256-{hashes['style']}'",
        f"script-src 'sha256-{hashes['script']}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert not {"link", "img", "iframe", "object"} & {each.tag for each in page.iter()}
    for word in ("@import", "url(", "http"):
        assert word not in own["style"] + own["script"]


def own_text(node: Element) -> str:
    """Return the text of an element without what stands beside mentions."""
    parts = [node.text or ""]
    for each in node:
        if each.get("class") not in ("badge", "card", "quote"):
            parts.append(own_text(each))
        parts.append(each.tail or "")
    return "".join(parts)


@given(st.text(), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5))))
def test_page_keeps_the_text_and_every_entity(text, places):
    entities = [
        entity(start, text[start : start + size], None, note=f"n{start}+{size}")
        for start, size in places
        if start + size <= len(text)
    ]
    doc = LinkedDoc("n1", text, entities)
    page = write(doc)
    shown = ["".join(each.itertext()) for each in find_kind(page, "badge")]
    assert sorted(shown) == sorted(f"NIL · {each['note']}" for each in entities)
    (shown_text,) = find_kind(page, "text")
    assert own_text(shown_text) == text.replace("\0", "\ufffd")


@pytest.mark.parametrize(
    ("cui", "url"),
    [
        ("C0004057", "https://uts.nlm.nih.gov/uts/umls/concept/C0004057"),
        ("MESH:D003920", "https://meshb.nlm.nih.gov/record/ui?ui=D003920"),
        ("OMIM:PS267700", "https://identifiers.org/OMIM:PS267700"),
        ("MONDO_0005148", "http://purl.obolibrary.org/obo/MONDO_0005148"),
        ("SNOMEDCT_US:22298006", "https://identifiers.org/snomedct:22298006"),
        ("E11.621", "https://icd.codes/icd10cm/E11621"),
        ("javascript:alert(1)", None),
        *(("C00040571", None), ("", None)),
    ],
)
def test_page_addresses_by_kind_of_id(cui, url):
    assert concept_url(cui) == url
    assert UrlTemplate.format(cui) == (url or "#")


def test_page_addresses_are_a_setting_and_quoted():
    links = {r"X:(.+)": "https://example.org/{}"}
    assert concept_url('X:a/"b"', links) == "https://example.org/a%2F%22b%22"
    assert concept_url("Y 1", {"Y.*": "https://y.org/{}"}) == "https://y.org/Y%201"
    page = write_one("a", entity(0, "a", "UB 1"), links={"UB.+": "http://u/{}"})
    links = [each.get("href", "") for each in page.iter("a")]
    assert [link for link in links if link[0] != "#"] == ["http://u/UB%201"]


@pytest.mark.parametrize(
    ("pattern", "address"),
    [
        ("X:(.+)", "javascript:{}"),
        ("X:(.+)", "//example.org/{}"),
        ("X:(.+)", "https://example.org/{"),
    ],
)
def test_page_addresses_that_are_invalid_are_an_error(pattern, address):
    with pytest.raises(SapbertError, match="E331"):
        write_one("a", links={pattern: address})


def test_page_marks_links_that_are_not_sure_and_says_how():
    def candidate(cui: str, score: float, probability: float | None) -> Any:
        names = {"cui": cui, "name": "Aspirin", "alias": "asa"}
        rest = {"types": [], "codes": {}, "tie": None, "rank": 1}
        return {**names, "score": score, "probability": probability, **rest}

    def link(probability: float, **fields: Any) -> Any:
        found = [candidate("C0004057", 0.5, probability), candidate("C2", 0.45, None)]
        values = {"candidates": found, "probability": probability}
        text = fields.pop("text", "abc")
        return entity(0, text, **{**values, **fields})

    certain = {
        "sure": link(0.8),
        "by its name": link(0.1, text="aspirin"),
        "of a file with ids alone": entity(0, "abc", score=None),
        "none": entity(0, "abc", None),
    }
    for name, linked in certain.items():
        page = write_one("aspirin", linked)
        article = next(page.iter("article"))
        assert not find_kind(article, "unsure"), name
        assert "not sure" not in "".join(article.itertext()), name
    for linked in (link(0.79), entity(0, "abc"), link(0.3, candidates=[])):
        page = write_one("abc", linked)
        (marked,) = find_kind(next(page.iter("article")), "unsure")
        (flag,) = find_kind(marked, "flag")
        assert flag.text == "not sure"
        (choice,) = (
            each for each in page.iter("label") if each.get("class") == "unsure"
        )
        assert "Not sure" in "".join(choice.itertext())
    (legend,) = find_kind(page, "legend")
    shown = [each.get("class") for each in legend.iter("span")]
    assert shown == ["entity", "entity unsure", "entity nil"]
