"""A build is locked, and what it wrote is tried before it replaces anything."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.building.build import build_kb
from spacy_sapbert.kb.building.row_vectors import lock_work_folder
from spacy_sapbert.kb.folder.publication import lock_kb
from spacy_sapbert.kb.folder.versions import read_version
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.kb.settings import change_kb
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from tests.building import build_small_kb
from tests.commands import invoke

pytest.importorskip("fcntl", reason="this system has no such locks")

Contents = Callable[[Path], dict[Path, bytes]]
BUILD = """
import sys
from pathlib import Path
from spacy_sapbert import build_kb, SapbertError
concepts, kb, encoder = sys.argv[1:4]
options = {"backend_settings": {"M": 200}, "threads": 1} if sys.argv[4:] else {}
try:
    build_kb(Path(concepts), Path(kb), encoder, force=True, **options)
except SapbertError as error:
    print(error)
"""


def test_build_kb_while_another_build_runs_is_an_error(
    concepts_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    kb = tmp_path / "kb"
    with lock_work_folder(kb) as work:
        (work / "vectors").write_bytes(b"of the other build")
        with pytest.raises(SapbertError, match="E550"):
            build_small_kb(concepts_file, kb, tiny_encoder)
        assert (work / "vectors").read_bytes() == b"of the other build"
    build_small_kb(concepts_file, kb, tiny_encoder)
    assert load_kb(kb).link(["fever"])[0].cui == "C0000004"


def test_two_builders_of_one_folder_write_one_of_their_knowledge_bases(
    concepts_file: Path, tiny_encoder: Path, tmp_path: Path, new_process: Any
) -> None:
    other = tmp_path / "other.jsonl"
    write_concepts(other, [Concept("C9", ["Lymph node", "heart atack", "fever"])])
    builders = [
        new_process.start(
            [sys.executable, "-c", BUILD, path, tmp_path / "kb", tiny_encoder],
            stdout=new_process.PIPE,
            text=True,
        )
        for path in (concepts_file, other)
    ]
    outputs = [builder.communicate(timeout=120)[0][:6] for builder in builders]
    assert set(outputs) <= {"", "[E550]"}, outputs
    assert "" in outputs
    best = load_kb(tmp_path / "kb").link(["fever"])[0].candidates[0]
    assert (best["cui"], best["score"]) in {("C0000004", 1.0), ("C9", 1.0)}


def test_build_kb_in_two_processes_gives_equal_bytes(
    concepts_file: Path,
    tiny_encoder: Path,
    tmp_path: Path,
    contents: Contents,
    new_process: Any,
) -> None:
    for seed in ("1", "2"):
        words = (BUILD, concepts_file, tmp_path / seed, tiny_encoder, "one thread")
        done = new_process.python(*words, env={**os.environ, "PYTHONHASHSEED": seed})
        assert (done.stdout, done.stderr) == ("", "")
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_build_kb_waits_for_an_edit_of_the_old_one(
    own_kb: Path, concepts_file: Path, tiny_encoder: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("spacy_sapbert.kb.building.build.LOCK_WAIT", 0.2)
    before = load_kb(own_kb).manifest
    with lock_kb(own_kb), pytest.raises(SapbertError, match="E550"):
        build_small_kb(concepts_file, own_kb, tiny_encoder, force=True)
    assert load_kb(own_kb).manifest == before
    build_small_kb(concepts_file, own_kb, tiny_encoder, force=True)
    assert load_kb(own_kb).manifest != before


def test_build_kb_on_a_full_disk_keeps_the_old_one(
    own_kb: Path,
    tiny_encoder: Path,
    tmp_path: Path,
    new_process: Any,
    contents: Contents,
) -> None:
    # The index is the largest file, and hnswlib ignores that it cannot be written.
    names = [f"{a}{b} {c}" for a in "abcdefghij" for b in "klmnopqrst" for c in "uvwx"]
    path = tmp_path / "concepts.jsonl"
    write_concepts(path, [Concept(f"C{n}", [name]) for n, name in enumerate(names)])
    before = contents(own_kb)
    words = (BUILD, path, own_kb, tiny_encoder, "large index")
    done = new_process.python(*words, largest_file=400_000)
    assert "[E355]" in done.stdout, done.stdout + done.stderr
    assert contents(own_kb) == before
    shutil.rmtree(own_kb.with_name(".kb.build"))
    done = new_process.python(*words, largest_file=4_000_000)
    assert (done.stdout, done.stderr) == ("", ""), done.stdout
    index = own_kb / "v2" / "index.hnsw"
    assert index.stat().st_size > 400_000
    assert max(p.stat().st_size for p in own_kb.rglob("*") if p != index) < 400_000


def test_build_kb_into_a_file_is_an_error(
    concepts_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("", "utf8")
    with pytest.raises(SapbertError, match="E004"):
        build_small_kb(concepts_file, tmp_path / "file" / "kb", tiny_encoder)


def test_build_kb_setting_out_of_range_is_an_error_before_anything_is_written(
    concepts_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="M from"):
        build_small_kb(
            concepts_file, tmp_path / "kb", tiny_encoder, backend_settings={"M": 0}
        )
    assert [*tmp_path.iterdir()] == []


def test_build_kb_option_that_is_none_is_an_error(
    concepts_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    with pytest.raises(TypeError, match="'back_end'"):
        build_kb(concepts_file, tmp_path / "kb", str(tiny_encoder), back_end="hnsw")
    assert [*tmp_path.iterdir()] == []


def test_build_kb_that_fails_leaves_no_hidden_folder(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    concepts = tmp_path / "concepts.jsonl"
    concepts.write_text('{"cui": "C1", "name": "fever"}\nno json\n')
    with pytest.raises(SapbertError, match="E117"):
        build_small_kb(concepts, tmp_path / "kb", tiny_encoder)
    assert [*tmp_path.iterdir()] == [concepts]


def write_variants(path: Path, many: int) -> Path:
    """Write `many` concepts with two names that are alike, and as many with one."""
    stems = [f"{a}{b}" for a in "abcdefgh" for b in "xyz"][:many]
    pairs = [Concept(f"C{n}", [f"{s} pain", f"{s} fever"]) for n, s in enumerate(stems)]
    alone = [Concept(f"D{n}", [f"{n * 3} of {n * 3}"]) for n in range(many)]
    write_concepts(path, [*pairs, *alone])
    return path


def test_build_kb_chooses_the_backend_by_the_number_of_rows(
    concepts_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    manifest = build_small_kb(concepts_file, tmp_path / "kb", tiny_encoder)
    assert (manifest.index.backend, manifest.recall) == ("exact", None)


def test_change_kb_measures_the_recall_anew(tiny_encoder: Path, tmp_path: Path) -> None:
    concepts = write_variants(tmp_path / "concepts.jsonl", 24)
    kb = tmp_path / "kb"
    settings = {"M": 8, "ef_construction": 20, "ef": 1}
    built = build_small_kb(concepts, kb, tiny_encoder, backend_settings=settings)
    digest = read_version(kb).manifest.digest
    manifest = change_kb(kb, index={"ef": 400})
    assert manifest.index.settings["ef"] == 400
    assert manifest.digest != digest
    assert built.recall is not None
    assert manifest.recall is not None
    assert built.recall.at_1 <= manifest.recall.at_1
    assert built.recall.at_10 < manifest.recall.at_10
    assert load_kb(kb).link(["ax pain"])[0].cui == "C0"
    for changes, code in (
        ({"M": 30}, "E356"),
        ({"no": 1}, "E331"),
        ({"ef": 0}, "E331"),
    ):
        with pytest.raises(SapbertError, match=code):
            change_kb(kb, index=changes)
    assert read_version(kb).manifest == manifest


def test_kb_set_changes_the_threshold(own_kb: Path) -> None:
    def run(*words: str) -> Any:
        return invoke("kb", "set", own_kb, *words)

    assert run("threshold=0.5", "ef=50").exit_code == 0
    manifest = read_version(own_kb).manifest
    assert (manifest.threshold, manifest.index.settings["ef"]) == (0.5, 50)
    for words, code in (("threshold=2", "E331"), ("threshold=x", "E331")):
        assert code in run(words).output
    assert "only `threshold` may be a fraction" in run("thresold=0.5").output
    assert read_version(own_kb).manifest == manifest
