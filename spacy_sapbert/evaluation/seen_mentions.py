"""Which text was annotated with which id in the mentions of a training."""

from collections.abc import Iterable
from pathlib import Path

from spacy_sapbert.evaluation.gold_mentions import GoldMention, fold_text, read_mentions

Pair = tuple[str, str]  # folded mention, id


def read_pairs(
    paths: Iterable[Path], aliases: dict[str, str], *, bars_join_parts: bool = False
) -> set[Pair]:
    """Collect which text was annotated with which id.

    paths (Iterable[Path]): Files of training mentions.
    aliases (dict[str, str]): From `read_aliases`.
    bars_join_parts (bool): See `split_ids`.
    RETURNS (set[Pair]): Folded mentions and ids.
    RAISES (SapbertError): If a file is not usable.
    """
    return {
        (fold_text(gold.mention), aliases.get(cui, cui))
        for path in paths
        for gold in read_mentions(path, bars_join_parts=bars_join_parts)
        for part in gold.parts
        for cui in part
    }


def is_seen(gold: GoldMention, pairs: set[Pair], aliases: dict[str, str]) -> bool:
    """Return whether a mention was annotated with the same meaning before.

    gold (GoldMention): The mention.
    pairs (set[Pair]): From `read_pairs`.
    aliases (dict[str, str]): From `read_aliases`.
    RETURNS (bool): Whether every part has an id that was seen with the same text.
    """
    text = fold_text(gold.mention)
    return all(
        any((text, aliases.get(cui, cui)) in pairs for cui in part)
        for part in gold.parts
    )
