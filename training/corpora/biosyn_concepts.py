"""BioSyn's preprocessed folders: a `.concept` file for each document, without text."""

from collections.abc import Iterator
from pathlib import Path

from spacy_sapbert.evaluation.gold_mentions import BARS
from spacy_sapbert.formats.gold import NOWHERE, parse_offsets, split_ids
from training.corpora.registry import GoldDocument, GoldSpan
from training.corpora.tables import check_fields, iter_lines
from training.errors import Errors, SapbertError

FIELDS = 5


def list_concept_files(path: Path) -> list[Path]:
    """Return the `.concept` files of a folder, sorted; a file is returned alone."""
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.concept"))
    if not files:
        raise SapbertError(Errors.E108.format(file="`.concept` files", folder=path))
    return files


def read_line(
    path: Path, number: int, line: str, *, bars_join_parts: bool, split_composites: bool
) -> Iterator[GoldSpan]:
    """Parse a line of a `.concept` file, and yield the mention or each part of it."""
    fields = line.split(BARS)
    check_fields(path, number, fields, FIELDS, f"`{BARS}`")
    _, place, type, mention, ids = (field.strip() for field in fields)
    start, _, end = place.partition("|")
    offsets = parse_offsets(path, number, start, end)
    names = [name.strip() for name in mention.split("|")]
    if not all(names):
        raise SapbertError(Errors.E704.format(path=path, line=number))
    parts = split_ids(ids, bars_join_parts=True)
    if split_composites and 1 < len(names) == len(parts):
        for name, part in zip(names, parts, strict=True):
            yield GoldSpan(*NOWHERE, type, name, [part], number)
    else:
        parts = split_ids(ids, bars_join_parts=bars_join_parts)
        yield GoldSpan(*offsets, type, mention, parts, number)


def read_biosyn_concepts(
    path: Path, *, bars_join_parts: bool = False, split_composites: bool = True
) -> Iterator[GoldDocument]:
    """Read lines `pmid||start|end||type||mention||ids`.

    BioSyn has preprocessed the mentions: lower case, without punctuation, abbreviations
    expanded. The offsets are those in the original text.

    path (Path): A folder of `.concept` files, or one file.
    bars_join_parts (bool): `A|B` means A and B. BioSyn takes either.
    split_composites (bool): Yield each part of `breast cancer|ovarian cancer` without
        offsets, if there are as many ids. Otherwise it is one mention with bars.
    YIELDS (GoldDocument): Each file, also without a mention, with its name as id.
    RAISES (SapbertError): With file and line, at the first bad line.
    SOURCE: Sung et al. (2020), `preprocess.py` and the data released with it.
    """
    for file in list_concept_files(path):
        spans: list[GoldSpan] = []
        for number, line in iter_lines(file):
            spans += read_line(
                file,
                number,
                line,
                bars_join_parts=bars_join_parts,
                split_composites=split_composites,
            )
        name = file.name.removesuffix(".gz").removesuffix(".concept")
        yield GoldDocument(name, "", spans)
