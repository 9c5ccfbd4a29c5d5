"""What commands print: tables, progress, and nothing that steers a terminal."""

from spacy_sapbert.io.progress import format_count, format_time
from spacy_sapbert.io.terminal import printable


def test_format_count_and_time():
    counts = [(0, "entity"), (2_000, "document")]
    assert [format_count(*one) for one in counts] == ["0 entities", "2,000 documents"]
    times = [format_time(seconds) for seconds in (59.9, 60, 3_700)]
    assert times == ["59.9 s", "1 min 0 s", "1 h 1 min"]


def test_printable_keeps_joiners_and_blanks_of_other_scripts():
    for text in ("\u0645\u06cc\u200c\u0631\u0648\u062f", "\u6025\u6027\u3000\u708e"):
        assert printable(text) == text
    assert (
        printable("a\x1b[31mb\u202ec\x9bd\ud800") == "a\ufffd[31mb\ufffdc\ufffdd\ufffd"
    )
