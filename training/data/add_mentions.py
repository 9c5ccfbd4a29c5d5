"""concepts.jsonl + training mentions → concepts.jsonl with the mentions as names."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import typer
from tqdm import tqdm
from wasabi import msg

from spacy_sapbert.evaluation.gold_mentions import (
    fold_text,
    read_aliases,
    read_mentions,
)
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts, write_concepts
from training.data.finetune_pairs import find_ids, group_mentions
from training.errors import Errors, SapbertError


def add_mentions(
    concepts: Iterable[Concept],
    mentions: dict[str, dict[str, str]],
    aliases: dict[str, str],
    counts: dict[str, int],
) -> Iterator[Concept]:
    """Add training mentions to the names of their concepts.

    mentions (dict[str, dict[str, str]]): From `group_mentions`.
    YIELDS (Concept): Each concept. New names follow its own and have neither language
        nor source.
    RAISES (SapbertError): At the end, if no id of a mention is in the vocabulary.
    """
    for concept in concepts:
        own = {fold_text(alias) for alias in concept.aliases}
        for cui in find_ids(concept, mentions, aliases):
            counts["ids that the dictionary has"] += 1
            for folded, text in mentions[cui].items():
                if folded not in own:
                    own.add(folded)
                    concept.aliases.append(text)
                    counts["names added"] += 1
        counts["concepts"] += 1
        yield concept
    if not counts["ids that the dictionary has"]:
        raise SapbertError(Errors.E619.format(mentions=counts["mentions"]))


def add_mentions_command(
    concepts: Path = typer.Argument(..., help="concepts.jsonl."),
    mentions: list[Path] = typer.Argument(
        ..., help="Training mentions, one file or more: mentions.tsv, or mention||id."
    ),
    output: Path = typer.Option(..., help="concepts.jsonl to write."),
    aliases: Path | None = typer.Option(
        None, help="Lines: an id, a tab, the id that it is an alias of."
    ),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """Some published results use such a vocabulary. Never add mentions of a test set.

    Example: python -m training add-mentions corpus/ncbi/concepts.jsonl
    corpus/ncbi/train.tsv --output corpus/ncbi/concepts-with-train.jsonl
    """
    counts: dict[str, int] = Counter()
    known = read_aliases(aliases) if aliases else {}
    golds = (gold for path in mentions for gold in read_mentions(path))
    grouped = group_mentions(golds, known, counts)
    bar = tqdm(
        read_concepts(concepts),
        unit=" concepts",
        disable=quiet or not sys.stderr.isatty(),
    )
    write_concepts(output, add_mentions(bar, grouped, known, counts))
    if not quiet:
        msg.table([(key, f"{count:,}") for key, count in counts.items()])
        msg.good(f"Wrote {output}")
