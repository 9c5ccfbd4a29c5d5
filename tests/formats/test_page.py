import io
import re
from base64 import b64encode
from collections import Counter
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element, TreeBuilder

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.entities import LinkedDoc, describe_docs
from spacy_sapbert.formats.page.addresses import UrlTemplate, concept_url
from spacy_sapbert.formats.page.groups import SHOWN, choose_group, name_type
from spacy_sapbert.formats.page.write import write_docs
from spacy_sapbert.linking.filters import GROUPS
from tests.pipelines import NLP

EVIL = "<script>alert('\"&')</script>"
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


def candidate(cui: str, name: str, score: float, **fields: Any) -> Any:
    base = {"alias": name, "types": ["T109"], "codes": {}, "tie": None}
    return {"cui": cui, "name": name, "score": score, **base, **fields}


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


def links_of(page: Element) -> list[str]:
    found = [
        node.get(key, "")
        for node in page.iter()
        for key in URLS.intersection(node.keys())
    ]
    return [url for url in found if not url.startswith("#")]


CODE = {"style", "script"}
URLS = {"href", "src", "srcset", "data", "action", "formaction", "poster"}


def test_page_every_semantic_group_has_a_name_and_a_colour():
    assert SHOWN.keys() == GROUPS.keys()
    assert len({group.hue for group in SHOWN.values()}) == len(SHOWN)
    for code, types in GROUPS.items():
        assert {choose_group([type]) for type in types.split()} == {SHOWN[code]}
    names = [name_type(type) for type in ("CHEM", "T047", "other")]
    assert names == ["Chemicals and drugs", "Disease or Syndrome", "other"]


def test_page_policy_allows_its_own_style_and_script_and_no_network():
    page = write_one("a", entity(0, "a"))
    (policy,) = (
        meta.get("content").split("; ")
        for meta in page.iter("meta")
        if meta.get("http-equiv") == "Content-Security-Policy"
    )
    own = {each.tag: each.text for each in page.iter() if each.tag in CODE}
    assert own.keys() == CODE
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


def test_page_escapes_all_texts():
    doc = NLP(f"took {EVIL} and {EVIL}")
    doc.ents = [doc.char_span(5, 5 + len(EVIL), label=EVIL, alignment_mode="expand")]
    doc.ents[0]._.cui = EVIL
    doc.ents[0]._.candidates = [
        candidate(EVIL, f"the {EVIL}", 1.0, alias=EVIL, types=[EVIL], tie=EVIL)
    ]
    doc.ents[0]._.link_note = EVIL
    page = write(*describe_docs([(EVIL, doc)]), links={".+": "https://example.org/{}"})
    (script,) = page.iter("script")
    assert EVIL not in script.text
    places = Counter(
        node.get("class") or node.tag
        for node in page.iter()
        if EVIL in "".join([node.text or "", *(each.tail or "" for each in node)])
    )
    assert places == {
        **{"h2": 1, "a": 1, "text": 1, "mark": 1, "badge": 1, "flag": 1},
        **{"name": 2, "alias": 1, "id": 2, "facts": 1, "why": 2},
    }
    assert links_of(page) == ["https://example.org/" + quote(EVIL, safe="")] * 2


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
        ("OMIM:600807", "https://omim.org/entry/600807"),
        ("OMIM:PS267700", "https://identifiers.org/OMIM:PS267700"),
        ("MONDO_0005148", "http://purl.obolibrary.org/obo/MONDO_0005148"),
        ("SNOMEDCT_US:22298006", "https://identifiers.org/snomedct:22298006"),
        ("ICD10CM:E11.621", "https://icd.codes/icd10cm/E11621"),
        ("E11.621", "https://icd.codes/icd10cm/E11621"),
        ("javascript:alert(1)", None),
        ("OMOP:201826", "https://athena.ohdsi.org/search-terms/terms/201826"),
        (
            "RXNORM:1191",
            "https://mor.nlm.nih.gov/RxNav/search?searchBy=RXCUI&searchTerm=1191",
        ),
        ("C00040571", None),
        ("", None),
    ],
)
def test_page_addresses_by_kind_of_id(cui, url):
    assert concept_url(cui) == url
    assert UrlTemplate.format(cui) == (url or "#")


@given(st.text())
def test_page_addresses_are_of_the_web_whatever_the_id(cui):
    url = concept_url(f"x:{cui}")
    assert url is None or re.fullmatch(r"https?://[\w./:%?=-]+", url, re.ASCII)


def test_page_addresses_are_a_setting_and_quoted():
    links = {r"X:(.+)": "https://example.org/{}"}
    assert concept_url('X:a/"b"', links) == "https://example.org/a%2F%22b%22"
    assert concept_url("Y 1", {"Y.*": "https://y.org/{}"}) == "https://y.org/Y%201"
    page = write_one(
        "a", entity(0, "a", "UBERON:1"), links={"UBERON:(.+)": "http://u/{}"}
    )
    assert links_of(page) == ["http://u/1"]


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
