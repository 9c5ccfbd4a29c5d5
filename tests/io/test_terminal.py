"""What commands print: tables, progress, and nothing that steers a terminal."""

import pytest

from spacy_sapbert.io import progress
from spacy_sapbert.io.progress import format_count, format_time, show_progress
from spacy_sapbert.io.terminal import printable


@pytest.mark.parametrize("total", [None, 4])
def test_show_progress_without_a_terminal_writes_lines(total, capsys, monkeypatch):
    monkeypatch.setattr(progress, "LINE_SECONDS", 1e-6)
    with show_progress(unit="names", total=total, desc="Index") as bar:
        bar.update(3)
        bar.set_postfix_str("loss 0.5", refresh=False)
        bar.update(1)
    lines = capsys.readouterr().err.splitlines()
    assert [line.endswith(", loss 0.5") for line in lines] == [False, True]
    of_all = "" if total is None else " of 4"
    starts = [line.partition(" names")[0] for line in lines]
    assert starts == [f"Index: 3{of_all}", f"Index: 4{of_all}"]
    assert all(" names/s" in line and "\r" not in line for line in lines)
    assert all(("left" in line) is (total is not None) for line in lines)


def test_format_count_and_time():
    counts = [(0, "entity"), (2_000, "document")]
    assert [format_count(*one) for one in counts] == ["0 entities", "2,000 documents"]
    times = [format_time(seconds) for seconds in (59.9, 125.2, 3_700)]
    assert times == ["59.9 s", "2 min 5 s", "1 h 1 min"]


def test_printable_keeps_joiners_and_blanks_of_other_scripts():
    for text in ("\u0645\u06cc\u200c\u0631\u0648\u062f", "\u6025\u6027\u3000\u708e"):
        assert printable(text) == text
    assert (
        printable("a\x1b[31mb\u202ec\x9bd\ud800") == "a\ufffd[31mb\ufffdc\ufffdd\ufffd"
    )
