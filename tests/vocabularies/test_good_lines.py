from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.report import Report, read_good_lines


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "lines"
    path.write_bytes(b"a\n\nb\xff\nc\n")
    return path


def test_read_good_lines_yields_lines_with_numbers(path: Path) -> None:
    report = Report(on_error="skip")
    assert list(read_good_lines(path, report)) == [(1, "a"), (4, "c")]
    assert report.rows == {"lines": 4}
    assert report.dropped == {"lines that are not UTF-8": 1, "blank lines": 1}
    assert list(read_good_lines(path, report, blank=True))[1] == (2, "")


def test_read_good_lines_invalid_utf8_is_an_error_with_the_line(path: Path) -> None:
    with pytest.raises(SapbertError, match=r"lines:3: Expected UTF-8.* offset 1 "):
        list(read_good_lines(path, Report()))
