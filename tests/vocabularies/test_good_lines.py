from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.registry import read_vocabulary
from spacy_sapbert.vocabularies.report import Report, read_good_lines


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "lines"
    path.write_bytes(b"a\n\nb\xff\nc\n")
    return path


def test_read_good_lines_yields_lines_with_numbers(path: Path) -> None:
    report = Report()
    lines = list(read_good_lines(path, on_error="skip", report=report))
    assert lines == [(1, "a"), (2, ""), (4, "c")]
    assert report.rows == {"lines": 4}
    assert report.dropped == {"lines that are not UTF-8": 1}


def test_read_good_lines_invalid_utf8_is_an_error_with_the_line(path: Path) -> None:
    with pytest.raises(SapbertError, match=r"lines:3: Expected UTF-8.* offset 1 "):
        list(read_good_lines(path, on_error="fail", report=Report()))


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("x.obo", b"[Term]\nid: X:1\nname: a\n", b'synonym: "\xff" EXACT []\n'),
        ("x.txt", b"X:1||a\n", b"X:2||\xff\n"),
        (
            "x.jsonl",
            b'{"cui": "X:1", "name": "a"}\n',
            b'{"cui": "X:2", "name": "\xff"}\n',
        ),
    ],
)
def test_read_good_lines_counts_invalid_utf8_in_every_format(
    tmp_path: Path, name: str, good: bytes, bad: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(good + bad)
    report = Report()
    options: Any = {"on_error": "skip", "report": report}
    (concept,) = read_vocabulary(path, **options)
    assert (concept.cui, concept.aliases) == ("X:1", ["a"])
    assert report.dropped["lines that are not UTF-8"] == 1
    with pytest.raises(SapbertError, match="E009"):
        list(read_vocabulary(path))
