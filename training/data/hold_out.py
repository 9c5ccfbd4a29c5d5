"""concepts.jsonl → concepts to train on, and concepts held out for evaluation."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from spacy_sapbert.system.terminal import msg
from spacy_sapbert.system.writing import check_outputs
from spacy_sapbert.vocabularies.concepts import (
    Concept,
    change_names,
    read_concepts,
    write_concepts,
)
from training.data.pairs import hash_text
from training.data.reporting import Concepts, Force, Quiet
from training.errors import Errors, SapbertError


def is_held_out(cui: str, *, share: float, seed: int = 0) -> bool:
    """Return whether a concept is held out; it depends on its id and the seed only."""
    # Seeded by a text, not by its hash, which depends on PYTHONHASHSEED.
    return random.Random(f"{seed} {cui}").random() < share


def hold_out(
    concepts: Concepts,
    trained: Annotated[Path, typer.Argument(help="To write: concepts to train on.")],
    held_out: Annotated[Path, typer.Argument(help="To write: for evaluation.")],
    share: Annotated[
        float, typer.Option(min=0, max=1, help="Share that is held out.")
    ] = 0.1,
    seed: Annotated[int, typer.Option(help="Seed of the split.")] = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> Counter[str]:
    """Split the concepts of a vocabulary, each by its id and the seed.

    Concepts to train on lose the names that a held-out concept has, too, up to case.
    They keep the ids of held-out parents.

    Example: python -m training hold-out corpus/concepts.jsonl corpus/trained.jsonl
    corpus/held_out.jsonl --share 0.1
    """

    check_outputs(trained, held_out, force=force)

    def select(held: bool) -> Iterator[Concept]:
        for concept in read_concepts(concepts):
            if is_held_out(concept.cui, share=share, seed=seed) == held:
                yield concept

    names = {hash_text(a.lower()) for each in select(True) for a in each.aliases}
    counts = Counter(trained=0, held_out=0, nameless=0)

    def iter_trained() -> Iterator[Concept]:
        for concept in select(False):
            changed = replace(concept)
            kept = ["" if hash_text(a.lower()) in names else a for a in concept.aliases]
            change_names(changed, kept)
            counts["trained" if changed.aliases else "nameless"] += 1
            if changed.aliases:
                yield changed
        if not names or not counts["trained"]:
            raise SapbertError(Errors.E761.format(share=share))

    write_concepts(trained, iter_trained())
    counts["held_out"] = write_concepts(held_out, select(True))
    if not quiet:
        msg.good(f"Wrote {counts['trained']:,} concepts to {trained}")
        msg.good(f"Wrote {counts['held_out']:,} concepts to {held_out}")
        if counts["nameless"]:
            msg.info(f"{counts['nameless']:,} concepts have held-out names only.")
    return counts
