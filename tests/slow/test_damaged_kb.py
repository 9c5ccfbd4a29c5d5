"""Damaged and hostile knowledge bases: a named error, no effect, or another answer.

Each copy is used in a forked process with limits. With checksums that were computed
again, as by a hostile author, it may answer otherwise, raise any error or exceed a
limit, but no signal ends the process.
"""

import hashlib
import json
import os
import random
import resource
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.edits.change import add_concepts, remove_concepts
from spacy_sapbert.kb.folder.layout import FILE
from spacy_sapbert.kb.folder.publication import save_copy
from spacy_sapbert.kb.folder.records import FileRecord, encoder_fingerprint
from spacy_sapbert.kb.folder.versions import compute_digest, read_version
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.linking.text import name_keys
from spacy_sapbert.vocabularies.concepts import Concept
from tests.faults import run_in_fork

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="forks with limits"),
]
TRIES = 30  # of each kind of damage
SECONDS, MEMORY = 30, 2000 << 20  # limits of each
GARBLED = 512  # bytes
VALUES: list[Any] = [0, -1, 1, 2, 7, 1 << 31, 1 << 62, 0.5, 1e308, -1e308, True]
VALUES += [None, "", "x", "../x", "\x1b[31m", [], {}, [1], {"x": 1}]
# what a process did; other exit codes and signals are failures
NAMED_ERROR, NO_EFFECT, OTHER_ANSWER, OTHER_ERROR = 10, 11, 12, 13

Damage = Callable[[Path, random.Random], None]


def flip_bit(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def garble(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    start = chance.randrange(max(1, len(data) - GARBLED))
    size = len(data[start : start + GARBLED])
    data[start : start + size] = chance.randbytes(size)
    path.write_bytes(data)


def blank_page(path: Path, chance: random.Random) -> None:
    """Replace a page by zeros, as a lost write does."""
    data = bytearray(path.read_bytes())
    start = chance.randrange(max(1, len(data))) // 4096 * 4096
    data[start : start + 4096] = bytes(len(data[start : start + 4096]))
    path.write_bytes(data)


def truncate(path: Path, chance: random.Random) -> None:
    os.truncate(path, chance.randrange(max(1, path.stat().st_size)))


def extend(path: Path, chance: random.Random) -> None:
    with open(path, "ab") as file:
        file.write(chance.randbytes(chance.randint(1, GARBLED)))


def exchange(path: Path, chance: random.Random) -> None:
    """Replace a file by one of the knowledge base that has other content."""
    root = next(folder for folder in path.parents if folder.name == "kb")
    own = path.read_bytes()
    files = (p for p in sorted(root.rglob("*")) if p.is_file())
    others = [p for p in files if p.read_bytes() != own]
    shutil.copyfile(chance.choice(others), path)


def remove(path: Path, chance: random.Random) -> None:
    path.unlink()


def change_value(path: Path, chance: random.Random) -> None:
    """Replace a value in meta.json by another number, text, list or object."""
    meta = json.loads(path.read_text("utf8"))
    target: Any = meta
    while True:
        key = chance.choice(
            [*target] if isinstance(target, dict) else range(len(target))
        )
        inner = target[key]
        if not isinstance(inner, dict | list) or not inner or chance.random() < 0.2:
            break
        target = inner
    target[key] = chance.choice(VALUES)
    path.write_text(json.dumps(meta), "utf8")


DAMAGES = [flip_bit, garble, blank_page, truncate, extend, exchange]
# damage, whether the checksums are computed again, and the only file, or any
KINDS: list[tuple[Damage, bool, str]] = [
    *((damage, signed, "") for damage in DAMAGES for signed in (False, True)),
    (remove, False, ""),
    *((damage, True, "concepts.db") for damage in (flip_bit, garble)),
    *((damage, True, "index") for damage in (flip_bit, garble)),
    *((damage, False, FILE) for damage in (flip_bit, garble)),
    (change_value, True, FILE),
]


def sign(meta_path: Path, damaged: Path, name: str) -> None:
    """Compute the checksum of a damaged file, the fingerprint and the digest again."""
    try:
        meta = json.loads(meta_path.read_text("utf8"))
        if name != FILE:
            content = damaged.read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            meta["files"][name] |= {"size": len(content), "sha256": digest}
            records = {k: FileRecord(**v) for k, v in meta["files"].items()}
            meta["encoder"]["fingerprint"] = encoder_fingerprint(records)
        meta["digest"] = compute_digest(meta)
    except (ValueError, KeyError, TypeError, AttributeError):
        return
    meta_path.write_text(json.dumps(meta), "utf8")


def compute_answers(folder: Path, mentions: list[str]) -> str:
    """Open a knowledge base, use everything in it, and return what it answered."""
    kb = load_kb(folder)
    answers: list[Any] = [kb.link(mentions, k=5), list(kb.concepts())]
    types = sorted({t for concept in answers[1] for t in concept.types})
    if types:
        answers.append(kb.link(mentions, k=5, filter={"types": types[:1]}))
    first = answers[1][0].cui
    answers += [kb.related(first), kb.children(first)]
    answers.append(
        kb.store.names_of_keys(
            key for mention in mentions for key in name_keys(mention, "english")
        )
    )
    return hashlib.sha256(repr(answers).encode("utf8", "replace")).hexdigest()


def use_kb(folder: Path, mentions: list[str], expected: str) -> int:
    """Use a knowledge base with little time and memory; return what came of it."""
    signal.alarm(SECONDS)
    used = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    limit = used * os.sysconf("SC_PAGESIZE") + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        answers = compute_answers(folder, mentions)
    except MemoryError:
        return OTHER_ANSWER
    except SapbertError:
        return NAMED_ERROR
    except Exception:
        return OTHER_ERROR
    return NO_EFFECT if answers == expected else OTHER_ANSWER


def damage_copy(
    source: Path, target: Path, kind: tuple[Damage, bool, str], chance: random.Random
) -> str:
    """Write a damaged copy; other files are links. Return the damaged file's name."""
    damage, signed, only = kind
    version = read_version(source)
    names = [*version.manifest.files, FILE]
    if only:
        names = [name for name in names if Path(name).name.startswith(only)]
    elif signed:
        names.remove(FILE)
    name = chance.choice(sorted(names))
    meta = source / version.name / FILE
    damaged = meta if name == FILE else version.path(name)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, copy_function=os.link)
    for path in {meta, damaged}:
        copy = target / path.relative_to(source)
        copy.unlink()
        shutil.copyfile(path, copy)
    damage(target / damaged.relative_to(source), chance)
    if signed:
        sign(target / version.name / FILE, target / damaged.relative_to(source), name)
    return name


@pytest.fixture(scope="module")
def whole(cold_kb, tmp_path_factory) -> tuple[Path, list[str], str]:
    """A knowledge base with an overlay, mentions, and its answers to them."""
    folder = tmp_path_factory.mktemp("whole") / "kb"
    save_copy(load_kb(cold_kb).version, folder)
    opened = load_kb(folder)
    concepts = list(opened.concepts())
    names = [concept.name for concept in concepts[:5]]
    opened = add_concepts(opened, [Concept("WARD-1", ["ward one", names[0]])])
    remove_concepts(opened, [concepts[-1].cui])
    mentions = [*names, *(f"{name[:-1]}x" for name in names), "ward one", "?"]
    return folder, mentions, compute_answers(folder, mentions)


def damage_and_use(
    signed: bool, whole: tuple[Path, list[str], str], folder: Path
) -> None:
    """Damage many copies of a knowledge base, and use each in a fork."""
    source, mentions, expected = whole
    assert compute_answers(source, mentions) == expected  # imports all, for the forks
    for kind in KINDS:
        if kind[1] != signed:
            continue
        chance = random.Random(f"{kind[0].__name__} {kind[1:]}")
        may_be = {NAMED_ERROR, NO_EFFECT}
        if signed:  # its author may write any content
            may_be |= {OTHER_ANSWER, OTHER_ERROR, -signal.SIGALRM}
        elif not kind[2]:
            may_be = {NAMED_ERROR}  # the checksum of every file is checked
        for number in range(TRIES):
            name = damage_copy(source, folder, kind, chance)
            code = run_in_fork(lambda: use_kb(folder, mentions, expected))
            assert code in may_be, f"{kind}, try {number}, {name}"


@pytest.mark.parametrize("signed", [False, True])
def test_damaged_kb_is_a_named_error_or_without_effect(
    signed, whole, tmp_path, monkeypatch, new_process
):
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")  # no threads before a fork
    new_process.call(damage_and_use, signed, whole, tmp_path / "kb")
