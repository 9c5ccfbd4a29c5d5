from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from training.corpora.cometa import read_cometa
from training.corpora.registry import GoldDocument, GoldSpan

HEADER = (
    "\tID\tTerm\tGeneral SNOMED ID\tGeneral SNOMED Label\tSpecific SNOMED ID\t"
    "Specific SNOMED Label\tExample\n"
)
ROW = "0\t17\theart racing\t80313002\tPalpitations\t3424008\tTachycardia\tIt raced.\n"
QUOTED = '1\t18\tsick\t1\tIll\t2\tNausea\t"He said ""sick"".\nThen\tleft."\n'


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf8")
    return path


def read(path: Path, **options: Any) -> list[GoldDocument]:
    return list(read_cometa(path, **options))


def test_read_cometa_a_row_is_a_document_without_text(tmp_path: Path) -> None:
    path = write(tmp_path / "dev.csv", HEADER + ROW)
    span = GoldSpan(-1, -1, "", "heart racing", [["80313002"]], 2)
    assert read(path) == [GoldDocument("17", "", [span])]


@pytest.mark.parametrize(
    ("level", "cui"), [("general", "80313002"), ("specific", "3424008")]
)
def test_read_cometa_the_level_chooses_the_ids(
    tmp_path: Path, level: str, cui: str
) -> None:
    path = write(tmp_path / "dev.csv", HEADER + ROW)
    assert read(path, level=level)[0].spans[0].parts == [[cui]]


def test_read_cometa_quotes_may_hold_tabs_and_line_ends(tmp_path: Path) -> None:
    path = write(tmp_path / "dev.csv", HEADER + QUOTED + ROW)
    spans = [document.spans[0] for document in read(path)]
    assert [(span.mention, span.line) for span in spans] == [
        ("sick", 2),
        ("heart racing", 4),
    ]


@pytest.mark.parametrize(
    ("text", "line", "code"),
    [
        ("Term\tID\nsick\t1\n", 1, "E718"),
        (HEADER + ROW + "1\t18\tsick\t1\n", 3, "E703"),
        (HEADER + ROW + ROW.replace("heart racing", " "), 3, "E704"),
        (HEADER + ROW + QUOTED.replace('left."', "left."), 3, "E717"),
        (HEADER + QUOTED + QUOTED.replace('left."', 'left."x'), 4, "E717"),
    ],
)
def test_read_cometa_a_bad_row_is_named_and_not_quoted(
    tmp_path: Path, text: str, line: int, code: str
) -> None:
    path = write(tmp_path / "dev.csv", text)
    with pytest.raises(SapbertError, match=code) as error:
        read(path)
    assert f"{path}:{line}:" in str(error.value)
    assert "sick" not in str(error.value)


def test_read_cometa_an_unknown_level_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SapbertError, match=r"level.*'exact'"):
        read(tmp_path / "dev.csv", level="exact")
