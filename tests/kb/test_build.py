"""A build is locked, and what it wrote is tried before it replaces anything."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.build import build_kb
from spacy_sapbert.kb.folder.manifest import lock_kb
from spacy_sapbert.kb.opening import load_kb
from spacy_sapbert.kb.row_vectors import lock_work_folder
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts

pytest.importorskip("fcntl", reason="this system has no such locks")

Contents = Callable[[Path], dict[Path, bytes]]
BUILD = (
    "import resource, signal, sys\n"
    "from pathlib import Path\n"
    "from spacy_sapbert import build_kb, SapbertError\n"
    "concepts, kb, encoder, limit = sys.argv[1:]\n"
    "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))\n"
    "try:\n"
    "    build_kb(Path(concepts), Path(kb), encoder, force=True,\n"
    "             backend_settings={'M': 200}, threads=1)\n"
    "except SapbertError as error:\n"
    "    print(error)\n"
)


def test_build_kb_while_another_build_runs_is_an_error(
    concepts_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    kb = tmp_path / "kb"
    with lock_work_folder(kb) as work:
        (work / "shard-000000.npy").write_bytes(b"of the other build")
        with pytest.raises(SapbertError, match=r"E350.*\.kb\.build"):
            build_kb(concepts_file, kb, str(tiny_encoder))
        assert (work / "shard-000000.npy").read_bytes() == b"of the other build"
    build_kb(concepts_file, kb, str(tiny_encoder))
    assert load_kb(kb).link(["fever"])[0].cui == "C0000004"


def test_two_builders_of_one_folder_write_one_of_their_knowledge_bases(
    concepts_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.jsonl"
    write_concepts(other, [Concept("C9", ["Lymph node", "heart atack", "fever"])])
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from spacy_sapbert import build_kb, SapbertError\n"
        "try:\n"
        "    build_kb(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], force=True)\n"
        "except SapbertError as error:\n"
        "    print(str(error)[:6])\n"
    )
    builders = [
        subprocess.Popen(
            [sys.executable, "-c", code, path, tmp_path / "kb", tiny_encoder],
            stdout=subprocess.PIPE,
            text=True,
        )
        for path in (concepts_file, other)
    ]
    outputs = [builder.communicate(timeout=120)[0].strip() for builder in builders]
    assert set(outputs) <= {"", "[E350]"}, outputs
    assert "" in outputs
    best = load_kb(tmp_path / "kb").link(["fever"])[0].candidates[0]
    assert (best["cui"], best["score"]) in {("C0000004", 1.0), ("C9", 1.0)}


def test_build_kb_waits_for_an_edit_of_the_old_one(
    own_kb: Path, concepts_file: Path, tiny_encoder: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("spacy_sapbert.kb.folder.manifest.LOCK_WAIT", 0.2)
    before = (own_kb / "meta.json").read_bytes()
    with lock_kb(own_kb), pytest.raises(SapbertError, match="E550"):
        build_kb(concepts_file, own_kb, str(tiny_encoder), force=True, ngrams=True)
    assert (own_kb / "meta.json").read_bytes() == before
    build_kb(concepts_file, own_kb, str(tiny_encoder), force=True, ngrams=True)
    assert load_kb(own_kb).manifest.ngrams


def test_build_kb_on_a_full_disk_keeps_the_old_one(
    own_kb: Path,
    tiny_encoder: Path,
    tmp_path: Path,
    run_python: Callable[..., Any],
    contents: Contents,
) -> None:
    # The index is the largest file, and hnswlib ignores that it cannot be written.
    names = [f"{a}{b} {c}" for a in "abcdefghij" for b in "klmnopqrst" for c in "uvwx"]
    path = tmp_path / "concepts.jsonl"
    write_concepts(path, [Concept(f"C{n}", [name]) for n, name in enumerate(names)])
    before = contents(own_kb)
    done = run_python(BUILD, path, own_kb, tiny_encoder, 400_000)
    assert "[E355]" in done.stdout, done.stdout + done.stderr
    assert contents(own_kb) == before
    shutil.rmtree(own_kb.with_name(".kb.build"))
    done = run_python(BUILD, path, own_kb, tiny_encoder, 4_000_000)
    assert (done.stdout, done.stderr) == ("", ""), done.stdout
    index = own_kb / "index.hnsw"
    assert index.stat().st_size > 400_000
    assert max(p.stat().st_size for p in own_kb.rglob("*") if p != index) < 400_000


def test_build_kb_into_a_file_is_an_error(
    concepts_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("", "utf8")
    with pytest.raises(SapbertError, match="E004"):
        build_kb(concepts_file, tmp_path / "file" / "kb", str(tiny_encoder))


def test_build_kb_setting_out_of_range_is_an_error_before_anything_is_written(
    concepts_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="M from"):
        build_kb(
            concepts_file, tmp_path / "kb", str(tiny_encoder), backend_settings={"M": 0}
        )
    assert [*tmp_path.iterdir()] == []
