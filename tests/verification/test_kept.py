"""What was verified for an output: its lock, its contents, and who may read it."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.tables.files import write_table
from spacy_sapbert.verification import kept
from spacy_sapbert.verification.kept import ENDING, open_kept
from spacy_sapbert.verification.verdicts import Verdict
from spacy_sapbert.verification.verified_tables import PairColumns, verify_table

PAIR = ("Fever", "C0000004", "", "")
OTHER = ("Fever", "C0000001", "", "")
VERDICT = Verdict("near", 0.5, "C0000004", meant=("a", "b"))
COLUMNS = PairColumns("term", "code")


def stop(output: Path, *, digest: str = "x") -> Path:
    """Keep a verdict, as a run that is stopped does, and return the file."""
    with suppress(KeyboardInterrupt), open_kept(output, digest) as verdicts:
        verdicts.add({PAIR: VERDICT})
        raise KeyboardInterrupt
    return output.with_name(output.name + ENDING)


def test_kept_verdicts_are_those_of_this_version_and_knowledge_base(
    tmp_path, monkeypatch
):
    path = stop(tmp_path / "out.csv")
    for digest, version, known in (
        ("y", None, {}),
        ("x", "0.0.0", {}),
        ("x", None, {PAIR: VERDICT}),
    ):
        with monkeypatch.context() as patch, suppress(RuntimeError):
            if version:
                patch.setattr(kept, "__version__", version)
            with open_kept(tmp_path / "out.csv", digest) as verdicts:
                assert verdicts.find([PAIR, OTHER]) == known
                raise RuntimeError
    with open_kept(tmp_path / "out.csv", "x"):
        assert path.exists()
    assert not [*tmp_path.iterdir()]


def test_two_runs_with_one_output_are_an_error(kb, tmp_path):
    write_table(tmp_path / "in.csv", ["term", "code"], [["Fever", "C0000004"]])
    output = tmp_path / "out.csv"
    with open_kept(output, "x") as verdicts:
        verdicts.add({PAIR: VERDICT})
        with pytest.raises(SapbertError, match="E550.*no other run"):
            verify_table(kb, tmp_path / "in.csv", output, COLUMNS)
        assert verdicts.find([PAIR]) == {PAIR: VERDICT}


def test_only_the_owner_can_read_what_is_kept(tmp_path):
    mask = os.umask(0)
    try:
        path = stop(tmp_path / "out.csv")
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o644)
        assert stop(tmp_path / "out.csv", digest="y").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(mask)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no such pipes")
def test_links_are_replaced_and_pipes_refused(tmp_path):
    victim, path = tmp_path / "victim", tmp_path / f"out.csv{ENDING}"
    for content in (b"", b"text"):
        victim.write_bytes(content)
        path.symlink_to(victim)
        stop(tmp_path / "out.csv")
        assert victim.read_bytes() == content
        assert path.is_file()
        assert not path.is_symlink()
        path.unlink()
    os.mkfifo(path)
    with pytest.raises(SapbertError, match="E003"), open_kept(tmp_path / "out.csv", ""):
        pytest.fail("it was opened")


@pytest.mark.parametrize(
    "content", [b"text of a person " * 99, b"SQLite format 3\0" * 99]
)
def test_another_file_is_an_error_and_stays(tmp_path, content):
    (tmp_path / f"out.csv{ENDING}").write_bytes(content)
    check_unreadable(tmp_path / "out.csv")


def check_unreadable(output: Path) -> None:
    path = output.with_name(output.name + ENDING)
    before = path.read_bytes()
    with suppress(RuntimeError), open_kept(output, "x") as verdicts:
        with pytest.raises(SapbertError, match=r"E560.*out\.csv\.verified"):
            verdicts.find([PAIR])
        raise RuntimeError
    assert path.read_bytes() == before


def test_a_wrong_column_leaves_nothing(kb, tmp_path):
    write_table(tmp_path / "in.csv", ["term", "code"], [["Fever", "C0000004"]])
    columns = PairColumns("term", "id")
    with pytest.raises(SapbertError, match="E410"):
        verify_table(kb, tmp_path / "in.csv", tmp_path / "out.csv", columns)
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]
