"""Versions of a knowledge base never change: each process goes on with its own."""

import fcntl
import os
import pickle
import re
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.encoder.encoder import EncoderConfig
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.adjust import change_kb, export_kb, write_calibration
from spacy_sapbert.kb.edits.change import add_concepts, remove_concepts
from spacy_sapbert.kb.folder import versions
from spacy_sapbert.kb.folder.publication import (
    go_back,
    lock_kb,
    remove_versions,
    save_copy,
    version_to_files,
)
from spacy_sapbert.kb.folder.versions import list_history, list_versions, read_version
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb, open_files
from spacy_sapbert.kb.teaching.teach import teach_documents
from spacy_sapbert.vocabularies.concepts import Concept
from tests.building import (
    annotated_document,
    annotated_mention,
    build_small_kb,
    make_calibration,
)
from tests.commands import invoke

TAUGHT = annotated_document(
    "a.txt", "bad heart", [annotated_mention("bad heart", [["C0000003"]])]
)
OTHER = [Concept("C9", ["Antihypertensive agents", "diabetis", "fever"])]
MENTIONS = ["fever", "diabetis", "heart atack", "ward 1"]


@pytest.fixture
def other_kb(make_kb, tmp_path) -> Path:
    (tmp_path / "other").mkdir()
    return make_kb(tmp_path / "other", OTHER)


def add(kb: KnowledgeBase, *names: str) -> KnowledgeBase:
    return add_concepts(kb, [Concept(f"A{name}", [name]) for name in names])


def in_new_thread(function: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(function).result()


def test_link_while_versions_are_published_uses_the_opened_one(own_kb, other_kb):
    kb = add(load_kb(own_kb), "ward 0")
    before = kb.link(MENTIONS)
    unused = load_kb(own_kb)  # which loads encoder and index later
    for number in (1, 2, 3):
        add(load_kb(own_kb), f"ward {number}")
    save_copy(load_kb(other_kb).version, own_kb)
    kb.clear_cache()
    assert in_new_thread(lambda: kb.link(MENTIONS)) == before
    assert in_new_thread(lambda: unused.link(MENTIONS)) == before
    assert in_new_thread(lambda: unused["C0000005"].name) == "Diabetes mellitus"
    assert kb.concept("Award 1") is None
    assert load_kb(own_kb).link(["fever"])[0].cui == "C9"


def test_newest_returns_the_version_that_is_used(own_kb, other_kb):
    kb = load_kb(own_kb)
    kb.link(["fever"])
    assert kb.newest() is kb
    edited = add(load_kb(own_kb), "ward 1")
    added = own_kb / "v2" / "overlay" / "concepts.jsonl"
    content = added.read_bytes()
    added.write_bytes(content.replace(b"ward", b"word"))
    with pytest.raises(SapbertError, match="E306.*sha256"):
        kb.newest()
    added.write_bytes(content)
    newest = kb.newest()
    digest = edited.manifest.digest
    assert newest.manifest.digest == load_kb(own_kb, digest=digest).manifest.digest
    with pytest.raises(SapbertError, match=f"E351.*{kb.manifest.digest}"):
        load_kb(own_kb, digest=kb.manifest.digest)
    assert newest.rows == kb.rows + 1
    assert newest.encoder is kb.encoder
    assert newest.parts.base_index is kb.parts.base_index
    save_copy(load_kb(other_kb).version, own_kb)
    # What detects names is loaded where it was before.
    assert "name_index" not in vars(kb.newest().parts)
    assert kb.parts.name_index is not None
    other = kb.newest()
    assert "name_index" in vars(other.parts)
    assert other.link(["fever"])[0].cui == "C9"
    with pytest.raises(SapbertError, match="E351"):
        kb.newest(digest=kb.manifest.digest)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_folder_that_was_replaced_as_a_whole_is_an_error(
    own_kb, other_encoder_kb, new_process
):
    """Parts that are loaded later would be those of another knowledge base."""
    code = (
        "import os, shutil, sys\n"
        "from spacy_sapbert import load_kb, SapbertError\n"
        "def ask(function):\n"
        "    try:\n"
        "        function()\n"
        "    except SapbertError as error:\n"
        "        return str(error)[1:5]\n"
        "own, other = sys.argv[1:]\n"
        "kb = load_kb(own)\n"
        "shutil.rmtree(own); shutil.copytree(other, own)\n"
        "print(ask(lambda: kb.concept('C0000005')))\n"
        "for _ in range(2):\n"
        "    print(ask(lambda: kb.encoder))\n"
        "print(flush=True)\n"
        "if not (child := os.fork()):\n"
        "    os._exit(ask(lambda: kb.concept('C0000005')) == 'E306')\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = new_process.python(code, own_kb, other_encoder_kb)
    assert done.stdout.split() == ["None", "E306", "E306", "1"], done.stderr


def test_pickled_kb_opens_the_same_version_with_its_encoder_config(
    own_kb, tmp_path, monkeypatch
):
    shutil.copytree(own_kb, tmp_path / "models" / "kb")
    monkeypatch.chdir(tmp_path / "models")
    config = EncoderConfig("torch", 8, "bf16")
    kb = load_kb("kb", encoder=config)
    pickled = pickle.dumps(kb)
    add(kb, "ward 1")
    monkeypatch.chdir(tmp_path)
    opened = pickle.loads(pickled)
    assert opened.manifest == kb.manifest
    assert opened.encoder_config == config
    assert opened.encoder.config == config
    assert opened.concept("Award 1") is None
    # A relative path is that of the folder when it was opened.
    assert kb.link(["fever"])[0].cui == "C0000004"
    newest = kb.newest()
    assert newest.concept("Award 1") is not None
    # One in a temporary folder is pickled with its files.
    for other in (open_files(version_to_files(newest.version), config), newest):
        other = pickle.loads(pickle.dumps(other))
        assert other.manifest.digest == newest.manifest.digest
        assert other.link(MENTIONS) == newest.link(MENTIONS)


def test_link_in_threads_while_new_versions_are_written(own_kb):
    local = [Concept("L1", ["zyq"]), Concept("L2", ["wxv"])]
    done = threading.Event()
    versions = [add_concepts(load_kb(own_kb), local)]

    def work(_: int) -> None:
        while not done.is_set():
            linked = versions[-1].link(
                ["wxv", "fever"], k=1, filter={"deny": ["C0000001"]}
            )
            best = [one.candidates[0]["alias"] for one in linked]
            assert best == ["wxv", "Fever"]

    with ThreadPoolExecutor(2) as threads:
        working = threads.map(work, range(2))
        try:
            for number in range(4):
                versions.append(remove_concepts(versions[-1], ["L1"]))
                added = [local[0], Concept(f"A{number}", [f"ward {number}"])]
                versions.append(add_concepts(versions[-1], added))
                versions[-1].link(["fever"])
        finally:
            done.set()
        list(working)


def test_changes_wait_for_others_and_are_of_the_version_in_use(own_kb):
    kb = load_kb(own_kb)
    add(load_kb(own_kb), "ward 1")
    # of a version that is not used any more
    for change in (
        lambda: add(kb, "ward 2"),
        lambda: write_calibration(kb.version, make_calibration()),
        lambda: teach_documents(kb, [TAUGHT], force=True),
    ):
        with pytest.raises(SapbertError, match="E550"):
            change()
    # of a folder, whose version is read after the folder is locked
    for change in (
        lambda: add(load_kb(own_kb), "ward 2"),
        lambda: change_kb(own_kb, threshold=0.5),
        lambda: remove_versions(own_kb),
        lambda: export_kb(own_kb),
    ):
        with lock_kb(own_kb), pytest.raises(SapbertError, match="E550"):
            change()
    assert list_versions(own_kb) == ["v1", "v2"]
    assert not [*own_kb.glob(".version*")]
    change_kb(own_kb, threshold=0.5)
    assert "Award 1" in load_kb(own_kb)


def test_edit_in_an_unlockable_folder_warns_and_works(own_kb, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    kb = load_kb(own_kb)
    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.warns(UserWarning, match="W557"):
        add(kb, "ward 1")
    assert "Award 1" in load_kb(own_kb)


def test_kb_use_goes_back_and_forth(own_kb, contents):
    kb = load_kb(own_kb)
    edited = add(kb, "ward 1")
    for name, digest in (("v1", kb.manifest.digest), ("v2", edited.manifest.digest)):
        invoke("kb", "use", own_kb, name, code=0)
        assert load_kb(own_kb).manifest.digest == digest
    go_back(own_kb, "v1")
    before = contents(own_kb)
    again = add(load_kb(own_kb), "ward 2")
    assert again.version.name == "v3"
    assert "Award 1" not in again
    # Older versions stay as they are.
    del before[Path("CURRENT")]
    assert before.items() < contents(own_kb).items()
    mask = os.umask(0)
    os.umask(mask)
    assert (own_kb / "v3").stat().st_mode & 0o777 == 0o777 & ~mask
    with pytest.raises(SapbertError, match="E348.*v1, v2, v3"):
        go_back(own_kb, "v7")


def test_kb_gc_keeps_the_version_in_use_the_one_before_and_newer_ones(own_kb):
    kb = load_kb(own_kb)
    for number in range(4):
        kb = add(kb, f"ward {number}")
    go_back(own_kb, "v4")
    (own_kb / ".version.1.tmp").mkdir()  # of a process that was killed
    assert "Removed v2 from" in invoke("kb", "gc", own_kb, code=0).output
    # v1 has the built files
    assert list_versions(own_kb) == ["v1", "v3", "v4", "v5"]
    assert not [*own_kb.glob(".version*")]
    assert load_kb(own_kb).link(["ward 2"])[0].cui == "Award 2"
    go_back(own_kb, "v5")
    assert load_kb(own_kb).link(["ward 3"])[0].cui == "Award 3"


def test_kb_versions_lists_what_each_has(own_kb):
    kb = load_kb(own_kb)
    remove_concepts(add(kb, "ward 1"), ["C0000005"])
    change_kb(own_kb, index={"ef": 77}, threshold=0.4)
    go_back(own_kb, "v1")
    teach_documents(load_kb(own_kb), [TAUGHT], force=True)
    change_kb(own_kb, index={"ef": 50})
    files = {path: path.stat().st_size for path in own_kb.rglob("*") if path.is_file()}
    # What was changed and removed, the annotated mentions, the share of right answers,
    # and the threshold of each version; then whether it has files of its own.
    expected = [
        *((0, 0, 0, None, 0.5, True), (1, 0, 0, None, 0.5, True)),
        *((1, 1, 0, None, 0.5, True), (1, 1, 0, None, 0.4, False)),
        *((0, 0, 1, 0.0, 0.5, True), (0, 0, 1, 0.0, 0.5, False)),
    ]
    for number, (entry, (*values, own)) in enumerate(
        zip(list_history(own_kb), expected, strict=True), 1
    ):
        name = f"v{number}"
        size = sum(n for path, n in files.items() if own_kb / name in path.parents)
        size -= files[own_kb / name / "meta.json"]
        assert (entry.name, entry.used) == (name, number == 6)
        assert (entry.size, bool(entry.size)) == (size, own)
        assert entry[4:] == (kb.manifest.counts.concepts, 24, *values)
    assert list_history(own_kb)[0].date.timestamp() == pytest.approx(
        (own_kb / "v1" / "meta.json").stat().st_mtime
    )
    assert "v6 *" in invoke("kb", "versions", own_kb, code=0).output


def test_save_copy_copies_only_listed_files_of_its_version(own_kb, tmp_path):
    (own_kb / "notes.txt").write_text("about a patient", "utf8")
    kb = add(load_kb(own_kb), "ward 1")
    add(kb, "ward 2")
    save_copy(kb.version, tmp_path / "copy")
    names = {
        path.relative_to(tmp_path / "copy").as_posix()
        for path in (tmp_path / "copy").rglob("*")
        if path.is_file()
    }
    expected = {f"v1/{name}" for name in kb.manifest.files}
    assert names == {"CURRENT", "v1/meta.json", *expected}
    links = {(tmp_path / "copy" / name).stat().st_nlink for name in names}
    assert links == {1}  # a copy shares no file
    # It is equal, wherever its files are.
    copy = load_kb(tmp_path / "copy")
    assert copy.manifest.digest == kb.manifest.digest
    assert copy.link(MENTIONS) == kb.link(MENTIONS)


def test_save_copy_in_place_uses_the_opened_version(own_kb):
    kb = load_kb(own_kb)
    newer = add(load_kb(own_kb), "ward 1")
    save_copy(kb.version, own_kb)
    assert load_kb(own_kb).manifest.digest == kb.manifest.digest
    assert list_versions(own_kb) == ["v1", "v2"]
    # Elsewhere, what the folder lacks is copied.
    other = own_kb.with_name("copy")
    killed = other.with_name(".copy.1.tmp")  # by a build
    for version in (kb, newer, newer):
        killed.mkdir()
        save_copy(version.version, other)
        assert not killed.exists()
    assert list_versions(other) == ["v1", "v2"]
    names = [path.name for path in (other / "v2").iterdir()]
    assert sorted(names) == ["meta.json", "overlay"]
    save_copy(newer.version, own_kb)
    assert read_version(own_kb).name == "v2"
    shutil.rmtree(own_kb / "v1")
    with pytest.raises(SapbertError, match="E304.*v1"):
        save_copy(kb.version, own_kb)


def test_load_kb_follows_symbolic_links(own_kb, tmp_path):
    """A folder in the cache of a hub has links to its files."""
    snapshot = tmp_path / "snapshot"
    for number, path in enumerate(sorted(own_kb.rglob("*"))):
        place = snapshot / path.relative_to(own_kb)
        if path.is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(shutil.copy(path, tmp_path / f"blob{number}"))
    (tmp_path / "current").symlink_to(snapshot)
    for folder in (snapshot, tmp_path / "current"):
        kb = load_kb(folder)
        assert kb.link(["fever"])[0].cui == "C0000004"
        kb.load()
    save_copy(kb.version, tmp_path / "copy")
    assert not [p for p in (tmp_path / "copy").rglob("*") if p.is_symlink()]


def test_load_kb_of_a_version_or_without_current_says_what_to_do(own_kb, tmp_path):
    with pytest.raises(SapbertError, match=f"E303.*of {re.escape(str(own_kb))}"):
        load_kb(own_kb / "v1")
    with pytest.raises(SapbertError, match=f"E303.*Name {re.escape(str(own_kb))}"):
        load_kb(own_kb.parent)
    folder = tmp_path / "several"
    for number, named in enumerate(
        ("a", "a, {}/b", "a, {}/b, {}/c", "a, {}/b, {}/c, …")
    ):
        (folder / "abcd"[number]).mkdir(parents=True)
        (folder / "abcd"[number] / "CURRENT").touch()
        count = f"{number + 1}. Name one:" if number else "one. Name"
        said = f"it is a folder with {count} {folder}/{named.format(*[folder] * 2)}."
        with pytest.raises(SapbertError) as caught:
            load_kb(folder)
        assert str(caught.value).endswith(said)
    pipeline = tmp_path / "pipeline"
    inside = Path(shutil.copytree(own_kb, pipeline / "sapbert_linker" / "kb"))
    (pipeline / "config.cfg").touch()
    with pytest.raises(SapbertError, match=f"pipeline. Its .* in {inside}"):
        load_kb(pipeline)
    shutil.move(own_kb / "v1", tmp_path / "old")
    with pytest.raises(SapbertError, match="E304.*v1.*cannot be read"):
        read_version(own_kb)
    for content in (b"", b"../v1", b"\xff\xfe"):
        (own_kb / "CURRENT").write_bytes(content)
        with pytest.raises(SapbertError, match="E304.*does not name a version"):
            load_kb(own_kb)


def test_write_calibration_publishes_a_version_with_another_meta_json(
    own_kb, contents, monkeypatch
):
    before, version = contents(own_kb), read_version(own_kb)
    calibration = make_calibration()
    meta = version.manifest
    assert write_calibration(version, calibration) == read_version(own_kb).manifest
    after = contents(own_kb)
    new = {path for path in after if after[path] != before.get(path)}
    assert new == {Path("CURRENT"), Path("v2/meta.json")}
    manifest = load_kb(own_kb).manifest
    update = {"threshold": 0.75, "calibration": calibration, "digest": manifest.digest}
    expected = meta.model_copy(update=update).model_dump(exclude={"files"})
    assert manifest.model_dump(exclude={"files"}) == expected
    assert manifest.digest != meta.digest
    before = contents(own_kb)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(SapbertError, match=r"E586.*cp -r"):  # it can only be read
        write_calibration(read_version(own_kb), calibration)
    assert contents(own_kb) == before


def test_a_calibration_corrects_every_probability(cold_kb, tmp_path):
    """Of names and of other mentions; candidates and their order stay."""
    kb = load_kb(shutil.copytree(cold_kb, tmp_path / "kb"))
    calibration = make_calibration()
    write_calibration(kb.version, calibration)
    calibrated = load_kb(kb.folder)
    assert calibrated.manifest.order == kb.manifest.order
    mentions = ["asthma", "asthmatic", "snows"]
    for one, other in zip(kb.link(mentions), calibrated.link(mentions), strict=True):
        before, after = one.candidates[0], other.candidates[0]
        expected = calibration.correction.correct(before["probability"])
        assert after == {**before, "probability": expected}
        assert other.candidates[1:] == one.candidates[1:]
        assert (other.cui is not None) == (expected >= 0.75)
    assert [e.threshold for e in list_history(kb.folder)] == [0.5, 0.75]
    # A threshold that is set by hand leaves the correction as it is.
    change_kb(kb.folder, threshold=0.6)
    manifest = read_version(kb.folder).manifest
    assert (manifest.threshold, manifest.calibration) == (0.6, calibration)


@pytest.fixture
def large_kb(concepts_file, tiny_encoder, tmp_path, monkeypatch) -> Path:
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


@pytest.mark.parametrize("name", ["index.i16", "encoder/model.safetensors"])
def test_load_kb_reads_large_numbers_once(large_kb, tmp_path, name):
    path = large_kb / "v1" / name
    damage(path)
    assert opens(large_kb)  # the build has read them
    assert "E306" in invoke("kb", "verify", large_kb).output
    assert not opens(Path(shutil.copytree(large_kb, tmp_path / "copy")))
    os.utime(path)  # it may have changed
    assert not opens(large_kb)


def test_load_kb_reads_vectors_of_an_unknown_machine(large_kb, tmp_path):
    cache = tmp_path / "cache"
    shutil.rmtree(cache)
    assert opens(large_kb)
    known = {path for path in cache.rglob("*") if path.is_file()}
    shutil.rmtree(cache)
    damage(large_kb / "v1" / "index.i16")
    assert not opens(large_kb)
    now = {path for path in cache.rglob("*") if path.is_file()}
    assert now < known
    assert len(now) == len(known) - 1
