from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from training.corpora.registry import GoldDocument, GoldSpan, read_corpus
from training.corpora.xlbel import read_xlbel


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf8")
    return path


def test_read_xlbel_lines_of_ids_and_mention(tmp_path: Path) -> None:
    path = write(tmp_path / "es.txt", "C0000001||fiebre\n\nC0000002|C0000003||tos\n")
    assert list(read_xlbel(path)) == [
        GoldDocument("1", "", [GoldSpan(-1, -1, "", "fiebre", [["C0000001"]], 1)]),
        GoldDocument(
            "3", "", [GoldSpan(-1, -1, "", "tos", [["C0000002", "C0000003"]], 3)]
        ),
    ]


def test_read_xlbel_a_context_becomes_the_text(tmp_path: Path) -> None:
    line = "C0000001||fiebre||Tiene  <tgt>fiebre</tgt> || y tos .\n"
    (document,) = read_xlbel(write(tmp_path / "es.txt", line))
    (span,) = document.spans
    assert document.text == "Tiene  fiebre || y tos ."
    assert document.text[span.start : span.end] == span.mention == "fiebre"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("C0000001", "E715"),
        ("fiebre||C0000001", "E715"),
        ("C0000001|| ", "E704"),
        ("C0000001||fiebre||Tiene fiebre .", "E716"),
        ("C0000001||fiebre||Tiene <tgt>fiebre .", "E716"),
        ("C0000001||fiebre||Tiene </tgt>fiebre<tgt> .", "E716"),
        ("C0000001||fiebre||<tgt>fiebre</tgt> y <tgt>fiebre</tgt>", "E716"),
        ("C0000001||fiebre||Tiene <tgt>tos</tgt>", "E713"),
    ],
)
def test_read_xlbel_a_bad_line_is_named_and_not_quoted(
    tmp_path: Path, line: str, code: str
) -> None:
    path = write(tmp_path / "es.txt", f"C0000001||calor\n{line}\n")
    with pytest.raises(SapbertError, match=code) as error:
        list(read_xlbel(path))
    assert f"{path}:2:" in str(error.value)
    assert "fiebre" not in str(error.value)


@pytest.mark.parametrize("lang", ["es", "ru"])
@pytest.mark.parametrize("ending", ["", "_with_context"])
def test_read_xlbel_the_real_files_have_a_thousand_mentions(
    data_folder: Path, lang: str, ending: str
) -> None:
    path = data_folder / "eval-text" / f"{lang}_1k_test_query{ending}.txt.gz"
    documents = list(read_corpus(path, "xlbel"))
    assert len(documents) == 1000
    for document in documents:
        (span,) = document.spans
        assert span.parts
        assert bool(document.text) == bool(ending)
        if ending:
            assert document.text[span.start : span.end] == span.mention


def test_read_xlbel_a_real_file_reads_as_its_table(data_folder: Path) -> None:
    queries = data_folder / "eval-text" / "es_1k_test_query.txt.gz"
    table = data_folder / "eval" / "xlbel_es.test.tsv.gz"
    pairs = [
        [(span.mention, span.parts) for each in documents for span in each.spans]
        for documents in (read_corpus(queries, "xlbel"), read_corpus(table, "tsv"))
    ]
    assert pairs[0] == pairs[1]
