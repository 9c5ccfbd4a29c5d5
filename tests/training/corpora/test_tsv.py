from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.gold_mentions import read_mentions
from training.corpora.registry import GoldSpan, read_corpus
from training.corpora.tsv import read_tsv

HEADER = "doc\tstart\tend\tlang\ttype\tmention\tids\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf8")
    return path


def test_read_tsv_joins_lines_of_a_document(tmp_path: Path) -> None:
    rows = "d1\t0\t2\ten\tDisease\tMI\tC1|C2\nd1\t\t\ten\t\tfever\t\n\n"
    path = write(tmp_path / "gold.tsv", f"{HEADER}{rows}d2\t-1\t-1\ten\t\tboth\tA+B\n")
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
    path = write(tmp_path / "gold.tsv", HEADER + rows)
    (document,) = read_tsv(path, language="es")
    assert [span.mention for span in document.spans] == ["fiebre"]
    with pytest.raises(SapbertError, match="E724.*the languages there are en, es"):
        list(read_tsv(path, language="fi"))
    bare = write(tmp_path / "bare.tsv", "mention\tids\nfever\tC1\n")
    with pytest.raises(SapbertError, match="E724.*are none"):
        list(read_tsv(bare, language="en"))


def test_read_tsv_with_bars_joining_parts(tmp_path: Path) -> None:
    path = write(tmp_path / "gold.tsv", "mention\tids\nboth\tA|B\n")
    (document,) = read_tsv(path, bars_join_parts=True)
    assert document.spans[0].parts == [["A"], ["B"]]


def test_read_tsv_of_mention_and_id_is_one_document(tmp_path: Path) -> None:
    path = write(tmp_path / "gold.txt", "fever||C1\npain||C2\n")
    (document,) = read_tsv(path)
    assert [span.mention for span in document.spans] == ["fever", "pain"]


@pytest.mark.parametrize("place", ["5\t5", "x\t5", "5\t", "-1\t5", "1.0\t5", "٣\t5"])
def test_read_tsv_names_the_line_of_bad_offsets(tmp_path: Path, place: str) -> None:
    row = f"d1\t{place}\ten\t\tfever\tC1\n"
    path = write(tmp_path / "gold.tsv", HEADER + row)
    with pytest.raises(SapbertError, match="E714") as error:
        list(read_tsv(path))
    assert f"{path}:2:" in str(error.value)
    assert "fever" not in str(error.value)


def test_read_tsv_of_real_tables_equals_read_mentions(data_folder: Path) -> None:
    for path in sorted(data_folder.glob("eval/*disease.dev.tsv.gz")):
        spans = [span for each in read_corpus(path, "tsv") for span in each.spans]
        golds = [(gold.mention, gold.parts) for gold in read_mentions(path)]
        assert [(span.mention, span.parts) for span in spans] == golds
        assert all(span.start >= 0 for span in spans)
