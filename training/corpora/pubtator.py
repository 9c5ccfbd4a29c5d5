"""PubTator files: NCBI disease, BC5CDR, MedMentions."""

import re
from pathlib import Path
from typing import Iterator, List, Optional, Tuple

from spacy_sapbert.errors import Errors, SapbertError
from spacy_sapbert.files import read_lines
from spacy_sapbert.gold_mentions import split_ids
from training.corpora import GoldDocument, GoldSpan
from training.corpora.offsets import NOWHERE, parse_offsets, place_mention

TEXT_LINE = re.compile(r"([^|\t]+)\|([ta])\|(.*)", re.DOTALL)
RELATION = re.compile(r"[A-Za-z]+(?:[ _-][A-Za-z]+)*")  # CID, Association, …
BETWEEN = "\n"  # title and abstract: offsets count one character there

Row = Tuple[int, List[str]]  # number of the line, its fields


def is_relation(fields: List[str]) -> bool:
    """Tell whether a line says how two concepts are related, not where one is.

    fields (List[str]): Of the line.
    RETURNS (bool): Whether there is a word in the place of an offset.
    """
    return len(fields) in (4, 5) and bool(RELATION.fullmatch(fields[1]))


def bad_line(path: Path, number: int, got: str) -> SapbertError:
    """Word what is wrong with a line.

    path (Path): The file.
    number (int): The line.
    got (str): What there is; never the line itself.
    RETURNS (SapbertError): To be raised.
    """
    return SapbertError(Errors.E712.format(path=path, line=number, got=got))


def split_documents(path: Path) -> Iterator[Tuple[str, str, List[Row]]]:
    """Put the lines of each document together.

    path (Path): The file.
    YIELDS (Tuple[str, str, List[Row]]): Id, text, and the lines of its mentions.
    RAISES (SapbertError): If a line has another form, or is not where it belongs.
    """
    doc: Optional[str] = None
    rows: List[Row] = []
    text, has_abstract = "", False
    for number, line in read_lines(path):
        if not line.strip():
            continue
        if match := TEXT_LINE.fullmatch(line):
            found, kind, said = match.groups()
            if kind == "t":
                if doc is not None:
                    yield doc, text, rows
                doc, text, rows, has_abstract = found, said, [], False
            elif found != doc or has_abstract or rows:
                raise bad_line(path, number, "an abstract without its title before it")
            else:
                text, has_abstract = text + BETWEEN + said, True
            continue
        fields = line.split("\t")
        if not 4 <= len(fields) <= 7:
            raise bad_line(path, number, f"{len(fields)} fields")
        if fields[0] != doc:
            raise bad_line(path, number, "the id of another document")
        if not is_relation(fields):
            rows.append((number, fields))
    if doc is not None:
        yield doc, text, rows


def read_spans(
    path: Path,
    text: str,
    row: Row,
    *,
    bars_join_parts: bool,
    split_composites: bool,
) -> Iterator[GoldSpan]:
    """Read the line of a mention; see `read_pubtator`.

    YIELDS (GoldSpan): The mention, or each part of it.
    """
    number, fields = row
    if len(fields) < 5:
        raise bad_line(path, number, f"{len(fields)} fields")
    offsets = parse_offsets(path, number, fields[1], fields[2])
    start, end, mention = place_mention(path, number, text, offsets, fields[3])
    type = fields[4].strip()
    ids = fields[5] if len(fields) > 5 else ""
    parts = split_ids(ids, bars_join_parts=bars_join_parts)
    names = fields[6].split("|") if len(fields) > 6 else []
    if split_composites and 1 < len(parts) == len(names) and all(map(str.strip, names)):
        for name, part in zip(names, parts, strict=True):
            yield GoldSpan(*NOWHERE, type, name.strip(), [part], number)
    else:
        yield GoldSpan(start, end, type, mention, parts, number)


def read_pubtator(
    path: Path, *, bars_join_parts: bool = True, split_composites: bool = False
) -> Iterator[GoldDocument]:
    """Read lines `id|t|title`, `id|a|abstract`, and of each mention `id`, `start`,
    `end`, `mention`, `type`, `ids` with tabs between them.

    Lines of relations are passed over. Title and abstract are joined by a line feed,
    which the offsets count.

    path (Path): The file, plain or `.gz`.
    bars_join_parts (bool): `A|B` means A and B, as NCBI disease and BC5CDR use it, for
        "breast and ovarian cancer". A few times NCBI disease also has two ids of one
        disease so ("cat eye syndrome"); a table of aliases makes these one again.
        False: A or B, as most published figures count.
    split_composites (bool): Give each part of a composite alone, where the seventh
        column names them, as in BC5CDR; a part has no offsets.
    YIELDS (GoldDocument): Each document.
    RAISES (SapbertError): With file and line, at the first bad line, and where the
        offsets do not give the mention.
    SOURCE: Doğan et al. (2014); Li et al. (2016); Mohan and Li (2019).
    """
    for doc, text, rows in split_documents(path):
        spans: List[GoldSpan] = []
        for row in rows:
            spans += read_spans(
                path,
                text,
                row,
                bars_join_parts=bars_join_parts,
                split_composites=split_composites,
            )
        yield GoldDocument(doc, text, spans)
