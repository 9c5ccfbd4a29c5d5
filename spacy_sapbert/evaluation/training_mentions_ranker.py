"""Training mentions put to use without training: as names, or looked up first."""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import typer
from tqdm import tqdm
from wasabi import msg

from spacy_sapbert.errors import Errors, SapbertError
from spacy_sapbert.evaluation.accuracy import Answer, Rank
from spacy_sapbert.evaluation.gold_mentions import (
    Resolve,
    fold_text,
    read_aliases,
    read_mentions,
)
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts, write_concepts
from training.data.finetune_pairs import find_ids, group_mentions

KNOWN_SCORE = 2.0  # above every cosine

Known = dict[str, list[str]]  # folded mention → the concepts that it was annotated with


def read_known(
    paths: Iterable[Path], resolve: Resolve, *, bars_join_parts: bool = False
) -> Known:
    """Collect which concepts each text was annotated with.

    paths (Iterable[Path]): Training mentions. What means several concepts at once is
        left out.
    resolve (Resolve): Gives the concepts of a mention; see `make_resolver`.
    bars_join_parts (bool): See `split_ids`.
    RETURNS (Known): Distinct concepts of the dictionary, sorted.
    RAISES (SapbertError): If a file is not usable.
    """
    known: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        for gold in read_mentions(path, bars_join_parts=bars_join_parts):
            if len(gold.parts) == 1 and (found := resolve(gold)[0]):
                known[fold_text(gold.mention)] |= found
    return {text: sorted(found) for text, found in known.items()}


def make_back_off(rank: Rank, known: Known) -> Rank:
    """Make a linker that asks the training mentions first.

    Several concepts of one text tie. What the linker itself says comes after them.

    rank (Rank): The linker.
    known (Known): From `read_known`.
    RETURNS (Rank): Gives `KNOWN_SCORE` to what was annotated.
    SOURCE: Basaldella et al. (2020), COMETA: dictionary back-off.
    """
    rows = {text: -number for number, text in enumerate(known, start=1)}

    def rank_known(mentions: Sequence[str]) -> list[list[Answer]]:
        results: list[list[Answer]] = []
        for mention, answers in zip(mentions, rank(mentions), strict=True):
            text = fold_text(mention)
            first = [
                Answer(rows[text], cui, KNOWN_SCORE) for cui in known.get(text, ())
            ]
            results.append([*first, *answers])
        return results

    return rank_known


def add_mentions(
    concepts: Iterable[Concept],
    mentions: dict[str, dict[str, str]],
    aliases: dict[str, str],
    counts: dict[str, int],
) -> Iterator[Concept]:
    """Return concepts the training mentions as names, after their own.

    concepts (Iterable[Concept]): The dictionary.
    mentions (dict[str, dict[str, str]]): From `group_mentions`.
    aliases (dict[str, str]): Ids that another one stands for.
    counts (dict[str, int]): Counts concepts, ids of mentions found, and new names.
    YIELDS (Concept): Each concept; its own names stay as they are, with their languages
        and sources, and the new ones have none.
    RAISES (SapbertError): At the end, if the dictionary has no id of a mention.
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


def main(
    concepts: Path = typer.Argument(..., help="concepts.jsonl, the dictionary."),
    mentions: list[Path] = typer.Argument(
        ..., help="Training mentions, one file or more: mentions.tsv, or mention||id."
    ),
    output: Path = typer.Option(..., help="concepts.jsonl to write."),
    aliases: Path | None = typer.Option(
        None, help="Lines: an id, a tab, the id that it is an alias of."
    ),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """concepts.jsonl + mentions.tsv -> concepts.jsonl, with the mentions as names

    Some published figures are of such a dictionary. Never add mentions of a test.

    Example: python -m spacy_sapbert.evaluationtraining_mentions_ranker corpus/ncbi/concepts.jsonl
    corpus/ncbi/train.tsv --output corpus/ncbi/concepts-with-train.jsonl
    """
    counts: dict[str, int] = Counter()
    try:
        known = read_aliases(aliases) if aliases else {}
        golds = (gold for path in mentions for gold in read_mentions(path))
        grouped = group_mentions(golds, known, counts)
        bar = tqdm(
            read_concepts(concepts),
            unit=" concepts",
            disable=quiet or not sys.stderr.isatty(),
        )
        write_concepts(output, add_mentions(bar, grouped, known, counts))
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    if not quiet:
        msg.table([(key, f"{count:,}") for key, count in counts.items()])
        msg.good(f"Wrote {output}")


if __name__ == "__main__":
    typer.run(main)
