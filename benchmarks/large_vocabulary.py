"""A vocabulary of the shape of UMLS: real names, and generated ones made of them.

A generated concept is a real one with a qualifier: some of its names, each with the
same word of another name after it. So generated names are nearly all distinct, synonyms
stay near each other, and a name has many near neighbours, as in UMLS.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
import typer

from benchmarks.harness import machine_line
from spacy_sapbert.io.progress import show_progress
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts

WORDS = 5_000  # qualifiers
WORD = re.compile(r"[a-z]{4,12}")
PREFIX = "G"  # of the ids of generated concepts: G0000001 …
TYPES = ("T047", "T121", "T061", "T116", "T033", "T023", "T184", "T191")
# Share of the concepts with so many names: most have one or two, few have many, and
# the mean is that of UMLS: 10 million names of 4 million concepts.
NAMES_SHARES = {1: 0.45, 2: 0.22, 3: 0.12, 4: 0.07, 6: 0.07, 10: 0.05, 20: 0.02}
# An English name of UMLS is in 1.7 rows on average, each of another source.
SOURCES = ("SNOMEDCT_US", "MSH", "NCI", "RXNORM")
ROWS_SHARES = {1: 0.55, 2: 0.25, 3: 0.15, 4: 0.05}


def frequent_words(concepts: Sequence[Concept], most: int = WORDS) -> list[str]:
    """Return the most frequent words of English names, the most frequent first."""
    counts: Counter[str] = Counter()
    for concept in concepts:
        for alias in concept.aliases:
            counts.update({*WORD.findall(alias.lower())})
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [word for word, _ in ordered[:most]]


def generate_concepts(
    concepts: Sequence[Concept], words: Sequence[str], names: int, seed: int
) -> Iterator[Concept]:
    """Yield concepts made of real ones and of qualifiers, with so many names."""
    rng = random.Random(seed)
    drawn = iter_choices(NAMES_SHARES, rng)
    written = number = turn = 0
    while written < names and turn < len(words):
        for place, concept in enumerate(concepts):
            # In each turn another word follows the names of a concept.
            word = words[(place * 7919 + turn) % len(words)]
            rest = iter(concept.aliases)
            while own := list(islice(rest, next(drawn))):
                own = own[: names - written]
                if not own:
                    return
                aliases = [f"{alias} {word}" for alias in own]
                cui = f"{PREFIX}{number:07}"
                yield Concept(cui, aliases, types=[TYPES[number % len(TYPES)]])
                written += len(aliases)
                number += 1
        turn += 1


def write_rows(concept: Concept, atoms: Iterator[int], file: BinaryIO) -> int:
    """Write the rows of a concept to MRCONSO, so many `atoms` a name; count them."""
    lines = []
    for place, alias in enumerate(concept.aliases):
        status, kind = ("P", "PF") if not place else ("S", "VO")
        text = alias.replace("|", "/")
        for source in SOURCES[: next(atoms)]:
            lines.append(
                f"{concept.cui}|ENG|{status}|L0|{kind}|S0|Y|A0||||{source}|PT|"
                f"{concept.cui}|{text}|0|N||\n"
            )
    file.write("".join(lines).encode("utf8"))
    return len(lines)


def iter_choices(shares: dict[int, float], rng: random.Random) -> Iterator[int]:
    """Yield random numbers for ever."""
    while True:
        yield from rng.choices([*shares], [*shares.values()], k=65_536)


def write_vocabulary(
    paths: list[Path] = typer.Argument(
        ..., help="concepts.jsonl of real vocabularies."
    ),
    out: Path = typer.Option(..., help="Folder for MRCONSO.RRF and MRSTY.RRF."),
    names: int = typer.Option(10_000_000, help="Names, real and generated."),
    seed: int = typer.Option(0),
) -> None:
    """concepts.jsonl -> MRCONSO.RRF of the shape of UMLS

    Example: python -m benchmarks.scale vocabulary mesh.jsonl open.jsonl --out rrf
    """
    real = list(chain.from_iterable(map(read_concepts, paths)))
    words = frequent_words(real)
    kept: list[Concept] = []
    count = 0
    for concept in real:
        if count >= names:
            break
        kept.append(concept)
        count += len(concept.aliases)
    # Rich Release Format is sorted by id.
    kept.sort(key=lambda concept: concept.cui.encode("utf8"))
    before = [concept for concept in kept if concept.cui < PREFIX]
    out.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed + 1)
    generated = generate_concepts(real, words, names - count, seed)
    rows = concepts = 0
    atoms = iter_choices(ROWS_SHARES, rng)
    with open(out / "MRCONSO.RRF", "wb") as conso, open(out / "MRSTY.RRF", "wb") as sty:
        every = chain(before, generated, kept[len(before) :])
        for concept in show_progress(every, unit="concepts"):
            rows += write_rows(concept, atoms, conso)
            sty.writelines(
                f"{concept.cui}|{kind}|A1|{kind}|AT0||\n".encode()
                for kind in concept.types
            )
            concepts += 1
    msg.text(machine_line())
    msg.text(
        f"{concepts:,} concepts, {rows:,} rows; {len(kept):,} concepts with {count:,} "
        "names are real."
    )


class MixedVectors:
    """The vectors of a generated vocabulary, without encoding all of it.

    A real name has the vector that its encoder gives. A generated one has the sum of
    the vectors of the real name and of its qualifier, each with the number of its token
    ids as weight: nearly what an encoder with mean pooling gives.

    Args:
        known: Token ids of the real names and words, as bytes, and the row of their
            vector.
        vectors: Shape: (n, width).
    """

    def __init__(self, known: dict[bytes, int], vectors: np.ndarray) -> None:
        self.known = known
        self.vectors = vectors

    def split(self, ids: tuple[int, ...]) -> tuple[int, int, float] | None:
        """Return the rows of a name and its qualifier, and the weight of the latter.

        The token ids have those of begin and end. None if they are not known.
        """
        whole = self.known.get(np.array(ids, dtype="<i4").tobytes())
        if whole is not None:
            return whole, whole, 0.0
        first, inner, last = ids[:1], ids[1:-1], ids[-1:]
        for length in range(1, min(6, len(inner))):
            name = first + inner[:-length] + last
            word = first + inner[-length:] + last
            rows = [
                self.known.get(np.array(part, dtype="<i4").tobytes())
                for part in (name, word)
            ]
            if rows[0] is not None and rows[1] is not None:
                return rows[0], rows[1], length / (len(inner) - length)
        return None

    def mix(self, names: Sequence[tuple[int, ...]]) -> tuple[np.ndarray, np.ndarray]:
        """Return vectors, (n, width), and which of the names are not known, (n,)."""
        parts = [self.split(ids) for ids in names]
        missing = np.array([part is None for part in parts])
        rows = np.array([part or (0, 0, 0.0) for part in parts])
        places = rows[:, :2].astype(np.int64)
        weights = rows[:, 2:].astype(np.float32)
        mixed = self.vectors[places[:, 0]] + weights * self.vectors[places[:, 1]]
        mixed /= np.linalg.norm(mixed, axis=1, keepdims=True)
        return mixed.astype(np.float32), missing
