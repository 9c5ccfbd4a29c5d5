"""Which files are read, as which format, and what is left out of them."""

import gzip
import json
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.formats.documents import Document
from spacy_sapbert.formats.gold import GoldMention
from spacy_sapbert.formats.gold_docs import set_mentions
from spacy_sapbert.formats.inputs.files import (
    count_documents,
    detect_format,
    list_inputs,
)
from spacy_sapbert.formats.inputs.reading import read_documents, select_spans
from spacy_sapbert.formats.inputs.rows import Columns
from spacy_sapbert.pipeline.link_files import LinkJob, link_files
from tests.commands import invoke
from tests.io.test_excel import write_ods
from tests.pipelines import NLP

openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")

SENTINEL = "SENTINELTEXT"
TITLE = b"1|t|A title\n1|a|And more.\n1\t0\t1\tA\tX\tC1\n"
BIOC = b'{"source": "", "documents": [{"id": "1"}]}'


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.txt", b"1|t\nno title", "text"),
        ("a.txt", b"", "text"),
        ("a.txt", b"\n" + TITLE, "pubtator"),
        ("a.TXT", b"\xef\xbb\xbf" + TITLE, "pubtator"),
        ("a.txt.gz", gzip.compress(TITLE, mtime=0), "pubtator"),
        ("a.txt", b"1|t|Title of one\n2|t|and another\n", "text"),
        ("a.txt", b"1|t|Title\n", "pubtator"),
        ("a.json", BIOC, "biocjson"),
        ("a.json", b'{"text": "a"}\n{"text": "b"}\n', "jsonl"),
        ("a.json", b'{"text": "' + b"a" * 70_000 + b'"}\n', "jsonl"),
        ("a.xml.gz", b"", "biocxml"),
        ("a.tsv", b"", "csv"),
        ("a.jsonl", TITLE, "jsonl"),
        ("a", b'{"text": "a"}', "jsonl"),
        ("a.md", BIOC, "biocjson"),
        ("a.dat", b'<?xml version="1.0"?><collection>', "biocxml"),
        ("a.bin", b"PAR1", "parquet"),
        ("a.docx", b"PK\3\4", None),
        ("a.md", b"some text", None),
        ("a.txt.gz", gzip.compress(TITLE, mtime=0)[:9], "text"),
    ],
)
def test_detect_format_by_the_ending_else_the_content(
    name: str, data: bytes, expected: str | None, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    if expected is None:
        with pytest.raises(SapbertError, match="E110.*--input-format"):
            detect_format(tmp_path / name)
    else:
        assert detect_format(tmp_path / name) == expected


def test_detect_format_of_ncbi_disease_as_ncbi_names_it(data_file: Any) -> None:
    path = data_file("eval-text/NCBIdevelopset_corpus.txt.gz")
    assert detect_format(path) == "pubtator"
    counts: Counter[str] = Counter()
    documents = [*read_documents(list_inputs([path]), longest=1_000_000, counts=counts)]
    assert len(documents) == 100
    assert sum(len(document.mentions or ()) for document in documents) == 787
    assert documents[0].id == "8808605"


@pytest.fixture
def spoilt(tmp_path: Path) -> list[Path]:
    """Six files, each with good and bad documents, or only a bad one."""
    lines = tmp_path / "a.jsonl"
    lines.write_bytes(
        b'{"text": "fever"}\n{"text": "' + SENTINEL.encode() + b'"\n{"text": "\xff"}\n'
        b'{"text": 7}\n{"text": "DM", "entities": [{"start": 0, "end": 9}]}\n'
    )
    table = tmp_path / "b.csv"
    table.write_bytes(b'id,text\n7,"fe\nver"\n2,\xff\n3,fever,4\n5,DM\n6,"')
    pubtator = tmp_path / "c.txt"
    pubtator.write_bytes(TITLE + TITLE.replace(b"1", b"2").replace(b"\tA", b"\tB") * 2)
    bioc = tmp_path / "d.json"
    documents = [
        {"id": f"d{n}", "passages": [{"offset": 0, "text": text}]}
        for n, text in enumerate(["fever", 7, SENTINEL])
    ]
    bioc.write_text(json.dumps({"documents": documents}))
    annotated = tmp_path / "e.txt"
    annotated.write_text("fever")
    annotated.with_suffix(".ann").write_text("T1\tX 0 9\tfever\n")
    packed = tmp_path / "f.txt.gz"
    packed.write_bytes(gzip.compress(b"fever" * 99, mtime=0)[:-9])
    return [lines, table, pubtator, bioc, annotated, packed]


def test_read_documents_with_a_handler_leaves_out_bad_documents(
    spoilt: list[Path], tmp_path: Path
) -> None:
    errors: list[SapbertError] = []
    files = list_inputs(spoilt)
    documents = read_documents(files, longest=1_000, on_error=errors.append)
    found = [document.id for document in documents]
    assert found == ["a.jsonl:1", "7", "5", "1", "d0", "d2"]
    places = ["a.jsonl:2", "a.jsonl:3", "a.jsonl:4", "a.jsonl:5", "b.csv:4", "b.csv:5"]
    places += ["b.csv:7", "c.txt:6", "c.txt:9", "d.json", "e.ann:1", "f.txt.gz:1"]
    for place, error in zip(places, errors, strict=True):
        assert f"{tmp_path / place}: Expected" in str(error)
        assert SENTINEL not in str(error)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("size", [3, 7, 1 << 18])
def test_csv_texts_are_read_as_they_are(
    delimiter: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spacy_sapbert.io.reading.BLOCK_BYTES", size)
    header = delimiter.join(("id", "text", "other"))
    row = f'7{delimiter}"a\r\n\r\r\nb ""c"" \u2028{delimiter}"{delimiter}'
    path = tmp_path / "a.csv"
    path.write_bytes(f"\ufeff{header}\r\n\r\n{row}\r\n8{delimiter}{delimiter}".encode())
    first, second = read_documents(
        list_inputs([path]), longest=100, columns=Columns(keep=("other",))
    )
    text = f'a\r\n\r\r\nb "c" \u2028{delimiter}'
    assert first[:2] == ("7", text)
    assert (first.place, first.fields) == ("a.csv:3", {"other": ""})
    assert (second.id, second.text, second.place) == ("8", "", "a.csv:6")


@pytest.mark.parametrize(
    "header",
    [
        '"id";"text"',  # as Excel writes it in Europe
        '"id"\t"text"',
        f'"id";"text";"{"x" * 140_000}"',
    ],
)
def test_csv_header_in_quotes_has_any_delimiter(tmp_path: Path, header: str) -> None:
    path = tmp_path / "a.csv"
    mark = "\t" if "\t" in header else ";"
    row = mark.join(['"1"', '"He has, well, fever"', '"x"'][: header.count(mark) + 1])
    path.write_text(f"{header}\n{row}\n", "utf8")
    (document,) = read_documents(list_inputs([path], "csv"), longest=200_000)
    assert (document.id, document.text) == ("1", "He has, well, fever")


@pytest.mark.parametrize("header", ['"id" ,text', 'id,"te', '"id"x;"text"'])
def test_csv_header_that_cannot_be_read_is_an_error(
    tmp_path: Path, header: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n1,fever\n", "utf8")
    with pytest.raises(SapbertError, match="E410"):
        list(read_documents(list_inputs([path], "csv"), longest=1_000))


def test_csv_unbalanced_quote_is_an_error_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('text\nfever\n"' + f"{SENTINEL}\n" * 99_999)
    with pytest.raises(SapbertError, match=r"E117.*:3: .*quotes") as caught:
        list(read_documents(list_inputs([path], "csv"), longest=1_000))
    assert SENTINEL not in str(caught.value)


def test_parquet_that_unpacks_to_far_more_is_an_error(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    table = pa.table({"text": ["a" * (130 << 20)]})
    pq.write_table(table, path, compression="zstd", write_statistics=False)
    with pytest.raises(SapbertError, match="E007"):
        list(read_documents(list_inputs([path]), longest=1_000))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(SapbertError, match="E150.*cannot be read"):
        list(read_documents(list_inputs([path]), longest=1_000))


def test_count_documents_where_it_is_cheap(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "b.jsonl").write_text('{"text": ""}\n' * 3)
    (tmp_path / "c.txt").write_bytes(TITLE)
    names = ("a.txt", "b.jsonl", "c.txt")
    a, b, c = list_inputs([tmp_path / name for name in names])
    assert [count_documents(files) for files in ([a], [a, b], [c])] == [1, 4, None]


def spans_of(*places: tuple[int, int]) -> list[GoldMention]:
    return [GoldMention(start, end, "X", "", [], 0) for start, end in places]


def test_select_spans_keeps_the_longest() -> None:
    counts: Counter[str] = Counter()
    spans = spans_of((5, 9), (0, 4), (3, 6), (0, 4), (9, 10), (5, 10), (6, 7))
    found = [(span.start, span.end) for span in select_spans(spans, counts)]
    assert found == [(0, 4), (5, 10)]
    assert counts == {"mentions": 6, "overlapping": 4}


@given(
    st.text(st.sampled_from("ab (.)\n\u2028é"), min_size=1, max_size=20),
    st.lists(st.tuples(st.integers(0, 19), st.integers(1, 20)), max_size=4),
)
def test_set_mentions_are_exactly_at_their_offsets(
    text: str, places: list[tuple[int, int]]
) -> None:
    inside = [(start, min(start + size, len(text))) for start, size in places]
    spans = [s for s in spans_of(*inside) if s.start < s.end]
    doc = set_mentions(NLP.make_doc(text), spans, "sc")
    assert doc.text == text
    found = [(span.start_char, span.end_char) for span in doc.spans["sc"]]
    assert found == [(span.start, span.end) for span in spans]
    kept = select_spans(spans, Counter())
    doc = set_mentions(NLP.make_doc(text), kept, None)
    found = [(ent.start_char, ent.end_char) for ent in doc.ents]
    assert found == [(span.start, span.end) for span in kept]


def read_linked(path: Path, **options: Any) -> list[Document]:
    return list(read_documents(list_inputs([path]), longest=1000, **options))


def test_read_documents_of_opendocument(tmp_path: Path) -> None:
    cell = "<table:table-cell office:value-type='string'><text:p>{}</text:p>"
    row = f"<table:table-row>{cell}</table:table-cell></table:table-row>"
    path = write_ods(tmp_path / "a.ods", "".join(map(row.format, ("text", "Fieber"))))
    (document,) = read_linked(path)
    assert (document.id, document.text) == ("a.ods:2", "Fieber")


def test_read_documents_of_a_workbook(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["id", "text", "ward"])
    book.active.append([1, "Fieber", "A"])
    book.active.append(["n2", None, "B"])
    book.save(tmp_path / "notes.xlsx")
    counts = Counter[str]()
    columns = Columns("text", "id", ("ward",))
    documents = read_linked(tmp_path / "notes.xlsx", columns=columns, counts=counts)
    assert [(d.id, d.text, d.fields) for d in documents] == [
        ("1", "Fieber", {"ward": "A"}),
        ("n2", "", {"ward": "B"}),
    ]
    assert counts == {"without text": 1}
    with pytest.raises(SapbertError, match="E410.*'note'.*columns id, text, ward"):
        read_linked(tmp_path / "notes.xlsx", columns=Columns("note", "id"))
    with pytest.raises(SapbertError, match="E410.*'note'.*3 cells") as caught:
        read_linked(tmp_path / "notes.xlsx", columns=Columns("note", "nr"))
    assert "ward" not in str(caught.value)  # without a header it could be a text
    book.active.append([3, "cold", "C", "more"])
    book.save(tmp_path / "notes.xlsx")
    with pytest.raises(SapbertError, match="E117.*xlsx:4"):
        read_linked(tmp_path / "notes.xlsx", columns=columns)


@pytest.mark.parametrize("name", ["notes.csv", "notes.jsonl", "notes.txt"])
def test_read_documents_in_another_encoding(name: str, tmp_path: Path) -> None:
    text = {"notes.csv": "id,text\n1,Übelkeit\n", "notes.txt": "Übelkeit"}
    line = text.get(name, '{"id": "1", "text": "Übelkeit"}\n')
    (tmp_path / name).write_bytes(line.encode("cp1252"))
    (document,) = read_linked(tmp_path / name, encoding="cp1252")
    assert document.text == "Übelkeit"
    with pytest.raises(SapbertError, match="UTF-8.*--encoding"):
        read_linked(tmp_path / name)
    with pytest.raises(SapbertError, match="E331"):
        read_linked(tmp_path / name, encoding="utf-9")


def test_read_csv_names_its_columns_unless_they_may_be_a_text(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    path.write_text("note_id;body\n1;fever\n")
    with pytest.raises(SapbertError, match="E410.*'bed'.*columns note_id, body"):
        read_linked(path, columns=Columns("body", keep=("bed",)))
    with pytest.raises(SapbertError, match="E410.*'text'.*columns note_id, body"):
        read_linked(path, columns=Columns(id="note_id"))
    for line in ("He has fever, SENTINELTEXT", "17;SENTINELTEXT;fever", "SENTINELTEXT"):
        path.write_text(f"{line}\n")
        with pytest.raises(SapbertError, match="E410.*'text'.*cell") as caught:
            read_linked(path)
        assert not re.search("SENTINEL|fever", str(caught.value))


def test_read_csv_wrong_quote_in_one_line_spoils_its_row_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    path.write_text('id,text\n1,"fever"x\n2,cold\n3,"two\r\n\nlines"\n')
    errors: list[SapbertError] = []
    documents = read_linked(path, on_error=errors.append)
    assert [document.text for document in documents] == ["cold", "two\r\n\nlines"]
    assert ["notes.csv:2" in str(error) for error in errors] == [True]
    # after quotes that do not end, nobody knows where the next row begins
    path.write_text('id,text\n1,"fever\n2,cold\n3,"two\nlines"\n')
    assert read_linked(path, on_error=errors.append) == []
    assert "notes.csv:2: Expected the end of the quotes" in str(errors[-1])


# A document that is skipped stays in the output, with the error if it has a place.
GOOD = '{"id": "1", "text": "fever", "entities": [{"start": 0, "end": 5}]}\n'
INPUTS = {
    "a.jsonl": f'{GOOD}{{"id": "2", "text": 7}}\n{GOOD.replace("1", "3")}',
    "a.pubtator": "".join(
        f"{id}|t|fever\n{id}|a|\n{id}\t0\t{end}\tfever\tX\tC1\n\n"
        for id, end in (("1", 5), ("2", 4), ("3", 5))
    )
    + "4|t|fever\n4|b|fever\n5|t|fever\n",
    "a.json": json.dumps(
        {
            "documents": [
                {"id": id, "passages": [{"offset": 0, "text": text}]}
                for id, text in (("1", "fever"), ("2", 7), ("3", "fever"))
            ]
        }
    ),
}


@pytest.mark.parametrize("name", INPUTS)
def test_read_documents_keeps_the_ids_of_those_that_are_invalid(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(INPUTS[name], "utf8")
    errors: list[SapbertError] = []
    files = list_inputs([path])
    read = read_documents(files, longest=99, on_error=errors.append, keep_failed=True)
    found = [(str(document.id), bool(document.error)) for document in read]
    assert found[:3] == [("1", False), ("2", True), ("3", False)]
    assert found[3:] in ([], [("4", True), ("5", False)])
    assert len(errors) == sum(error for _, error in found)


def test_read_documents_keeps_the_names_of_texts_and_of_brat_that_are_invalid(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_bytes(b"fever \xff")
    (tmp_path / "b.txt").write_text("fever")
    (tmp_path / "b.ann").write_text("T1\tX 0 9\tfever\n")
    (tmp_path / "c.txt").write_text("fever")
    errors: list[SapbertError] = []
    files = list_inputs([tmp_path])
    read = read_documents(files, longest=99, on_error=errors.append, keep_failed=True)
    assert [(document.id, bool(document.error)) for document in read] == [
        ("a.txt", True),
        ("b.txt", True),
        ("c.txt", False),
    ]
    assert [error.code for error in errors] == ["E009", "E117"]


@pytest.mark.parametrize("name", INPUTS)
def test_read_corpus_leaves_out_documents_that_are_invalid(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(INPUTS[name], "utf8")
    errors: list[SapbertError] = []
    ids: list[Any] = []
    with suppress(SapbertError):  # E106: there is no mention in BioC above
        for document in read_corpus(path, on_error=errors.append):
            ids.append(document.id)
    assert {"1", "3"} <= set(map(str, ids))
    assert "2" not in map(str, ids)
    assert errors
    with pytest.raises(SapbertError, match="E117"):
        list(read_corpus(path))


@pytest.mark.parametrize("name", ["pubtator", "jsonl"])
def test_link_says_which_documents_are_not_marked(
    name: str, sample_kb: Path, tmp_path: Path
) -> None:
    path, output = tmp_path / "a.jsonl", tmp_path / f"out.{name}"
    path.write_text(INPUTS["a.jsonl"])
    job = LinkJob((path,), output, kb=str(sample_kb), on_error="skip")
    result = link_files(job)
    assert result.left_out == Counter({"skipped": 1})
    assert result.unmarked == (["2"] if name == "pubtator" else [])
    assert output.read_text().count("fever") >= 2
    words = ["link", sample_kb, path, "--on-error", "skip", "--force"]
    shown = invoke(*words, "--output", output, code=0)
    assert ("not marked in the output: 2" in shown.output) == (name == "pubtator")


def test_commands_leave_out_what_is_invalid_if_asked(
    sample_kb: Path, tmp_path: Path
) -> None:
    table = tmp_path / "gold.tsv"
    rows = ["mention\tids", "fever\tC0000004", "MI", *["pain\tC0000007"] * 60]
    table.write_text("\n".join(rows), "utf8")
    for words in (
        ["convert", table, "--output", tmp_path / "out.tsv"],
        ["evaluate", sample_kb, table],
        ["calibrate", sample_kb, table, "--dry-run"],
        ["teach", sample_kb, table, "--output", tmp_path / "kb", "--force"],
    ):
        assert f"{table}:3: Expected" in invoke(*words, code=1).output
        shown = invoke(*words, "--on-error", "skip", code=0)
        assert "1 documents or lines were left out" in shown.output
