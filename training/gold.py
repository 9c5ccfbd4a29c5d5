"""Gold files, and the concepts that their mentions mean, part by part."""

from functools import cache
from pathlib import Path
from typing import Callable, Dict, FrozenSet, List, Sequence

from spacy_sapbert.errors import Errors, SapbertError
from training.mentions import GoldMention, Lookup, find_concepts, group_aliases

Resolve = Callable[[GoldMention], List[FrozenSet[str]]]  # concepts for each part


def check_names(paths: Sequence[Path]) -> None:
    """Make sure that the name of a file tells it from the others.

    paths (Sequence[Path]): Files of gold mentions.
    RAISES (SapbertError): If two have the same name.
    """
    names = [path.name for path in paths]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise SapbertError(Errors.E740.format(name=name))


def make_resolver(lookup: Lookup, aliases: Dict[str, str]) -> Resolve:
    """Make the function that finds the concepts of gold mentions.

    lookup (Lookup): Gives the concept of the dictionary with an id or retired id.
    aliases (Dict[str, str]): From `read_aliases`.
    RETURNS (Resolve): Gives for each part of a mention the ids of its concepts, empty
        if the dictionary has none.
    """
    groups = group_aliases(aliases)

    @cache
    def find(cui: str) -> FrozenSet[str]:
        return find_concepts(cui, lookup, aliases, groups)

    def resolve(gold: GoldMention) -> List[FrozenSet[str]]:
        return [frozenset().union(*map(find, part)) for part in gold.parts]

    return resolve
