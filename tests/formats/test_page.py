import io
import re
from base64 import b64encode
from collections import Counter
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.entities import LinkedDoc, describe_docs
from spacy_sapbert.formats.page.addresses import concept_url
from spacy_sapbert.formats.page.groups import SHOWN, choose_group
from spacy_sapbert.formats.page.write import write_docs
from spacy_sapbert.linking.filters import GROUPS
from tests.pipelines import NLP

EVIL = "<script>alert('\"&')</script>"
VOID = ("meta", "link", "img", "input", "wbr", "br", "hr")


class Node:
    """An element of a page."""

    def __init__(self, tag: str, attrs: dict[str, str]) -> None:
        self.tag, self.attrs = tag, attrs
        self.children: list[Node | str] = []

    @property
    def kinds(self) -> list[str]:
        return (self.attrs.get("class") or "").split()

    @property
    def text(self) -> str:
        return "".join(
            each if isinstance(each, str) else each.text for each in self.children
        )

    @property
    def words(self) -> str:
        """The text with single blanks."""
        return " ".join(self.text.split())

    def all(self, tag: str = "", kind: str = "") -> list["Node"]:
        """Return the elements with a tag or a class, in order."""
        found = []
        for child in self.children:
            if isinstance(child, Node):
                if child.tag == (tag or child.tag) and (
                    kind in child.kinds or not kind
                ):
                    found.append(child)
                found += child.all(tag, kind)
        return found

    def one(self, tag: str = "", kind: str = "") -> "Node":
        (found,) = self.all(tag, kind)
        return found


class Page(HTMLParser):
    """The tree of a page; checks that elements are closed in order."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.root = Node("", {})
        self.open = [self.root]
        self.feed(markup)
        self.close()
        assert len(self.open) == 1

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert not any(key.startswith("on") or key == "style" for key, _ in attrs)
        node = Node(tag, {key: value or "" for key, value in attrs})
        assert len(node.attrs) == len(attrs)
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: Any) -> None:
        self.open[-1].children.append(data)


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


def write(*docs: LinkedDoc, **options: Any) -> Node:
    file = io.BytesIO()
    write_docs(docs, file, **options)
    return Page(file.getvalue().decode()).root


def write_one(text: str, *entities: Any, **options: Any) -> Node:
    return write(LinkedDoc("n1", text, list(entities), lang="en"), **options)


def links_of(page: Node) -> list[str]:
    found = [
        node.attrs[key] for node in page.all() for key in node.attrs if key in URLS
    ]
    return [url for url in found if not url.startswith("#")]


URLS = ("href", "src", "srcset", "data", "action", "formaction", "poster")


def test_page_every_semantic_group_has_a_name_and_a_colour():
    assert SHOWN.keys() == GROUPS.keys()
    assert len({group.hue for group in SHOWN.values()}) == len(SHOWN)
    for code, types in GROUPS.items():
        assert {choose_group([type]) for type in types.split()} == {SHOWN[code]}


def test_page_policy_allows_its_own_style_and_script_and_no_network():
    page = write_one("a", entity(0, "a"))
    (policy,) = (
        meta.attrs["content"]
        for meta in page.all("meta")
        if meta.attrs.get("http-equiv") == "Content-Security-Policy"
    )
    hashes = {
        tag: b64encode(sha256(page.one(tag).text.encode()).digest()).decode()
        for tag in ("style", "script")
    }
    assert policy.split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{hashes['style']}'",
        f"script-src 'sha256-{hashes['script']}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert not {"link", "img", "iframe", "object"} & {each.tag for each in page.all()}
    for word in ("@import", "url(", "http"):
        assert word not in page.one("style").text
        assert word not in page.one("script").text


def test_page_escapes_all_texts():
    doc = NLP(f"took {EVIL} and {EVIL}")
    doc.ents = [doc.char_span(5, 5 + len(EVIL), label=EVIL, alignment_mode="expand")]
    doc.ents[0]._.cui = EVIL
    doc.ents[0]._.candidates = [
        candidate(EVIL, f"the {EVIL}", 1.0, alias=EVIL, types=[EVIL], tie=EVIL)
    ]
    doc.ents[0]._.link_note = EVIL
    page = write(*describe_docs([(EVIL, doc)]), links={".+": "https://example.org/{}"})
    assert len(page.all("script")) == 1
    assert EVIL not in page.one("script").text
    places = Counter(
        " ".join(node.kinds) or node.tag
        for node in page.all()
        if any(isinstance(each, str) and EVIL in each for each in node.children)
    )
    assert places == {
        **{"h2": 1, "a": 1, "text": 1, "mark": 1, "badge": 1, "flag": 1},
        **{"name": 2, "alias": 1, "id": 2, "facts": 1, "why": 2},
    }
    assert links_of(page) == ["https://example.org/" + quote(EVIL, safe="")] * 2


def own_text(page: Node) -> str:
    """Return the text of the only document without what stands beside mentions."""

    def collect(node: Node) -> str:
        if {*node.kinds} & {"badge", "card", "quote"}:
            return ""
        return "".join(c if isinstance(c, str) else collect(c) for c in node.children)

    return collect(page.one(kind="text"))


@given(st.text(), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5))))
def test_page_keeps_the_text_and_every_entity(text, places):
    entities = [
        entity(start, text[start : start + size], None, note=f"n{start}+{size}")
        for start, size in places
        if start + size <= len(text)
    ]
    doc = LinkedDoc("n1", text, entities)
    page = write(doc)
    shown = [each.one(kind="badge").text for each in page.all(kind="entity")]
    assert sorted(shown) == sorted(f"NIL · {each['note']}" for each in entities)
    assert own_text(page) == text.replace("\0", "\ufffd")


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
