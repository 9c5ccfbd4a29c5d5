"""Gold mentions: files of mentions with the ids that annotators gave them."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from ..errors import SapbertError, blank_mention
from ..formats.gold import NO_ID, SEPARATORS, split_ids
from ..formats.inputs.files import detect_content, detect_format
from ..formats.registry import load_reader
from ..io.reading import read_lines
from ..mapping.run import is_mapped, read_reviewed
from ..mapping.sssom import NOTHING, OWN
from ..vocabularies.readers.sssom import read_exact
from ..vocabularies.report import Report

BARS = "||"
COLUMNS = ("mention", "ids")
SSSOM = re.compile(r"\bsssom\.[tc]sv(\.gz)?$", re.IGNORECASE)
# Long enough for the ids of UMLS, MeSH, OMIM, HPO, and too long for "p53" or "CD4".
LIKE_ID = re.compile(r"(?:[A-Za-z]+:)?[A-Z]{0,2}\d{5,}")

Lookup = Callable[[str], str | None]  # an id → the concept that has it now
Pair = tuple[str, str]  # folded mention, id


class GoldMention(NamedTuple):
    """One annotated mention.

    Attributes:
        line: Line in the file, from 1.
        doc: The document; empty if the file has no documents.
        parts: For each part of a composite the ids of which one must be found; a
            mention of one concept has one part. Empty if there is no id.
    """

    line: int
    doc: str
    mention: str
    parts: list[list[str]]


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


def looks_like_ids(field: str) -> bool:
    """Return whether all of a field has the form of ids."""
    return all(LIKE_ID.fullmatch(cui.strip()) for cui in SEPARATORS.split(field))


def read_header(path: Path, number: int, line: str) -> list[str] | None:
    """Return the columns of a table by its first line; None for `mention||id`."""
    columns = line.split("\t")
    if all(column in columns for column in COLUMNS):
        return columns
    if BARS in line:
        return None
    raise SapbertError(
        "E117",
        f"{path}:{number}: Expected a header with tabs between the columns and "
        "`mention` and `ids` among them, or lines `mention||id`, but got something "
        "else. Convert the file to one of the two.",
    )


def split_row(
    path: Path, number: int, line: str, columns: list[str] | None
) -> tuple[str, str, str]:
    """Return document, mention and ids of a line, which an error does not quote."""
    expected, separator = (len(columns), "\t") if columns else (2, BARS)
    fields = line.split(separator)
    if len(fields) != expected:
        raise SapbertError(
            "E117",
            f"{path}:{number}: Expected {expected} fields with "
            f"{'tabs' if columns else f'`{BARS}`'} between them, but got "
            f"{len(fields)}. Correct the line.",
        )
    if columns:
        row = dict(zip(columns, fields, strict=True))
        doc, mention, ids = row.get("doc", ""), row["mention"], row["ids"]
    else:
        doc, (mention, ids) = "", fields
        if looks_like_ids(mention) and not looks_like_ids(ids) and ids not in NO_ID:
            raise SapbertError(
                "E117",
                f"{path}:{number}: Expected `mention||id`, but the ids come first. "
                "Swap the columns: `awk -F'[|][|]' '{print $2 \"||\" $1}'`.",
            )
    if not mention.strip():
        raise blank_mention(path=path, line=number)
    return doc, mention, ids


def read_mentions(
    path: Path, *, bars_join_parts: bool = False
) -> Iterator[GoldMention]:
    """Read gold mentions, also without an id: a table, or lines `mention||id`.

    A table of `map` has mentions where a person has chosen a concept, and a file of
    SSSOM where a text is mapped exactly to a concept or to none. Documents of brat,
    PubTator, BioC or JSON Lines have their annotated mentions.
    """
    if is_mapped(path):
        for row, term, parts in read_reviewed(path):
            yield GoldMention(row, "", term, parts)
        return
    if SSSOM.search(path.name):
        yield from read_mapped_texts(path)
        return
    if path.is_dir() or detect_content(path) is not None:
        yield from read_documents(path)
        return
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
        raise SapbertError(
            "E106",
            f"Expected gold mentions in {path}, but it has none. Pass the file that "
            "has them.",
        )


def read_documents(path: Path) -> Iterator[GoldMention]:
    format = "brat" if path.is_dir() else detect_format(path)
    for document in load_reader(format)(path):
        for span in document.spans:
            yield GoldMention(span.line, str(document.id), span.mention, span.parts)


def read_mapped_texts(path: Path) -> Iterator[GoldMention]:
    """Read the texts of a file of SSSOM; ids may have their prefix or not."""
    report = Report()
    for row in read_exact(path, report):
        if row.subject or not row.subject_label:
            continue
        prefix, _, local = row.target.partition(":")
        local = unquote(local)
        ids = [local] if prefix == OWN else [f"{prefix}:{local}", local]
        parts = [] if row.target == NOTHING else [ids]
        yield GoldMention(row.line, "", row.subject_label, parts)


def read_aliases(path: Path) -> dict[str, str]:
    """Read lines of an id, a tab, and the id that it is an alias of.

    Each id gets the end of its chain or, in a circle, the smallest id.
    """
    direct: dict[str, str] = {}
    for number, line in read_lines(path):
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) != 2 or not all(fields):
            raise SapbertError(
                "E117",
                f"{path}:{number}: Expected an id, a tab and the id that it is an "
                f"alias of, but got {len(fields)} fields. Correct the line.",
            )
        alias, other = fields
        if direct.setdefault(alias, other) != other:
            raise SapbertError(
                "E117",
                f"{path}:{number}: Expected an alias of one id, but an earlier line "
                "has it for another id. Remove one of the lines.",
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
    paths: Iterable[Path], aliases: dict[str, str], *, bars_join_parts: bool = False
) -> set[Pair]:
    """Read the pairs of folded mention and id of training mentions."""
    return {
        (fold_text(gold.mention), aliases.get(cui, cui))
        for path in paths
        for gold in read_mentions(path, bars_join_parts=bars_join_parts)
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
