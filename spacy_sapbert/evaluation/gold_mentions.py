"""Gold mentions: files of mentions with the ids that annotators gave them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import SapbertError
from ..formats.corpus import read_corpus
from ..formats.documents import OnError, raise_error
from ..formats.gold import GoldDocument, GoldMention
from ..vocabularies.united import read_pairs as read_id_pairs

Lookup = Callable[[str], str | None]  # an id → the concept that has it now
Pair = tuple[str, str]  # folded mention, id
Resolve = Callable[[GoldMention], list[frozenset[str]]]  # concepts for each part


def check_names(paths: Sequence[Path]) -> None:
    names = [path.name for path in paths]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise SapbertError(
                "E423",
                f"Expected files of different names, but got {name} twice. Rename "
                "one: results name files without their folders.",
            )


def fold_text(text: str) -> str:
    """Return a text in lower case and with single blanks."""
    return " ".join(text.lower().split())


def read_mentions(
    path: Path, *, on_error: OnError = raise_error, **options: Any
) -> Iterator[GoldMention]:
    """Read the mentions of annotated documents; see `read_gold`.

    Each has a line of its own: in a format without lines, its number.
    """
    documents = read_gold(path, on_error=on_error, **options)
    return (mention for document in documents for mention in document.mentions)


def read_gold(
    path: Path, *, on_error: OnError = raise_error, **options: Any
) -> Iterator[GoldDocument]:
    """Read annotated documents; see `read_corpus`.

    Args:
        options: Of the reader of the format; None and False = as the format.
    """
    given = {k: v for k, v in options.items() if v is not None and v is not False}
    line = 0
    for document in read_corpus(path, on_error=on_error, **given):
        mentions: list[GoldMention] = []
        for mention in document.mentions:
            line = max(line + 1, mention.line)
            mentions.append(mention._replace(line=line))
        yield document._replace(mentions=mentions)


def read_aliases(path: Path) -> dict[str, str]:
    """Read lines of an id, a tab or comma, and the id that it is an alias of.

    Each id gets the end of its chain or, in a circle, the smallest id.
    """
    direct: dict[str, str] = {}
    for alias, other in read_id_pairs(path):
        if direct.setdefault(alias, other) != other:
            raise SapbertError(
                "E117",
                f"{path}: Expected an alias of one id, but {alias[:40]!r} is an alias "
                "of two. Remove one of the lines.",
            )
    replaced_by: dict[str, str] = {}
    for start in direct:
        chain = {start: 0}
        last = start
        while last in direct and direct[last] not in chain:
            last = direct[last]
            chain[last] = len(chain)
        if last in direct:  # the chain comes back to itself
            back = chain[direct[last]]
            last = min(cui for cui, position in chain.items() if position >= back)
        replaced_by[start] = replaced_by[last] = last
    return replaced_by


def group_aliases(aliases: dict[str, str]) -> dict[str, list[str]]:
    """Return for each id that replaces others all of them and itself."""
    groups: dict[str, list[str]] = defaultdict(list)
    for cui, last in aliases.items():
        groups[last].append(cui)
    return dict(groups)


def find_concepts(
    cui: str, lookup: Lookup, aliases: dict[str, str], groups: dict[str, list[str]]
) -> frozenset[str]:
    """Find the concepts of a vocabulary that a gold id means, after `aliases`.

    It is the id of a concept, a retired id, or an alias of one of these. `groups` are
    from `group_aliases`.
    """
    concepts: set[str] = set()
    visited: set[str] = set()
    pending = [cui]
    while pending:
        pending_id = pending.pop()
        last = aliases.get(pending_id, pending_id)
        for member in {pending_id, last, *groups.get(last, ())} - visited:
            visited.add(member)
            live = lookup(member)
            if live is not None:
                concepts.add(aliases.get(live, live))
                pending.append(live)
    return frozenset(concepts)


def make_resolver(lookup: Lookup, aliases: dict[str, str]) -> Resolve:
    """Return the function that finds the concepts of each part of a gold mention."""
    groups = group_aliases(aliases)

    @cache
    def find(cui: str) -> frozenset[str]:
        return find_concepts(cui, lookup, aliases, groups)

    def resolve(gold: GoldMention) -> list[frozenset[str]]:
        return [frozenset().union(*map(find, part)) for part in gold.parts]

    return resolve


def read_pairs(
    paths: Iterable[Path], aliases: dict[str, str], **options: Any
) -> set[Pair]:
    """Read the pairs of folded mention and id of training mentions.

    `options` are those of `read_gold`.
    """
    return {
        (fold_text(gold.mention), aliases.get(cui, cui))
        for path in paths
        for gold in read_mentions(path, **options)
        for part in gold.parts
        for cui in part
    }


def is_seen(gold: GoldMention, pairs: set[Pair], aliases: dict[str, str]) -> bool:
    """Return whether every part of a mention has an id that is in `pairs` with it."""
    text = fold_text(gold.mention)
    return all(
        any((text, aliases.get(cui, cui)) in pairs for cui in part)
        for part in gold.parts
    )
