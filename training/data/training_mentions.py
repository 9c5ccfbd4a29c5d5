"""Training mentions + concepts.jsonl → pairs.tsv, or concepts.jsonl with more names."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from spacy_sapbert.errors import SapbertError
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

MentionFiles = Annotated[
    list[Path],
    typer.Argument(help="Training mentions: mentions.tsv, or lines mention||id."),
]


def match_mentions(
    concepts_path: Path,
    paths: Iterable[Path],
    aliases: dict[str, str],
    counts: Counter[str],
    *,
    quiet: bool,
) -> Iterator[tuple[Concept, dict[str, str]]]:
    """Yield each concept with its training mentions, by their folded text.

    The first spelling of a text counts, and each of several alternative ids. A concept
    has the mentions of its retired ids, too. Mentions of several concepts at once are
    left out.
    """
    mentions: dict[str, dict[str, str]] = defaultdict(dict)  # by id
    for gold in (gold for path in paths for gold in read_mentions(path)):
        counts["mentions"] += 1
        if len(gold.parts) != 1:
            counts["composite or without an id"] += 1
            continue
        text = " ".join(gold.mention.split())
        for cui in gold.parts[0]:
            mentions[aliases.get(cui, cui)].setdefault(fold_text(text), text)
    counts["distinct mentions and ids"] = sum(map(len, mentions.values()))
    counts["ids"] = len(mentions)
    found: set[str] = set()
    for concept in show_progress(
        read_concepts(concepts_path), unit="concepts", quiet=quiet
    ):
        ids = {aliases.get(cui, cui) for cui in (concept.cui, *concept.retired)}
        known = sorted(ids & mentions.keys())
        found.update(known)
        texts: dict[str, str] = {}
        for folded, text in (item for cui in known for item in mentions[cui].items()):
            texts.setdefault(folded, text)
        yield concept, texts
    counts["ids that the dictionary has"] = len(found)
    if not found:
        raise unknown_mentions(mentions=counts["mentions"])


def write_finetune_pairs(
    mentions: MentionFiles,
    concepts: Annotated[Path, typer.Option(help="concepts.jsonl, the dictionary.")],
    output: Annotated[Path, typer.Option(help="pairs.tsv to write.")],
    aliases: AliasFile = None,
    force: Force = False,
    quiet: Quiet = False,
) -> Counter[str]:
    """Write each training mention with every different name of its concept.

    As in Liu et al. (2021), §4.1.

    Example: python -m training finetune-pairs corpus/ncbi/train.tsv --concepts
    corpus/ncbi/concepts.jsonl --output corpus/ncbi/pairs.tsv, and then python -m
    training train corpus/ncbi/pairs.tsv models/ncbi --encoder.base
    models/encoder --config training/configs/finetune_scientific.cfg
    """
    check_outputs(output, force=force)
    counts: Counter[str] = Counter()
    ids = read_aliases(aliases) if aliases else {}

    def iter_pairs() -> Iterator[Pair]:
        matched = match_mentions(concepts, mentions, ids, counts, quiet=quiet)
        for concept, texts in matched:
            label = ids.get(concept.cui, concept.cui)
            names = distinct_names(concept) if texts else []
            for folded, mention in sorted(texts.items()):
                for name in names:
                    if name.lower() != folded:
                        yield label, mention, name

    counts["pairs"] = write_lines(
        iter_pairs(), output, lambda: unknown_mentions(mentions=counts["mentions"])
    )
    print_counts(counts, output, quiet=quiet)
    return counts


def add_mentions(
    concepts: Concepts,
    mentions: MentionFiles,
    output: Annotated[Path, typer.Option(help="concepts.jsonl to write.")],
    aliases: AliasFile = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write a vocabulary with training mentions as names without a language.

    Some published results use such a vocabulary. Never add mentions of a test set.

    Example: python -m training add-mentions corpus/ncbi/concepts.jsonl
    corpus/ncbi/train.tsv --output corpus/ncbi/concepts-with-train.jsonl
    """
    check_outputs(output, force=force)
    counts: Counter[str] = Counter()
    ids = read_aliases(aliases) if aliases else {}

    def iter_concepts() -> Iterator[Concept]:
        matched = match_mentions(concepts, mentions, ids, counts, quiet=quiet)
        for concept, texts in matched:
            own = {fold_text(alias) for alias in concept.aliases}
            added = [text for folded, text in texts.items() if folded not in own]
            concept.aliases += added
            counts["names added"] += len(added)
            counts["concepts"] += 1
            yield concept

    write_concepts(output, iter_concepts())
    print_counts(counts, output, quiet=quiet)


def unknown_mentions(*, mentions: object) -> SapbertError:
    return SapbertError(
        "E106",
        "Expected training mentions whose ids are in the dictionary, but none of "
        f"{mentions} is. Name the dictionary that they were annotated with, or "
        "`--aliases`.",
    )
