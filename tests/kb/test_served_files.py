"""An opened knowledge base answers from the files that were verified, or not at all."""

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.packages.copies import save_copy
from spacy_sapbert.vocabularies.concepts import Concept

needs_descriptors = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="this system has no /proc/self/fd"
)
OTHER = [Concept("C9", ["Antihypertensive agents", "diabetis", "fever"])]
MENTIONS = ["fever", "diabetis", "heart atack", "ward 1"]


@pytest.fixture
def other_kb(make_kb: Callable[..., Path], tmp_path: Path) -> Path:
    (tmp_path / "other").mkdir()
    return make_kb(tmp_path / "other", OTHER)


def in_new_thread(function: Callable[[], Any]) -> Any:
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(function())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(results[0], Exception):
        raise results[0]
    return results[0]


def replace(folder: Path, other: Path) -> None:
    """Replace a knowledge base as `kb build --force` does."""
    save_copy(load_kb(other), folder)


@needs_descriptors
def test_link_in_a_new_thread_after_a_replacement_uses_the_old_files(
    own_kb: Path, other_kb: Path
) -> None:
    kb = load_kb(own_kb)
    before = kb.link(MENTIONS)
    replace(own_kb, other_kb)
    kb.clear_cache()
    assert in_new_thread(lambda: kb.link(MENTIONS)) == before
    assert in_new_thread(lambda: kb["C0000005"].name) == "Diabetes mellitus"
    assert load_kb(own_kb).link(["fever"])[0].cui == "C9"


@needs_descriptors
def test_link_in_a_new_thread_after_two_edits_of_others_uses_the_old_overlay(
    own_kb: Path,
) -> None:
    kb = add_concepts(load_kb(own_kb), [Concept("L0", ["ward 0"])])
    before = kb.link(MENTIONS)
    for number in (1, 2, 3):
        add_concepts(load_kb(own_kb), [Concept(f"L{number}", [f"ward {number}"])])
    assert not (own_kb / "overlay-1").exists()
    kb.clear_cache()
    assert in_new_thread(lambda: kb.link(MENTIONS)) == before
    assert kb.concept("L1") is None


def test_load_encoder_of_a_replaced_kb_is_an_error(
    own_kb: Path, other_kb: Path
) -> None:
    kb = load_kb(own_kb)
    replace(own_kb, other_kb)
    with pytest.raises(SapbertError, match="E348.*Open the knowledge base again"):
        kb.link(["fever"])


def test_load_index_of_a_file_changed_in_its_place_is_an_error(own_kb: Path) -> None:
    kb = load_kb(own_kb)
    path = own_kb / "index.hnsw"
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    os.utime(path, ns=(0, 0))
    with pytest.raises(SapbertError, match="E348"):
        kb.vectors([0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_query_in_a_forked_child_of_a_replaced_kb_is_an_error(
    own_kb: Path, other_kb: Path, run_python: Callable[..., Any]
) -> None:
    code = (
        "import os, shutil, sys\n"
        "from pathlib import Path\n"
        "from spacy_sapbert import load_kb, SapbertError\n"
        "def ask(kb):\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        try:\n"
        "            os._exit(0 if kb.concept('C0000005') else 1)\n"
        "        except SapbertError as error:\n"
        "            os._exit(7 if 'E348' in str(error) else 2)\n"
        "        finally:\n"
        "            os._exit(3)\n"
        "    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        "own, other = map(Path, sys.argv[1:])\n"
        "kb = load_kb(own)\n"
        "before = ask(kb)\n"
        "own.rename(own.with_name('aside')); shutil.copytree(other, own)\n"
        "print(before, ask(kb))\n"
    )
    done = run_python(code, own_kb, other_kb)
    assert done.stdout == "0 7\n", done.stderr


def test_copy_kb_copies_only_listed_files_of_its_version(
    own_kb: Path, tmp_path: Path
) -> None:
    (own_kb / "notes.txt").write_text("about a patient", "utf8")
    kb = load_kb(own_kb)
    add_concepts(kb, [Concept("L1", ["ward 1"])])
    save_copy(kb, tmp_path / "copy")
    names = {
        p.relative_to(tmp_path / "copy").as_posix() for p in files(tmp_path / "copy")
    }
    assert names == {"meta.json", *kb.manifest.files}
    assert load_kb(tmp_path / "copy").manifest == kb.manifest


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "name", ["notes.txt", "encoder/vocab.txt", "index.hnsw", "x/y"]
)
def test_load_kb_with_a_symbolic_link_is_an_error(
    own_kb: Path, tmp_path: Path, name: str
) -> None:
    target = tmp_path / "target"
    path = own_kb / name
    path.parent.mkdir(exist_ok=True)
    if path.exists():
        shutil.move(path, target)
    else:
        target.write_text("outside", "utf8")
    path.symlink_to(target)
    with pytest.raises(SapbertError, match="E306.*symbolic link"):
        load_kb(own_kb)


def test_load_kb_of_a_folder_with_a_link_to_it_opens(
    own_kb: Path, tmp_path: Path
) -> None:
    (tmp_path / "current").symlink_to(own_kb)
    assert load_kb(tmp_path / "current").link(["fever"])[0].cui == "C0000004"


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file"
)
def test_load_kb_unreadable_file_is_an_error(own_kb: Path) -> None:
    (own_kb / "index.hnsw").chmod(0)
    with pytest.raises(SapbertError, match="E306.*cannot be read"):
        load_kb(own_kb)


def test_load_kb_fifo_in_place_of_a_file_is_an_error(own_kb: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no FIFOs")
    (own_kb / "concepts.db").unlink()
    os.mkfifo(own_kb / "concepts.db")
    with pytest.raises(SapbertError, match="E306.*not a plain file"):
        load_kb(own_kb)


def test_load_kb_with_another_digest_is_an_error(own_kb: Path) -> None:
    kb = load_kb(own_kb)
    digest = kb.manifest.digest
    assert load_kb(own_kb, digest=digest).manifest.digest == digest
    changed = add_concepts(kb, [Concept("L1", ["ward 1"])])
    with pytest.raises(SapbertError, match=f"E351.*{digest}"):
        load_kb(own_kb, digest=digest)
    assert load_kb(own_kb, digest=changed.manifest.digest)


def test_pickled_kb_opens_the_same_version_or_none(own_kb: Path) -> None:
    kb = load_kb(own_kb)
    function, arguments = kb.__reduce__()
    assert isinstance(function(*arguments), KnowledgeBase)
    add_concepts(kb, [Concept("L1", ["ward 1"])])
    with pytest.raises(SapbertError, match="E351"):
        function(*arguments)
