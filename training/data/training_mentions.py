"""Training mentions + concepts.jsonl → pairs.tsv, or concepts.jsonl with more names."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from spacy_sapbert.evaluation.gold_mentions import (
    fold_text,
    read_aliases,
    read_mentions,
)
from spacy_sapbert.io.progress import show_progress
from spacy_sapbert.io.writing import check_outputs
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts, write_concepts
from training.data.options import (
    AliasFile,
    Concepts,
    Force,
    Quiet,
    print_counts,
)
from training.data.pairs import Pair, distinct_names, write_lines
from training.errors import Errors, SapbertError

MentionFiles = Annotated[
    list[Path],
    typer.Argument(help="Training mentions: mentions.tsv, or lines mention||id."),
]

Mentions = dict[str, dict[str, str]]  # by id, the first spelling of each folded text


def group_mentions(
    paths: Iterable[Path], aliases: dict[str, str], counts: Counter[str]
) -> Mentions:
    """Read training mentions, and group the distinct ones by concept.

    Each of several alternative ids counts. Mentions of several concepts at once are
    left out.
    """
    counts.update({"mentions": 0, "composite or without an id": 0})
    grouped: Mentions = defaultdict(dict)
    for gold in (gold for path in paths for gold in read_mentions(path)):
        counts["mentions"] += 1
        if len(gold.parts) != 1:
            counts["composite or without an id"] += 1
            continue
        text = " ".join(gold.mention.split())
        for cui in gold.parts[0]:
            grouped[aliases.get(cui, cui)].setdefault(fold_text(text), text)
    return grouped


def find_ids(
    concept: Concept, mentions: Mentions, aliases: dict[str, str]
) -> list[str]:
    """Return the ids of a concept, retired ones too, that mentions have, sorted."""
    ids = {aliases.get(cui, cui) for cui in (concept.cui, *concept.retired)}
    return sorted(ids & mentions.keys())


def pair_mentions(
    concepts: Iterable[Concept],
    mentions: Mentions,
    aliases: dict[str, str],
    found: set[str],
) -> Iterator[Pair]:
    """Yield each mention with every different name of its concept.

    Args:
        found: Gets the ids of mentions that are in the dictionary.

    Source:
        Liu et al. (2021), §4.1, fine-tuning.
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
    mentions: MentionFiles,
    concepts: Annotated[Path, typer.Option(help="concepts.jsonl, the dictionary.")],
    output: Annotated[Path, typer.Option(help="pairs.tsv to write.")],
    aliases: AliasFile = None,
    force: Force = False,
    quiet: Quiet = False,
) -> Counter[str]:
    """Write each training mention with every different name of its concept.

    Example: python -m training finetune-pairs corpus/ncbi/train.tsv --concepts
    corpus/ncbi/concepts.jsonl --output corpus/ncbi/pairs.tsv, and then python -m
    training train corpus/ncbi/pairs.tsv models/ncbi --encoder.base
    models/encoder --config training/configs/finetune_scientific.cfg
    """
    check_outputs(output, force=force)
    counts: Counter[str] = Counter()
    ids = read_aliases(aliases) if aliases else {}
    grouped = group_mentions(mentions, ids, counts)
    found: set[str] = set()
    bar = show_progress(read_concepts(concepts), unit="concepts", quiet=quiet)
    pairs = write_lines(
        pair_mentions(bar, grouped, ids, found),
        output,
        lambda: Errors.E619.format(mentions=counts["mentions"]),
    )
    counts["distinct mentions and ids"] = sum(map(len, grouped.values()))
    counts["ids"] = len(grouped)
    counts["ids that the dictionary has"] = len(found)
    counts["pairs"] = pairs
    print_counts(counts, output, quiet=quiet)
    return counts


def add_mentions(
    concepts: Iterable[Concept],
    mentions: Mentions,
    aliases: dict[str, str],
    counts: Counter[str],
) -> Iterator[Concept]:
    """Yield each concept with its training mentions as names without a language."""
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
    concepts: Concepts,
    mentions: MentionFiles,
    output: Annotated[Path, typer.Option(help="concepts.jsonl to write.")],
    aliases: AliasFile = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write a vocabulary with training mentions as names.

    Some published results use such a vocabulary. Never add mentions of a test set.

    Example: python -m training add-mentions corpus/ncbi/concepts.jsonl
    corpus/ncbi/train.tsv --output corpus/ncbi/concepts-with-train.jsonl
    """
    check_outputs(output, force=force)
    counts: Counter[str] = Counter()
    ids = read_aliases(aliases) if aliases else {}
    grouped = group_mentions(mentions, ids, counts)
    bar = show_progress(read_concepts(concepts), unit="concepts", quiet=quiet)
    write_concepts(output, add_mentions(bar, grouped, ids, counts))
    print_counts(counts, output, quiet=quiet)
