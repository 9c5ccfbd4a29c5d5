"""concepts.jsonl → what is trained on, and what is kept for judging, by concepts."""

import random
from pathlib import Path
from typing import Dict

import typer
from wasabi import msg

from spacy_sapbert.concepts import read_concepts, write_concepts
from spacy_sapbert.errors import Errors, SapbertError


def is_held_out(cui: str, *, share: float, seed: int = 0) -> bool:
    """Decide whether a concept is kept for judging; no other concept matters.

    cui (str): Its id.
    share (float): Of all concepts, 0 to 1.
    seed (int): Which ones.
    RETURNS (bool): Whether it is.
    """
    # Seeded by a text, not by a hash of it: the same for any PYTHONHASHSEED.
    return random.Random(f"{seed} {cui}").random() < share


def hold_out(
    concepts_path: Path, trained: Path, held_out: Path, *, share: float, seed: int = 0
) -> Dict[str, int]:
    """Part a vocabulary.

    concepts_path (Path): concepts.jsonl; it is read twice.
    trained (Path): concepts.jsonl of what is trained on. Parents that are held out
        are still named there by their ids, never by a name.
    held_out (Path): concepts.jsonl of the others.
    share (float): Of the others, 0 to 1.
    seed (int): Which ones.
    RETURNS (Dict[str, int]): How many are trained on and held out.
    RAISES (SapbertError): If a file is not usable, or either would be empty.
    """
    counts = {False: 0, True: 0}
    for concept in read_concepts(concepts_path):
        counts[is_held_out(concept.cui, share=share, seed=seed)] += 1
    if not all(counts.values()):
        total = sum(counts.values())
        raise SapbertError(Errors.E761.format(share=share, total=total))
    for path, wanted in ((trained, False), (held_out, True)):
        write_concepts(
            path,
            (
                concept
                for concept in read_concepts(concepts_path)
                if is_held_out(concept.cui, share=share, seed=seed) == wanted
            ),
        )
    return {"trained": counts[False], "held_out": counts[True]}


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

    Example: python -m training.hold_out corpus/concepts.jsonl corpus/trained.jsonl
    corpus/held_out.jsonl --share 0.1
    """
    try:
        counts = hold_out(concepts_path, trained, held_out, share=share, seed=seed)
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    if not quiet:
        msg.good(f"Wrote {counts['trained']:,} concepts to {trained}")
        msg.good(f"Wrote {counts['held_out']:,} concepts to {held_out}")


if __name__ == "__main__":
    typer.run(main)
