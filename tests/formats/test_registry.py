import io
import sys
from pathlib import Path
from typing import Any

import pytest
import spacy
import srsly
from spacy.tokens import Doc, Span

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.entities import describe_docs
from spacy_sapbert.formats.gold_docs import read_docs
from spacy_sapbert.formats.registry import (
    FORMATS,
    guess_format,
    list_formats,
    list_suffixes,
    load_reader,
    load_writer,
    open_target,
    write_linked,
)
from tests.pipelines import NLP

BINARY = {"parquet"}
WRITERS = list_formats("write")
READERS = [name for name, format in WRITERS.items() if format.returned != "–"]
FILES = [name for name in WRITERS if not FORMATS[name].folder]
LIBRARIES = {name: format.library for name, format in WRITERS.items() if format.library}


def need_library(name: str) -> None:
    if name in LIBRARIES:
        pytest.importorskip(LIBRARIES[name][0])


@pytest.mark.parametrize("name", sorted({*FILES} - BINARY))
def test_formats_all_write_a_stream_without_holding_it(name: str) -> None:
    need_library(name)
    file = io.BytesIO()
    sizes = []

    def docs() -> Any:
        for number in range(3):
            sizes.append(file.tell())
            doc = NLP("any text")
            doc.ents = [Span(doc, 0, 1, label="L")]
            yield number, doc

    load_writer(name)(describe_docs(docs()), file)
    assert sizes[0] < sizes[1] < sizes[2]
    file.getvalue().decode("utf8")


@pytest.mark.filterwarnings("ignore:.*W520")
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("spans_key", [None, "sc"])
def test_formats_all_take_any_doc(
    name: str, spans_key: str | None, any_docs: list[Doc], tmp_path: Path
) -> None:
    need_library(name)
    path = tmp_path / "out"
    docs = enumerate(any_docs)
    write_linked(docs, path, format=name, spans_key=spans_key)
    files = [file for file in (path, *path.rglob("*")) if file.is_file()]
    assert files
    if name not in BINARY:
        assert all(isinstance(file.read_bytes().decode("utf8"), str) for file in files)


@pytest.mark.filterwarnings("ignore:.*W5[23]0")
@pytest.mark.parametrize("name", READERS)
def test_formats_that_are_read_give_any_doc_back(
    name: str, any_docs: list[Doc], tmp_path: Path
) -> None:
    need_library(name)
    path = tmp_path / "out"
    write_linked(enumerate(any_docs), path, format=name)
    found = {str(key): doc for key, doc in read_docs(path, NLP, format=name)}
    assert [*found] == [str(number) for number in range(len(any_docs))]
    for doc, back in zip(any_docs, found.values(), strict=True):
        places = [(ent.start_char, ent.end_char) for ent in back.ents]
        written = [ent for ent in doc.ents if ent.text.strip() or name == "jsonl"]
        assert len(places) in (len(written), len(doc.ents))
        assert all(span.label_ == "L" for span in back.ents)


@pytest.mark.parametrize(("name", "library"), [*LIBRARIES.items()])
def test_formats_name_the_command_for_a_library_that_is_missing(
    name: str, library: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library[0], None)
    with pytest.raises(SapbertError, match=rf"E521.*pip install {library[1]}"):
        load_writer(name)


def test_formats_of_folders_need_a_path() -> None:
    with (
        pytest.raises(SapbertError, match="E110.*--output"),
        open_target(None, "brat"),
    ):
        pass


def test_formats_of_files_can_go_to_the_standard_output(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    with open_target(None, "jsonl") as file:
        file.write(b"a")
    assert capsysbinary.readouterr().out == b"a"


def test_formats_leave_nothing_where_a_document_fails(tmp_path: Path) -> None:
    def docs() -> Any:
        yield 1, NLP("a")
        raise ZeroDivisionError

    for name in WRITERS:
        need_library(name)
        with pytest.raises(ZeroDivisionError):
            write_linked(docs(), tmp_path / name, format=name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["html", "omop", "pubtator", "brat"])
def test_formats_that_need_the_text_raise_an_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(SapbertError, match=f"E110.*{name}"):
        write_linked([], tmp_path / "out", format=name, include_text=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", sorted({*WRITERS} - {"html", "omop", "pubtator", "brat"})
)
def test_formats_without_text_do_not_write_it(name: str, tmp_path: Path) -> None:
    need_library(name)
    doc = NLP("sentinel was here")
    doc.ents = [Span(doc, 0, 1, label="L")]
    path = tmp_path / "out"
    write_linked([(1, doc)], path, format=name, include_text=False)
    assert b"sentinel" not in path.read_bytes()


def test_formats_that_are_not_read_are_an_error() -> None:
    with pytest.raises(SapbertError, match="E110.*jsonl.*'html'"):
        load_reader("html")


def test_formats_importing_them_does_not_import_spacy(new_process: Any) -> None:
    code = (
        "import sys, spacy_sapbert.formats.registry as _; print('spacy' in sys.modules)"
    )
    done = new_process.python(code, check=True)
    assert done.stdout.strip() == "False"


@pytest.fixture
def any_docs() -> list[Doc]:
    texts = [
        "",
        " ",
        "\0",
        "👩‍🔬 مرحبا e\u0301",
        "a\u2028b\u0085c\rd\r\n",
        "x" * 10_000,
    ]
    docs = []
    for text in texts:
        doc = NLP(text)
        doc.spans["sc"] = [doc[:], doc[:1]]
        if len(doc):
            doc.ents = [Span(doc, 0, 1, label="L")]
        docs.append(doc)
    return docs


def test_formats_unknown_name_is_an_error() -> None:
    with pytest.raises(SapbertError, match="E110.*jsonl.*'xml'"):
        load_writer("xml")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.jsonl", "jsonl"),
        ("a.b.HTML", "html"),
        ("a.jsonl.gz", "jsonl"),
        ("t.txt", "table"),
        ("a.xml.gz", "biocxml"),
        ("a.json", "biocjson"),
        ("a.pubtator", "pubtator"),
        ("a.csv", "csv"),
        ("a.parquet", "parquet"),
    ],
)
def test_formats_are_guessed_from_the_ending(path: Path, expected: Any) -> None:
    assert guess_format(Path(path)) == expected


@pytest.mark.parametrize("path", ["a", "a.gz", "a.docx", "jsonl"])
def test_formats_that_cannot_be_guessed_are_an_error(path: Path) -> None:
    with pytest.raises(SapbertError, match="E110.*--format"):
        guess_format(Path(path))


def test_formats_every_ending_is_of_a_known_format() -> None:
    assert set(list_suffixes().values()) <= set(WRITERS)


def test_write_linked_takes_documents_without_ids(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    path = tmp_path / "linked.jsonl"
    write_linked(nlp.pipe(["one", "two"]), str(path))
    assert [row["id"] for row in srsly.read_jsonl(path)] == ["1", "2"]
