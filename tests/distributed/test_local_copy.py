"""A knowledge base is copied once to each machine, complete and verified."""

import json
import os
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.distributed.local_copy import copy_kb
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.folder.versions import compute_digest, read_version
from spacy_sapbert.kb.knowledge_base import load_kb
from tests.faults import DONE, KILLED, stop_at

# Copies in processes that start at the same time, and prints what each opened.
COPY = """
import sys
from spacy_sapbert.distributed import local_copy
real = local_copy.copy_file
def copy_file(*args):
    print("copies", flush=True)
    real(*args)
local_copy.copy_file = copy_file
sys.stdin.readline()
print("copied", local_copy.copy_kb(sys.argv[1], sys.argv[2], digest=None))
"""


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder, but the lock of writers, by their names in it."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def test_copy_kb_is_the_same_and_opens(sample_kb: Path, tmp_path: Path) -> None:
    copy = copy_kb(str(sample_kb), tmp_path, digest=None)
    assert contents(copy) == contents(sample_kb)
    assert copy.name == f"kb-{read_version(sample_kb).manifest.digest[:16]}"
    assert load_kb(copy).link(["fever"])[0].cui == "C0000004"
    assert {path.name for path in tmp_path.iterdir()} == {
        copy.name,
        f".{copy.name}.lock",
    }


def test_copy_kb_that_is_pinned_is_not_read_again(own_kb: Path, tmp_path: Path) -> None:
    digest = read_version(own_kb).manifest.digest
    copy = copy_kb(str(own_kb), tmp_path / "local", digest=digest)
    shutil.rmtree(own_kb)
    assert copy_kb(str(own_kb), tmp_path / "local", digest=digest) == copy
    with pytest.raises(SapbertError, match="E310"):
        copy_kb(str(own_kb), tmp_path / "local", digest="0" * 64)


@pytest.mark.parametrize("chain", ["file://{kb}", "zip://kb::{zip}", "memory://kb"])
def test_copy_kb_from_a_url(sample_kb: Path, tmp_path: Path, chain: str) -> None:
    archive = tmp_path / "kb.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for name, data in contents(sample_kb).items():
            file.writestr(f"kb/{name}", data)
    if chain.startswith("memory"):
        import fsspec

        for name, data in contents(sample_kb).items():
            fsspec.filesystem("memory").pipe(f"/kb/{name}", data)
    url = chain.format(kb=sample_kb, zip=archive)
    copy = copy_kb(url, tmp_path / "local", digest=None)
    assert contents(copy) == contents(sample_kb)


def test_copy_kb_damaged_at_the_source_leaves_nothing(
    own_kb: Path, tmp_path: Path
) -> None:
    file = own_kb / "v1" / "concepts.db"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    for damaged in (bytes(data), data[:-1], data + b"x" * 5_000_000):
        file.write_bytes(damaged)
        with pytest.raises(SapbertError, match=r"E306.*concepts\.db"):
            copy_kb(str(own_kb), tmp_path / "local", digest=None)
        left = [path.name for path in (tmp_path / "local").iterdir()]
        assert [name for name in left if not name.endswith(".lock")] == []
    file.unlink()
    with pytest.raises(SapbertError, match=r"E376.*concepts\.db.*FileNotFoundError"):
        copy_kb(str(own_kb), tmp_path / "local", digest=None)


def test_copy_kb_with_a_damaged_description_names_the_source(
    own_kb: Path, tmp_path: Path
) -> None:
    (own_kb / "v1" / "meta.json").write_text("{}", "utf8")
    with pytest.raises(SapbertError, match=f"E304.*{own_kb}/v1/meta.json"):
        copy_kb(str(own_kb), tmp_path, digest=None)


@pytest.mark.parametrize(
    ("source", "match"),
    [
        ("/nowhere/kb", "E310"),
        ("file:///nowhere/kb", "E376.*FileNotFoundError"),
        ("nosuch://bucket/kb", "E376.*ValueError.*fsspec"),
    ],
)
def test_copy_kb_of_nothing_is_an_error(
    source: str, match: str, tmp_path: Path
) -> None:
    with pytest.raises(SapbertError, match=match):
        copy_kb(source, tmp_path, digest=None)


def test_copy_kb_that_has_no_room_is_an_error(own_kb: Path, tmp_path: Path) -> None:
    path = own_kb / "v1" / "meta.json"
    meta = json.loads(path.read_text("utf8"))
    meta["files"]["concepts.db"]["size"] = 1 << 39
    meta["digest"] = compute_digest(meta)
    path.write_text(json.dumps(meta), "utf8")
    with pytest.raises(SapbertError, match="E377.*MB of room.*copy_to"):
        copy_kb(str(own_kb), tmp_path / "local", digest=None)


def test_copy_kb_by_many_processes_at_once_is_made_once(
    sample_kb: Path, tmp_path: Path, new_process: Any
) -> None:
    processes = [
        new_process.start(
            [sys.executable, "-c", COPY, sample_kb, tmp_path],
            stdin=new_process.PIPE,
            stdout=new_process.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    outputs = []
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        outputs.append(output.splitlines())
    assert len({lines[-1] for lines in outputs}) == 1
    count = len(read_version(sample_kb).manifest.files)
    assert sorted(len(lines) - 1 for lines in outputs) == [0, 0, count]


def kill_copies(kb: str, folder: Path) -> None:
    """Kill a copy at many writes, and find it whole or not at all."""
    digest, ends = load_kb(kb).manifest.digest, []
    while DONE not in ends:
        moment = 3 * len(ends) + 1
        ends.append(stop_at("kill", moment, lambda: copy_kb(kb, folder, digest=None)))
        whole = [path for path in folder.iterdir() if path.name.startswith("kb-")]
        assert all(load_kb(path).manifest.digest == digest for path in whole)
        assert whole or ends[-1] == KILLED
    assert KILLED in ends


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_copy_kb_after_kill_is_made_again(
    sample_kb: Path, tmp_path: Path, new_process: Any
) -> None:
    new_process.call(kill_copies, str(sample_kb), tmp_path)
    copy = copy_kb(str(sample_kb), tmp_path, digest=None)
    assert contents(copy) == contents(sample_kb)
    assert not any(name.endswith(".tmp") for name in os.listdir(tmp_path))


def test_link_batches_opens_the_copy(sample_kb: Path, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from spacy_sapbert import LinkBatches

    link = LinkBatches(kb=f"file://{sample_kb}", copy_to=tmp_path)
    rows = link(pa.table({"id": [1], "text": ["fever"]})).to_pylist()
    assert [row["cui"] for row in rows] == ["C0000004"]
    assert link.open().linker.kb.folder.parent == tmp_path


def test_copy_kb_on_a_disk_without_locks_warns_and_works(
    own_kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl", reason="this system has no such locks")

    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.warns(UserWarning, match="W557"):
        copy = copy_kb(str(own_kb), tmp_path / "local", digest=None)
    assert load_kb(copy).manifest.digest == read_version(own_kb).manifest.digest
