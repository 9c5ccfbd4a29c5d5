"""concepts.jsonl + gold mentions → their concepts and some others."""

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.score_mentions import EvaluationSettings, select_mentions
from spacy_sapbert.formats.gold import GoldMention
from spacy_sapbert.io.progress import format_count
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.io.writing import check_outputs
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts, write_concepts
from training.data.options import Concepts, Force, Quiet


def sample_concepts(
    concepts: Iterable[Concept],
    golds: Iterable[GoldMention],
    aliases: dict[str, str],
    others: int,
) -> Iterable[Concept]:
    """Return the concepts of gold mentions and a random sample of others, in order.

    The sample is the same in all runs, so that they can be compared.

    Args:
        others: The size of the sample; 0 = all.
    """
    if not others:
        return concepts
    ids = {id for gold in golds for part in gold.parts for id in part}
    gold_ids = {aliases.get(id, id) for id in ids}
    source = random.Random(0)
    kept: dict[int, Concept] = {}  # of gold mentions, by their numbers in the file
    sample: list[tuple[int, Concept]] = []
    seen = 0
    for number, concept in enumerate(concepts):
        own = (concept.cui, *concept.retired)
        if any(aliases.get(id, id) in gold_ids for id in own):
            kept[number] = concept
            continue
        seen += 1
        if len(sample) < others:
            sample.append((number, concept))
        elif (place := source.randrange(seen)) < others:
            sample[place] = (number, concept)
    kept |= dict(sample)
    return [kept[number] for number in sorted(kept)]


def sample_command(
    concepts: Concepts,
    output: Annotated[Path, typer.Argument(help="concepts.jsonl to write.")],
    mentions: Annotated[list[Path], typer.Argument(help="Gold mentions.")],
    others: Annotated[
        int, typer.Option(min=1, help="Concepts without a mention.")
    ] = 100_000,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Keep the concepts of gold mentions and a random sample of others.

    Two encoders are compared on it within minutes, whatever the size of the vocabulary.

    Example: python -m training sample corpus/trained.jsonl corpus/compared.jsonl
    corpus/held_out.tsv
    """
    check_outputs(output, force=force)
    golds = {path: select_mentions(path, EvaluationSettings())[0] for path in mentions}
    every = [gold for own in golds.values() for gold in own]
    chosen = [*sample_concepts(read_concepts(concepts), every, {}, others)]
    known = {id for concept in chosen for id in (concept.cui, *concept.retired)}
    for path, own in golds.items():
        if not any(id in known for gold in own for part in gold.parts for id in part):
            raise SapbertError(
                "E106",
                f"Expected gold mentions in {path} with concepts of {concepts}, but "
                f"none of {len(own):,} has one that is there. Write ids as it has "
                "them, e.g. with `spacy sapbert convert --drop-prefix MESH:`.",
            )
    write_concepts(output, chosen)
    if not quiet:
        msg.good(f"Wrote {format_count(len(chosen), 'concept')} to {output}")
