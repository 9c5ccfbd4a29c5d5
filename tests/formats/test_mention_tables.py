from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.gold_mentions import (
    read_mentions,
)
from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.formats.gold import GoldDocument, GoldMention
from spacy_sapbert.formats.mention_tables import read_biosyn, read_tsv

TSV = "doc\tstart\tend\tlang\ttype\tmention\tids\n"
BIOSYN = "7||154|171||DiseaseClass||enzyme deficiency||D008661\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf8")
    return path


def test_read_tsv_joins_lines_of_a_document(tmp_path: Path) -> None:
    rows = "d1\t0\t2\ten\tDisease\tMI\tC1|C2\nd1\t\t\ten\t\tfever\t\n\n"
    path = write(tmp_path / "gold.tsv", f"{TSV}{rows}d2\t-1\t-1\ten\t\tboth\tA+B\n")
    one, other = read_tsv(path)
    assert one.id == "d1"
    assert one.text == ""
    assert one.mentions == [
        GoldMention(0, 2, "Disease", "MI", [["C1", "C2"]], 2),
        GoldMention(-1, -1, "", "fever", [], 3),
    ]
    assert other.mentions == [GoldMention(-1, -1, "", "both", [["A"], ["B"]], 5)]


def test_read_tsv_of_one_language(tmp_path: Path) -> None:
    rows = "d1\t\t\ten\t\tfever\tC1\nd2\t\t\tes\t\tfiebre\tC1\n"
    path = write(tmp_path / "gold.tsv", TSV + rows)
    (document,) = read_tsv(path, language="es")
    assert [span.mention for span in document.mentions] == ["fiebre"]
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
    assert [(m.mention, m.parts) for m in document.mentions] == expected


def test_read_tsv_of_real_tables_equals_read_mentions(data_folder: Path) -> None:
    for path in sorted(data_folder.glob("eval/*disease.dev.tsv.gz")):
        spans = [span for each in read_corpus(path, "tsv") for span in each.mentions]
        golds = [(gold.mention, gold.parts) for gold in read_mentions(path)]
        assert [(span.mention, span.parts) for span in spans] == golds
        assert all(span.start >= 0 for span in spans)


def test_read_biosyn_of_a_folder_has_a_file_for_each_document(
    tmp_path: Path,
) -> None:
    with pytest.raises(SapbertError, match="E108"):
        list(read_biosyn(tmp_path))
    path = write(tmp_path / "7.concept", BIOSYN)
    write(tmp_path / "12.concept", "")
    write(tmp_path / "7.txt", "7|t|Not looked at.")
    span = GoldMention(154, 171, "DiseaseClass", "enzyme deficiency", [["D008661"]], 1)
    assert list(read_biosyn(tmp_path)) == [
        GoldDocument("12", "", []),
        GoldDocument("7", "", [span]),
    ]
    assert list(read_biosyn(path)) == [GoldDocument("7", "", [span])]


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
def test_read_biosyn_of_ids_and_composites(
    mention: str,
    ids: str,
    options: dict[str, bool],
    expected: list[Any],
    tmp_path: Path,
) -> None:
    line = f"7||-1|-1||Disease||{mention}||{ids}\n"
    (document,) = read_biosyn(write(tmp_path / "7.concept", line), **options)
    assert [(m.mention, m.parts) for m in document.mentions] == expected
    assert {span.start for span in document.mentions} == {-1}


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
