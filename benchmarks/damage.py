"""Damaged and hostile knowledge bases: a named error, no effect, or something else."""

import hashlib
import json
import os
import random
import resource
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import typer
from tqdm import trange

from benchmarks.harness import machine_line, print_table, run_cli
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.edits.change import add_concepts, remove_concepts
from spacy_sapbert.kb.folder.records import FILE, FileRecord, encoder_fingerprint
from spacy_sapbert.kb.folder.versions import Version, compute_digest, read_version
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.packages.copies import save_copy
from spacy_sapbert.vocabularies.concepts import Concept

GARBLED = 512  # bytes
NAMES = 5  # of the knowledge base, that are linked
VALUES: list[Any] = [0, -1, 1, 2, 7, 1 << 31, 1 << 62, 0.5, 1e308, -1e308, True]
VALUES += [None, "", "x", "../x", "\x1b[31m", [], {}, [1], {"x": 1}]
# what a child did; other exit codes and signals are "other"
NAMED_ERROR, NO_EFFECT, OTHER_ANSWER, RAW_ERROR = 10, 11, 12, 13
COLUMNS = ("tried", "named error", "no effect", "other answer", "other")

Damage = Callable[[Path, random.Random], None]


def flip_bit(path: Path, chance: random.Random) -> None:
    """Flip a bit of a file."""
    data = bytearray(path.read_bytes())
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def garble(path: Path, chance: random.Random) -> None:
    """Replace up to `GARBLED` bytes by random ones."""
    data = bytearray(path.read_bytes())
    start = chance.randrange(max(1, len(data) - GARBLED))
    size = len(data[start : start + GARBLED])
    data[start : start + size] = chance.randbytes(size)
    path.write_bytes(data)


def blank(path: Path, chance: random.Random) -> None:
    """Replace a page of 4,096 bytes by zeros, as a lost write does."""
    data = bytearray(path.read_bytes())
    start = chance.randrange(max(1, len(data))) // 4096 * 4096
    data[start : start + 4096] = bytes(len(data[start : start + 4096]))
    path.write_bytes(data)


def truncate(path: Path, chance: random.Random) -> None:
    """Cut a file at a random place."""
    os.truncate(path, chance.randrange(max(1, path.stat().st_size)))


def extend(path: Path, chance: random.Random) -> None:
    """Append random bytes."""
    with open(path, "ab") as file:
        file.write(chance.randbytes(chance.randint(1, GARBLED)))


def exchange(path: Path, chance: random.Random) -> None:
    """Replace a file by another one of the same folder tree."""
    root = next(folder for folder in path.parents if folder.name == "kb")
    others = [p for p in sorted(root.rglob("*")) if p.is_file() and p != path]
    shutil.copyfile(chance.choice(others), path)


def remove(path: Path, chance: random.Random) -> None:
    """Remove a file."""
    path.unlink()


def change_value(path: Path, chance: random.Random) -> None:
    """Replace a value in meta.json by another number, text, list or object."""
    meta = json.loads(path.read_text("utf8"))
    target: Any = meta
    while True:
        keys = [*target] if isinstance(target, dict) else range(len(target))
        key = chance.choice(keys)
        inner = target[key]
        if not isinstance(inner, (dict, list)) or not inner or chance.random() < 0.2:
            break
        target = inner
    target[key] = chance.choice(VALUES)
    path.write_text(json.dumps(meta), "utf8")


DAMAGES: dict[str, Damage] = {
    "a bit flipped": flip_bit,
    "512 bytes garbled": garble,
    "a page of zeros": blank,
    "cut": truncate,
    "extended": extend,
    "another file in its place": exchange,
    "removed": remove,
}


class Kind(NamedTuple):
    """A kind of damage.

    name (str): In the table.
    damage (Damage): Damages a file.
    signed (bool): The checksums are computed again, as a hostile author would.
    only (str): The only file that is damaged; empty = any.
    """

    name: str
    damage: Damage
    signed: bool
    only: str = ""


KINDS = [
    *(
        Kind(f"{name}, checksums kept", damage, False)
        for name, damage in DAMAGES.items()
    ),
    *(
        Kind(f"{name}, checksums recomputed", each, True)
        for name, each in DAMAGES.items()
        if each is not remove
    ),
    Kind("concepts.db: a bit flipped, recomputed", flip_bit, True, "concepts.db"),
    Kind("concepts.db: 512 bytes garbled, recomputed", garble, True, "concepts.db"),
    Kind("index: a bit flipped, recomputed", flip_bit, True, "index"),
    Kind("index: 512 bytes garbled, recomputed", garble, True, "index"),
    Kind("meta.json: a bit flipped", flip_bit, False, FILE),
    Kind("meta.json: 512 bytes garbled", garble, False, FILE),
    Kind("meta.json: a value changed, recomputed", change_value, True, FILE),
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
    if kb.manifest.ngrams:
        answers.append(kb.link(mentions, k=5, fusion="rrf"))
    first = answers[1][0].cui
    answers += [kb.related(first), kb.children(first)]
    answers.append(kb.store.spellings([mention.lower() for mention in mentions]))
    return hashlib.sha256(repr(answers).encode("utf8", "replace")).hexdigest()


def run_child(
    folder: Path, mentions: list[str], expected: str, *, seconds: int, memory: int
) -> tuple[int, str]:
    """Use a knowledge base in a forked process with limits.

    seconds (int), memory (int): The limits; memory in bytes, of addresses.
    RETURNS (tuple[int, str]): The exit code, negative = a signal; and an error's type.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        with open(reading, "rb") as pipe:
            kind = pipe.read().decode("utf8", "replace")
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status), kind
    code = RAW_ERROR
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        signal.alarm(seconds)
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        answers = compute_answers(folder, mentions)
        code = NO_EFFECT if answers == expected else OTHER_ANSWER
    except MemoryError:
        code = OTHER_ANSWER
    except SapbertError as error:
        code = NAMED_ERROR
        os.write(writing, str(error)[:6].encode())
    except BaseException as error:
        os.write(writing, f"{type(error).__name__}: {error}"[:300].encode())
    finally:
        os._exit(code)


def prepare(kb: Path, folder: Path) -> tuple[list[str], str]:
    """Copy a knowledge base, edit it so that it has an overlay, and use it once.

    RETURNS (tuple[list[str], str]): Mentions, and the answers to them.
    """
    save_copy(load_kb(kb), folder)
    opened: KnowledgeBase = load_kb(folder)
    concepts = list(opened.concepts())
    step = max(1, len(concepts) // NAMES)
    names = [concept.name for concept in concepts[::step]][:NAMES]
    opened = add_concepts(opened, [Concept("WARD-1", ["ward one", names[0]])])
    opened = remove_concepts(opened, [concepts[-1].cui])
    mentions = [*names, *(f"{name[:-1]}x" for name in names), "ward one", "?"]
    return mentions, compute_answers(folder, mentions)


def choose_file(version: Version, kind: Kind, chance: random.Random) -> str:
    """Return the name of the file to damage."""
    names = [*version.manifest.files] + ([] if kind.signed else [FILE])
    if kind.only:
        names = [n for n in (*names, FILE) if Path(n).name.startswith(kind.only)]
    return chance.choice(sorted(names))


def damage_kb(source: Path, target: Path, kind: Kind, chance: random.Random) -> str:
    """Write a damaged copy of a knowledge base; other files are hard links.

    RETURNS (str): The name of the damaged file.
    """
    shutil.rmtree(target, ignore_errors=True)
    version = read_version(source)
    name = choose_file(version, kind, chance)
    meta = source / version.name / FILE
    damaged = meta if name == FILE else version.path(name)
    shutil.copytree(source, target, copy_function=os.link)
    for path in {meta, damaged}:
        copy = target / path.relative_to(source)
        copy.unlink()
        shutil.copyfile(path, copy)
    kind.damage(target / damaged.relative_to(source), chance)
    if kind.signed:
        sign(target / version.name / FILE, target / damaged.relative_to(source), name)
    return name


def measure(
    kb: Path,
    *,
    tries: int,
    seed: int,
    seconds: int,
    memory: int,
    folder: Path | None = None,
) -> tuple[dict[str, Counter[str]], list[str]]:
    """Damage a knowledge base many times; see `main`.

    memory (int): Bytes that each try may use in addition.
    RETURNS (tuple[dict[str, Counter[str]], list[str]]): Counts by kind and column of
        `COLUMNS`, and a line for each "other".
    """
    chance = random.Random(seed)
    counts: dict[str, Counter[str]] = {kind.name: Counter() for kind in KINDS}
    others: list[str] = []
    with TemporaryDirectory(prefix="sapbert-damage-", dir=folder) as temporary:
        whole = Path(temporary) / "whole" / "kb"
        mentions, expected = prepare(kb, whole)
        used = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        limit = used * os.sysconf("SC_PAGESIZE") + memory
        for number in trange(tries, unit=" tries", disable=not sys.stderr.isatty()):
            kind = KINDS[number % len(KINDS)]
            target = Path(temporary) / "damaged" / "kb"
            name = damage_kb(whole, target, kind, chance)
            code, error = run_child(
                target, mentions, expected, seconds=seconds, memory=limit
            )
            other = "other answer" if kind.signed else "other"
            column = {
                NAMED_ERROR: "named error",
                NO_EFFECT: "no effect",
                OTHER_ANSWER: other,
                -signal.SIGALRM: other,
            }.get(code, "other")
            counts[kind.name].update(["tried", column])
            if column == "other":
                others.append(f"try {number}, {kind.name}, {name}: {code} {error}")
    return counts, others


def main(
    kb: Path = typer.Argument(..., help="Folder of a knowledge base; a small one."),
    tries: int = typer.Option(1200, min=1, help="Damaged copies."),
    seed: int = typer.Option(0, help="Of the random damages."),
    seconds: int = typer.Option(30, min=1, help="Limit of time for each."),
    memory: int = typer.Option(2000, min=100, help="Limit of memory for each, in MB."),
) -> None:
    """kb/ -> table: what damaged copies of it do, each in a process with limits

    With recomputed checksums, a copy may answer otherwise or exceed a limit: its author
    may write any content. The last column counts crashes, raw errors and, with kept
    checksums, other answers and exceeded limits. Exit code: 1 if it is not 0.

    Example: python -m benchmarks.damage models/sample/kb --tries 1200
    """
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # no threads before a fork
    counts, others = measure(
        kb, tries=tries, seed=seed, seconds=seconds, memory=memory << 20
    )
    counts["all"] = sum(counts.values(), Counter())
    rows = [
        [kind, *(found[each] for each in COLUMNS)] for kind, found in counts.items()
    ]
    typer.echo(machine_line())
    print_table(("kind of damage", *COLUMNS), rows)
    for line in others:
        typer.echo(line)
    raise typer.Exit(bool(others))


if __name__ == "__main__":
    run_cli(main)
