from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.formats.gold import GoldDocument, GoldMention
from tests.commands import invoke
from training.__main__ import app
from training.corpora.research import read_askapatient, read_cometa, read_xlbel

READERS = {"xlbel": read_xlbel, "cometa": read_cometa, "askapatient": read_askapatient}
XLBEL = "C0000001||calor\n"
COMETA = (
    "\tID\tTerm\tGeneral SNOMED ID\tGeneral SNOMED Label\tSpecific SNOMED ID\t"
    "Specific SNOMED Label\tExample\n"
)
ROW = "0\t17\theart racing\t80313002\tPalpitations\t3424008\tTachycardia\tIt raced.\n"
QUOTED = '1\t18\tsick\t1\tIll\t2\tNausea\t"He said ""sick"".\nThen\tleft."\n'
ASKAPATIENT = "271782001\tDrowsy\tbit drowsy\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf8")
    return path


def test_read_xlbel_of_ids_and_mention(tmp_path: Path) -> None:
    path = write(tmp_path / "es.txt", "C0000001||fiebre\n\nC0000002|C0000003||tos\n")
    assert list(read_xlbel(path)) == [
        GoldDocument("1", "", [GoldMention(-1, -1, "", "fiebre", [["C0000001"]], 1)]),
        GoldDocument(
            "3", "", [GoldMention(-1, -1, "", "tos", [["C0000002", "C0000003"]], 3)]
        ),
    ]


def test_read_xlbel_of_a_context_has_its_text(tmp_path: Path) -> None:
    line = "C0000001||fiebre||Tiene  <tgt>fiebre</tgt> || y tos .\n"
    (document,) = read_xlbel(write(tmp_path / "es.txt", line))
    (span,) = document.mentions
    assert document.text == "Tiene  fiebre || y tos ."
    assert document.text[span.start : span.end] == span.mention == "fiebre"


@pytest.mark.parametrize("lang", ["es", "ru"])
@pytest.mark.parametrize("ending", ["", "_with_context"])
def test_read_xlbel_of_real_files_has_a_thousand_mentions(
    data_folder: Path, lang: str, ending: str
) -> None:
    path = data_folder / "eval-text" / f"{lang}_1k_test_query{ending}.txt.gz"
    documents = list(read_xlbel(path))
    assert len(documents) == 1000
    for document in documents:
        (span,) = document.mentions
        assert span.parts
        assert bool(document.text) == bool(ending)
        if ending:
            assert document.text[span.start : span.end] == span.mention


def test_read_xlbel_of_a_real_file_equals_its_table(data_folder: Path) -> None:
    queries = data_folder / "eval-text" / "es_1k_test_query.txt.gz"
    table = data_folder / "eval" / "xlbel_es.test.tsv.gz"
    pairs = [
        [(span.mention, span.parts) for each in documents for span in each.mentions]
        for documents in (read_xlbel(queries), read_corpus(table, "tsv"))
    ]
    assert pairs[0] == pairs[1]


@pytest.mark.parametrize(
    ("options", "cui"),
    [({}, "80313002"), ({"level": "specific"}, "3424008")],
)
def test_read_cometa_has_a_document_without_text_for_each_row(
    tmp_path: Path, options: dict[str, str], cui: str
) -> None:
    path = write(tmp_path / "dev.csv", COMETA + ROW)
    span = GoldMention(-1, -1, "", "heart racing", [[cui]], 2)
    assert list(read_cometa(path, **options)) == [GoldDocument("17", "", [span])]


def test_read_cometa_of_quotes_with_tabs_and_line_ends(tmp_path: Path) -> None:
    path = write(tmp_path / "dev.csv", COMETA + QUOTED + ROW)
    spans = [document.mentions[0] for document in read_cometa(path)]
    assert [(span.mention, span.line) for span in spans] == [
        ("sick", 2),
        ("heart racing", 4),
    ]


def test_read_askapatient_has_a_document_without_text_for_each_line(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "AskAPatient.fold-0.test.txt", f"\n{ASKAPATIENT}")
    span = GoldMention(-1, -1, "", "bit drowsy", [["271782001"]], 2)
    assert list(read_askapatient(path)) == [GoldDocument("2", "", [span])]


def test_read_askapatient_reads_the_file_of_fold_and_split(tmp_path: Path) -> None:
    write(tmp_path / "AskAPatient.fold-0.test.txt", ASKAPATIENT)
    write(tmp_path / "AskAPatient.fold-9.train.txt", ASKAPATIENT * 3)
    assert len(list(read_askapatient(tmp_path))) == 1
    assert len(list(read_askapatient(tmp_path, fold=9, split="train"))) == 3
    with pytest.raises(SapbertError, match="fold-3.validation.txt"):
        list(read_askapatient(tmp_path, fold=3, split="validation"))


@pytest.mark.parametrize(
    ("format", "text", "line", "code"),
    [
        ("xlbel", f"{XLBEL}C0000001", 2, "E117"),
        ("xlbel", f"{XLBEL}fiebre||C0000001", 2, "E117"),
        ("xlbel", f"{XLBEL}C0000001|| ", 2, "E117"),
        ("xlbel", f"{XLBEL}C0000001||fiebre||Tiene fiebre .", 2, "E117"),
        ("xlbel", f"{XLBEL}C0000001||fiebre||Tiene <tgt>fiebre .", 2, "E117"),
        ("xlbel", f"{XLBEL}C0000001||fiebre||A </tgt>fiebre<tgt> .", 2, "E117"),
        ("xlbel", f"{XLBEL}C0000001||fiebre||{'<tgt>fiebre</tgt> y' * 2}", 2, "E117"),
        ("xlbel", f"{XLBEL}C0000001||fiebre||Tiene <tgt>tos</tgt>", 2, "E117"),
        ("cometa", "Term\tID\nsick\t1\n", 1, "E117"),
        ("cometa", f"{COMETA}{ROW}1\t18\tsick\t1\n", 3, "E117"),
        ("cometa", COMETA + ROW + ROW.replace("heart racing", " "), 3, "E117"),
        ("cometa", COMETA + ROW + QUOTED.replace('left."', "left."), 3, "E117"),
        ("cometa", COMETA + QUOTED + QUOTED.replace('left."', 'left."x'), 4, "E117"),
        ("askapatient", f"{ASKAPATIENT}1\tDrowsy\n", 2, "E117"),
        ("askapatient", f"{ASKAPATIENT}1\tDrowsy\t \n", 2, "E117"),
    ],
)
def test_research_corpus_with_a_bad_line_names_it_without_its_text(
    tmp_path: Path, format: str, text: str, line: int, code: str
) -> None:
    path = write(tmp_path / "table.txt", text)
    with pytest.raises(SapbertError, match=code) as error:
        list(READERS[format](path))
    assert f"{path}:{line}:" in str(error.value)
    assert not any(word in str(error.value) for word in ("fiebre", "sick", "Drowsy"))


@pytest.mark.parametrize(
    ("format", "options", "error"),
    [
        ("cometa", {"level": "exact"}, r"E331.*level.*'exact'"),
        ("askapatient", {"fold": 10}, r"E331.*fold"),
        ("askapatient", {"split": "dev"}, r"E331.*'dev'"),
    ],
)
def test_read_corpus_of_an_unknown_part_is_an_error(
    tmp_path: Path, format: str, options: dict[str, Any], error: str
) -> None:
    with pytest.raises(SapbertError, match=error):
        list(READERS[format](tmp_path, **options))


def test_convert_corpus_writes_a_table_that_evaluate_reads(tmp_path: Path) -> None:
    path, output = write(tmp_path / "dev.csv", COMETA + ROW), tmp_path / "dev.tsv"
    words = ["convert-corpus", path, "--format", "cometa", "--level", "specific"]
    shown = invoke(*words, "--prefix", "S:", "--output", output, app=app, code=0)
    assert "written" in shown.output
    (document,) = read_corpus(output)
    assert [(m.mention, m.parts) for m in document.mentions] == [
        ("heart racing", [["S:3424008"]])
    ]
