"""Which text was annotated with which id in the mentions of a training."""

from pathlib import Path
from typing import Dict, Iterable, Set, Tuple

from spacy_sapbert.evaluation.gold_mentions import GoldMention, fold_text, read_mentions

Pair = Tuple[str, str]  # folded mention, id


def read_pairs(
    paths: Iterable[Path], aliases: Dict[str, str], *, bars_join_parts: bool = False
) -> Set[Pair]:
    """Collect which text was annotated with which id.

    paths (Iterable[Path]): Files of training mentions.
    aliases (Dict[str, str]): From `read_aliases`.
    bars_join_parts (bool): See `split_ids`.
    RETURNS (Set[Pair]): Folded mentions and ids.
    RAISES (SapbertError): If a file is not usable.
    """
    return {
        (fold_text(gold.mention), aliases.get(cui, cui))
        for path in paths
        for gold in read_mentions(path, bars_join_parts=bars_join_parts)
        for part in gold.parts
        for cui in part
    }


def is_seen(gold: GoldMention, pairs: Set[Pair], aliases: Dict[str, str]) -> bool:
    """Tell whether a mention was annotated with the same meaning before.

    gold (GoldMention): The mention.
    pairs (Set[Pair]): From `read_pairs`.
    aliases (Dict[str, str]): From `read_aliases`.
    RETURNS (bool): Whether every part has an id that was seen with the same text.
    """
    text = fold_text(gold.mention)
    return all(
        any((text, aliases.get(cui, cui)) in pairs for cui in part)
        for part in gold.parts
    )
