"""Gold mention tables: which concepts a mention means, as people decided."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import (
    NamedTuple,
)

from ..errors import Errors, SapbertError
from ..formats.gold import NO_ID, SEPARATORS, split_ids
from ..system.reading import read_lines

BARS = "||"
COLUMNS = ("mention", "ids")
# Long enough for the ids of UMLS, MeSH, OMIM, HPO, and too long for "p53" or "CD4".
LIKE_ID = re.compile(r"(?:[A-Za-z]+:)?[A-Z]{0,2}\d{5,}")

Lookup = Callable[[str], str | None]  # an id → the concept that has it now, if any


class GoldMention(NamedTuple):
    """One mention and what it means.

    line (int): Its line in the file, from 1.
    doc (str): The document; empty if the file names none.
    mention (str): The text.
    parts (list[list[str]]): For each part of a composite the ids of which one has to
        be found; a mention of one concept has one part. Empty if there is no id.
    """

    line: int
    doc: str
    mention: str
    parts: list[list[str]]


Resolve = Callable[[GoldMention], list[frozenset[str]]]  # concepts for each part


def check_names(paths: Sequence[Path]) -> None:
    """Check that the name of a file tells it from the others.

    paths (Sequence[Path]): Files of gold mentions.
    RAISES (SapbertError): If two have the same name.
    """
    names = [path.name for path in paths]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise SapbertError(Errors.E740.format(name=name))


def fold_text(text: str) -> str:
    """Make texts equal that differ in case and white space only.

    text (str): A mention or an alias.
    RETURNS (str): In lower case, with single blanks.
    """
    return " ".join(text.lower().split())


def looks_like_ids(field: str) -> bool:
    """Return whether a field can only be ids.

    field (str): One side of `mention||id`.
    RETURNS (bool): Whether all of it has the form of ids.
    """
    return all(LIKE_ID.fullmatch(cui.strip()) for cui in SEPARATORS.split(field))


def read_header(path: Path, number: int, line: str) -> list[str] | None:
    """Find out which form a file of mentions has.

    path (Path): The file, for the error.
    number (int): The line, for the error.
    line (str): The first line that is not blank.
    RETURNS (list[str] | None): The columns of a table; None for `mention||id`.
    RAISES (SapbertError): If it has neither form.
    """
    columns = line.split("\t")
    if all(column in columns for column in COLUMNS):
        return columns
    if BARS in line:
        return None
    raise SapbertError(Errors.E701.format(path=path, line=number))


def split_row(
    path: Path, number: int, line: str, columns: list[str] | None
) -> tuple[str, str, str]:
    """Take one line of a file of mentions apart.

    path (Path): The file, for the error.
    number (int): The line, for the error.
    line (str): The line.
    columns (list[str] | None): From `read_header`.
    RETURNS (tuple[str, str, str]): Document, mention and ids.
    RAISES (SapbertError): If the line has another form. It is not quoted.
    """
    expected, separator = (len(columns), "\t") if columns else (2, BARS)
    fields = line.split(separator)
    if len(fields) != expected:
        raise SapbertError(
            Errors.E703.format(
                path=path,
                line=number,
                expected=expected,
                separator="tabs" if columns else f"`{BARS}`",
                got=len(fields),
            )
        )
    if columns:
        row = dict(zip(columns, fields, strict=True))
        doc, mention, ids = row.get("doc", ""), row["mention"], row["ids"]
    else:
        doc, (mention, ids) = "", fields
        if looks_like_ids(mention) and not looks_like_ids(ids) and ids not in NO_ID:
            raise SapbertError(Errors.E702.format(path=path, line=number))
    if not mention.strip():
        raise SapbertError(Errors.E704.format(path=path, line=number))
    return doc, mention, ids


def read_mentions(
    path: Path, *, bars_join_parts: bool = False
) -> Iterator[GoldMention]:
    """Read gold mentions: a table with a header, or lines `mention||id`.

    path (Path): The file; with `.gz` at the end it is unpacked.
    bars_join_parts (bool): See `split_ids`.
    YIELDS (GoldMention): Each mention, also those without an id.
    RAISES (SapbertError): With file and line, at the first bad line; if there is none.
    """
    columns: list[str] | None = None
    seen = started = False
    for number, line in read_lines(path):
        if not line.strip():
            continue
        if not started:
            started, columns = True, read_header(path, number, line)
            if columns:
                continue
        doc, mention, ids = split_row(path, number, line, columns)
        seen = True
        parts = split_ids(ids, bars_join_parts=bars_join_parts)
        yield GoldMention(number, doc, mention, parts)
    if not seen:
        raise SapbertError(Errors.E707.format(path=path))


def read_aliases(path: Path) -> dict[str, str]:
    """Read which ids are aliases of another id.

    path (Path): Lines of an id, a tab, and the id that it is an alias of.
    RETURNS (dict[str, str]): For each id of the file the one that stands for it and for
        all its aliases: the end of its chain, or in a circle the smallest id.
    RAISES (SapbertError): With file and line, at the first bad line.
    """
    direct: dict[str, str] = {}
    for number, line in read_lines(path):
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) != 2 or not all(fields):
            raise SapbertError(
                Errors.E705.format(path=path, line=number, got=len(fields))
            )
        one, other = fields
        if direct.setdefault(one, other) != other:
            raise SapbertError(
                Errors.E706.format(
                    path=path, line=number, cui=one, first=direct[one], second=other
                )
            )
    found: dict[str, str] = {}
    for start in direct:
        chain = {start: 0}
        last = start
        while last in direct and direct[last] not in chain:
            last = direct[last]
            chain[last] = len(chain)
        if last in direct:  # the chain comes back to itself
            back = chain[direct[last]]
            last = min(cui for cui, place in chain.items() if place >= back)
        found[start] = found[last] = last
    return found


def group_aliases(aliases: dict[str, str]) -> dict[str, list[str]]:
    """Turn the aliases around.

    aliases (dict[str, str]): From `read_aliases`.
    RETURNS (dict[str, list[str]]): For each id that stands for others, all of them and
        itself.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for cui, last in aliases.items():
        groups[last].append(cui)
    return dict(groups)


def find_concepts(
    cui: str, lookup: Lookup, aliases: dict[str, str], groups: dict[str, list[str]]
) -> frozenset[str]:
    """Find the concepts of a dictionary that a gold id means.

    cui (str): The gold id: of a concept, a retired one, or an alias of one of these.
    lookup (Lookup): Gives the concept of the dictionary with an id or retired id.
    aliases (dict[str, str]): From `read_aliases`.
    groups (dict[str, list[str]]): From `group_aliases`.
    RETURNS (frozenset[str]): The ids that stand for these concepts; empty if the
        dictionary has none.
    """
    found: set[str] = set()
    asked: set[str] = set()
    pending = [cui]
    while pending:
        one = pending.pop()
        last = aliases.get(one, one)
        for member in {one, last, *groups.get(last, ())} - asked:
            asked.add(member)
            live = lookup(member)
            if live is not None:
                found.add(aliases.get(live, live))
                pending.append(live)
    return frozenset(found)


def make_resolver(lookup: Lookup, aliases: dict[str, str]) -> Resolve:
    """Make the function that finds the concepts of gold mentions.

    lookup (Lookup): Gives the concept of the dictionary with an id or retired id.
    aliases (dict[str, str]): From `read_aliases`.
    RETURNS (Resolve): Gives for each part of a mention the ids of its concepts, empty
        if the dictionary has none.
    """
    groups = group_aliases(aliases)

    @cache
    def find(cui: str) -> frozenset[str]:
        return find_concepts(cui, lookup, aliases, groups)

    def resolve(gold: GoldMention) -> list[frozenset[str]]:
        return [frozenset().union(*map(find, part)) for part in gold.parts]

    return resolve
