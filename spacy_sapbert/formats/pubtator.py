"""PubTator, as NCBI disease, BC5CDR and MedMentions have it.

Title and abstract, and a line a mention.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from ..errors import SapbertError, too_long
from ..io.reading import decode_line, read_line_blocks
from .documents import OnError, open_input, raise_error
from .entities import (
    LinkedDoc,
    LinkedEntity,
    Losses,
    blank_breaks,
    needs_text,
    quote_id,
    trim_place,
    warn_losses,
)
from .gold import (
    LONGEST,
    NOWHERE,
    GoldDocument,
    GoldMention,
    check_count,
    failed_document,
    parse_offsets,
    place_mention,
    split_ids,
)

TEXT_LINE = re.compile(r"([^|\t]+)\|([ta])\|(.*)", re.DOTALL)
RELATION = re.compile(r"[A-Za-z]+(?:[ _-][A-Za-z]+)*")  # CID, Association, …
BETWEEN = "\n"  # title and abstract: offsets count one character there
NO_CONCEPT = "-"

Row = tuple[int, list[str]]  # number of the line, its fields


def read_rows(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the number, from 1, and the bytes of each line that is not blank."""
    _, blocks = open_input(path)
    for first, lines in read_line_blocks(path, blocks=blocks):
        for number, line in enumerate(lines, first):
            if line.strip():
                yield number, line


def bad_line(path: Path, number: int, got: str) -> SapbertError:
    """Return the error of a line; `got` is never its text."""
    return SapbertError(
        "E117",
        f"{path}:{number}: Expected `id|t|title`, `id|a|abstract`, or an id, start, "
        f"end, mention, type and ids with tabs between them, but got {got}. Correct "
        "the line.",
    )


@dataclass
class DocumentLines:
    """The lines of a document, up to one that is invalid."""

    id: str
    title: str
    abstract: str | None = None
    rows: list[Row] = field(default_factory=list)
    error: SapbertError | None = None

    def texts(self) -> list[str]:
        """Return title and abstract, and if it is another text, the stripped ones.

        Some tools count offsets in these, and write the others.
        """
        if self.abstract is None:
            return [self.title]
        titles = dict.fromkeys((self.title, self.title.rstrip()))
        return [f"{title}{BETWEEN}{self.abstract}" for title in titles]


def add_line(path: Path, number: int, line: str, doc: DocumentLines | None) -> None:
    """Add an abstract or a mention to its document, which is changed in place."""
    if match := TEXT_LINE.fullmatch(line):
        id, _, content = match.groups()
        if doc is None or id != doc.id or doc.abstract is not None or doc.rows:
            raise bad_line(path, number, "an abstract without its title before it")
        doc.abstract = content
        return
    fields = line.split("\t")
    # a relation has a word in place of an offset
    relation = len(fields) in (3, 4, 5) and bool(RELATION.fullmatch(fields[1]))
    if not 5 <= len(fields) <= 7 and not relation:
        raise bad_line(path, number, f"{len(fields)} fields")
    if doc is None or fields[0] != doc.id:
        raise bad_line(path, number, "the id of another document")
    if not relation:
        check_count(path, number, doc.rows)
        doc.rows.append((number, fields))


def split_documents(path: Path, *, longest: int) -> Iterator[DocumentLines]:
    """Yield the lines of each document."""
    doc: DocumentLines | None = None
    shown, _ = open_input(path)
    for number, raw in read_rows(path):
        line = raw.decode("utf8", "surrogateescape")
        match = TEXT_LINE.fullmatch(line)
        if match is not None and match[2] == "t":
            if doc is not None:
                yield doc
            doc = DocumentLines(match[1], match[3])
        elif doc is not None and doc.error:
            continue
        try:
            decode_line(raw, shown, number)
            if match is None or match[2] != "t":
                add_line(shown, number, line, doc)
            if doc is not None and match and len(doc.texts()[0]) > longest:
                raise too_long(path=shown, line=number, limit=longest)
        except SapbertError as error:
            doc = doc or DocumentLines("", "")
            doc.error = error
    if doc is not None:
        yield doc


def read_mentions(
    path: Path,
    text: str,
    rows: Iterable[Row],
    *,
    bars_join_parts: bool,
    split_composites: bool,
) -> Iterator[GoldMention]:
    text = text.replace(BETWEEN, " ")  # as a mention of title and abstract has it
    for number, fields in rows:
        _, start, end, mention, type, ids, several, *_ = (*fields, "", "")
        offsets = parse_offsets(path, number, start, end)
        place = place_mention(path, number, text, [offsets], mention)
        parts = split_ids(ids, bars_join_parts=bars_join_parts)
        names = [*map(str.strip, several.split("|"))]
        if split_composites and 1 < len(parts) == len(names) and all(names):
            for name, part in zip(names, parts, strict=True):
                yield GoldMention(*NOWHERE, type.strip(), name, [part], number)
        else:
            first, last, written = place
            yield GoldMention(first, last, type.strip(), written, parts, number)


def read_gold(
    path: Path,
    *,
    bars_join_parts: bool = True,
    split_composites: bool = False,
    longest: int = LONGEST,
    on_error: OnError = raise_error,
) -> Iterator[GoldDocument]:
    """Read documents of lines `id|t|title`, `id|a|abstract`, and for each mention `id`,
    `start`, `end`, `mention`, `type`, `ids`, separated by tabs.

    Relations are skipped. Title and abstract are joined by a line feed, which the
    offsets count.

    Args:
        bars_join_parts: `A|B` means A and B, as NCBI disease and BC5CDR use it, for
            "breast and ovarian cancer". A few times NCBI disease also has two ids of
            one disease so ("cat eye syndrome"); a table of aliases makes these one
            again. False: A or B, as most published figures count.
        split_composites: Give each part of a composite alone, where the seventh column
            names them, as in BC5CDR; a part has no offsets.

    Source: Doğan et al. (2014); Li et al. (2016); Mohan and Li (2019).
    """
    options = {"bars_join_parts": bars_join_parts, "split_composites": split_composites}
    for doc in split_documents(path, longest=longest):
        error = doc.error
        for text in doc.texts() if error is None else ():
            try:
                mentions = [*read_mentions(path, text, doc.rows, **options)]
            except SapbertError as wrong:
                error = error or wrong
            else:
                yield GoldDocument(doc.id, text, mentions)
                break
        else:
            assert error is not None
            on_error(error)
            if doc.id.isprintable() and doc.id:
                yield failed_document(doc.id, error)


def clean_id(number: Any) -> str:
    """Return the id of a document with `_` for bars and unprintable characters."""
    plain = (c if c.isprintable() and c != "|" else "_" for c in str(number))
    return "".join(plain) or "_"


def mention_line(
    doc: str, text: str, entity: LinkedEntity, losses: Losses
) -> str | None:
    """Return the line of a mention; None if it is blank."""
    offsets = trim_place(text, entity["start"], entity["end"])
    if offsets is None:
        losses["mentions of blanks left out"] += 1
        return None
    start, end = offsets
    label = blank_breaks(entity["label"]).strip()
    losses["labels changed"] += label != entity["label"]
    cui = NO_CONCEPT if entity["cui"] is None else quote_id(entity["cui"], losses)
    return "\t".join((doc, str(start), str(end), text[start:end], label, cui))


def write_docs(
    docs: Iterable[LinkedDoc], file: IO[bytes], *, include_text: bool = True
) -> None:
    """Write title, abstract and mentions of each document.

    The first line of a text is the title, the rest the abstract. Other line ends, and
    tabs, become blanks one by one, so that the offsets are those of the text.
    """
    if not include_text:
        raise needs_text(format="pubtator")
    losses: Losses = Losses()
    for doc in docs:
        key = clean_id(doc.id)
        losses["ids of documents changed"] += key != str(doc.id)
        title, _, abstract = doc.text.partition(BETWEEN)
        title, abstract = blank_breaks(title), blank_breaks(abstract)
        lines = [f"{key}|t|{title}", f"{key}|a|{abstract}"]
        text = f"{title} {abstract}"
        for entity in doc.entities:
            if line := mention_line(key, text, entity, losses):
                lines.append(line)
        file.write("\n".join((*lines, "", "")).encode("utf8"))
    warn_losses("pubtator", losses)
