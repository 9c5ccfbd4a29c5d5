"""A save is all or nothing: killed, or out of disk, at any moment."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.kb.opening import load_kb
from spacy_sapbert.system.writing import write_folder_atomically

COPY = """
import resource, signal, sys
from pathlib import Path
from spacy_sapbert import load_kb
from spacy_sapbert.kb.folder.copying import copy_kb
limit = int(sys.argv[3])
kb = load_kb(sys.argv[1])
if limit:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
while True:
    copy_kb(kb, Path(sys.argv[2]))
    if limit:
        break
    print("saved", flush=True)
"""


Contents = Callable[[Path], dict[Path, bytes]]


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.01, 0.03])
def test_copy_kb_killed_leaves_a_complete_kb(
    sample_kb: Path, own_kb: Path, contents: Contents, delay: float
) -> None:
    before = contents(own_kb)
    command = [sys.executable, "-c", COPY, str(sample_kb), str(own_kb), "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout
    assert process.stdout.readline() == b"saved\n"
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL  # it was still saving
    assert contents(own_kb) == before  # the old or the new one, which are equal
    load_kb(own_kb)


@pytest.mark.parametrize("limit", [1, 5_000, 60_000])
def test_copy_kb_on_a_full_disk_is_an_error_and_leaves_the_old_kb(
    sample_kb: Path, own_kb: Path, contents: Contents, run_python: Any, limit: int
) -> None:
    (own_kb / "note.txt").write_text("only in the old one", "utf8")
    before = contents(own_kb)
    largest = max(len(data) for data in contents(sample_kb).values())
    assert limit < largest
    done = run_python(COPY, sample_kb, own_kb, limit)
    assert done.returncode == 1
    assert "E004" in done.stderr
    assert "Nothing was left" in done.stderr
    assert contents(own_kb) == before
    assert [path.name for path in own_kb.parent.iterdir()] == ["kb"]


def test_write_folder_atomically_renames_a_complete_folder(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    with write_folder_atomically(target) as part:
        (part / "a").write_text("1", "utf8")
        assert not target.exists()
    assert (target / "a").read_text("utf8") == "1"
    with write_folder_atomically(target) as part:
        (part / "b").write_text("2", "utf8")
        assert (target / "a").exists()
    assert [path.name for path in target.iterdir()] == ["b"]
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def fill_and_fail(folder: Path) -> None:
    with write_folder_atomically(folder) as part:
        (part / "a").write_text("1", "utf8")
        raise RuntimeError


def test_write_folder_atomically_failure_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        fill_and_fail(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []
