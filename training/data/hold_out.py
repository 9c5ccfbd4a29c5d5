"""concepts.jsonl → concepts to train on, and concepts or names held out."""

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.gold_mentions import fold_text
from spacy_sapbert.io.progress import format_count
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.io.writing import check_outputs, write_atomically
from spacy_sapbert.vocabularies.concepts import (
    Concept,
    change_names,
    read_concepts,
    write_concepts,
)
from training.data.options import Concepts, Force, Quiet
from training.data.pairs import distinct_names, hash_text

FEWEST = 50  # names of a comparison, as `calibrate` and `teach` need mentions


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
            raise SapbertError(
                "E331",
                "Expected a share of which both parts have concepts, but got "
                f"{share}. Choose another `--share`.",
            )

    write_concepts(trained, iter_trained())
    counts["held_out"] = write_concepts(held_out, select(True))
    if not quiet:
        msg.good(f"Wrote {counts['trained']:,} concepts to {trained}")
        msg.good(f"Wrote {counts['held_out']:,} concepts to {held_out}")
        if counts["nameless"]:
            msg.info(f"{counts['nameless']:,} concepts have held-out names only.")
    return counts


def draw_synonym(concept: Concept, *, seed: int) -> str | None:
    """Draw a name of a concept that no other of its names resembles.

    Names that differ only in word order, punctuation or a plural *s* are alike. It is
    not the preferred name; None if there is no such name.
    """
    words: dict[str, tuple[str, ...]] = {
        name: tuple(sorted(w.removesuffix("s") for w in re.findall(r"\w+", name)))
        for name in map(fold_text, distinct_names(concept))
    }
    counts = Counter(words.values())
    preferred = fold_text(concept.name)
    found = [n for n in words if n != preferred and counts[words[n]] == 1 and words[n]]
    # Seeded by a text, not by its hash, which depends on PYTHONHASHSEED.
    return random.Random(f"{seed} name {concept.cui}").choice(found) if found else None


def hold_out_names(
    concepts: Concepts,
    trained: Annotated[Path, typer.Argument(help="To write: concepts without them.")],
    mentions: Annotated[Path, typer.Argument(help="To write: the names, as mentions.")],
    validation: Annotated[
        Path | None, typer.Option(help="To write: every second of them goes here.")
    ] = None,
    share: Annotated[
        float, typer.Option(min=0, max=1, help="Share of concepts that lose a name.")
    ] = 0.1,
    seed: Annotated[int, typer.Option(help="Seed of the concepts and names.")] = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> Counter[str]:
    """Take a synonym from some concepts, to evaluate an encoder without a corpus.

    The name belongs to one concept only, is not its preferred name, and differs from
    its other names in more than word order, punctuation or a plural. What chooses the
    best weights of a training says too much of them, so that `--validation` has names
    of its own.

    Example: python -m training hold-out-names corpus/concepts.jsonl
    corpus/trained.jsonl corpus/held_out.tsv --share 0.1, and then spacy sapbert
    evaluate models/kb corpus/held_out.tsv, with models/kb of corpus/trained.jsonl
    """
    check_outputs(trained, mentions, validation, force=force)
    outputs = [mentions] if validation is None else [mentions, validation]
    drawn: dict[int, str] = {}  # hash of the name → id of the concept
    for concept in read_concepts(concepts):
        if is_held_out(concept.cui, share=share, seed=seed):
            name = draw_synonym(concept, seed=seed)
            if name is not None:
                drawn.setdefault(hash_text(name), concept.cui)
    for concept in read_concepts(concepts):
        for alias in concept.aliases:
            key = hash_text(fold_text(alias))
            if drawn.get(key, concept.cui) != concept.cui:
                del drawn[key]  # a name of two concepts has no single answer
    if len(drawn) < len(outputs):
        raise SapbertError(
            "E106",
            f"Expected {format_count(len(outputs), 'concept')} or more in {concepts} "
            f"with a synonym to hold out, but got {len(drawn)} with `--share "
            f"{share:g}`. Raise it, or name a vocabulary with synonyms.",
        )
    counts = Counter(concepts=0, held_out=len(drawn))
    lines: list[str] = []

    def iter_trained() -> Iterator[Concept]:
        for concept in read_concepts(concepts):
            held = [a for a in concept.aliases if hash_text(fold_text(a)) in drawn]
            if held:
                lines.append(f"{fold_text(held[0])}\t{concept.cui}\n")
                kept = ["" if a in held else a for a in concept.aliases]
                concept = replace(concept)
                change_names(concept, kept)
            counts["concepts"] += 1
            yield concept

    write_concepts(trained, iter_trained())
    for number, path in enumerate(outputs):
        own = lines[number :: len(outputs)]
        with write_atomically(path) as file:
            file.write("".join(["mention\tids\n", *own]).encode("utf8"))
        if not quiet:
            msg.good(f"Wrote {format_count(len(own), 'held-out name')} to {path}")
    if not quiet:
        msg.good(f"Wrote {format_count(counts['concepts'], 'concept')} to {trained}")
        if (few := len(lines[:: len(outputs)])) < FEWEST:
            msg.warn(
                f"Expected {FEWEST} or more names to compare encoders with, but held "
                f"out {few}: which one is better may be chance. Raise `--share` (of "
                "the project `--vars.held_out`), or evaluate on gold mentions too"
            )
    return counts
