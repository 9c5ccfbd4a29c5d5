"""What the printer of the commands writes."""

import pytest

from spacy_sapbert.io.terminal import msg


def test_table_aligns_the_values_of_long_labels(
    capsys: pytest.CaptureFixture[str],
) -> None:
    label = "Documents that came twice, or were taught before"
    msg.table([("Documents", "3"), (label, "1")], aligns=("l", "r"))
    lines = capsys.readouterr().out.strip("\n").splitlines()
    assert [line.rstrip() for line in lines] == [
        f"{'Documents':<{len(label)}}   3",
        f"{label}   1",
    ]
