"""BioSyn's processed folders: one `.concept` file for each document, without text."""

from collections.abc import Iterator
from pathlib import Path

from training.errors import Errors, SapbertError
from spacy_sapbert.evaluation.gold_mentions import BARS
from spacy_sapbert.formats.gold import split_ids
from spacy_sapbert.formats.offsets import NOWHERE, parse_offsets
from spacy_sapbert.system.reading import read_lines
from training.corpora.registry import GoldDocument, GoldSpan

FIELDS = 5


def list_concept_files(path: Path) -> list[Path]:
    """List the files of a corpus.

    path (Path): A folder, or one file.
    RETURNS (list[Path]): Its `.concept` files, sorted.
    RAISES (SapbertError): If a folder has none.
    """
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.concept"))
    if not files:
        raise SapbertError(Errors.E108.format(file="`.concept` files", folder=path))
    return files


def read_line(
    path: Path,
    number: int,
    line: str,
    *,
    bars_join_parts: bool,
    split_composites: bool,
) -> Iterator[GoldSpan]:
    """Read a line of a `.concept` file; see `read_biosyn_concepts`.

    YIELDS (GoldSpan): The mention, or each part of it.
    """
    fields = line.split(BARS)
    if len(fields) != FIELDS:
        raise SapbertError(
            Errors.E703.format(
                path=path,
                line=number,
                expected=FIELDS,
                separator=f"`{BARS}`",
                got=len(fields),
            )
        )
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

    Mentions are as BioSyn's pre-processing left them: lower case, without punctuation,
    abbreviations expanded. The offsets are those in the text before that.

    path (Path): A folder of `.concept` files, or one file.
    bars_join_parts (bool): `A|B` means A and B. BioSyn takes either.
    split_composites (bool): Give each part of `breast cancer|ovarian cancer` alone if
        there are as many ids; a part has no offsets. Else it is one mention with bars.
    YIELDS (GoldDocument): Each file, also without a mention; its id is the file's name.
    RAISES (SapbertError): With file and line, at the first bad line.
    SOURCE: Sung et al. (2020), `preprocess.py` and the data released with it.
    """
    for file in list_concept_files(path):
        spans: list[GoldSpan] = []
        for number, line in read_lines(file):
            if line.strip():
                spans += read_line(
                    file,
                    number,
                    line,
                    bars_join_parts=bars_join_parts,
                    split_composites=split_composites,
                )
        name = file.name.removesuffix(".gz").removesuffix(".concept")
        yield GoldDocument(name, "", spans)
