import gzip
import io
import json
import struct
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import spacy
import srsly
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import DocBin

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.inputs.files import list_inputs
from spacy_sapbert.formats.inputs.reading import read_documents
from spacy_sapbert.formats.inputs.rows import make_document, parse_line

SENTINEL = "SENTINELTEXT"


def read(*paths: Path, longest: int = 1000) -> Any:
    files = list_inputs(paths)
    return [(d.id, d.text) for d in read_documents(files, longest=longest)]


def set_stdin(monkeypatch: pytest.MonkeyPatch, data: Any) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def write_lines(path: Path, *values: Any) -> Any:
    path.write_text("".join(json.dumps(value) + "\n" for value in values), "utf8")
    return path


def test_documents_a_text_file_is_one_document_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "ä note.txt"
    path.write_bytes("\ufeffone\r\ntwo\r\u2028\0\n".encode())
    assert read(path) == [("ä note.txt", "one\r\ntwo\r\u2028\0\n")]


def test_documents_a_folder_gives_its_text_files_in_order(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("b.txt", "a.txt", "sub/c.txt", "notes.md", "x.jsonl"):
        (tmp_path / name).write_text(name)
    (tmp_path / "d.txt.gz").write_bytes(gzip.compress(b"packed"))
    assert read(tmp_path) == [
        ("a.txt", "a.txt"),
        ("b.txt", "b.txt"),
        ("d.txt.gz", "packed"),
        ("sub/c.txt", "sub/c.txt"),
    ]


@pytest.mark.parametrize("packed", [False, True])
def test_documents_json_lines_have_ids_or_get_them(
    tmp_path: Path, packed: bool
) -> None:
    path = write_lines(
        tmp_path / "notes.jsonl",
        {"id": "n1", "text": "one", "other": 1},
        {"id": 7, "text": ""},
        {"text": "a\u2028b"},
    )
    with open(path, "ab") as file:
        file.write(b'\n  \n{"id": null, "text": "end"}')
    name = path.name
    if packed:
        name += ".gz"
        (tmp_path / name).write_bytes(gzip.compress(path.read_bytes()))
    assert read(tmp_path / name) == [
        ("n1", "one"),
        (7, ""),
        (f"{name}:3", "a\u2028b"),
        (f"{name}:6", "end"),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f'{{"text": "{SENTINEL}"', "no valid JSON"),
        ("[" * 100_000, "no valid JSON"),
        (f'["{SENTINEL}"]', "a list"),
        ("null", "a NoneType"),
        ('{"id": 1}', "a text as `text`, but got none"),
        (f'{{"text": ["{SENTINEL}"]}}', "something else"),
        (f'{{"id": true, "text": "{SENTINEL}"}}', "as `id`"),
        (f'{{"id": 1.5, "text": "{SENTINEL}"}}', "as `id`"),
        (f'{{"text": "{SENTINEL} \\ud800"}}', "hex escape"),
        ('{"id": "\\ud800", "text": ""}', "hex escape"),
    ],
)
def test_documents_bad_line_is_an_error_with_file_and_line(
    tmp_path: Path, line: str, message: str
) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text('{"text": "fine"}\n' + line + "\n")
    with pytest.raises(SapbertError, match="E117") as caught:
        read(path)
    assert f"{path}:2: " in str(caught.value)
    assert message in str(caught.value)
    assert SENTINEL not in str(caught.value)


@pytest.mark.parametrize("name", ["note.txt", "notes.jsonl"])
def test_documents_wrong_bytes_are_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes("text".encode("utf-16"))
    with pytest.raises(SapbertError, match="E009"):
        read(tmp_path / name)
    (tmp_path / name).write_bytes(b'{"text": "one"}\n\n' + b"\xff")
    with pytest.raises(SapbertError, match=f"{name}:3.*offset") as caught:
        read(tmp_path / name)
    assert "one" not in str(caught.value)
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(b'{"text": "one"}\n' * 99)[:-12])
    with pytest.raises(SapbertError, match="E150"):
        read(packed)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("size", [11, 1_000_000])
def test_documents_too_long_a_text_is_an_error(
    tmp_path: Path, size: int, packed: bool
) -> None:
    path = tmp_path / ("note.txt.gz" if packed else "note.txt")
    path.write_bytes(gzip.compress(b"x" * size) if packed else b"x" * size)
    with pytest.raises(SapbertError, match="E506.*10 characters"):
        read(path, longest=10)
    path.write_bytes(gzip.compress(b"x" * 10) if packed else b"x" * 10)
    assert len(read(path, longest=10)) == 1


def test_documents_too_long_a_line_is_an_error(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "notes.jsonl", {"text": "x"}, {"text": "x" * 11})
    with pytest.raises(SapbertError, match="notes.jsonl:2: .*10 characters"):
        read(path, longest=10)


def test_documents_missing_and_unknown_files_are_errors(tmp_path: Path) -> None:
    (tmp_path / "note.docx").write_bytes(b"PK\x03\x04")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SapbertError, match="E001"):
        list_inputs([tmp_path / "missing.txt"])
    with pytest.raises(SapbertError, match="E110.*note.docx.*--input-format"):
        list_inputs([tmp_path / "note.docx"])
    with pytest.raises(SapbertError, match=r"E106.*\.txt.*empty"):
        list_inputs([tmp_path / "empty"])


def test_documents_the_standard_input_is_json_lines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_stdin(monkeypatch, b'{"text": "one"}\n\n{"id": 7, "text": "two"}')
    other = write_lines(tmp_path / "a.jsonl", {"text": "three"})
    assert read(Path("-"), other) == [
        ("stdin:1", "one"),
        (7, "two"),
        ("a.jsonl:1", "three"),
    ]


def test_documents_the_standard_input_as_one_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_stdin(monkeypatch, b'\xef\xbb\xbf{"text": 1}\r\n\n')
    (document,) = read_documents(list_inputs([Path("-")], "text"), longest=100)
    assert document[:3] == ("stdin", '{"text": 1}\r\n\n', None)


@pytest.mark.parametrize("format", [None, "text", "jsonl", "pubtator"])
def test_documents_bad_standard_input_is_an_error_with_the_line(
    monkeypatch: pytest.MonkeyPatch, format: str | None
) -> None:
    first = "1|t|a" if format == "pubtator" else '{"text": "a"}'
    set_stdin(monkeypatch, f"{first}\n{SENTINEL}".encode() + b"\xff")
    with pytest.raises(SapbertError, match="stdin:2: ") as caught:
        list(read_documents(list_inputs([Path("-")], format), longest=100))
    assert SENTINEL not in str(caught.value)


def test_documents_the_standard_input_comes_once() -> None:
    with pytest.raises(SapbertError, match="E423"):
        read(Path("-"), Path("-"))


@pytest.fixture
def docs_file(tmp_path: Path) -> Path:
    nlp = spacy.blank("en")
    doc = nlp("no fever")
    doc.ents = [doc.char_span(3, 8, label="X")]
    path = tmp_path / "notes.spacy"
    DocBin(docs=[doc, nlp("")]).to_disk(path)
    return path


def test_documents_of_a_docbin_keep_their_entities(docs_file: Path) -> None:
    vocab = spacy.blank("en").vocab
    first, second = read_documents(list_inputs([docs_file]), longest=3, vocab=vocab)
    assert (first.id, first.text) == ("notes.spacy:1", "no fever")
    assert [(ent.text, ent.label_) for ent in first.doc.ents] == [("fever", "X")]
    assert first.doc.vocab is vocab
    assert (second.id, second.text) == ("notes.spacy:2", "")


@given(st.recursive(st.none() | st.text() | st.integers(), st.lists))
def test_documents_any_json_is_a_document_or_an_error_of_ours(
    tmp_path_factory: pytest.TempPathFactory, value: Any
) -> None:
    for data in (value, {"text": value}, {"id": value, "text": "x"}):
        try:
            path = tmp_path_factory.getbasetemp()
            row = parse_line(json.dumps(data), path, 1)
            document = make_document(row, path, "x", 1, longest=100_000)
        except SapbertError:
            continue
        assert isinstance(document.text, str)


def test_read_documents_warns_of_what_makes_the_tokenizer_slow(
    tmp_path: Path,
) -> None:
    texts = {
        "a": "(" * 1_900,
        "b": "x" * 9_000,
        "c": "x" + "_)" * 1_100,
        "d": "€" * 2_100,
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text, "utf8")
    with pytest.warns(UserWarning, match="W531") as caught:
        found = list(read_documents(list_inputs([tmp_path]), longest=10_000))
    assert [document.text for document in found] == list(texts.values())
    (first,) = (str(warning.message) for warning in caught)
    assert first.startswith("[W531]")
    assert "document 'c.txt' has 2,200" in first


def test_read_documents_what_takes_the_tokenizer_hours_is_an_error(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("(" * 100_001)
    with pytest.raises(SapbertError, match=r"E536.*'a\.txt' has 100,001"):
        list(read_documents(list_inputs([tmp_path / "a.txt"]), longest=1_000_000))


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
        ({"lengths": struct.pack("=iii", 2**30, 2**30, 2**30)}, "E150"),
        ({"attrs": []}, "E150"),
        ({"cats": []}, "E150"),
        ({"user_data": [b"\xdd\x7f\xff\xff\xff"]}, "E150"),
        ({"user_data": [b"\x91" * 5_000]}, "E150"),
        ({"span_groups": [bytes(1 << 25)]}, "E007"),
    ],
    ids=range(7),
)
def test_read_docbin_crafted_values_are_a_named_error(
    tmp_path: Path, fields: dict[str, Any], code: str
) -> None:
    if not code:
        assert read_bytes(tmp_path, pack()) == ["a b"]
        return
    with pytest.raises(SapbertError, match=code):
        read_bytes(tmp_path, pack(**fields))


@given(place=st.integers(0), values=st.binary(min_size=1, max_size=5))
def test_read_docbin_garbled_msgpack_is_read_or_a_named_error(
    tmp_path_factory: pytest.TempPathFactory, place: int, values: bytes
) -> None:
    data = bytearray(zlib.decompress(PACKED))
    place %= len(data)
    data[place : place + len(values)] = values
    with suppress(SapbertError):
        read_bytes(tmp_path_factory.mktemp("spacy"), zlib.compress(data))


PACKED = pack()


def test_read_docbin_docs_are_as_spacy_reads_them(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    docs = []
    for number in range(210):
        doc = nlp("word " * (number % 7) + ("x " * 11_000 if number == 99 else ""))
        doc.cats, doc.user_data["number"] = {"a": number}, number
        doc.spans["s"] = [doc[:1]] if number % 7 else []
        docs.append(doc)
    data = DocBin(docs=docs, store_user_data=True).to_bytes()
    (tmp_path / "x.spacy").write_bytes(data)
    found = read_documents(
        list_inputs([tmp_path / "x.spacy"]), longest=100, vocab=nlp.vocab
    )
    expected = DocBin().from_bytes(data).get_docs(nlp.vocab)
    pairs = zip(found, expected, strict=True)
    assert all(one.doc.to_bytes() == other.to_bytes() for one, other in pairs)


def test_read_docbin_fewer_user_data_than_docs_are_read(tmp_path: Path) -> None:
    assert read_bytes(tmp_path, pack(user_data=[])) == ["a b"]
