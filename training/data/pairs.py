"""concepts.jsonl → pairs.tsv: two names of one concept a line, with the concept."""

import math
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path

import typer
from tqdm import tqdm
from wasabi import msg

from training.errors import Errors, SapbertError
from spacy_sapbert.system.writing import write_atomically
from spacy_sapbert.vocabularies.checks import check_known
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts

Pair = tuple[str, str, str]  # cui, one name, another name


def distinct_names(concept: Concept) -> list[str]:
    """Return a concept's names that differ in more than case and white space, sorted.

    concept (Concept): The concept.
    RETURNS (list[str]): The first spelling of each.
    """
    names: dict[str, str] = {}
    for alias in concept.aliases:
        name = " ".join(alias.split())
        names.setdefault(name.lower(), name)
    return [names[key] for key in sorted(names)]


def keep_languages(
    concepts: Iterable[Concept], languages: Sequence[str], path: Path
) -> Iterator[Concept]:
    """Leave out all names but those in some languages.

    concepts (Iterable[Concept]): The concepts.
    languages (Sequence[str]): As the concepts have them, e.g. "ENG"; a name whose
        language is not known is in none.
    path (Path): Where the concepts come from, for the error.
    YIELDS (Concept): Id and names of each concept that has such names.
    RAISES (SapbertError): After the last, if no concept had one of the languages.
    """
    seen: set[str] = set()
    for concept in concepts:
        seen.update(concept.languages)
        places = {p for each in languages for p in concept.languages.get(each, ())}
        if places:
            yield Concept(concept.cui, [concept.aliases[p] for p in sorted(places)])
    check_known("languages", languages, sorted(seen), path)


def nth_combination(n: int, index: int) -> tuple[int, int]:
    """Find the `index`-th of the n·(n−1)/2 pairs (0, 1), (0, 2), …, (n−2, n−1).

    n (int): How many things are paired, at least 2.
    index (int): From 0.
    RETURNS (tuple[int, int]): Two different numbers below `n`, the smaller first.
    """
    left = n * (n - 1) // 2 - 1 - index  # pairs that come after it
    row = (math.isqrt(8 * left + 1) - 1) // 2  # rows of 1, 2, 3 … pairs, from the end
    first = n - 2 - row
    return first, n - 1 - (left - row * (row + 1) // 2)


def sample_pairs(concept: Concept, *, most: int = 50, seed: int = 0) -> Iterator[Pair]:
    """Pair a concept's names, at most `most` times, without making all pairs first.

    concept (Concept): The concept.
    most (int): How many pairs to keep.
    seed (int): Together with the CUI it decides which, so that a concept's pairs
        depend on nothing else in the vocabulary.
    YIELDS (Pair): CUI and two different names, sorted.
    SOURCE: Liu et al. (2021), §3.1.
    """
    names = distinct_names(concept)
    total = len(names) * (len(names) - 1) // 2
    if total <= most:
        chosen: Iterable[tuple[int, int]] = combinations(range(len(names)), 2)
    else:
        # Seeded by a text, not by a hash of it: the same for any PYTHONHASHSEED.
        picks = random.Random(f"{seed} {concept.cui}").sample(range(total), most)
        chosen = (nth_combination(len(names), pick) for pick in sorted(picks))
    for one, other in chosen:
        yield concept.cui, names[one], names[other]


def write_pairs(
    concepts: Iterable[Concept], path: Path, *, most: int = 50, seed: int = 0
) -> dict[str, int]:
    """Write the pairs of a whole vocabulary.

    concepts (Iterable[Concept]): The concepts; their order is the order of the file.
    path (Path): pairs.tsv, or pairs.tsv.gz.
    most (int): Pairs of one concept at the most.
    seed (int): Which ones, where there are more.
    RETURNS (dict[str, int]): How many concepts, names and pairs there were, how many
        concepts had two names, and how many had more pairs than `most`.
    RAISES (SapbertError): If no concept has two names.
    """
    counts = dict.fromkeys(("concepts", "names", "paired", "trimmed", "pairs"), 0)
    with write_atomically(path) as file:
        for concept in concepts:
            names = len(distinct_names(concept))
            counts["concepts"] += 1
            counts["names"] += names
            counts["paired"] += names > 1
            counts["trimmed"] += names * (names - 1) // 2 > most
            for pair in sample_pairs(concept, most=most, seed=seed):
                file.write("\t".join(pair).encode("utf8") + b"\n")
                counts["pairs"] += 1
        if not counts["pairs"]:
            raise SapbertError(Errors.E602.format(concepts=counts["concepts"]))
    return counts


def main(
    concepts_path: Path = typer.Argument(
        ..., metavar="CONCEPTS", help="concepts.jsonl"
    ),
    pairs_path: Path = typer.Argument(..., metavar="PAIRS", help="pairs.tsv to write"),
    languages: str = typer.Option(
        "all", help="Languages whose names are paired: ENG,FIN; or all."
    ),
    most: int = typer.Option(50, min=1, help="Pairs of one concept at the most."),
    seed: int = typer.Option(0, help="Which pairs, where there are more."),
    quiet: bool = typer.Option(False, help="Print nothing but errors."),
) -> None:
    """concepts.jsonl -> pairs.tsv

    Example: python -m training.data.pairs assets/concepts.jsonl corpus/pairs.tsv --seed 1

    Example: python -m training.data.pairs assets/concepts.jsonl corpus/pairs-en-fi.tsv
    --languages ENG,FIN
    """
    try:
        concepts: Iterable[Concept] = tqdm(
            read_concepts(concepts_path),
            unit=" concepts",
            disable=quiet or not sys.stderr.isatty(),
        )
        if languages != "all":
            chosen = [language.strip() for language in languages.split(",")]
            concepts = keep_languages(concepts, chosen, concepts_path)
        counts = write_pairs(concepts, pairs_path, most=most, seed=seed)
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    if not quiet:
        msg.table(
            [
                ("Concepts", counts["concepts"]),
                ("Distinct names", counts["names"]),
                ("Concepts with two names or more", counts["paired"]),
                (f"Concepts trimmed to {most} pairs", counts["trimmed"]),
                ("Pairs", counts["pairs"]),
            ]
        )
        msg.good(f"Wrote {pairs_path}")


if __name__ == "__main__":
    typer.run(main)
