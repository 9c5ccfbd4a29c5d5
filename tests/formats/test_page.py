import io
import math
import re
from base64 import b64encode
from collections import Counter
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.entities import LinkedDoc, describe_docs
from spacy_sapbert.formats.page.addresses import concept_url
from spacy_sapbert.formats.page.groups import SHOWN, choose_group
from spacy_sapbert.formats.page.markup import CANDIDATES, stack_entities
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


@pytest.fixture
def doc() -> Doc:
    doc = NLP("Took aspirin today")
    doc.ents = [Span(doc, 1, 2, label="DRUG"), Span(doc, 2, 3, label="DATE")]
    doc.ents[0]._.cui = "C0004057"
    doc.ents[0]._.candidates = [
        candidate("C0004057", "Acetylsalicylic acid", 0.98765, alias="ASA"),
        candidate("C0020740", "Ibuprofen", 0.5),
    ]
    doc.ents[1]._.link_note = "below_threshold"
    return doc


def links_of(page: Node) -> list[str]:
    found = [
        node.attrs[key] for node in page.all() for key in node.attrs if key in URLS
    ]
    return [url for url in found if not url.startswith("#")]


URLS = ("href", "src", "srcset", "data", "action", "formaction", "poster")


def test_page_badge_is_the_name_and_scores_are_in_the_card(doc: Doc) -> None:
    page = write(*describe_docs([("n1.txt", doc)]))
    linked, other = page.all(kind="entity")
    assert linked.one("mark").text == "aspirin"
    assert linked.one(kind="badge").text == "Acetylsalicylic acid"
    card = linked.one(kind="card")
    assert "score 0.988 · Chemicals and drugs · T109 · label DRUG" in card.words
    rows = [row.words for row in card.all(kind="candidate")]
    assert rows == [
        "0.988Acetylsalicylic acid “ASA” C0004057",
        "0.500Ibuprofen C0020740",
    ]
    assert other.one(kind="badge").text == "NIL · below threshold"
    assert "all scores are below the threshold" in other.one(kind="card").words
    assert page.one("article").one("h2").text == "n1.txt"


def test_page_badge_of_a_mention_that_is_the_name_is_the_id() -> None:
    page = write_one("took ASPIRIN", entity(5, "ASPIRIN"))
    assert page.one(kind="badge").text == "C0004057"


def test_page_badge_is_short_and_the_card_has_the_whole_name() -> None:
    name = "name " * 50
    page = write_one("took it", entity(5, "it", name=name))
    assert len(page.one(kind="badge").text) < 40
    assert " ".join(name.split()) in page.one(kind="card").words


def test_page_text_of_a_document_can_be_copied_without_badges() -> None:
    css = write().one("style").text
    rule = re.search(r"\.badge, \.quote {(.*?)}", css, re.DOTALL)
    assert rule
    assert "user-select: none" in rule[1]
    assert "white-space: nowrap" in rule[1]


def test_page_entities_can_be_focused_and_name_what_describes_them() -> None:
    page = write_one("a b", entity(0, "a"), entity(2, "b"))
    ids = [node.attrs["id"] for node in page.all() if "id" in node.attrs]
    assert len(ids) == len({*ids})
    for each in page.all(kind="entity"):
        assert each.attrs["tabindex"] == "0"
        assert each.attrs["aria-describedby"] in ids


def test_page_shows_ties_that_only_ids_break() -> None:
    tie = [
        candidate("C1", "Infarction", 1.0, tie="id"),
        candidate("C2", "Insufficiency", 1.0, tie="id"),
        candidate("C3", "Fever", 0.5, tie="id"),
        candidate("C4", "Pyrexia", 0.5, tie="id"),
    ]
    fields = {"name": "Infarction", "score": 1.0, "candidates": tie, "tie": "id"}
    page = write_one("MI", entity(0, "MI", "C1", **fields))
    shown = page.one(kind="entity")
    assert "tie" in shown.kinds
    assert shown.one(kind="badge").one(kind="flag").text == "tie"
    assert "only the order of the ids decides" in shown.one(kind="why").text
    flags = [row.all(kind="flag") for row in shown.all(kind="candidate")]
    assert [len(found) for found in flags] == [1, 1, 0, 0]  # those of the best score
    assert "1 tie" in page.one("summary").text


def test_page_shows_ties_that_evidence_breaks_only_in_the_card() -> None:
    page = write_one("MI", entity(0, "MI", tie="preferred"))
    shown = page.one(kind="entity")
    assert "tie" not in shown.kinds
    assert shown.one(kind="badge").all(kind="flag") == []
    assert "the preferred name decides" in shown.one(kind="why").text


def test_page_marks_links_with_low_scores() -> None:
    page = write_one("a b c", entity(0, "a", score=0.79), entity(2, "b", score=0.8))
    assert ["low" in each.kinds for each in page.all(kind="entity")] == [True, False]


def test_page_counts_the_candidates_that_it_does_not_show() -> None:
    found = [candidate(f"C{n}", f"Name {n}", 0.5) for n in range(CANDIDATES + 3)]
    page = write_one("x", entity(0, "x", candidates=found))
    assert len(page.all(kind="candidate")) == CANDIDATES
    assert page.one(kind="more").text == "and 3 more candidates"


def test_page_colours_entities_by_semantic_group() -> None:
    page = write_one(
        "a b c d e",
        entity(0, "a", types=["T047"]),
        entity(2, "b", types=["HPO class", "T121"]),
        entity(4, "c", types=["ANAT"]),
        entity(6, "d", types=["HPO class"]),
        entity(8, "e", None, types=[]),
    )
    found = [each.kinds[1] for each in page.all(kind="entity")]
    assert found == ["diso", "chem", "anat", "other", "nil"]
    legend = [label.words for label in page.all("fieldset")[0].all("label")]
    assert legend == [
        "Anatomy 1",
        "Chemicals and drugs 1",
        "Disorders 1",
        "Other or no type 1",
    ]


def test_page_every_semantic_group_has_a_name_and_a_colour() -> None:
    assert SHOWN.keys() == GROUPS.keys()
    assert len({group.hue for group in SHOWN.values()}) == len(SHOWN)
    for code, types in GROUPS.items():
        assert {choose_group([type]) for type in types.split()} == {SHOWN[code]}


def test_page_has_an_index_of_documents_with_counts() -> None:
    one = LinkedDoc("one", "a b", [entity(0, "a"), entity(2, "b", None)], lang="en")
    two = LinkedDoc("two", "c", [], lang="")
    page = write(one, two)
    assert page.one("summary").text == "2 documents, 2 entities, 1 NIL"
    lines = page.one("nav").all("li")
    assert [line.words for line in lines] == [
        "one 2 entities, 1 NIL",
        "two no entities",
    ]
    targets = [line.one("a").attrs["href"] for line in lines]
    assert targets == [f"#{each.attrs['id']}" for each in page.all("article")]


def test_page_texts_have_the_language_of_their_document(doc: Doc) -> None:
    spanish = spacy.blank("es")("dolor")
    several = spacy.blank("xx")("dolor")
    docs = describe_docs([("en", doc), ("es", spanish), ("xx", several)])
    page = write(*docs)
    assert page.one("html").attrs["lang"] == "en"
    texts = page.all(kind="text")
    assert [text.attrs.get("lang") for text in texts] == ["en", "es", None]


def test_page_is_one_page_with_landmarks(doc: Doc) -> None:
    page = write(*describe_docs([("n1", doc), ("n2", doc)]))
    assert len(page.all("article")) == 2
    for tag in ("html", "body", "header", "main", "aside", "nav", "h1"):
        assert len(page.all(tag)) == 1, tag
    assert [len(page.one("main").all("article")), len(page.one("main").all("nav"))] == [
        *(2, 0)
    ]


def test_page_policy_allows_its_own_style_and_script_and_no_network() -> None:
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


def test_page_without_script_has_all_entities_and_no_dead_controls() -> None:
    page = write_one("a", entity(0, "a"))
    css = page.one("style").text
    assert "html:not(.script) .scripted { display: none; }" in css
    for control in (*page.all("input"), *page.all("button")):
        parents = [*page.all(kind="scripted")]
        assert any(control is node or control in node.all() for node in parents)


def test_page_escapes_all_texts() -> None:
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


def test_page_entities_that_overlap_are_all_shown_and_the_text_is_there_once() -> None:
    text = "acute heart attack today"
    page = write_one(
        text,
        entity(0, "acute", "C1"),
        entity(0, "acute heart attack", "C2"),
        entity(6, "heart", "C3"),
        entity(12, "attack today", "C4"),
    )
    shown = page.all(kind="entity")
    assert [each.one(kind="title").words for each in shown] == [
        *("Aspirin C2", "Aspirin C4", "Aspirin C1", "Aspirin C3")
    ]
    assert [each.all("mark") != [] for each in shown] == [True, False, False, False]
    quotes = [each.text for each in page.all(kind="quote")]
    assert quotes == ["attack today", "acute", "heart"]
    assert own_text(page) == text


def own_text(page: Node) -> str:
    """Return the text of the only document without what stands beside mentions."""

    def collect(node: Node) -> str:
        if {*node.kinds} & {"badge", "card", "quote"}:
            return ""
        return "".join(c if isinstance(c, str) else collect(c) for c in node.children)

    return collect(page.one(kind="text"))


@given(st.text(), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5))))
def test_page_keeps_the_text_and_every_entity(
    text: str, places: list[tuple[int, int]]
) -> None:
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


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), max_size=12))
def test_page_stacks_hold_what_overlaps_the_marked_entity(
    places: list[tuple[int, int]],
) -> None:
    stacks = stack_entities(entity(start, "x" * size) for start, size in places)
    marked = [stack[0] for stack in stacks]
    for one, other in zip(marked, marked[1:], strict=False):
        assert one["start"] <= one["end"] <= other["start"]
    for first, *others in stacks:
        for other in others:
            assert other["start"] < first["end"]
            assert first["start"] < max(other["end"], other["start"] + 1)
    found = [(e["start"], e["end"] - e["start"]) for stack in stacks for e in stack]
    assert sorted(found) == sorted(places)


@pytest.mark.parametrize(
    ("cui", "url"),
    [
        ("C0004057", "https://uts.nlm.nih.gov/uts/umls/concept/C0004057"),
        ("MESH:D003920", "https://meshb.nlm.nih.gov/record/ui?ui=D003920"),
        ("D003920", "https://meshb.nlm.nih.gov/record/ui?ui=D003920"),
        ("C535468", "https://meshb.nlm.nih.gov/record/ui?ui=C535468"),
        ("OMIM:600807", "https://omim.org/entry/600807"),
        ("MIM:600807", "https://omim.org/entry/600807"),
        ("OMIM:PS267700", "https://identifiers.org/OMIM:PS267700"),
        ("DOID:0050686", "http://purl.obolibrary.org/obo/DOID_0050686"),
        ("HP:0001250", "http://purl.obolibrary.org/obo/HP_0001250"),
        ("MONDO_0005148", "http://purl.obolibrary.org/obo/MONDO_0005148"),
        ("UBERON:0000948", "https://identifiers.org/UBERON:0000948"),
        ("CL:0000540", "https://identifiers.org/CL:0000540"),
        ("NCIT:C3262", "https://identifiers.org/ncit:C3262"),
        ("SNOMEDCT_US:22298006", "https://identifiers.org/snomedct:22298006"),
        ("ORPHA:558", "https://identifiers.org/orphanet:558"),
        ("ICD10:I21", "https://identifiers.org/icd:I21"),
        ("ICD10CM:E11.621", "https://icd.codes/icd10cm/E11621"),
        ("E11.621", "https://icd.codes/icd10cm/E11621"),
        ("I21", "https://icd.codes/icd10cm/I21"),
        ("javascript:alert(1)", None),
        ("javascript://%0aalert", None),
        ("OMOP:201826", "https://athena.ohdsi.org/search-terms/terms/201826"),
        (
            "RXNORM:1191",
            "https://mor.nlm.nih.gov/RxNav/search?searchBy=RXCUI&searchTerm=1191",
        ),
        ("data:text/html,x", None),
        ("C00040571", None),
        ("A00-B99", None),
        ("", None),
    ],
)
def test_page_addresses_by_kind_of_id(cui: str, url: str | None) -> None:
    assert concept_url(cui) == url


@given(st.text())
def test_page_addresses_are_of_the_web_whatever_the_id(cui: str) -> None:
    url = concept_url(f"x:{cui}")
    assert url is None or re.fullmatch(r"https?://[\w./:%?=-]+", url, re.ASCII)


def test_page_addresses_are_a_setting_and_quoted() -> None:
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
        ("X:(.+", "https://example.org/{}"),
        ("X:(.+)", "https://example.org/{}/{}"),
        ("X:(.+)", "https://example.org/{"),
    ],
)
def test_page_addresses_that_are_invalid_are_an_error(
    pattern: str, address: str
) -> None:
    with pytest.raises(SapbertError, match="E331"):
        write_one("a", links={pattern: address})


def test_page_without_text_is_an_error(doc: Doc) -> None:
    with pytest.raises(SapbertError, match="E110"):
        write(*describe_docs([("n1", doc)]), include_text=False)


def luminance(lightness: float, chroma: float, hue: float) -> float:
    """Return the relative luminance of a colour in OKLCH.

    SOURCE: Ottosson (2020), A perceptual color space for image processing.
    """
    a = chroma * math.cos(math.radians(hue))
    b = chroma * math.sin(math.radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    red = 4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short
    green = -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short
    blue = -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short
    clipped = (min(max(part, 0.0), 1.0) for part in (red, green, blue))
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), clipped, strict=True))


def hex_luminance(color: str) -> float:
    parts = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = (
        p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    )
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: float, other: float) -> float:
    low, high = sorted((one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_colours_have_the_contrast_of_wcag_aa(scheme: str) -> None:
    style = write_one("a").one("style").text
    blocks = re.findall(r":root {(.*?)}", style, re.DOTALL)
    found = dict(re.findall(r"--(\w+): ([^;]+);", blocks[scheme == "dark"]))
    hues = [(0, 0.0)] + [
        (int(hue), float(chroma))
        for hue, chroma in re.findall(r"--hue: (\d+); --chroma: ([\d.]+);", style)
    ]
    assert len(hues) == len(SHOWN) + 1
    page, panel, text = (hex_luminance(found[n]) for n in ("page", "panel", "text"))
    for name in ("text", "quiet", "link", "warn"):
        for back in (page, panel):
            assert contrast(hex_luminance(found[name]), back) >= 4.5, name
    for hue, chroma in hues:
        back = luminance(float(found["tint"]), chroma * float(found["share"]), hue)
        fore = luminance(float(found["ink"]), chroma, hue)
        for one, other in ((fore, back), (fore, page), (text, back)):
            assert contrast(one, other) >= 4.5, hue
        for name in ("link", "warn"):  # in a badge and the row of a candidate
            assert contrast(hex_luminance(found[name]), back) >= 4.5, (name, hue)
