"""Training mentions + concepts.jsonl → pairs.tsv."""

from collections import Counter, defaultdict
from collections.abc import Iterator
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
from spacy_sapbert.vocabularies.concepts import read_concepts
from training.data.options import AliasFile, Force, Quiet, print_counts
from training.data.pairs import Pair, distinct_names, write_lines


def write_finetune_pairs(
    mentions: Annotated[
        list[Path],
        typer.Argument(help="Training mentions: mentions.tsv, or lines mention||id."),
    ],
    concepts: Annotated[Path, typer.Option(help="concepts.jsonl, the dictionary.")],
    output: Annotated[Path, typer.Option(help="pairs.tsv to write.")],
    aliases: AliasFile = None,
    force: Force = False,
    quiet: Quiet = False,
) -> Counter[str]:
    """Write each training mention with every different name of its concept.

    As in Liu et al. (2021), §4.1. The first spelling of a mention counts, and each of
    several alternative ids. A concept has the mentions of its retired ids, too.
    Mentions of several concepts at once are left out.

    Example: python -m training finetune-pairs corpus/ncbi/train.tsv --concepts
    corpus/ncbi/concepts.jsonl --output corpus/ncbi/pairs.tsv, and then python -m
    training train corpus/ncbi/pairs.tsv models/ncbi --encoder.base
    models/encoder --config training/configs/finetune_scientific.cfg
    """
    check_outputs(output, force=force)
    counts: Counter[str] = Counter()
    ids = read_aliases(aliases) if aliases else {}
    texts: dict[str, dict[str, str]] = defaultdict(dict)  # by id, then by folded text
    for gold in (gold for path in mentions for gold in read_mentions(path)):
        counts["mentions"] += 1
        if len(gold.parts) != 1:
            counts["composite or without an id"] += 1
            continue
        text = " ".join(gold.mention.split())
        for cui in gold.parts[0]:
            texts[ids.get(cui, cui)].setdefault(fold_text(text), text)
    counts["distinct mentions and ids"] = sum(map(len, texts.values()))
    counts["ids"] = len(texts)
    found: set[str] = set()

    def iter_pairs() -> Iterator[Pair]:
        for concept in show_progress(
            read_concepts(concepts), unit="concepts", quiet=quiet
        ):
            own = {ids.get(cui, cui) for cui in (concept.cui, *concept.retired)}
            known = sorted(own & texts.keys())
            found.update(known)
            mentioned: dict[str, str] = {}
            for folded, text in (item for cui in known for item in texts[cui].items()):
                mentioned.setdefault(folded, text)
            names = distinct_names(concept) if mentioned else []
            for folded, mention in sorted(mentioned.items()):
                for name in names:
                    if name.lower() != folded:
                        yield ids.get(concept.cui, concept.cui), mention, name
        counts["ids that the dictionary has"] = len(found)

    counts["pairs"] = write_lines(
        iter_pairs(),
        output,
        lambda: SapbertError(
            "E106",
            "Expected training mentions whose ids are in the dictionary, but none of "
            f"{counts['mentions']} is. Name the dictionary that they were annotated "
            "with, or `--aliases`.",
        ),
    )
    print_counts(counts, output, quiet=quiet)
    return counts
