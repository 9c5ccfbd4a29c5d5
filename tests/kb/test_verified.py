"""Large vectors are read at the first opening, by `kb verify`, and when they change."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.folder import versions
from spacy_sapbert.kb.knowledge_base import load_kb
from tests.building import build_small_kb
from tests.commands import invoke


@pytest.fixture
def large_kb(
    concepts_file: Path,
    tiny_encoder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """A knowledge base whose vectors count as large, and a cache of its own."""
    monkeypatch.setattr(versions, "LARGE", 100)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pytest.importorskip("faiss")
    build_small_kb(concepts_file, tmp_path / "kb", tiny_encoder, backend="faiss")
    return tmp_path / "kb"


def damage(path: Path) -> None:
    """Swap two rows in place, and restore the time: no row shows that."""
    status, data = path.stat(), path.read_bytes()
    half = len(data) // 2
    with open(path, "r+b") as file:
        file.write(data[half:] + data[:half])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def opens(folder: Path) -> bool:
    try:
        load_kb(folder)
    except SapbertError:
        return False
    return True


def test_load_kb_reads_large_vectors_once(large_kb: Path, tmp_path: Path) -> None:
    damage(large_kb / "v1" / "index.i16")
    assert opens(large_kb)  # the build has read them
    assert "E306" in invoke("kb", "verify", large_kb).output
    assert not opens(Path(shutil.copytree(large_kb, tmp_path / "copy")))
    os.utime(large_kb / "v1" / "index.i16")  # it may have changed
    assert not opens(large_kb)


def test_load_kb_reads_vectors_of_an_unknown_machine(
    large_kb: Path, tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "cache")
    assert opens(large_kb)
    assert [*(tmp_path / "cache").rglob("*")]
    shutil.rmtree(tmp_path / "cache")
    damage(large_kb / "v1" / "index.i16")
    assert not opens(large_kb)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_load_kb_without_a_cache_reads_all(
    large_kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert opens(large_kb)
    damage(large_kb / "v1" / "index.i16")
    assert not opens(large_kb)


def test_load_kb_reads_all_other_files_each_time(
    large_kb: Path, contents: Callable[[Path], dict[Path, bytes]]
) -> None:
    for name in contents(large_kb):
        path = large_kb / name
        if path.name == "index.i16" or not path.stat().st_size:
            continue
        data = path.read_bytes()
        damaged = bytearray(data)
        damaged[len(data) // 2] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(SapbertError, match=path.name):
            load_kb(large_kb)
        path.write_bytes(data)
