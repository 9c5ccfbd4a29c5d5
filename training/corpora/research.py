"""Readers of research corpora: XL-BEL, COMETA and the sets of BioSyn."""

from collections.abc import Callable, Iterator
from pathlib import Path

from spacy_sapbert.errors import SapbertError, blank_mention, unexpected_line
from spacy_sapbert.formats.gold import (
    NOWHERE,
    GoldDocument,
    GoldMention,
    place_mention,
    split_ids,
)
from spacy_sapbert.formats.mention_tables import looks_like_ids
from spacy_sapbert.io.reading import read_lines
from spacy_sapbert.io.tables.delimited import BARS, split_rows
from training.corpora.biosyn import read_concept_files

OPEN, CLOSE = "<tgt>", "</tgt>"  # around a mention in a context of XL-BEL
COMETA_COLUMNS = ["Term", "General SNOMED ID"]


def make_mention(path: Path, number: int, mention: str, ids: str) -> GoldMention:
    if not mention:
        raise blank_mention(path=path, line=number)
    return GoldMention(*NOWHERE, "", mention, split_ids(ids), number)


def read_xlbel(path: Path) -> Iterator[GoldDocument]:
    """Read lines `id||mention`, or `id||mention||context`, from Wikipedia.

    Args:
        path: The file, plain or `.gz`. Several ids with `|` between them are
            alternatives. In a context the mention is between `<tgt>` and `</tgt>`,
            which are removed.

    Yields:
        Each line; its id is the number of the line.

    Raises:
        SapbertError: With file and line, at the first bad line.

    Source: Liu et al. (2021), Learning Domain-Specialised Representations for
    Cross-Lingual Biomedical Entity Linking.
    """
    for number, line in read_lines(path):
        if not line.strip():
            continue
        ids, *rest = line.split(BARS, 2)  # a context may have bars
        if not rest or (looks_like_ids(rest[0]) and not looks_like_ids(ids)):
            raise SapbertError(
                "E117",
                f"{path}:{number}: Expected `id||mention` or `id||mention||context`, "
                "but got something else. Correct the line; `spacy sapbert convert` "
                "reads `mention||id`.",
            )
        mention, text = rest[0].strip(), ""
        gold = make_mention(path, number, mention, ids)
        if len(rest) > 1:
            context = rest[1]
            before, _, marked = context.partition(OPEN)
            inside, _, after = marked.partition(CLOSE)
            if context.count(OPEN) != 1 or marked.count(CLOSE) != 1 or CLOSE in before:
                raise SapbertError(
                    "E117",
                    f"{path}:{number}: Expected a context with one `<tgt>` and one "
                    "`</tgt>` after it, but got something else. Correct the line.",
                )
            text = before + inside + after
            offsets = len(before), len(before) + len(inside)
            start, end, _ = place_mention(path, number, text, [offsets], mention)
            gold = gold._replace(start=start, end=end)
        yield GoldDocument(str(number), text, [gold])


def read_cometa(path: Path) -> Iterator[GoldDocument]:
    """Read terms of patients on Reddit from a file of a split of COMETA.

    The file, e.g. `splits/stratified_general/dev.csv`, has tabs and quotes. Its
    columns: an unnamed one, `ID`, `Term`, `General SNOMED ID`, `General SNOMED Label`,
    `Specific SNOMED ID`, `Specific SNOMED Label` and `Example`. The general ids are
    read, as in the published results. The example is not, since the position of the
    term in it is not given.

    Yields:
        Each row, without text.

    Raises:
        SapbertError: With file and line, at the first bad row.

    Source: Basaldella et al. (2020).
    """
    columns: list[str] = []
    for number, row in split_rows(read_lines(path), "\t", path):
        row = [field.strip() for field in row]
        if not any(row):
            continue
        if not columns:
            columns = row
            if not set(COMETA_COLUMNS) <= set(columns):
                raise SapbertError(
                    "E117",
                    f"{path}:{number}: Expected a header with tabs and the columns "
                    f"{COMETA_COLUMNS}, but got another. Name a file of COMETA as it "
                    "was published.",
                )
            continue
        if len(row) != len(columns):
            expected = f"{len(columns)} fields with tabs between them"
            raise unexpected_line(path=path, line=number, expected=expected)
        fields = dict(zip(columns, row, strict=True))
        term, ids = (fields[name] for name in COMETA_COLUMNS)
        gold = make_mention(path, number, term, ids)
        yield GoldDocument(fields.get("ID") or str(number), "", [gold])


READERS: dict[str, Callable[[Path], Iterator[GoldDocument]]] = {
    "xlbel": read_xlbel,
    "cometa": read_cometa,
    "biosyn": read_concept_files,
}
