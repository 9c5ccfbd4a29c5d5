"""Both forms of BioC; what they share is tested once for each."""

import functools
import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from spacy.tokens import Doc, Span

bioc = pytest.importorskip("bioc", reason="bioc is not installed")

from bioc import biocjson, biocxml  # noqa: E402

from spacy_sapbert.errors import SapbertError  # noqa: E402
from spacy_sapbert.formats.entities import describe_docs  # noqa: E402
from spacy_sapbert.formats.gold import GoldDocument, GoldMention  # noqa: E402
from spacy_sapbert.formats.registry import load_reader, load_writer  # noqa: E402
from tests.pipelines import NLP  # noqa: E402

FORMATS = {"biocxml": biocxml, "biocjson": biocjson}
BROKEN = "E150|E117"  # as XML, or as BioC
CANDIDATE = {
    "cui": "C0004057",
    "name": "Aspirin",
    "score": 0.5,
    "types": ["T109"],
    "codes": {"MSH": ["D001241"]},
    "probability": 0.75,
}


@pytest.fixture(params=FORMATS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def doc() -> Doc:
    doc = NLP("💊 Took\r\naspirin & <more>")
    doc.ents = [Span(doc, 3, 4, label="DRUG"), Span(doc, 0, 1, label="SIGN")]
    doc.ents[1]._.cui, doc.ents[1]._.candidates = "C0004057", [CANDIDATE]
    doc.ents[0]._.link_note = "below_threshold"
    return doc


def write(name: str, docs: Any, **options: Any) -> Any:
    file = io.BytesIO()
    load_writer(name)(describe_docs(docs), file, **options)
    return file.getvalue().decode()


def read(name: str, tmp_path: Path, data: Any) -> Any:
    (tmp_path / "file").write_bytes(data if isinstance(data, bytes) else data.encode())
    return list(load_reader(name)(tmp_path / "file"))


def make_document(passages: list[tuple[int, str]], annotations: Any = ()) -> Any:
    document = bioc.BioCDocument()
    document.id = "d"
    for offset, text in passages:
        document.add_passage(bioc.BioCPassage.of_text(text, offset))
    for text, infons, *places in annotations:
        annotation = bioc.BioCAnnotation()
        annotation.id, annotation.text, annotation.infons = "1", text, infons
        for offset, length in places:
            annotation.add_location(bioc.BioCLocation(offset, length))
        document.passages[-1].add_annotation(annotation)
    return document


def dump(name: str, document: Any) -> Any:
    collection = bioc.BioCCollection()
    collection.source = collection.date = collection.key = ""
    collection.encoding, collection.standalone = "UTF-8", True
    collection.add_document(document)
    return FORMATS[name].dumps(collection)


def test_bioc_the_library_reads_what_is_written(name: str, doc: Doc) -> None:
    collection = FORMATS[name].loads(write(name, [("n1", doc), (2, doc)]))
    assert [document.id for document in collection.documents] == ["n1", "2"]
    (passage,) = collection.documents[1].passages
    assert (passage.offset, passage.text) == (0, doc.text)
    first, second = passage.annotations
    assert (first.text, first.total_span) == ("💊", bioc.BioCLocation(0, 1))
    assert first.infons["note"] == "below_threshold"
    assert (second.text, second.total_span.offset) == ("aspirin", 8)
    candidates = json.loads(second.infons.pop("candidates"))
    codes = json.loads(second.infons.pop("codes"))
    assert (candidates, codes) == ([CANDIDATE], CANDIDATE["codes"])
    assert second.infons == {
        "type": "DRUG",
        "identifier": "C0004057",
        "name": "Aspirin",
        "score": "0.5",
        "probability": "0.75",
        "types": '["T109"]',
    }


@pytest.mark.parametrize("include_text", [True, False])
def test_bioc_output_is_as_the_library_writes_it(
    name: str, doc: Doc, include_text: bool
) -> None:
    docs = [("n<1>", doc), ("é", NLP(""))]
    data = write(name, docs, include_text=include_text)
    written = FORMATS[name].dumps(FORMATS[name].loads(data))
    if name == "biocjson":
        assert json.loads(data) == json.loads(written)
    else:
        parse = functools.partial(ElementTree.canonicalize, strip_text=True)
        assert parse(data) == parse(written)


def test_bioc_equal_documents_are_equal_bytes(name: str, doc: Doc) -> None:
    assert write(name, [(1, doc)]) == write(name, [(1, doc)])


def test_bioc_of_no_documents_is_a_collection(name: str, tmp_path: Path) -> None:
    assert read(name, tmp_path, write(name, [])) == []


def test_bioc_without_text_has_places(name: str, doc: Doc) -> None:
    data = write(name, [(1, doc)], include_text=False)
    assert "aspirin" not in data
    (passage,) = FORMATS[name].loads(data).documents[0].passages
    assert [a.total_span.offset for a in passage.annotations] == [0, 8]


def test_bioc_characters_that_xml_has_not_are_replaced_and_counted(
    tmp_path: Path,
) -> None:
    doc = NLP("a\0b\x0bc\ufffe fever")
    doc.ents = [Span(doc, len(doc) - 1, len(doc), label="L", kb_id="C1")]
    with pytest.warns(UserWarning, match="W520.*3 characters"):
        data = write("biocxml", [(1, doc)])
    (document,) = read("biocxml", tmp_path, data)
    assert document.text == "a\ufffdb\ufffdc\ufffd fever"
    assert document.mentions == [GoldMention(7, 12, "L", "fever", [["C1"]], 0)]


def test_bioc_passages_are_placed_at_their_offsets(name: str, tmp_path: Path) -> None:
    infons = {"type": "Disease", "identifier": "MESH:D1"}
    annotations = [
        ("left knee", infons, (6, 4), (15, 4)),
        ("Pain", {"identifier": "-"}, (0, 4)),
        ("and", {}, (11, 3)),
    ]
    document = make_document([(0, "Pain"), (6, "left and knee")], annotations)
    assert read(name, tmp_path, dump(name, document)) == [
        GoldDocument(
            "d",
            "Pain\n\nleft and knee",
            [
                GoldMention(6, 19, "Disease", "left knee", [["MESH:D1"]], 0),
                GoldMention(0, 4, "", "Pain", [], 0),
                GoldMention(11, 14, "", "and", [], 0),
            ],
        )
    ]


@pytest.mark.parametrize(
    ("infons", "parts"),
    [
        ({"type": "Chemical", "MESH": "D005334"}, [["D005334"]]),
        ({"MESH": "D1|D2"}, [["D1"], ["D2"]]),  # a composite
        ({"OMIM": "603903", "MESH": "D1"}, [["603903", "D1"]]),
        ({"NCBI Gene": "672"}, [["672"]]),
        ({"identifier": "-", "MESH": "D1"}, [["D1"]]),
        ({"MESH": "-1", "note": "D1"}, []),
    ],
)
def test_bioc_ids_may_have_the_key_of_their_vocabulary(
    name: str, infons: dict[str, str], parts: list[list[str]], tmp_path: Path
) -> None:
    document = make_document([(0, "Pain")], [("Pain", infons, (0, 4))])
    ((span,),) = [each.mentions for each in read(name, tmp_path, dump(name, document))]
    assert span.parts == parts


def test_bioc_a_relation_as_an_annotation_is_not_a_mention(
    name: str, tmp_path: Path
) -> None:
    document = make_document([(0, "Pain")])
    relation = bioc.BioCAnnotation()
    relation.id, relation.infons = "R0", {"relation": "CID"}
    document.add_annotation(relation)
    (found,) = read(name, tmp_path, dump(name, document))
    assert (found.text, found.mentions) == ("Pain", [])


def test_bioc_texts_may_be_in_sentences(name: str, tmp_path: Path) -> None:
    document = make_document([(0, "")])
    for offset, text in ((0, "It is."), (7, "Or not.")):
        sentence = bioc.BioCSentence()
        sentence.offset, sentence.text = offset, text
        annotation = bioc.BioCAnnotation()
        annotation.id, annotation.text = "1", text[:2]
        annotation.add_location(bioc.BioCLocation(offset, 2))
        sentence.add_annotation(annotation)
        document.passages[0].add_sentence(sentence)
    (found,) = read(name, tmp_path, dump(name, document))
    assert found.text == "It is.\nOr not."
    places = [(span.start, span.mention) for span in found.mentions]
    assert places == [(0, "It"), (7, "Or")]


@pytest.mark.parametrize(
    ("passages", "annotation", "expected"),
    [
        ([(0, "sentinel"), (3, "sentinel")], None, "passages in order"),
        ([(10**12, "sentinel")], None, "passages in order, of at most"),
        ([(0, "sentinel")], ("sentinel", {}, (1, 8)), "inside the text"),
        ([(0, "sentinel")], ("sentinel", {}), "inside the text"),
        ([(0, "sentinel")], ("sentinel", {}, (0, 0)), "inside the text"),
        ([(0, "sentinel")], ("sentinel", {}, (-1, 2)), "inside the text"),
        ([(0, "sentinel")], ("sentinel", {}, (0, 4)), "give their text"),
    ],
)
def test_bioc_a_bad_document_is_numbered_and_not_quoted(
    name: str,
    passages: list[tuple[int, str]],
    annotation: Any,
    expected: Any,
    tmp_path: Path,
) -> None:
    document = make_document(passages, [annotation] if annotation else [])
    with pytest.raises(SapbertError, match=f"E117.*{expected}.*document 1 ") as error:
        read(name, tmp_path, dump(name, document))
    assert "sentinel" not in str(error.value)


@pytest.mark.parametrize("data", ["", "sentinel", "<a>", "[]", "{}", "\x1f\x8b"])
def test_bioc_a_file_that_is_none_is_an_error(
    name: str, data: Any, tmp_path: Path
) -> None:
    if name == "biocxml" and data == "<a>":
        data = "<collection><document><sentinel></document></collection>"
    with pytest.raises(SapbertError, match=BROKEN) as error:
        read(name, tmp_path, data)
    assert "sentinel" not in str(error.value)


def test_bioc_a_file_that_is_cut_is_an_error(
    name: str, doc: Doc, tmp_path: Path
) -> None:
    data = write(name, [(1, doc), (2, doc)]).encode()
    for end in range(0, len(data) - 10, 97):
        with pytest.raises(SapbertError, match=BROKEN):
            read(name, tmp_path, data[:end])


def test_bioc_numbers_that_are_none_are_an_error(
    name: str, doc: Doc, tmp_path: Path
) -> None:
    data = write(name, [(1, doc)])
    data = re.sub(r'(offset(?:="|": |>))\d+', r"\1sentinel", data)
    data = data.replace(": sentinel", ': "sentinel"')
    with pytest.raises(SapbertError, match="E117.*document 1 ") as error:
        read(name, tmp_path, data)
    assert "sentinel" not in str(error.value)


def test_bioc_half_characters_in_json_are_question_marks(tmp_path: Path) -> None:
    document = make_document([(0, "x")])
    data = dump("biocjson", document).replace('"x"', r'"\ud83d"')
    assert read("biocjson", tmp_path, data)[0].text == "?"


def test_bioc_no_entity_of_a_dtd_is_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("sentinel")
    text = f"""<?xml version="1.0"?>
<!DOCTYPE collection [<!ENTITY x SYSTEM "file://{tmp_path}/secret">]>
<collection><document><id>d</id><passage><offset>0</offset><text>a&x;b</text>
</passage></document></collection>"""
    with pytest.raises(SapbertError, match="E150"):
        read("biocxml", tmp_path, text)


def test_bioc_a_dtd_that_is_only_named_does_not_matter(tmp_path: Path) -> None:
    data = dump("biocxml", make_document([(0, "x")]))
    doctype = '<!DOCTYPE collection SYSTEM "BioC.dtd">'
    data = data.replace("<collection>", f"{doctype}<collection>", 1)
    assert read("biocxml", tmp_path, data) == [GoldDocument("d", "x", [])]
