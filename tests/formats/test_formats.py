import io
from pathlib import Path

import pytest
import spacy

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats import SUFFIXES, WRITERS, guess_format, load_writer

NLP = spacy.blank("en")


@pytest.mark.parametrize("name", WRITERS)
def test_formats_all_write_a_stream_without_holding_it(name):
    file = io.BytesIO()
    sizes = []

    def docs():
        for number in range(3):
            sizes.append(file.tell())
            yield number, NLP("any text")

    assert load_writer(name)(docs(), file) is None
    assert sizes[0] < sizes[1] < sizes[2]
    file.getvalue().decode("utf8")


@pytest.mark.parametrize("name", WRITERS)
def test_formats_all_take_any_doc(name, any_docs):
    file = io.BytesIO()
    load_writer(name)(enumerate(any_docs), file)
    assert file.getvalue().decode("utf8")


@pytest.fixture
def any_docs():
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
            doc.ents = [spacy.tokens.Span(doc, 0, 1, label="L")]
        docs.append(doc)
    return docs


def test_formats_unknown_name_is_an_error():
    with pytest.raises(SapbertError, match="E501.*jsonl.*'xml'"):
        load_writer("xml")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.jsonl", "jsonl"),
        ("a.b.HTML", "html"),
        ("a.jsonl.gz", "jsonl"),
        ("t.txt", "table"),
    ],
)
def test_formats_are_guessed_from_the_ending(path, expected):
    assert guess_format(Path(path)) == expected


@pytest.mark.parametrize("path", ["a", "a.gz", "a.docx", "jsonl"])
def test_formats_that_cannot_be_guessed_are_an_error(path):
    with pytest.raises(SapbertError, match="E502.*--format"):
        guess_format(Path(path))


def test_formats_every_ending_is_of_a_known_format():
    assert set(SUFFIXES.values()) <= set(WRITERS)
