import gzip
import os
import shutil
import stat
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io import writing
from spacy_sapbert.io.writing import (
    check_outputs,
    check_replaceable,
    name_refusal,
    remove_folder,
    write_atomically,
    write_folder_atomically,
)
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.vocabularies.concepts import Concept

Events = list[int | str]

WRITE = """
import sys
from pathlib import Path
from spacy_sapbert.io.writing import write_atomically
with write_atomically(Path(sys.argv[1])) as file:
    for _ in range(100):
        file.write(bytes(1000))
"""
HANG = """
import sys, time
from pathlib import Path
from spacy_sapbert.io.writing import write_atomically
with write_atomically(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("ready", flush=True)
    time.sleep(60)
"""
# Prints the permissions while a file and a folder are written, and afterwards.
MODES = """
import os, sys
from pathlib import Path
place = Path(sys.argv[1])
os.umask(int(sys.argv[2], 8))
from spacy_sapbert.io.writing import write_atomically, write_folder_atomically
def show(*paths):
    print(*(f"{path.stat().st_mode & 0o7777:o}" for path in paths))
with write_atomically(place / "file") as file:
    file.write(b"text")
    file.flush()
    show(*place.glob(".file.*"))
show(place / "file")
with write_folder_atomically(place / "folder", None) as part:
    (part / "inner").mkdir(mode=0o700)
    for name, mode in (("private", 0o600), ("inner/public", 0o666)):
        os.close(os.open(part / name, os.O_CREAT, mode))
    show(part)
folder = place / "folder"
show(folder, folder / "private", folder / "inner", folder / "inner" / "public")
"""


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_write_atomically_full_disk_is_an_error_and_leaves_the_old_file(
    tmp_path, new_process
):
    path = write(tmp_path / "x", b"old")
    done = new_process.python(WRITE, path, largest_file=20)
    assert "E004" in done.stderr
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_write_atomically_removes_files_of_a_killed_writer(tmp_path, new_process):
    path = write(tmp_path / "x[1]", b"old")
    command = [sys.executable, "-c", HANG, str(path)]
    killed, alive = (
        new_process.start(command, stdout=new_process.PIPE, text=True) for _ in range(2)
    )
    for process in (killed, alive):
        assert process.stdout is not None
        process.stdout.readline()
    parts = {each.name for each in tmp_path.iterdir()} - {path.name}
    assert len(parts) == 2
    new_process.kill(killed)
    assert path.read_bytes() == b"old"
    folder = tmp_path / ".x[1].7.tmp"
    folder.mkdir()
    write(folder / "y", b"half")
    with write_atomically(path) as file:
        file.write(b"new")
    left = {each.name for each in tmp_path.iterdir()}
    assert len(left) == 2  # the file, and the part of the living writer
    assert left - parts == {path.name}
    new_process.kill(alive)
    remove_folder(path)
    assert not list(tmp_path.glob(".*"))


def test_write_atomically_compressed_file_is_reproducible(tmp_path):
    written = []
    for name in ("x.gz", "y.gz"):
        with write_atomically(tmp_path / name) as file:
            file.write(b"a\n" * 1000)
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]
    assert gzip.decompress(written[0]) == b"a\n" * 1000


@pytest.mark.skipif(os.name != "posix", reason="this system has no such permissions")
def test_writing_is_private_until_it_is_complete(tmp_path, new_process):
    file, folder = "640", "750"
    done = new_process.python(MODES, tmp_path, "027")
    assert done.returncode == 0, done.stderr
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["600"],
        [file],
        ["700"],
        [folder, file, folder, file],
    ]


def make_link(path: Path, target: Path) -> Path:
    path.symlink_to(target)
    return path


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no such pipes")
@pytest.mark.parametrize(
    "writer", [write_atomically, partial(write_folder_atomically, kind=None)]
)
def test_writing_refuses_devices_and_pipes(tmp_path, writer):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    links = [
        make_link(tmp_path / "1", pipe),
        make_link(tmp_path / "2", Path(os.devnull)),
    ]
    for path in (pipe, *links):
        with pytest.raises(SapbertError, match="E003"), writer(path):
            pass
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert all(link.is_symlink() for link in links)
    if Path("/dev/stdout").exists():  # a link, maybe to a file
        with pytest.raises(SapbertError, match="E003"):
            check_replaceable(Path("/dev/stdout"))


@pytest.mark.parametrize(
    "writer", [write_atomically, partial(write_folder_atomically, kind=None)]
)
def test_writing_refuses_a_version_of_a_knowledge_base(own_kb, tmp_path, writer):
    version = make_link(tmp_path / "link", own_kb / "v1")
    before = sorted(own_kb.rglob("*"))
    for path in (own_kb / "v1" / "encoder" / "report", version / "x", own_kb / "v2"):
        with pytest.raises(SapbertError, match="E003"), writer(path):
            pass
    assert sorted(own_kb.rglob("*")) == before
    with writer(own_kb.parent / "v1"):  # which is no version
        pass


def test_writing_replaces_a_link(tmp_path):
    old, folder = write(tmp_path / "old", b"old"), tmp_path / "folder"
    folder.mkdir()
    links = [make_link(tmp_path / "1", old), make_link(tmp_path / "2", folder)]
    with write_atomically(links[0]) as file:
        file.write(b"new")
    with write_folder_atomically(links[1], None) as part:
        write(part / "y", b"new")
    assert not any(link.is_symlink() for link in links)
    assert (links[0].read_bytes(), old.read_bytes()) == (b"new", b"old")
    assert ([*links[1].iterdir()], [*folder.iterdir()]) == ([links[1] / "y"], [])
    assert not list(tmp_path.glob(".*"))


def test_outputs_of_a_command_are_checked_before_it_starts(tmp_path):
    path = tmp_path / "x"
    check_outputs(path, None, tmp_path / "y" / "z", force=False)
    for paths, message in (
        ([path, tmp_path / "y" / ".." / "x"], "E003.*are one place"),
        ([tmp_path / ("x" * 250)], "E004.*File name too long"),
    ):
        with pytest.raises(SapbertError, match=message):
            check_outputs(*paths, force=True)
    assert not [*tmp_path.iterdir()]


def test_writing_names_the_file_that_was_refused(tmp_path):
    """Not always the one to write: another may be read meanwhile."""
    for name in ("none", "x/none"):
        with (
            pytest.raises(SapbertError, match=r"E004.*none.*No such file"),
            write_atomically(tmp_path / "y") as file,
        ):
            file.write((tmp_path / name).read_bytes())
    # of a folder that is copied, the reason of the first file, or of the folder
    for error in (shutil.Error([("a", "b", "No space")]), shutil.Error("No space")):
        assert "No space" in str(name_refusal(error, tmp_path))


@pytest.fixture
def events(monkeypatch) -> Events:
    """The inodes that are flushed, and "name" when something gets its name."""
    seen: Events = []
    flush = os.fsync

    def flush_seen(handle: int) -> None:
        seen.append(os.fstat(handle).st_ino)
        flush(handle)

    monkeypatch.setattr(os, "fsync", flush_seen)
    for module, name in ((os, "replace"), (os, "rename"), (writing, "exchange_names")):
        rename = getattr(module, name)

        def rename_seen(*paths: Any, rename: Any = rename) -> None:
            seen.append("name")
            rename(*paths)

        monkeypatch.setattr(module, name, rename_seen)
    return seen


def inodes(*paths: Path) -> Events:
    return [path.stat().st_ino for path in paths]


def test_a_file_is_on_the_disk_before_its_name(tmp_path, events):
    with write_atomically(tmp_path / "x.json") as file:
        file.write(b"{}")
    assert events == [*inodes(tmp_path / "x.json"), "name", *inodes(tmp_path)]


@pytest.mark.parametrize("replaced", [False, True])
def test_a_folder_is_on_the_disk_before_its_name(tmp_path, events, replaced):
    path = tmp_path / "x"
    if replaced:
        path.mkdir()
    with write_folder_atomically(path, None) as part:
        (part / "in").mkdir()
        (part / "in" / "a").write_text("a")
    assert events == [
        *inodes(path / "in", path / "in" / "a", path), "name", *inodes(tmp_path)
    ]  # fmt: skip


def test_an_edit_is_on_the_disk_before_it_is_used(own_kb, events):
    add_concepts(load_kb(own_kb), [Concept("X1", ["ward one"])])
    version = own_kb / "v2"
    new = [path for path in version.rglob("*") if path.stat().st_nlink == 1]
    assert {*inodes(version, *new)} <= {*events[:-5]}
    assert events[-5:] == [
        "name", *inodes(own_kb, own_kb / "CURRENT"), "name", *inodes(own_kb)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "write", [write_atomically, partial(write_folder_atomically, kind=None)]
)
def test_writing_that_fails_leaves_no_folder_of_its_own(tmp_path, write):
    (tmp_path / "mine").mkdir()
    for parent in ("mine", "made/by/it"):
        path = tmp_path / parent / "a"
        with pytest.raises(RuntimeError), write(path):
            raise RuntimeError
    assert [*tmp_path.rglob("*")] == [tmp_path / "mine"]
