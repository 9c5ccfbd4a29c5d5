"""concepts.jsonl → concepts to train on, and concepts held out for evaluation."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import typer
from wasabi import msg

from spacy_sapbert.vocabularies.concepts import Concept, read_concepts, write_concepts
from training.data.pairs import hash_text
from training.errors import Errors, SapbertError


def is_held_out(cui: str, *, share: float, seed: int = 0) -> bool:
    """Return whether a concept is held out; it depends on its id and the seed only."""
    # Seeded by a text, not by its hash, which depends on PYTHONHASHSEED.
    return random.Random(f"{seed} {cui}").random() < share


def without_names(concept: Concept, names: set[int]) -> Concept | None:
    """Return a concept without some names.

    names (set[int]): Hashes of names in lower case.
    RETURNS (Concept | None): The concept with its other names; None if none is left.
    """
    kept = [
        place
        for place, alias in enumerate(concept.aliases)
        if hash_text(alias.lower()) not in names
    ]
    if len(kept) == len(concept.aliases):
        return concept
    places = {old: new for new, old in enumerate(kept)}
    languages, sources = (
        {
            key: [places[old] for old in olds if old in places]
            for key, olds in table.items()
            if not places.keys().isdisjoint(olds)
        }
        for table in (concept.languages, concept.sources)
    )
    left = [concept.aliases[place] for place in kept]
    if not left:
        return None
    return replace(concept, aliases=left, languages=languages, sources=sources)


def hold_out(
    concepts_path: Path, trained: Path, held_out: Path, *, share: float, seed: int = 0
) -> dict[str, int]:
    """Split a vocabulary by concepts.

    concepts_path (Path): concepts.jsonl; it is read several times.
    trained (Path): concepts.jsonl to train on, without names that a held-out concept
        has, too, up to case. Held-out parents keep their ids there.
    share (float): Share that is held out, 0 to 1.
    RETURNS (dict[str, int]): Number of concepts to train on, held out, and left out
        because all their names are held out (`nameless`).
    RAISES (SapbertError): If a file is not usable, or one part would be empty.
    """
    own: set[int] = set()  # hashes of held-out names
    total = held = 0

    def iter_held_out() -> Iterator[Concept]:
        for concept in read_concepts(concepts_path):
            if is_held_out(concept.cui, share=share, seed=seed):
                yield concept

    def iter_trained() -> Iterator[Concept]:
        for concept in read_concepts(concepts_path):
            if not is_held_out(concept.cui, share=share, seed=seed):
                left = without_names(concept, own)
                if left is not None:
                    yield left

    for concept in read_concepts(concepts_path):
        total += 1
        if is_held_out(concept.cui, share=share, seed=seed):
            held += 1
            own.update(hash_text(alias.lower()) for alias in concept.aliases)
    if not held or next(iter_trained(), None) is None:
        raise SapbertError(Errors.E761.format(share=share, total=total))
    count = write_concepts(trained, iter_trained())
    write_concepts(held_out, iter_held_out())
    return {"trained": count, "held_out": held, "nameless": total - held - count}


def hold_out_command(
    concepts_path: Path = typer.Argument(
        ..., metavar="CONCEPTS", help="concepts.jsonl"
    ),
    trained: Path = typer.Argument(
        ..., metavar="TRAINED", help="concepts.jsonl to train on, to write"
    ),
    held_out: Path = typer.Argument(
        ..., metavar="HELD_OUT", help="concepts.jsonl for evaluation, to write"
    ),
    share: float = typer.Option(0.1, min=0, max=1, help="Share that is held out."),
    seed: int = typer.Option(0, help="Seed of the split."),
    quiet: bool = typer.Option(False, help="Print nothing but errors."),
) -> None:
    """Example: python -m training hold-out corpus/concepts.jsonl corpus/trained.jsonl
    corpus/held_out.jsonl --share 0.1
    """
    counts = hold_out(concepts_path, trained, held_out, share=share, seed=seed)
    if not quiet:
        msg.good(f"Wrote {counts['trained']:,} concepts to {trained}")
        msg.good(f"Wrote {counts['held_out']:,} concepts to {held_out}")
        if counts["nameless"]:
            msg.info(f"{counts['nameless']:,} concepts have held-out names only.")
