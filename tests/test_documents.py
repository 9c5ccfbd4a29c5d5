import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.documents import document_from_json, read_documents
from spacy_sapbert.errors import SapbertError

SENTINEL = "SENTINELTEXT"


def read(*paths, longest=1000):
    return [tuple(document) for document in read_documents(paths, longest=longest)]


def write_lines(path, *values):
    path.write_text("".join(json.dumps(value) + "\n" for value in values), "utf8")
    return path


def test_documents_a_text_file_is_one_document_as_it_stands(tmp_path):
    path = tmp_path / "ä note.txt"
    path.write_bytes("\ufeffone\r\ntwo\r\u2028\0\n".encode())
    assert read(path) == [("ä note.txt", "one\r\ntwo\r\u2028\0\n")]


def test_documents_a_folder_gives_its_text_files_in_order(tmp_path):
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
def test_documents_json_lines_have_ids_or_get_them(tmp_path, packed):
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
        (f'{{"text": "{SENTINEL} \\ud800"}}', "surrogate"),
        ('{"id": "\\ud800", "text": ""}', "surrogate"),
    ],
)
def test_documents_bad_line_is_an_error_with_file_and_line(tmp_path, line, message):
    path = tmp_path / "notes.jsonl"
    path.write_text('{"text": "fine"}\n' + line + "\n")
    with pytest.raises(SapbertError, match="E504") as caught:
        read(path)
    assert f"{path}:2: " in str(caught.value)
    assert message in str(caught.value)
    assert SENTINEL not in str(caught.value)


def test_documents_other_bytes_than_utf8_are_an_error_with_place(tmp_path):
    path = tmp_path / "note.txt"
    path.write_bytes(f"one\n{SENTINEL}".encode() + b"\xff")
    with pytest.raises(SapbertError, match="note.txt:2.*offset 12") as caught:
        read(path)
    assert SENTINEL not in str(caught.value)


@pytest.mark.parametrize("name", ["note.txt", "notes.jsonl"])
def test_documents_utf16_is_an_error(tmp_path, name):
    (tmp_path / name).write_bytes("text".encode("utf-16"))
    with pytest.raises(SapbertError, match="E006"):
        read(tmp_path / name)


@pytest.mark.parametrize("name", ["note.txt.gz", "notes.jsonl.gz"])
def test_documents_cut_gzip_is_an_error(tmp_path, name):
    data = gzip.compress(b'{"text": "one"}\n' * 99)
    (tmp_path / name).write_bytes(data[:-12])
    with pytest.raises(SapbertError, match="E008"):
        read(tmp_path / name)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("size", [11, 1_000_000])
def test_documents_too_long_a_text_is_an_error(tmp_path, size, packed):
    path = tmp_path / ("note.txt.gz" if packed else "note.txt")
    path.write_bytes(gzip.compress(b"x" * size) if packed else b"x" * size)
    with pytest.raises(SapbertError, match="E506.*10 characters"):
        read(path, longest=10)
    path.write_bytes(gzip.compress(b"x" * 10) if packed else b"x" * 10)
    assert len(read(path, longest=10)) == 1


def test_documents_too_long_a_line_is_an_error(tmp_path):
    path = write_lines(tmp_path / "notes.jsonl", {"text": "x"}, {"text": "x" * 11})
    with pytest.raises(SapbertError, match="notes.jsonl:2: .*10 characters"):
        read(path, longest=10)


def test_documents_missing_and_unknown_files_are_errors(tmp_path):
    (tmp_path / "note.docx").write_text("")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SapbertError, match="E001"):
        read_documents([tmp_path / "missing.txt"], longest=10)
    with pytest.raises(SapbertError, match="E505.*another ending"):
        read_documents([tmp_path / "note.docx"], longest=10)
    with pytest.raises(SapbertError, match="E505.*without any"):
        read_documents([tmp_path / "empty"], longest=10)


@given(st.recursive(st.none() | st.text() | st.integers(), st.lists))
def test_documents_any_json_is_a_document_or_an_error_of_ours(tmp_path_factory, value):
    for data in (value, {"text": value}, {"id": value, "text": "x"}):
        try:
            document = document_from_json(data, tmp_path_factory.getbasetemp(), "n", 1)
        except SapbertError:
            continue
        assert isinstance(document.text, str)
