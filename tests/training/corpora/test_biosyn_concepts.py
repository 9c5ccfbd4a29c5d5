from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from training.corpora.biosyn_concepts import read_biosyn_concepts
from training.corpora.registry import GoldSpan

PLAIN = "7||154|171||DiseaseClass||enzyme deficiency||D008661\n"
COMPOSITE = "7||5|30||CompositeMention||breast cancer|ovarian cancer||D1|D2\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf8")
    return path


def read(path: Path, **options: Any) -> list[GoldSpan]:
    return [
        span for each in read_biosyn_concepts(path, **options) for span in each.spans
    ]


def test_read_biosyn_concepts_a_folder_has_a_file_for_each_document(
    tmp_path: Path,
) -> None:
    write(tmp_path / "7.concept", PLAIN)
    write(tmp_path / "12.concept", "")
    write(tmp_path / "7.txt", "7|t|Not looked at.")
    documents = list(read_biosyn_concepts(tmp_path))
    assert [(each.id, each.text) for each in documents] == [("12", ""), ("7", "")]
    assert documents[1].spans == [
        GoldSpan(154, 171, "DiseaseClass", "enzyme deficiency", [["D008661"]], 1)
    ]


def test_read_biosyn_concepts_a_file_is_a_corpus_too(tmp_path: Path) -> None:
    (document,) = read_biosyn_concepts(write(tmp_path / "7.concept", PLAIN))
    assert document.id == "7"


def test_read_biosyn_concepts_a_composite_is_split_if_there_are_as_many_ids(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "7.concept", COMPOSITE)
    assert read(path) == [
        GoldSpan(-1, -1, "CompositeMention", "breast cancer", [["D1"]], 1),
        GoldSpan(-1, -1, "CompositeMention", "ovarian cancer", [["D2"]], 1),
    ]


def test_read_biosyn_concepts_a_composite_stays_whole_on_demand(tmp_path: Path) -> None:
    path = write(tmp_path / "7.concept", COMPOSITE)
    (span,) = read(path, split_composites=False)
    assert span.mention == "breast cancer|ovarian cancer"
    assert span.parts == [["D1", "D2"]]
    (span,) = read(path, split_composites=False, bars_join_parts=True)
    assert span.parts == [["D1"], ["D2"]]


@pytest.mark.parametrize(
    ("ids", "parts"),
    [
        ("D1|OMIM:2", [["D1", "OMIM:2"]]),
        ("D1+D2", [["D1"], ["D2"]]),
        ("-1", []),
        ("CUI-less", []),
    ],
)
def test_read_biosyn_concepts_ids_of_one_mention(
    tmp_path: Path, ids: str, parts: list[list[str]]
) -> None:
    path = write(tmp_path / "7.concept", f"7||-1|-1||Disease||fever||{ids}\n")
    assert [(span.start, span.parts) for span in read(path)] == [(-1, parts)]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("7||1|2||Disease||fever", "E703"),
        ("7||1|2||Disease||fever||D1||D2", "E703"),
        ("7||1||Disease||fever||D1", "E714"),
        ("7||2|1||Disease||fever||D1", "E714"),
        ("7||1|2||Disease||||D1", "E704"),
        ("7||1|2||Disease||fever| ||D1|D2", "E704"),
    ],
)
def test_read_biosyn_concepts_a_bad_line_is_named_and_not_quoted(
    tmp_path: Path, line: str, code: str
) -> None:
    path = write(tmp_path / "7.concept", f"{PLAIN}{line}\n")
    with pytest.raises(SapbertError, match=code) as error:
        read(tmp_path)
    assert f"{path}:2:" in str(error.value)
    assert "fever" not in str(error.value)


def test_read_biosyn_concepts_a_folder_without_such_files_is_an_error(
    tmp_path: Path,
) -> None:
    with pytest.raises(SapbertError, match="E108"):
        read(tmp_path)
