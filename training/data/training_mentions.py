"""Training mentions + concepts.jsonl → pairs.tsv, or concepts.jsonl with more names."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import typer

from spacy_sapbert.evaluation.gold_mentions import (
    GoldMention,
    fold_text,
    read_aliases,
    read_mentions,
)
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts, write_concepts
from training.data.pairs import Pair, distinct_names, write_lines
from training.data.reporting import print_counts, show_progress
from training.errors import Errors, SapbertError

MENTIONS = typer.Argument(
    ..., help="Training mentions, one file or more: mentions.tsv, or mention||id."
)
ALIASES = typer.Option(None, help="Lines: an id, a tab, the id that it is an alias of.")


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
    pairs = write_lines(
        pair_mentions(concepts, mentions, aliases, found),
        path,
        lambda: Errors.E619.format(mentions=counts["mentions"]),
    )
    return {
        **counts,
        "distinct mentions and ids": sum(len(texts) for texts in mentions.values()),
        "ids": len(mentions),
        "ids that the dictionary has": len(found),
        "pairs": pairs,
    }


def finetune_pairs_command(
    mentions: list[Path] = MENTIONS,
    concepts: Path = typer.Option(..., help="concepts.jsonl, the dictionary."),
    output: Path = typer.Option(..., help="pairs.tsv to write."),
    aliases: Path | None = ALIASES,
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """Example: python -m training finetune-pairs corpus/ncbi/train.tsv --concepts
    corpus/ncbi/concepts.jsonl --output corpus/ncbi/pairs.tsv, and then python -m
    training train corpus/ncbi/pairs.tsv models/ncbi --encoder.base
    models/encoder --config training/configs/finetune_scientific.cfg
    """
    known = read_aliases(aliases) if aliases else {}
    bar = show_progress(read_concepts(concepts), "concepts", quiet=quiet)
    counts = write_finetune_pairs(mentions, bar, output, known)
    print_counts(counts, output, quiet=quiet)


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
    mentions: list[Path] = MENTIONS,
    output: Path = typer.Option(..., help="concepts.jsonl to write."),
    aliases: Path | None = ALIASES,
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
    bar = show_progress(read_concepts(concepts), "concepts", quiet=quiet)
    write_concepts(output, add_mentions(bar, grouped, known, counts))
    print_counts(counts, output, quiet=quiet)
