"""concepts.jsonl → what is trained on, and what is kept for judging, by concepts."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import typer
from wasabi import msg

from training.errors import Errors, SapbertError
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts, write_concepts
from training.data.tokenized_pairs import hash_text


def is_held_out(cui: str, *, share: float, seed: int = 0) -> bool:
    """Decide whether a concept is kept for judging; no other concept matters.

    cui (str): Its id.
    share (float): Of all concepts, 0 to 1.
    seed (int): Which ones.
    RETURNS (bool): Whether it is.
    """
    # Seeded by a text, not by a hash of it: the same for any PYTHONHASHSEED.
    return random.Random(f"{seed} {cui}").random() < share


def without_names(concept: Concept, names: set[int]) -> Concept | None:
    """Take names away from a concept.

    concept (Concept): The concept.
    names (set[int]): Hashes of names in lower case.
    RETURNS (Concept | None): With the others, in order; None if none is left.
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
    """Part a vocabulary.

    concepts_path (Path): concepts.jsonl; it is read several times.
    trained (Path): concepts.jsonl of what is trained on, without the names, up to case,
        that a held-out concept has too. Parents that are held out are still named there
        by their ids.
    held_out (Path): concepts.jsonl of the others.
    share (float): Of the others, 0 to 1.
    seed (int): Which ones.
    RETURNS (dict[str, int]): How many concepts are trained on, held out, and in neither
        file, as no name was left.
    RAISES (SapbertError): If a file is not usable, or either would be empty.
    """
    own: set[int] = set()  # hashes of the names that are held out
    total = held = 0

    def list_held_out() -> Iterator[Concept]:
        for concept in read_concepts(concepts_path):
            if is_held_out(concept.cui, share=share, seed=seed):
                yield concept

    def list_trained() -> Iterator[Concept]:
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
    if not held or next(list_trained(), None) is None:
        raise SapbertError(Errors.E761.format(share=share, total=total))
    count = write_concepts(trained, list_trained())
    write_concepts(held_out, list_held_out())
    return {"trained": count, "held_out": held, "nameless": total - held - count}


def main(
    concepts_path: Path = typer.Argument(
        ..., metavar="CONCEPTS", help="concepts.jsonl"
    ),
    trained: Path = typer.Argument(
        ..., metavar="TRAINED", help="concepts.jsonl to train on, to write"
    ),
    held_out: Path = typer.Argument(
        ..., metavar="HELD_OUT", help="concepts.jsonl to judge with, to write"
    ),
    share: float = typer.Option(0.1, min=0, max=1, help="Share that is held out."),
    seed: int = typer.Option(0, help="Which concepts."),
    quiet: bool = typer.Option(False, help="Print nothing but errors."),
) -> None:
    """concepts.jsonl -> trained.jsonl + held_out.jsonl

    Example: python -m training.data.hold_out corpus/concepts.jsonl corpus/trained.jsonl
    corpus/held_out.jsonl --share 0.1
    """
    try:
        counts = hold_out(concepts_path, trained, held_out, share=share, seed=seed)
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    if not quiet:
        msg.good(f"Wrote {counts['trained']:,} concepts to {trained}")
        msg.good(f"Wrote {counts['held_out']:,} concepts to {held_out}")
        if counts["nameless"]:
            msg.info(f"{counts['nameless']:,} concepts have held-out names only.")


if __name__ == "__main__":
    typer.run(main)
