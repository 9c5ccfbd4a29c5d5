"""A save is all or nothing: killed, or out of disk, at any moment."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.writing import FolderKind, write_folder_atomically
from spacy_sapbert.kb.knowledge_base import load_kb

COPY = """
import sys
from pathlib import Path
from spacy_sapbert import load_kb
from spacy_sapbert.kb.folder.publication import save_copy
kbs = [load_kb(name) for name in sys.argv[2:]]
while True:
    for kb in kbs:
        save_copy(kb, Path(sys.argv[1]))
    print("saved", flush=True)
"""


Contents = Callable[[Path], dict[Path, bytes]]


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.01, 0.03])
def test_save_copy_killed_leaves_a_complete_kb(
    sample_kb: Path,
    other_encoder_kb: Path,
    tmp_path: Path,
    delay: float,
    new_process: Any,
) -> None:
    target = tmp_path / "kb"
    process = new_process.start(
        [sys.executable, "-c", COPY, target, sample_kb, other_encoder_kb],
        stdout=new_process.PIPE,
    )
    assert process.stdout
    assert process.stdout.readline() == b"saved\n"
    time.sleep(delay)
    new_process.kill(process)
    digests = {load_kb(kb).manifest.digest for kb in (sample_kb, other_encoder_kb)}
    assert load_kb(target).manifest.digest in digests
    load_kb(target).load()


@pytest.mark.parametrize("limit", [1, 5_000, 60_000])
def test_save_copy_on_a_full_disk_is_an_error_and_leaves_the_old_kb(
    other_encoder_kb: Path,
    own_kb: Path,
    contents: Contents,
    new_process: Any,
    limit: int,
) -> None:
    before = contents(own_kb)
    largest = max(len(data) for data in contents(other_encoder_kb).values())
    assert limit < largest
    done = new_process.python(COPY, own_kb, other_encoder_kb, largest_file=limit)
    assert done.returncode == 1
    assert "E004" in done.stderr
    assert "Nothing was left" in done.stderr
    assert contents(own_kb) == before
    assert [path.name for path in own_kb.parent.iterdir()] == ["kb"]


FOLDER = FolderKind("a folder of this test", "a", ("a", "sub/b").__contains__)


def test_write_folder_atomically_renames_a_complete_folder(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    with write_folder_atomically(target, FOLDER) as part:
        (part / "a").write_text("1", "utf8")
        assert not target.exists()
    assert (target / "a").read_text("utf8") == "1"
    (target / ".a.x1.tmp").touch()  # of a killed writer
    with write_folder_atomically(target, FOLDER) as part:
        (part / "sub").mkdir()
        assert (target / "a").exists()
    assert [path.name for path in target.iterdir()] == ["sub"]
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize(
    "files", [["notes.csv"], ["a", "notes.csv"], ["a", "sub/notes.csv"], ["sub/b"]]
)
def test_write_folder_atomically_replaces_only_its_own_kind(
    tmp_path: Path, contents: Contents, files: list[str]
) -> None:
    target = tmp_path / "folder"
    for name in files:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text("of hours", "utf8")
    before = contents(target)
    with (
        pytest.raises(SapbertError, match=f"E003.*it has {files[-1]}"),
        write_folder_atomically(target, FOLDER),
    ):
        pytest.fail("nothing is made for a folder that is not replaced")
    assert contents(target) == before
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def put_a_file_meanwhile(target: Path) -> None:
    with write_folder_atomically(target, FOLDER) as part:
        (part / "a").touch()
        target.mkdir()
        (target / "notes.csv").touch()


def test_write_folder_atomically_checks_again_before_it_replaces(
    tmp_path: Path,
) -> None:
    with pytest.raises(SapbertError, match="E003"):
        put_a_file_meanwhile(tmp_path / "folder")
    assert [path.name for path in tmp_path.rglob("*")] == ["folder", "notes.csv"]


@pytest.mark.parametrize("name", [".", "..", "x/.."])
def test_write_folder_atomically_needs_a_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").mkdir()
    monkeypatch.chdir(tmp_path / "x")
    with (
        pytest.raises(SapbertError, match="E003"),
        write_folder_atomically(Path(name), FOLDER),
    ):
        pass


def fill_and_fail(folder: Path) -> None:
    with write_folder_atomically(folder, FOLDER) as part:
        (part / "a").write_text("1", "utf8")
        raise RuntimeError


def test_write_folder_atomically_failure_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        fill_and_fail(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="this system has no such permissions")
def test_kb_files_have_the_permissions_of_the_umask(
    sample_kb: Path, tmp_path: Path
) -> None:
    """Safetensors makes files that only their owner can read."""
    (tmp_path / "file").touch()
    expected = (tmp_path / "file").stat().st_mode
    files = [path for path in sample_kb.rglob("[!.]*") if path.is_file()]
    assert sample_kb / "v1" / "encoder" / "model.safetensors" in files
    assert {path.stat().st_mode for path in files} == {expected}
