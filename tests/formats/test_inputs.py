"""Which files are read, as which format, and what is left out of them."""

import gzip
import io
import json
import sys
import zlib
from collections import Counter
from contextlib import suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import spacy
import srsly
from hypothesis import example, given
from hypothesis import strategies as st
from spacy.tokens import DocBin

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.formats.docbin import has_few_values
from spacy_sapbert.formats.documents import Document
from spacy_sapbert.formats.gold import GoldMention
from spacy_sapbert.formats.gold_docs import set_mentions
from spacy_sapbert.formats.inputs.files import (
    InputFile,
    count_documents,
    detect_format,
    list_inputs,
)
from spacy_sapbert.formats.inputs.reading import read_documents, select_spans
from spacy_sapbert.formats.inputs.rows import (
    Columns,
    make_document,
    parse_line,
    to_plain,
)
from spacy_sapbert.io.tables import parquet
from tests.commands import invoke
from tests.formats.test_examples import FOLDER
from tests.io.test_spreadsheets import write_book
from tests.pipelines import NLP

SENTINEL = "SENTINELTEXT"
TITLE = b"1|t|A title\n1|a|And more.\n1\t0\t1\tA\tX\tC1\n"
BIOC = b'{"source": "", "documents": [{"id": "1"}]}'


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.txt", b"1|t\nno title", "text"),
        ("a.TXT", b"\xef\xbb\xbf" + TITLE, "pubtator"),
        ("a.txt.gz", gzip.compress(TITLE, mtime=0), "pubtator"),
        ("a.txt", b"1|t|Title of one\n2|t|and another\n", "text"),
        ("a.json", BIOC, "biocjson"),
        ("a.json", b'{"text": "a"}\n{"text": "b"}\n', "jsonl"),
        ("a.json", b'{"text": "' + b"a" * 70_000 + b'"}\n', "jsonl"),
        ("a.jsonl", TITLE, "jsonl"),
        ("a.md", BIOC, "biocjson"),
        ("a.dat", b'<?xml version="1.0"?><collection>', "biocxml"),
        ("a.bin", b"PAR1", "parquet"),
        ("a.xml", b'<?xml version="1.0"?>\n<xmi:XMI xmlns:xmi="x">', "inception"),
        ("a.json", b'{"%TYPES": {}, "%FEATURE_STRUCTURES": []}', "inception"),
        ("a.tsv", b"#FORMAT=WebAnno TSV 3.2\n", "inception"),
        ("a.tsv", b"text\tid\n", "csv"),
        ("a.json", b'{\n"text": "a", "denotations": []}', "pubannotation"),
        ("a.json", b'{"text": "\\"denotations\\": ["}', "jsonl"),
        ("a.jsonl", b'{"text": "a", "sourcedb": "PMC"}\n', "pubannotation"),
        (
            "a.json",
            b'{"projects": [{"documents": [], "annotations": []}]}',
            "medcattrainer",
        ),
        ("a.json", b'[{"data": {}, "annotations": [], "id": 1}]', "labelstudio"),
        ("a.json", b'[{"text": "a", "label": [{"labels": ["X"]}]}]', "labelstudio"),
        ("a.json", b'[{"text": "a", "labels": [[0, 1, "X"]]}]', "doccano"),
        ("a.jsonl", b'{"text": "a", "label": [[0, 1, "X"]]}', "jsonl"),
        ("a.txt", b" " * 70_000, "text"),
        ("a.json", b" " * 70_000, "biocjson"),
        ("a.md", b'{"infons": {}, "passages": []}', "biocjson"),
        ("a.md", b"some text", None),
        ("a.txt.gz", gzip.compress(TITLE, mtime=0)[:9], "text"),
    ],
)
def test_detect_format_by_the_ending_else_the_content(name, data, expected, tmp_path):
    (tmp_path / name).write_bytes(data)
    if expected is None:
        with pytest.raises(SapbertError, match="E110.*--input-format"):
            detect_format(tmp_path / name)
    else:
        assert detect_format(tmp_path / name) == expected


def make_files(folder: Path, names: str) -> Path:
    for name in names.split():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def test_list_inputs_of_a_folder_are_its_documents_and_no_models(tmp_path):
    notes = make_files(
        tmp_path / "notes",
        "b.txt.gz _a.txt x.jsonl note.ann note.txt .e.txt .git/f.txt sub/.g.txt "
        "sub/h.TXT kb/CURRENT kb/v1/i.txt kb/j.txt pipe/meta.json pipe/config.cfg "
        "pipe/k.txt bert/config.json bert/vocab.txt no/CURRENT no/meta.json no/l.txt "
        "other/v1/m.txt",
    )
    left_out = Counter[str]()
    found = list_inputs([notes], left_out=left_out)
    brat = InputFile(notes / "note.ann", "note.txt", "brat")
    names = ["_a.txt", "b.txt.gz", "no/l.txt", "other/v1/m.txt", "sub/h.TXT"]
    files = [InputFile(notes / name, name, "text") for name in names]
    assert found == [*files[:3], brat, *files[3:]]
    assert left_out == {"of knowledge bases or models": 3, "hidden": 3}
    assert list_inputs([notes], "brat") == list_inputs([notes / "note.txt"]) == [brat]
    table = make_files(
        tmp_path / "a.parquet",
        "part-0.parquet _x=1/part.parquet _SUCCESS _temporary/part.parquet b.txt",
    )
    assert [file[1:] for file in list_inputs([table])] == [
        ("_x=1/part.parquet", "parquet"),
        ("part-0.parquet", "parquet"),
    ]
    (notes / "note.txt").unlink()
    for path, format, code in (
        (notes, "brat", "E001"),
        (notes / "z.txt", "text", "E001"),
        (notes / "sub", "jsonl", "E106"),
        (notes, "docx", "E110"),
        (Path("-"), "parquet", "E110"),
    ):
        with pytest.raises(SapbertError, match=code):
            list_inputs([path], format)


def test_count_documents_unless_files_have_to_be_read(tmp_path):
    make_files(tmp_path, "a.txt b.txt b.ann d.csv c.jsonl.gz")
    (tmp_path / "c.jsonl").write_text('{"text": "a"}\n' * 4)
    pq.write_table(pa.table({"text": ["a"] * 8}), tmp_path / "e.parquet")
    paths = [tmp_path / name for name in ("a.txt", "b.txt", "c.jsonl", "e.parquet")]
    assert count_documents(list_inputs(paths)) == 14
    for path in (tmp_path / "d.csv", tmp_path / "c.jsonl.gz", Path("-")):
        assert count_documents(list_inputs([*paths, path])) is None


def test_parquet_that_unpacks_to_far_more_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "UNPACKED_BYTES", 1 << 20)
    path = tmp_path / "a.parquet"
    table = pa.table({"text": ["a" * (2 << 20)]})
    pq.write_table(table, path, compression="zstd", write_statistics=False)
    with pytest.raises(SapbertError, match="E007"):
        list(read_documents(list_inputs([path]), longest=1_000))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(SapbertError, match="E150.*cannot be read"):
        list(read_documents(list_inputs([path]), longest=1_000))


def test_parquet_columns_may_be_nested_and_empty(tmp_path):
    table = pa.table({"note": [{"text": "fever"}], "ward": pa.array([None], "string")})
    pq.write_table(table, tmp_path / "a.parquet")
    columns = Columns("note.text", keep=("ward",))
    (document,) = read_linked(tmp_path / "a.parquet", columns=columns)
    assert (document.text, document.fields) == ("fever", {"ward": None})


def spans_of(*places: tuple[int, int]) -> list[GoldMention]:
    return [GoldMention(start, end, "X", "", [], 0) for start, end in places]


@given(
    st.text(st.sampled_from("ab (.)\n\u2028é"), min_size=1, max_size=20),
    st.lists(st.tuples(st.integers(0, 19), st.integers(1, 20)), max_size=4),
)
@example("a b c", [(1, 1), (2, 2)])  # a blank, and one at the end
def test_set_mentions_are_exactly_at_their_offsets(text, places):
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


def test_read_documents_of_a_workbook(tmp_path):
    rows = [["id", "text", "ward"], [1, "Fieber", "A"], ["n2", None, "B"]]
    path = write_book(tmp_path / "notes.xlsx", *rows)
    counts = Counter[str]()
    columns = Columns("text", "id", ("ward",))
    documents = read_linked(path, columns=columns, counts=counts)
    assert [(d.id, d.text, d.fields) for d in documents] == [
        ("1", "Fieber", {"ward": "A"}),
        ("n2", "", {"ward": "B"}),
    ]
    assert counts == {"without text": 1}
    write_book(path, *rows, [3, "cold", "C", "more"])
    with pytest.raises(SapbertError, match="E117.*xlsx:4"):
        read_linked(path, columns=columns)
    with pytest.raises(SapbertError, match="E410.*'body'"):
        read_linked(path, columns=Columns("body"))


def test_columns_of_any_type_are_kept_as_json_has_them():
    values = [1.5, float("nan"), b"\xff", date(2026, 2, 1), "\ud800", Decimal("0.1")]
    assert to_plain({7: (*values, True, None)}) == {
        "7": [1.5, None, "ff", "2026-02-01", "?", "0.1", True, None]
    }


@pytest.mark.parametrize(
    ("name", "ids"),
    [("a.jsonl", ["a.jsonl:1"]), ("c.pubtator", ["1", "5"]), ("d.json", ["d0", "d2"])],
)
def test_read_corpus_leaves_out_documents_that_are_invalid(name, ids):
    path = FOLDER / "documents" / "spoilt" / name
    errors: list[SapbertError] = []
    found = []
    with suppress(SapbertError):  # E106: there is no mention in BioC above
        for document in read_corpus(path, on_error=errors.append):
            found.append(document.id)
    assert errors
    assert found == ids
    with pytest.raises(SapbertError, match="E117|E009"):
        list(read_corpus(path))


TOOK = "Took aspirin. Fever"
BOTH = [(5, 12, "DRUG", "D1"), (14, 19, "SIGN", "")]
MARKED = {  # the fields of a line, as tools write them
    "prodigy": {
        "spans": [
            {"start": 5, "end": 12, "label": "DRUG", "kb_id": "D1", "token_start": 1},
            {"start": 14, "end": 19, "label": "SIGN", "token_end": 4, "kb_id": ""},
        ],
        "answer": "accept",
    },
    "doccano": {"label": [[5, 12, "DRUG"], [14, 19, "SIGN"]], "Comments": []},
    "doccano with data": {"data": TOOK, "label": [[5, 12, "DRUG"], [14, 19, "SIGN"]]},
    "doccano before version 1": {
        "annotations": [
            {"label": "DRUG", "start_offset": 5, "end_offset": 12, "user": 1},
            {"label": "SIGN", "start_offset": 14, "end_offset": 19, "user": 1},
        ],
        "meta": {},
    },
    "doccano with relations": {
        "entities": [
            {"id": 1, "label": "DRUG", "start_offset": 5, "end_offset": 12},
            {"id": 2, "label": "SIGN", "start_offset": 14, "end_offset": 19},
        ],
        "relations": [],
    },
    "spaCy's training data": {"entities": [[5, 12, "DRUG", "D1"], [14, 19, "SIGN"]]},
    "doc.to_json()": {
        "ents": [
            {"start": 5, "end": 12, "label": "DRUG"},
            {"start": 14, "end": 19, "label": "SIGN"},
        ],
        "tokens": [{"id": 0, "start": 0, "end": 4}],
    },
    "Label Studio": {
        "label": [
            {"start": 5, "end": 12, "text": "aspirin", "labels": ["DRUG"]},
            {"start": 14, "end": 19, "text": "Fever", "labels": ["SIGN"]},
        ]
    },
    "twice the same": {
        "entities": [{"start": 5, "end": 12, "label": "DRUG"}, [14, 19, "SIGN"]],
        "spans": [[14, 19, "SIGN"], [5, 12, "DRUG"]],
    },
}


@pytest.mark.parametrize("tool", MARKED)
def test_spans_that_a_person_made_are_read_from_json_lines(tmp_path, tool):
    path = tmp_path / "marked.jsonl"
    row = {"text": TOOK, **MARKED[tool]}
    if "data" in row:
        del row["text"]
    path.write_text(json.dumps(row) + "\n", "utf8")
    [document] = read_documents([InputFile(path, "marked", "jsonl")], longest=100)
    assert [m[:3] for m in document.mentions] == [span[:3] for span in BOTH]
    [gold] = read_corpus(path, every=True)
    assert [m[:3] for m in gold.mentions] == [span[:3] for span in BOTH]
    has_ids = tool in ("prodigy", "spaCy's training data")
    assert [m.parts for m in gold.mentions] == [[["D1"]] if has_ids else [[]], [[]]]
    path.with_suffix(".json").write_text(json.dumps([row], indent=1))
    [same] = read_corpus(path.with_suffix(".json"), every=True)
    assert [m[:5] for m in same.mentions] == [m[:5] for m in gold.mentions]


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"spans": [{"from": 5, "to": 12}]}, "`spans`"),
        ({"spans": {"sc": [{"start": 5, "end": 12}]}}, "`spans`"),
        ({"spans": "5-12"}, "`spans`"),
        ({"label": [[5, "DRUG"]]}, "`label`"),
        ({"labels": [{"begin": 5}]}, "`labels`"),
        ({"ents": [[5, 120, "DRUG"]]}, "`ents`"),
        ({"annotations": [{"label": 7, "from": 5}]}, "`annotations`"),
        ({"entities": [[5, 12, "A"]], "spans": [[14, 19, "A"]]}, "entities and spans"),
        ({"annotations": [{"result": [{"value": {}}]}]}, "labelstudio"),
        ({"denotations": [{"span": {"begin": 5, "end": 12}}]}, "pubannotation"),
    ],
)
def test_spans_that_cannot_be_read_are_an_error_with_their_field(
    tmp_path, fields, names
):
    path = tmp_path / "marked.jsonl"
    path.write_text(json.dumps({"text": TOOK, **fields}) + "\n", "utf8")
    for read in (
        lambda: [*read_documents([InputFile(path, "m", "jsonl")], longest=100)],
        lambda: [*read_corpus(path, "jsonl")],
    ):
        with pytest.raises(SapbertError, match=f"E117.*:1: .*{names}") as caught:
            read()
        assert "aspirin" not in str(caught.value)


def test_labels_of_a_document_are_no_spans(tmp_path):
    path = tmp_path / "labels.jsonl"
    rows: list[dict[str, Any]] = [
        {"label": "positive"},
        {"label": ["positive", "short"], "labels": 3, "annotations": ["x"]},
        {"entities": None},
    ]
    path.write_text("".join(json.dumps({"text": TOOK, **r}) + "\n" for r in rows))
    documents = [*read_documents([InputFile(path, "l", "jsonl")], longest=100)]
    assert [document.mentions for document in documents] == [None] * 3


def test_what_a_person_did_not_accept_is_left_out_and_counted(sample_kb, tmp_path):
    path = tmp_path / "prodigy.jsonl"
    spans = [{"start": 5, "end": 12, "label": "DRUG", "kb_id": "C0000007"}]
    rows = [
        {"text": TOOK, "_input_hash": number, "spans": spans, "answer": answer}
        for number, answer in enumerate(("accept", "reject", "ignore", "reject"))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.warns(UserWarning, match="W540.* 3 documents rejected or ignored"):
        [gold] = read_corpus(path)
    assert [mention.parts for mention in gold.mentions] == [[["C0000007"]]]
    words = ["link", sample_kb, path, "--output", tmp_path / "out.jsonl"]
    assert "3 documents rejected or ignored" in invoke(*words, code=0).output
    [line] = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [e["text"] for e in json.loads(line)["entities"]] == ["aspirin"]


def test_the_option_that_a_person_chose_in_prodigy_is_the_concept(tmp_path):
    path = tmp_path / "chosen.jsonl"
    options = [{"id": "D1"}, {"id": "NIL_otherLink"}, {"id": "NIL_ambiguous"}]
    row = {"text": TOOK, "spans": [{"start": 5, "end": 12}], "options": options}
    accepted = [["D1"], ["NIL_otherLink"], []]
    lines = [json.dumps({**row, "accept": ids, "answer": "accept"}) for ids in accepted]
    path.write_text("\n".join(lines))
    documents = [*read_corpus(path, "prodigy", every=True)]
    parts = [mention.parts for each in documents for mention in each.mentions]
    assert parts == [[["D1"]], [[]], [[]]]


# A document that is skipped stays in the output, with the error if it has a place.
def test_link_says_which_documents_are_not_marked(sample_kb, tmp_path):
    output = tmp_path / "out.pubtator"
    path = FOLDER / "documents" / "spoilt" / "a.jsonl"
    words = ["link", sample_kb, path, "--on-error", "skip"]
    shown = invoke(*words, "--output", output, code=0)
    assert "not marked in the output: a.jsonl:4, 6, 8, " in shown.output
    assert "fever" in output.read_text()


def test_commands_leave_out_what_is_invalid_if_asked(sample_kb, tmp_path):
    table = tmp_path / "gold.tsv"
    rows = ["mention\tids", "fever\tC0000004", "MI", *["pain\tC0000007"] * 60]
    table.write_text("\n".join(rows), "utf8")
    for words in (
        ["evaluate", sample_kb, table],
        ["teach", sample_kb, table, "--output", tmp_path / "kb", "--force"],
    ):
        assert f"{table}:3: Expected" in invoke(*words, code=1).output
        shown = invoke(*words, "--on-error", "skip", code=0)
        assert "1 documents or lines were left out" in shown.output


def read(*paths: Path, longest: int = 1000) -> Any:
    files = list_inputs(paths)
    return [(d.id, d.text) for d in read_documents(files, longest=longest)]


def set_stdin(monkeypatch: pytest.MonkeyPatch, data: Any) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["", "packed"])
@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.txt", "x%", 1),
        ("a.jsonl", '{"text": "x"}\n{"text": "x%"}\n', 2),
        ("a.pubtator", "1|t|aaaa\n1|a|aaaaa\n\n2|t|\n2|a|%", 5),
    ],
)
def test_documents_too_long_a_text_is_an_error(tmp_path, name, text, line, pack):
    path = tmp_path / (f"{name}.gz" if pack is gzip.compress else name)
    for more in (10, 1_000_000):
        path.write_bytes(pack(text.replace("%", "x" * more).encode()))
        with pytest.raises(SapbertError, match=f"{path.name}:{line}: .*10 characters"):
            read(path, longest=10)
    path.write_bytes(pack(text.replace("%", "x" * 9).encode()))
    assert len(read(path, longest=10)) == min(line, 2)


def test_documents_bad_standard_input_is_an_error_with_the_line(monkeypatch):
    with pytest.raises(SapbertError, match="E423"):
        read(Path("-"), Path("-"))  # it comes once
    set_stdin(monkeypatch, f'{{"text": "a"}}\n{SENTINEL}'.encode() + b"\xff")
    with pytest.raises(SapbertError, match="stdin:2: ") as caught:
        read(Path("-"))
    assert SENTINEL not in str(caught.value)


def test_documents_are_described_by_id_and_place_if_these_differ():
    described = [Document("n", "", place=p).describe() for p in ("", "n", "a:1")]
    assert described == ["'n'", "'n'", "'n' (a:1)"]


@given(st.recursive(st.none() | st.text() | st.integers(), st.lists))
def test_documents_any_json_is_a_document_or_an_error_of_ours(tmp_path_factory, value):
    for data in (value, {"text": value}, {"id": value, "text": "x"}):
        try:
            path = tmp_path_factory.getbasetemp()
            row = parse_line(json.dumps(data), path, 1)
            document = make_document(row, path, "x", 1, longest=100_000)
        except SapbertError:
            continue
        assert isinstance(document.text, str)


def test_read_documents_what_takes_the_tokenizer_hours_is_an_error(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("(" * 100_001)
    with pytest.raises(SapbertError, match=r"E536.*'a\.txt' has 100,001"):
        list(read_documents(list_inputs([path]), longest=1_000_000))
    errors: list[SapbertError] = []
    for keep_failed in (False, True):
        options = {"on_error": errors.append, "keep_failed": keep_failed}
        found = list(read_documents(list_inputs([path]), longest=1_000_000, **options))
        failed = Document("a.txt", "", mentions=[], error=str(errors.pop()))
        assert found == [failed] * keep_failed
    path.write_text("(" * 100_000)
    (tmp_path / "b.txt").write_text("x" + "_)" * 1_100)
    with pytest.warns(UserWarning, match="W531") as told:
        found = list(read_documents(list_inputs([tmp_path]), longest=1_000_000))
    assert (len(found), len(told)) == (2, 1)


def pack(**fields: Any) -> bytes:
    """A `DocBin` of one Doc with two tokens, with other fields."""
    doc = spacy.blank("en")("a b")
    doc.user_data["key"] = "value"
    docs = DocBin(docs=[doc], store_user_data=True).to_bytes()
    data = srsly.msgpack_loads(zlib.decompress(docs)) | fields
    return zlib.compress(srsly.msgpack_dumps(data))


def read_bytes(folder: Path, data: bytes) -> list[str]:
    (folder / "x.spacy").write_bytes(data)
    docs = read_documents(list_inputs([folder / "x.spacy"]), longest=100)
    return [document.text for document in docs]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, ""),
        ({"attrs": []}, "E150"),
        ({"user_data": [b"\xdd\x7f\xff\xff\xff"]}, "E150"),
        ({"user_data": [b"\x91" * 5_000]}, "E150"),
        ({"span_groups": [bytes(1 << 25)]}, "E007"),
    ],
    ids=range(5),
)
def test_read_docbin_crafted_values_are_a_named_error(tmp_path, fields, code):
    if not code:
        assert read_bytes(tmp_path, pack()) == ["a b"]
        return
    with pytest.raises(SapbertError, match=code):
        read_bytes(tmp_path, pack(**fields))


@given(place=st.integers(0), values=st.binary(min_size=1, max_size=5))
def test_read_docbin_garbled_msgpack_is_read_or_a_named_error(
    tmp_path_factory, place, values
):
    data = bytearray(zlib.decompress(pack()))
    place %= len(data)
    data[place : place + len(values)] = values
    with suppress(SapbertError):
        read_bytes(tmp_path_factory.mktemp("spacy"), zlib.compress(data))


def test_read_docbin_docs_are_as_spacy_reads_them(tmp_path):
    nlp = spacy.blank("en")
    docs = []
    for number in range(21):
        doc = nlp("word " * (number % 7) + ("x " * 11_000 if number == 9 else ""))
        doc.cats, doc.user_data["id"] = (
            {"a": number},
            [number, f"n{number}", True][number % 3],
        )
        doc.spans["s"] = [doc[:1]] if number % 7 else []
        docs.append(doc)
    data = DocBin(docs=docs, store_user_data=True).to_bytes()
    (tmp_path / "x.spacy").write_bytes(data)
    found = [
        *read_documents(
            list_inputs([tmp_path / "x.spacy"]), longest=100, vocab=nlp.vocab
        )
    ]
    expected = DocBin().from_bytes(data).get_docs(nlp.vocab)
    pairs = zip(found, expected, strict=True)
    assert all(one.doc.to_bytes() == other.to_bytes() for one, other in pairs)
    ids = [0, "n1", "x.spacy:3", 3, "n4", "x.spacy:6"]
    assert [document.id for document in found[:6]] == ids
    assert [document.place for document in found[:2]] == ["x.spacy:1", "x.spacy:2"]


def test_read_docbin_counts_values_in_three_levels_of_bytes():
    deep: Any = 1
    for _ in range(4):  # a list and its value are two
        deep = srsly.msgpack_dumps([deep])
    for value, count in (([1, [2, 3]], 6), ({"a": srsly.msgpack_dumps([4])}, 5)):
        data = srsly.msgpack_dumps(value)
        assert [has_few_values(data, most) for most in (count - 1, count)] == [0, 1]
    assert [has_few_values(deep, most) for most in (5, 6)] == [False, True]
