"""What each format of output has of its own; the files are in `examples/written`."""

import csv
import functools
import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
from bioc import biocjson, biocxml
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.arrow import to_text
from spacy_sapbert.formats.brat import file_name
from spacy_sapbert.formats.corpus import open_corpus
from spacy_sapbert.formats.entities import describe_docs
from spacy_sapbert.formats.format_table import load_writer, write_linked
from spacy_sapbert.formats.shards import STATE_FILE
from spacy_sapbert.formats.table import WIDEST, shorten
from spacy_sapbert.io.tables.formulas import FORMULA, defuse
from spacy_sapbert.vocabularies.concepts import Concept
from tests.commands import invoke
from tests.formats.test_examples import FOLDER
from tests.pipelines import NLP

WRITTEN = FOLDER / "written"
BIOC = {"biocxml": biocxml, "biocjson": biocjson}


def write(name: str, docs: Any, spans_key: str | None = None, **options: Any) -> bytes:
    file = io.BytesIO()
    load_writer(name)(describe_docs(docs, spans_key=spans_key), file, **options)
    return file.getvalue()


def make_doc(text: str, *places: tuple[int, int, str, str]) -> Doc:
    """A document with spans: first and last token, label and id of each."""
    doc = NLP(text)
    doc.spans["sc"] = [
        Span(doc, start, end, label=label, kb_id=kb_id)
        for start, end, label, kb_id in places
    ]
    return doc


@pytest.mark.parametrize(
    ("cell", "is_formula"),
    [
        *((cell, True) for cell in ("=1+1", "+1+1", "-a", "@SUM(A1)", "\t=1", "\r=1")),
        *((cell, True) for cell in ("\uff1d1", "'=1", "''-")),
        *((cell, False) for cell in ("", "a=1", "'quoted'", "'s", "1-2", "é")),
        *((cell, False) for cell in ("-1.5", "+1", "-2e-3", "-5%")),
        *((cell, False) for cell in ("+", "-", "--", "+++", "+/-", "=", "- ")),
        *((cell, True) for cell in ("'+", "+ a", "=()", '=""', "-\t", "+\n1")),
    ],
)
def test_defuse_puts_a_quote_before_texts_like_a_formula(cell, is_formula):
    assert defuse(cell) == (f"'{cell}" if is_formula else cell)


@given(st.text())
def test_defuse_can_be_undone(cell):
    shown = defuse(cell)
    assert (shown[1:] if re.match("'" + FORMULA.pattern, shown) else shown) == cell


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x" * 99, "x" * (WIDEST - 1) + "…"),
        ("x" * WIDEST, "x" * WIDEST),
        ("\x1b]0;title\x07", "\ufffd]0;title\ufffd"),
    ],
)
def test_table_cells_are_short_and_cannot_steer_the_terminal(text, expected):
    assert shorten(text) == expected


def test_parquet_is_written_in_row_groups_and_has_columns_without_rows():
    doc = make_doc("a b", (0, 1, "L", ""), (1, 2, "L", ""))
    docs = ((i, doc) for i in range(1100))
    data = write("parquet", docs, "sc", rows_per_group=1500)
    file = pq.ParquetFile(io.BytesIO(data))
    groups = [file.metadata.row_group(i).num_rows for i in range(2)]
    assert groups == [1500, 700]
    ids = file.read(columns=["id"]).column("id").to_pylist()
    assert ids == [str(i) for i in range(1100) for _ in range(2)]
    empty = pq.ParquetFile(io.BytesIO(write("parquet", [])))
    assert empty.schema_arrow.names == file.schema_arrow.names
    # of fields that are kept
    assert [to_text(value) for value in (None, "a", 7)] == [None, "a", "7"]


@pytest.mark.parametrize("name", ["biocxml", "biocjson"])
def test_bioc_is_as_the_library_writes_it(name):
    for path in WRITTEN.glob(f"{name}*"):
        data = path.read_text("utf8")
        written = BIOC[name].dumps(BIOC[name].loads(data))
        if name == "biocjson":
            assert json.loads(data) == json.loads(written)
        else:
            parse = functools.partial(ElementTree.canonicalize, strip_text=True)
            assert parse(data) == parse(written)


def test_bioc_characters_that_xml_has_not_are_replaced_and_counted(tmp_path):
    doc = NLP("a\0b\x0bc\ufffe fever")
    doc.ents = [Span(doc, len(doc) - 1, len(doc), label="L", kb_id="C1")]
    with pytest.warns(UserWarning, match="W520.*3 characters"):
        (tmp_path / "x.xml").write_bytes(write("biocxml", [(1, doc)]))
    (document,) = open_corpus(tmp_path / "x.xml")
    assert document.text == "a\ufffdb\ufffdc\ufffd fever"
    assert [mention[:4] for mention in document.mentions] == [(7, 12, "L", "fever")]


def test_pubtator_changes_are_counted_in_one_warning():
    doc = make_doc("x\n\ny", (0, 1, "a\tb", "A|B"), (1, 2, "L", "C1"))
    with pytest.warns(UserWarning, match="W520.* 1 ids of documents changed") as found:
        text = write("pubtator", [("n|1\t2", doc)], "sc").decode()
    assert text == "n_1_2|t|x\nn_1_2|a| y\nn_1_2\t0\t1\tx\ta b\tA%7CB\n\n"
    (warning,) = found
    for said in ("1 labels changed", "1 ids quoted", "1 mentions of blanks left out"):
        assert said in str(warning.message)


def write_brat(path: Path, *docs: tuple[str, Doc]) -> list[str]:
    write_linked(docs, path, format="brat", spans_key="sc")
    files = (file for file in path.rglob("*") if file.is_file())
    return sorted(file.relative_to(path).as_posix() for file in files)


@pytest.mark.parametrize(
    ("number", "name"),
    [
        ("note.txt.gz", "note"),
        ("notes.jsonl:3", "notes.jsonl_3"),
        ("../../etc/passwd", "etc/passwd"),
        ("a.txt/b", "a.txt_/b"),
        ("a\0\n\\b. ", "a__ b".replace(" ", "_")),
        ("é" * 200, "é" * 100),
        ("a/b/c/d/e/f/g/h/i", "b/c/d/e/f/g/h/i"),
    ],
)
def test_brat_an_id_makes_a_name_that_every_system_takes(number, name):
    assert file_name(number) == name


def test_brat_names_are_numbered_and_marks_and_gaps_kept(tmp_path):
    docs = [(id, make_doc("x")) for id in ("a", "a.txt", "a", "a-2")]
    with pytest.warns(UserWarning, match="W520.*3 documents of one name numbered"):
        files = write_brat(tmp_path / "out", *docs)
    names = ["a", "a-2", "a-2-2", "a-3"]
    assert files == sorted(f"{n}.{end}" for n in names for end in ("ann", "txt"))
    # what was written before is replaced
    doc = make_doc("\ufeff fever\r\nand", (1, 4, "L M", "C1"))
    with pytest.warns(UserWarning, match="1 labels changed") as told:
        assert write_brat(tmp_path / "out", ("b", doc)) == ["b.ann", "b.txt"]
    assert "1 byte order marks" in str(told[0].message)
    lines = (tmp_path / "out" / "b.ann").read_text("utf8")
    assert lines == "T1\tL_M 2 7;9 12\tfever and\nN1\tReference T1 KB:C1\t\n"
    ((span,),) = (each.mentions for each in open_corpus(tmp_path / "out", "brat"))
    assert (span.start, span.end, span.parts) == (2, 12, [["C1"]])


@pytest.mark.parametrize("other", ["a.txt", "x/y.txt", "a.ann", ""])
def test_brat_what_is_not_its_output_is_never_replaced(tmp_path, other):
    path = tmp_path / "out" / other if other else tmp_path / "out"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    with pytest.raises(SapbertError, match="E522" if other else "E522.*a file"):
        write_brat(tmp_path / "out", ("b", make_doc("2")))
    assert path.read_text() == "mine"


def write_omop(docs: Any, **options: Any) -> list[dict[str, str]]:
    data = write("omop", docs, "sc", **options).decode("utf8")
    return [*csv.DictReader(io.StringIO(data, newline=""))]


@pytest.fixture
def omop_doc() -> Doc:
    spans = (2, 3, "DRUG", ""), (90, 102, "X", "")
    return make_doc("Took\naspirin " + "now " * 100, *spans)


@pytest.mark.parametrize("id", ["note.txt", None, 2**63, "٣"])
def test_omop_id_that_is_no_note_id_is_an_error(id, omop_doc):
    with pytest.raises(SapbertError, match="E378.*--id"):
        write_omop([(id, omop_doc)])


def test_omop_ids_of_rows_have_32_bits_for_any_note(omop_doc):
    rows = write_omop([(2_148, omop_doc), (2**40, omop_doc)], first_id=2**31 - 4)
    assert [int(row["note_nlp_id"]) for row in rows] == [*range(2**31 - 4, 2**31)]
    assert rows[2]["note_id"] == str(2**40)
    assert write_omop([(1 - 2**63, omop_doc)])[0]["note_id"] == str(1 - 2**63)
    with pytest.raises(SapbertError, match="E007.*--first-id"):
        write_omop([(1, omop_doc)], first_id=2**31 - 1)


def test_omop_of_link_in_parts(make_kb, tmp_path):
    concept = Concept("C1", ["fever", "MI", "aspirin"], codes={"OMOP": ["437663"]})
    kb = make_kb(tmp_path, [concept])
    notes, output = tmp_path / "notes.csv", tmp_path / "out"
    notes.write_text("note_id,text\n5,fever and MI\n6,\n7,aspirin\n", "utf8")
    arguments = ["link", kb, notes, "--id", "note_id", "--format", "omop"]
    arguments += ["--shard-size", 2, "--first-id", 9, "--output", output]

    def read_rows() -> list[dict[str, str]]:
        parts = [part.read_text("utf8") for part in sorted(output.glob("part-*.csv"))]
        return [row for part in parts for row in csv.DictReader(io.StringIO(part))]

    invoke(*arguments, code=0)
    rows = read_rows()
    assert [row["note_nlp_id"] for row in rows] == ["9", "10", "11"]
    system = r"en_pipeline [\d.]+, spacy-sapbert [\d.]+, kb [0-9a-f]{16}"
    assert re.fullmatch(system, rows[0]["nlp_system"])
    state = json.loads((output / STATE_FILE).read_text("utf8"))
    (output / state["parts"].pop()["file"]).unlink()  # it was stopped
    (output / STATE_FILE).write_text(json.dumps({**state, "finished": False}), "utf8")
    invoke(*arguments, code=0)
    assert [row["note_nlp_id"] for row in read_rows()] == ["9", "10", "11"]
