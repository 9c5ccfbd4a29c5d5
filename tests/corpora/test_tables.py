from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.corpora.registry import GoldDocument, GoldSpan, read_corpus
from spacy_sapbert.corpora.tables import (
    read_askapatient,
    read_biosyn_concepts,
    read_cometa,
    read_tsv,
    read_xlbel,
)
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.gold_mentions import read_mentions

TSV = "doc\tstart\tend\tlang\ttype\tmention\tids\n"
XLBEL = "C0000001||calor\n"
COMETA = (
    "\tID\tTerm\tGeneral SNOMED ID\tGeneral SNOMED Label\tSpecific SNOMED ID\t"
    "Specific SNOMED Label\tExample\n"
)
ROW = "0\t17\theart racing\t80313002\tPalpitations\t3424008\tTachycardia\tIt raced.\n"
QUOTED = '1\t18\tsick\t1\tIll\t2\tNausea\t"He said ""sick"".\nThen\tleft."\n'
BIOSYN = "7||154|171||DiseaseClass||enzyme deficiency||D008661\n"
ASKAPATIENT = "271782001\tDrowsy\tbit drowsy\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf8")
    return path


def test_read_tsv_joins_lines_of_a_document(tmp_path: Path) -> None:
    rows = "d1\t0\t2\ten\tDisease\tMI\tC1|C2\nd1\t\t\ten\t\tfever\t\n\n"
    path = write(tmp_path / "gold.tsv", f"{TSV}{rows}d2\t-1\t-1\ten\t\tboth\tA+B\n")
    one, other = read_tsv(path)
    assert one.id == "d1"
    assert one.text == ""
    assert one.spans == [
        GoldSpan(0, 2, "Disease", "MI", [["C1", "C2"]], 2),
        GoldSpan(-1, -1, "", "fever", [], 3),
    ]
    assert other.spans == [GoldSpan(-1, -1, "", "both", [["A"], ["B"]], 5)]


def test_read_tsv_of_one_language(tmp_path: Path) -> None:
    rows = "d1\t\t\ten\t\tfever\tC1\nd2\t\t\tes\t\tfiebre\tC1\n"
    path = write(tmp_path / "gold.tsv", TSV + rows)
    (document,) = read_tsv(path, language="es")
    assert [span.mention for span in document.spans] == ["fiebre"]
    with pytest.raises(SapbertError, match="E105.*the languages there are en, es"):
        list(read_tsv(path, language="fi"))
    bare = write(tmp_path / "bare.tsv", "mention\tids\nfever\tC1\n")
    with pytest.raises(SapbertError, match="E105.*are none"):
        list(read_tsv(bare, language="en"))


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("mention\tids\nboth\tA|B\n", {}, [("both", [["A", "B"]])]),
        (
            "mention\tids\nboth\tA|B\n",
            {"bars_join_parts": True},
            [("both", [["A"], ["B"]])],
        ),
        ("fever||C1\npain||C2\n", {}, [("fever", [["C1"]]), ("pain", [["C2"]])]),
    ],
)
def test_read_tsv_without_documents_has_one(
    text: str, options: dict[str, bool], expected: list[Any], tmp_path: Path
) -> None:
    (document,) = read_tsv(write(tmp_path / "gold.tsv", text), **options)
    assert [(span.mention, span.parts) for span in document.spans] == expected


def test_read_tsv_of_real_tables_equals_read_mentions(data_folder: Path) -> None:
    for path in sorted(data_folder.glob("eval/*disease.dev.tsv.gz")):
        spans = [span for each in read_corpus(path, "tsv") for span in each.spans]
        golds = [(gold.mention, gold.parts) for gold in read_mentions(path)]
        assert [(span.mention, span.parts) for span in spans] == golds
        assert all(span.start >= 0 for span in spans)


def test_read_biosyn_concepts_of_a_folder_has_a_file_for_each_document(
    tmp_path: Path,
) -> None:
    with pytest.raises(SapbertError, match="E108"):
        list(read_biosyn_concepts(tmp_path))
    path = write(tmp_path / "7.concept", BIOSYN)
    write(tmp_path / "12.concept", "")
    write(tmp_path / "7.txt", "7|t|Not looked at.")
    span = GoldSpan(154, 171, "DiseaseClass", "enzyme deficiency", [["D008661"]], 1)
    assert list(read_biosyn_concepts(tmp_path)) == [
        GoldDocument("12", "", []),
        GoldDocument("7", "", [span]),
    ]
    assert list(read_biosyn_concepts(path)) == [GoldDocument("7", "", [span])]


@pytest.mark.parametrize(
    ("mention", "ids", "options", "expected"),
    [
        ("fever", "D1|OMIM:2", {}, [("fever", [["D1", "OMIM:2"]])]),
        ("fever", "D1+D2", {}, [("fever", [["D1"], ["D2"]])]),
        ("fever", "-1", {}, [("fever", [])]),
        ("fever", "CUI-less", {}, [("fever", [])]),
        # a composite is split if there are as many ids
        ("cough|fever", "D1|D2", {}, [("cough", [["D1"]]), ("fever", [["D2"]])]),
        (
            "cough|fever",
            "D1|D2",
            {"split_composites": False},
            [("cough|fever", [["D1", "D2"]])],
        ),
        (
            "cough|fever",
            "D1|D2",
            {"split_composites": False, "bars_join_parts": True},
            [("cough|fever", [["D1"], ["D2"]])],
        ),
    ],
)
def test_read_biosyn_concepts_of_ids_and_composites(
    mention: str,
    ids: str,
    options: dict[str, bool],
    expected: list[Any],
    tmp_path: Path,
) -> None:
    line = f"7||-1|-1||Disease||{mention}||{ids}\n"
    (document,) = read_biosyn_concepts(write(tmp_path / "7.concept", line), **options)
    assert [(span.mention, span.parts) for span in document.spans] == expected
    assert {span.start for span in document.spans} == {-1}


def test_read_xlbel_of_ids_and_mention(tmp_path: Path) -> None:
    path = write(tmp_path / "es.txt", "C0000001||fiebre\n\nC0000002|C0000003||tos\n")
    assert list(read_xlbel(path)) == [
        GoldDocument("1", "", [GoldSpan(-1, -1, "", "fiebre", [["C0000001"]], 1)]),
        GoldDocument(
            "3", "", [GoldSpan(-1, -1, "", "tos", [["C0000002", "C0000003"]], 3)]
        ),
    ]


def test_read_xlbel_of_a_context_has_its_text(tmp_path: Path) -> None:
    line = "C0000001||fiebre||Tiene  <tgt>fiebre</tgt> || y tos .\n"
    (document,) = read_xlbel(write(tmp_path / "es.txt", line))
    (span,) = document.spans
    assert document.text == "Tiene  fiebre || y tos ."
    assert document.text[span.start : span.end] == span.mention == "fiebre"


@pytest.mark.parametrize("lang", ["es", "ru"])
@pytest.mark.parametrize("ending", ["", "_with_context"])
def test_read_xlbel_of_real_files_has_a_thousand_mentions(
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


def test_read_xlbel_of_a_real_file_equals_its_table(data_folder: Path) -> None:
    queries = data_folder / "eval-text" / "es_1k_test_query.txt.gz"
    table = data_folder / "eval" / "xlbel_es.test.tsv.gz"
    pairs = [
        [(span.mention, span.parts) for each in documents for span in each.spans]
        for documents in (read_corpus(queries, "xlbel"), read_corpus(table, "tsv"))
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
    span = GoldSpan(-1, -1, "", "heart racing", [[cui]], 2)
    assert list(read_cometa(path, **options)) == [GoldDocument("17", "", [span])]


def test_read_cometa_of_quotes_with_tabs_and_line_ends(tmp_path: Path) -> None:
    path = write(tmp_path / "dev.csv", COMETA + QUOTED + ROW)
    spans = [document.spans[0] for document in read_cometa(path)]
    assert [(span.mention, span.line) for span in spans] == [
        ("sick", 2),
        ("heart racing", 4),
    ]


def test_read_askapatient_has_a_document_without_text_for_each_line(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "AskAPatient.fold-0.test.txt", f"\n{ASKAPATIENT}")
    span = GoldSpan(-1, -1, "", "bit drowsy", [["271782001"]], 2)
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
        *[
            ("tsv", f"{TSV}d1\t{place}\ten\t\tfiebre\tC1\n", 2, "E117")
            for place in ("5\t5", "x\t5", "5\t", "-1\t5", "1.0\t5", "٣\t5")
        ],
        *[
            ("biosyn", f"{BIOSYN}7||{line}", 2, code)
            for line, code in (
                ("1|2||Disease||fiebre", "E117"),
                ("1|2||Disease||fiebre||D1||D2", "E117"),
                ("1||Disease||fiebre||D1", "E117"),
                ("2|1||Disease||fiebre||D1", "E117"),
                ("1|2||Disease||||D1", "E117"),
                ("1|2||Disease||fiebre| ||D1|D2", "E117"),
            )
        ],
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
        ("cometa", COMETA + ROW + QUOTED.replace('left."', "left."), 4, "E117"),
        ("cometa", COMETA + QUOTED + QUOTED.replace('left."', 'left."x'), 5, "E117"),
        ("askapatient", f"{ASKAPATIENT}1\tDrowsy\n", 2, "E117"),
        ("askapatient", f"{ASKAPATIENT}1\tDrowsy\t \n", 2, "E117"),
    ],
)
def test_read_corpus_with_a_bad_line_names_it_without_its_text(
    tmp_path: Path, format: str, text: str, line: int, code: str
) -> None:
    path = write(tmp_path / "table.txt", text)
    with pytest.raises(SapbertError, match=code) as error:
        list(read_corpus(path, format))
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
        list(read_corpus(tmp_path, format, **options))
