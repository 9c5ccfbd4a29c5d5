"""Annotated documents: what stands in no example."""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import bioc
import pytest
from bioc import biocjson, biocxml

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.corpus import (
    detect_corpus,
    open_corpus,
    read_corpus,
)
from spacy_sapbert.formats.gold import GoldMention
from tests.formats.test_examples import FOLDER

read_pubtator = partial(read_corpus, format="pubtator")


def fail(path: Path, format: str | None = None, **options: Any) -> str:
    """Return the text of the error that reading ends with."""
    with pytest.raises(SapbertError) as caught:
        list(open_corpus(path, format, **options))
    return str(caught.value)


def test_read_corpus_errors_of_options_and_of_whole_files(tmp_path):
    with pytest.raises(SapbertError, match="E110.*pubtator.*tsv.*'bioc'"):
        read_corpus(Path("nowhere"), "bioc")
    with pytest.raises(SapbertError, match="brat .none.*--split-composites"):
        read_corpus(tmp_path, "brat", split_composites=True)
    assert fail(tmp_path, "brat").startswith("[E108]")
    path = tmp_path / "corpus.txt"
    path.write_text("1|t|A title.\n1|a|\n")
    with pytest.raises(SapbertError, match="E106"):  # without a mention
        list(read_pubtator(path))
    gold = FOLDER / "tsv" / "gold.tsv"
    assert "languages there are en, es, x-medlat. " in fail(gold, language="fi")
    pairs = FOLDER / "tsv" / "pairs.tsv"
    assert re.match(r"\[E105].*are none", fail(pairs, language="en"))
    (tmp_path / "note.ann").touch()
    assert re.match(r"\[E001].*note\.txt", fail(tmp_path, "brat"))
    (tmp_path / "other.txt").write_text("fever")
    error = fail(tmp_path / "other.txt")
    assert re.match(r"\[E410].*mention and the ids.* 1 cell .*--columns", error)
    without = FOLDER / "written" / "jsonl-without-text.jsonl"
    assert "a text as `text`" in fail(without)


@pytest.mark.parametrize(
    ("text", "options", "mentions"),
    [
        ("mention,ids\nfever,C1\n", {}, [("fever", [["C1"]])]),
        ("fever, high||C1\n", {}, [("fever, high", [["C1"]])]),
        # an id of `link` may have a bar
        ("id,text,cui\nd1,fever,C1|C2\n", {}, [("fever", [["C1|C2"]])]),
        ("mention,ids\nfever,C1|C2\n", {}, [("fever", [["C1", "C2"]])]),
        ("a;b;c\n1;fever;C1\n", {"columns": "mention=b,ids=c"}, [("fever", [["C1"]])]),
        ("fever$C1\n", {"columns": "mention=1,ids=2", "delimiter": "$"}, 1),
        ("mention,ids,lang\nfever,C1\n", {}, [("fever", [["C1"]])]),
        # of two columns `id` has the ids; beside others it is of the document
        ("mention,id\nfever,C1|C2\n", {}, [("fever", [["C1", "C2"]])]),
        ("ID,Term\nC1,fever\n", {}, [("fever", [["C1"]])]),
        ("id,mention,ids\nd1,fever,C1\n", {}, [("fever", [["C1"]])]),
    ],
)
def test_table_of_mentions_has_any_columns(text, options, mentions, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(text)
    assert detect_corpus(path) == "csv"
    (document,) = read_corpus(path, **options)
    found = [(mention.mention, mention.parts) for mention in document.mentions]
    assert found == ([("fever", [["C1"]])] if mentions == 1 else mentions)


def test_table_of_mentions_never_shows_what_may_be_texts(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("Miller,asthma,C1\n")
    error = fail(path)
    assert error.startswith(f"[E410] {path}:1: ")
    assert not re.search("Miller|asthma", error)
    # a row without its id is no annotation that there is none
    path.write_text("mention,ids\nfever\n")
    assert re.match(r"\[E117].*table.csv:2: .*2 fields.*got 1", fail(path))


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("text,id", "mention=text,ids=id"),
        ("term,id,type", "mention=term,ids=id,type=type"),
        ("term,icd10,id", "mention=term,ids=icd10,doc=id"),
        ("doc_id,term,umls", "doc=doc_id,mention=term,ids=umls"),
        # no column can have the ids
        ("term,start,end", "mention=span,ids=code,doc=filename,start=off0,end=off1"),
    ],
)
def test_the_error_of_a_table_of_mentions_has_columns_to_paste(
    header, columns, tmp_path
):
    path = tmp_path / "table.csv"
    path.write_text(f"{header}\n{','.join('x' * len(header.split(',')))}\n")
    assert f"Say it: `--columns {columns}`;" in fail(path)


# a good line of each format, and bad ones; "fever" in them must not be shown
LINES = json.loads(Path(__file__).with_name("bad_lines.json").read_text("utf8"))
BAD = [
    pytest.param(name, lines["good"], line, id=f"{name}-{number}")
    for name, lines in LINES.items()
    for number, line in enumerate(lines["bad"])
]


@pytest.mark.parametrize(("format", "good", "line"), BAD)
def test_read_corpus_a_bad_line_is_named_and_not_quoted(format, good, line, tmp_path):
    path = tmp_path / ("note.ann" if format == "brat" else "corpus.txt")
    path.write_text(f"{good}{line}\n", "utf8")
    if format == "brat":
        text = FOLDER / "brat" / "corpus" / "gaps.txt"
        path.with_suffix(".txt").write_text(text.read_text("utf8"), "utf8")
    error = fail(tmp_path if format == "brat" else path, format)
    assert error.startswith(f"[E117] {path}:{good.count(chr(10)) + 1}:")
    assert "fever" not in error.lower()


NL = "\n"
BIOC = {"biocxml": biocxml, "biocjson": biocjson}


@pytest.fixture(params=BIOC)
def name(request) -> str:
    return request.param


def make_bioc(name: str, passages: Any, annotation: Any = None) -> str:
    """A file of one document, as the library of BioC writes it."""
    document = bioc.BioCDocument()
    for offset, text in passages:
        document.add_passage(bioc.BioCPassage.of_text(text, offset))
    if annotation:
        text, *places = annotation
        made = bioc.BioCAnnotation()
        made.id, made.text = "1", text
        for offset, length in places:
            made.add_location(bioc.BioCLocation(offset, length))
        document.passages[-1].add_annotation(made)
    collection = bioc.BioCCollection()
    collection.source = collection.date = collection.key = ""
    collection.encoding, collection.standalone = "UTF-8", True
    collection.add_document(document)
    return BIOC[name].dumps(collection)


def fail_bioc(name: str, folder: Path, data: bytes | str) -> str:
    path = folder / "file"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    error = fail(path, name)
    assert "sentinel" not in error
    return error


@pytest.mark.parametrize(
    ("passages", "annotation", "expected"),
    [
        ([(-1, "sentinel")], None, "passages of at most"),
        ([(0, "sentinel")], ("sentinel", (1, 8)), "inside the text"),
        ([(0, "sentinel")], ("sentinel",), "inside the text"),
        ([(0, "sentinel")], ("sentinel", (-1, 2)), "inside the text"),
        ([(0, "sentinel")], ("sentinel", (0, 4)), "give their text"),
    ],
)
def test_bioc_a_bad_document_is_numbered_and_not_quoted(
    name, passages, annotation, expected, tmp_path
):
    error = fail_bioc(name, tmp_path, make_bioc(name, passages, annotation))
    assert re.match(rf"\[E117].*{expected}.*document 1 ", error)


@pytest.mark.parametrize(
    ("passages", "annotation", "text", "start"),
    [
        # overlapping by three characters; the annotation is in the last passage
        ([(0, "Fever."), (3, "A cough")], ("cough", (5, 5)), "Fever.\nA cough", 9),
        ([(0, "Fever."), (3, "r. A")], ("r.", (3, 2)), "Fever.\nr. A", 7),
        (
            [(20, "Fever"), (0, "Cough")],
            ("Cough", (0, 5)),
            f"{20 * NL}Fever\nCough",
            26,
        ),
        # annotations that are not in their own passage
        ([(0, "Fever"), (6, "Cough")], ("Fever", (0, 5)), "Fever\nCough", 0),
        ([(0, "ab"), (1, "cd"), (3, "ef")], ("ef", (3, 2)), "ab\ncd\nef", 6),
    ],
)
def test_bioc_each_annotation_belongs_to_its_passage(
    name, passages, annotation, text, start, tmp_path
):
    path = tmp_path / "file"
    path.write_text(make_bioc(name, passages, annotation))
    [document] = open_corpus(path, name)
    assert document.text == text
    [mention] = document.mentions
    assert (mention.start, mention.mention) == (start, annotation[0])
    assert text[mention.start : mention.end] == annotation[0]


@pytest.mark.parametrize("data", ["", "sentinel", "<a>", "[]", "{}", "\x1f\x8b"])
def test_bioc_a_file_that_is_none_or_cut_is_an_error(name, data, tmp_path):
    if name == "biocxml" and data == "<a>":
        data = "<collection><document><sentinel></document></collection>"
    assert fail_bioc(name, tmp_path, data)[:6] in ("[E150]", "[E117]")
    whole = (FOLDER / name / f"corpus.{name[4:]}").read_bytes()
    for end in range(0, len(whole) - 10, 397):
        assert fail_bioc(name, tmp_path, whole[:end])[:6] in ("[E150]", "[E117]")


def test_bioc_half_characters_and_entities(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(make_bioc("biocjson", [(0, "x")]).replace('"x"', r'"\ud83d"'))
    (document,) = open_corpus(path, "biocjson")
    assert document.text == "?"
    (tmp_path / "secret").write_text("sentinel")
    text = f"""<!DOCTYPE collection [<!ENTITY x SYSTEM "file://{tmp_path}/secret">]>
<collection><document><id>d</id><passage><offset>0</offset><text>a&x;b</text>
</passage></document></collection>"""
    assert fail_bioc("biocxml", tmp_path, text).startswith("[E150]")


def test_pubtator_ncbi_disease_reads_as_its_table(data_folder):
    path = data_folder / "eval-text" / "NCBIdevelopset_corpus.txt.gz"
    read_from = list(read_pubtator(path, prefix="MESH:"))
    path = data_folder / "eval" / "ncbi_disease.dev.tsv.gz"
    expected = read_corpus(path, "tsv", bars_join_parts=True)

    def key(span: GoldMention) -> tuple[str, list[list[str]]]:
        return span.mention.strip(), span.parts

    spans = [span for document in read_from for span in document.mentions]
    assert [key(s) for s in spans] == [key(s) for d in expected for s in d.mentions]
    assert (len(read_from), len(spans)) == (100, 787)
    other = data_folder / "eval-text" / "CDR_DevelopmentSet.PubTator.txt.gz"
    found = [span.type for each in read_pubtator(other) for span in each.mentions]
    assert {*found} == {"Chemical", "Disease"}
