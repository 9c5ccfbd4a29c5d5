"""concepts.jsonl → pairs.tsv: on each line a concept and two of its names."""

import hashlib
import json
import math
import random
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Annotated

import typer

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.progress import show_progress
from spacy_sapbert.io.reading import read_lines
from spacy_sapbert.io.writing import check_outputs, write_atomically
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts
from training.data.options import Concepts, Force, Quiet, print_counts

Pair = tuple[str, str, str]  # CUI, one name, another name
ConceptNames = tuple[str, list[str]]  # CUI and names


def hash_text(text: str) -> int:
    """Return a 64-bit hash of a text, equal in all processes, signed for torch."""
    digest = hashlib.blake2b(text.encode("utf8"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def distinct_names(concept: Concept) -> list[str]:
    """Return the names that differ in more than case and white space, sorted."""
    names: dict[str, str] = {}
    for alias in concept.aliases:
        name = " ".join(alias.split())
        names.setdefault(name.lower(), name)
    return [names[key] for key in sorted(names)]


def read_pairs(path: Path) -> Iterator[list[str]]:
    """Yield id and two names of each line of pairs.tsv, plain or `.gz`.

    Lines `id||name||name`, as the authors' scripts write them, are read too.
    """
    for line_number, line in read_lines(path):
        fields = line.split("\t" if "\t" in line else "||")
        if len(fields) != 3:
            raise SapbertError(
                "E117",
                f"{path}:{line_number}: Expected a concept id and two names with tabs "
                f"or `||` between them, but got {len(fields)} fields. Make the file "
                "again with `python -m training pairs`.",
            )
        yield fields


class NameTable:
    """The names of all concepts in a temporary database."""

    def __init__(self, scratch: sqlite3.Connection) -> None:
        self.scratch = scratch
        self.count = 0
        # rows are numbered 1, 2, 3 …, so that a random one can be read by number
        scratch.execute("CREATE TABLE concepts (label UNIQUE, cui, names)")

    def add(self, concepts: Iterable[Concept]) -> Iterator[Concept]:
        """Add concepts, and yield them."""
        for concept in concepts:
            names = json.dumps(distinct_names(concept))
            row = (hash_text(concept.cui), concept.cui, names)
            self.scratch.execute("INSERT OR IGNORE INTO concepts VALUES (?, ?, ?)", row)
            yield concept
        last = self.scratch.execute("SELECT max(rowid) FROM concepts").fetchone()
        self.count = last[0] or 0

    def find(self, column: str, value: int) -> ConceptNames | None:
        """Return the concept with a `label`, the hash of its id, or a `rowid`."""
        query = f"SELECT cui, names FROM concepts WHERE {column} = ?"
        row = self.scratch.execute(query, (int(value),)).fetchone()
        return None if row is None else (row[0], json.loads(row[1]))


def nth_combination(n: int, index: int) -> tuple[int, int]:
    """Return the `index`-th of the n·(n−1)/2 pairs (0, 1), (0, 2), …, (n−2, n−1)."""
    left = n * (n - 1) // 2 - 1 - index  # pairs after it
    row = (math.isqrt(8 * left + 1) - 1) // 2  # rows of 1, 2, 3 … pairs, from the end
    first = n - 2 - row
    return first, n - 1 - (left - row * (row + 1) // 2)


def sample_pairs(concept: Concept, *, most: int = 50, seed: int = 0) -> Iterator[Pair]:
    """Yield pairs of a concept's names, at most so many.

    They are drawn without building all pairs. The seed of the sample is `seed` with the
    CUI: the pairs of a concept do not depend on the other concepts.

    Source:
        Liu et al. (2021), §3.1.
    """
    names = distinct_names(concept)
    total = len(names) * (len(names) - 1) // 2
    if total <= most:
        chosen: Iterable[tuple[int, int]] = combinations(range(len(names)), 2)
    else:
        # Seeded by a text, not by its hash, which depends on PYTHONHASHSEED.
        picks = random.Random(f"{seed} {concept.cui}").sample(range(total), most)
        chosen = (nth_combination(len(names), pick) for pick in sorted(picks))
    for one, other in chosen:
        yield concept.cui, names[one], names[other]


def write_lines(
    pairs: Iterable[Pair], path: Path, describe_empty: Callable[[], SapbertError]
) -> int:
    """Write pairs, tab-separated, to a file; return their number.

    Without pairs no file is written, and the error is `describe_empty()`.
    """
    count = 0
    with write_atomically(path) as file:
        for pair in pairs:
            file.write("\t".join(pair).encode("utf8") + b"\n")
            count += 1
        if not count:
            raise describe_empty()
    return count


def write_pairs(
    concepts: Iterable[Concept], path: Path, *, most: int, seed: int
) -> dict[str, int]:
    """Write the pairs of a vocabulary, in the order of the concepts; return counts."""
    counts = {"concepts": 0, "distinct names": 0, "concepts with two names or more": 0}
    trimmed = f"concepts trimmed to {most} pairs"
    counts[trimmed] = 0

    def iter_pairs() -> Iterator[Pair]:
        for concept in concepts:
            names = len(distinct_names(concept))
            counts["concepts"] += 1
            counts["distinct names"] += names
            counts["concepts with two names or more"] += names > 1
            counts[trimmed] += names * (names - 1) // 2 > most
            yield from sample_pairs(concept, most=most, seed=seed)

    pairs = write_lines(
        iter_pairs(),
        path,
        lambda: SapbertError(
            "E106",
            "Expected at least one concept with two different names, but got none in "
            f"{counts['concepts']} concepts. Read a vocabulary with synonyms, or "
            "change its filters.",
        ),
    )
    return {**counts, "pairs": pairs}


def pairs_command(
    concepts: Concepts,
    pairs: Annotated[Path, typer.Argument(help="pairs.tsv to write.")],
    most: Annotated[int, typer.Option(min=1, help="Pairs of a concept at most.")] = 50,
    seed: Annotated[int, typer.Option(help="Seed of the pairs.")] = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write pairs of the names of each concept.

    Example: python -m training pairs assets/concepts.jsonl corpus/pairs.tsv --seed 1
    """
    check_outputs(pairs, force=force)
    read = show_progress(read_concepts(concepts), unit="concepts", quiet=quiet)
    counts = write_pairs(read, pairs, most=most, seed=seed)
    print_counts(counts, pairs, quiet=quiet)
