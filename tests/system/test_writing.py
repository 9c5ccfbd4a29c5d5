import gzip
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.system.writing import remove_folder, write_atomically

WRITE = """
import resource, signal, sys
from pathlib import Path
from spacy_sapbert.system.writing import write_atomically
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
with write_atomically(Path(sys.argv[1])) as file:
    for _ in range(100):
        file.write(bytes(1000))
"""
HANG = """
import sys, time
from pathlib import Path
from spacy_sapbert.system.writing import write_atomically
with write_atomically(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("ready", flush=True)
    time.sleep(60)
"""


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def write_and_fail(path: Path) -> None:
    with write_atomically(path) as file:
        file.write(b"new")
        raise RuntimeError


def test_write_atomically_renames_a_complete_file(tmp_path: Path) -> None:
    path = write(tmp_path / "x", b"old")
    with write_atomically(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_write_atomically_failure_leaves_only_the_old_file(tmp_path: Path) -> None:
    path = write(tmp_path / "x", b"old")
    with pytest.raises(RuntimeError):
        write_and_fail(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["x", "x.gz"])
@pytest.mark.parametrize("limit", [1, 20])
def test_write_atomically_full_disk_is_an_error_and_leaves_the_old_file(
    tmp_path: Path, run_python: Any, name: str, limit: int
) -> None:
    path = write(tmp_path / name, b"old")
    done = run_python(WRITE, path, limit)
    assert "E004" in done.stderr
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_write_atomically_killed_leaves_the_old_file(tmp_path: Path) -> None:
    path = write(tmp_path / "x", b"old")
    command = [sys.executable, "-c", HANG, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert path.read_bytes() == b"old"


def test_write_atomically_removes_files_of_a_killed_writer(tmp_path: Path) -> None:
    path = tmp_path / "x[1]"
    command = [sys.executable, "-c", HANG, str(path)]
    killed, alive = (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)
    )
    for process in (killed, alive):
        assert process.stdout is not None
        process.stdout.readline()
    assert len(list(tmp_path.iterdir())) == 2
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    folder = tmp_path / ".x[1].7.tmp"
    folder.mkdir()
    write(folder / "y", b"half")
    with write_atomically(path) as file:
        file.write(b"new")
    left = {each.name for each in tmp_path.iterdir()}
    assert left == {path.name, f".x[1].{alive.pid}.tmp"}
    assert not folder.exists()
    alive.kill()
    alive.communicate()
    remove_folder(path)
    assert not list(tmp_path.glob(".*"))


def test_write_atomically_folder_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "x", b"")
    path = tmp_path / "x" / "y"
    with pytest.raises(SapbertError, match="E004"), write_atomically(path):
        pass


def test_write_atomically_compressed_file_is_reproducible(tmp_path: Path) -> None:
    written = []
    for name in ("x.gz", "y.gz"):
        with write_atomically(tmp_path / name) as file:
            file.write(b"a\n" * 1000)
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]
    assert gzip.decompress(written[0]) == b"a\n" * 1000
