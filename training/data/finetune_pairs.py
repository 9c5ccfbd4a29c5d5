"""mentions.tsv + concepts.jsonl → pairs.tsv: mentions with names of their concepts."""

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import typer
from tqdm import tqdm
from wasabi import msg

from spacy_sapbert.evaluation.gold_mentions import (
    GoldMention,
    fold_text,
    read_aliases,
    read_mentions,
)
from spacy_sapbert.system.writing import write_atomically
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts
from training.data.pairs import Pair, distinct_names
from training.errors import Errors, SapbertError


def group_mentions(
    golds: Iterable[GoldMention], aliases: dict[str, str], counts: dict[str, int]
) -> dict[str, dict[str, str]]:
    """Group the distinct mentions of a training set by concept.

    golds (Iterable[GoldMention]): The mentions. Each of several alternative ids counts;
        mentions of several concepts at once are left out.
    RETURNS (dict[str, dict[str, str]]): By id, the first spelling of each folded text.
    """
    grouped: dict[str, dict[str, str]] = defaultdict(dict)
    for gold in golds:
        counts["mentions"] += 1
        if len(gold.parts) != 1:
            counts["composite or without an id"] += 1
            continue
        text = " ".join(gold.mention.split())
        for cui in gold.parts[0]:
            grouped[aliases.get(cui, cui)].setdefault(fold_text(text), text)
    return grouped


def find_ids(
    concept: Concept, mentions: dict[str, dict[str, str]], aliases: dict[str, str]
) -> list[str]:
    """Return the ids of a concept, retired ones included, that mentions have, sorted.

    mentions (dict[str, dict[str, str]]): From `group_mentions`.
    """
    ids = {aliases.get(cui, cui) for cui in (concept.cui, *concept.retired)}
    return sorted(ids & mentions.keys())


def pair_mentions(
    concepts: Iterable[Concept],
    mentions: dict[str, dict[str, str]],
    aliases: dict[str, str],
    found: set[str],
) -> Iterator[Pair]:
    """Pair each mention with every different name of its concept.

    mentions (dict[str, dict[str, str]]): From `group_mentions`.
    found (set[str]): Ids of mentions that are in the dictionary; updated.
    YIELDS (Pair): The concept, the mention and the name.
    SOURCE: Liu et al. (2021), §4.1, fine-tuning.
    """
    for concept in concepts:
        known = find_ids(concept, mentions, aliases)
        found.update(known)
        texts = {key: text for cui in known for key, text in mentions[cui].items()}
        names = distinct_names(concept) if texts else []
        label = aliases.get(concept.cui, concept.cui)
        for folded, mention in sorted(texts.items()):
            for name in names:
                if name.lower() != folded:
                    yield label, mention, name


def write_finetune_pairs(
    mentions_paths: Iterable[Path],
    concepts: Iterable[Concept],
    path: Path,
    aliases: dict[str, str],
) -> dict[str, int]:
    """Write the pairs to fine-tune an encoder on.

    mentions_paths (Iterable[Path]): Files of training mentions, never those of a test.
    path (Path): pairs.tsv, or pairs.tsv.gz.
    RETURNS (dict[str, int]): Number of mentions, ids and pairs.
    RAISES (SapbertError): If a file is not usable, or there are no pairs.
    """
    counts = {"mentions": 0, "composite or without an id": 0}
    golds = (gold for each in mentions_paths for gold in read_mentions(each))
    mentions = group_mentions(golds, aliases, counts)
    found: set[str] = set()
    pairs = 0
    with write_atomically(path) as file:
        for pair in pair_mentions(concepts, mentions, aliases, found):
            file.write("\t".join(pair).encode("utf8") + b"\n")
            pairs += 1
        if not pairs:
            raise SapbertError(Errors.E619.format(mentions=counts["mentions"]))
    return {
        **counts,
        "distinct mentions and ids": sum(len(texts) for texts in mentions.values()),
        "ids": len(mentions),
        "ids that the dictionary has": len(found),
        "pairs": pairs,
    }


def finetune_pairs_command(
    mentions: list[Path] = typer.Argument(
        ..., help="Training mentions, one file or more: mentions.tsv, or mention||id."
    ),
    concepts: Path = typer.Option(..., help="concepts.jsonl, the dictionary."),
    output: Path = typer.Option(..., help="pairs.tsv to write."),
    aliases: Path | None = typer.Option(
        None, help="Lines: an id, a tab, the id that it is an alias of."
    ),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """Example: python -m training finetune-pairs corpus/ncbi/train.tsv --concepts
    corpus/ncbi/concepts.jsonl --output corpus/ncbi/pairs.tsv, and then python -m
    training train corpus/ncbi/pairs.tsv models/ncbi --encoder.base
    models/encoder --config training/configs/finetune_scientific.cfg
    """
    known = read_aliases(aliases) if aliases else {}
    bar = tqdm(
        read_concepts(concepts),
        unit=" concepts",
        disable=quiet or not sys.stderr.isatty(),
    )
    counts = write_finetune_pairs(mentions, bar, output, known)
    if not quiet:
        msg.table([(key, f"{count:,}") for key, count in counts.items()])
        msg.good(f"Wrote {output}")
