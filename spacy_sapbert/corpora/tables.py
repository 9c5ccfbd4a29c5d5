"""Tables of mentions: TSV, BioSyn, XL-BEL, COMETA and AskAPatient."""

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from ..errors import (
    SapbertError,
    blank_mention,
    check_choice,
    missing_in_folder,
)
from ..evaluation.gold_mentions import (
    BARS,
    looks_like_ids,
    read_header,
    split_row,
)
from ..formats.gold import (
    NOWHERE,
    parse_offsets,
    place_mention,
    split_ids,
)
from ..io.reading import read_lines
from ..io.tables import split_rows
from .registry import GoldDocument, GoldSpan

OPEN, CLOSE = "<tgt>", "</tgt>"  # around a mention in a context of XL-BEL
BIOSYN_FIELDS = 5
LANGUAGE_LETTERS = 8  # "zh-Hant"
COMETA_LEVELS = {"general": "General SNOMED ID", "specific": "Specific SNOMED ID"}
ASKAPATIENT_SPLITS = ["train", "validation", "test"]


def iter_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines that are not blank."""
    return ((number, line) for number, line in read_lines(path) if line.strip())


def check_fields(
    path: Path, number: int, fields: list[str], expected: int, separator: str = "tabs"
) -> None:
    """Raise a SapbertError if a line has another number of fields."""
    if len(fields) != expected:
        raise SapbertError(
            "E117",
            f"{path}:{number}: Expected {expected} fields with {separator} between "
            f"them, but got {len(fields)}. Correct the line.",
        )


def make_span(
    path: Path, number: int, mention: str, ids: str, place: tuple[int, int] = NOWHERE
) -> GoldSpan:
    """Return a mention without a type; an empty one raises a SapbertError."""
    if not mention:
        raise blank_mention(path=path, line=number)
    return GoldSpan(*place, "", mention, split_ids(ids), number)


def read_tsv(
    path: Path, *, bars_join_parts: bool = False, language: str | None = None
) -> Iterator[GoldDocument]:
    """Read the tables of `read_mentions`, with offsets and types if present.

    Args:
        path: A table with a header that has at least `mention` and `ids`, or lines
            `mention||id`; plain or `.gz`.
        bars_join_parts: See `split_ids`.
        language: Only mentions that have it as `lang`; None = all.

    Yields:
        Consecutive lines with the same `doc`.

    Raises:
        SapbertError: With file and line, at the first bad line; if no mention has the
            language.
    """
    languages: set[str] = set()

    def iter_spans() -> Iterator[tuple[str, GoldSpan]]:
        columns: list[str] | None = None
        for place, (number, line) in enumerate(iter_lines(path)):
            if place == 0 and (columns := read_header(path, number, line)):
                continue
            doc, mention, ids = split_row(path, number, line, columns)
            row = dict(zip(columns, line.split("\t"), strict=True)) if columns else {}
            languages.add(row.get("lang", ""))
            if language in (None, row.get("lang")):
                start, end = row.get("start", ""), row.get("end", "")
                offsets = parse_offsets(path, number, start, end)
                parts = split_ids(ids, bars_join_parts=bars_join_parts)
                yield (
                    doc,
                    GoldSpan(*offsets, row.get("type", ""), mention, parts, number),
                )

    found = False
    for doc, spans in groupby(iter_spans(), key=itemgetter(0)):
        found = True
        yield GoldDocument(doc, "", [span for _, span in spans])
    if language is not None and not found:
        # A column of texts by mistake would show them.
        codes = sorted(code for code in languages if 0 < len(code) <= LANGUAGE_LETTERS)
        known = ", ".join(codes) or "none"
        raise SapbertError(
            "E105",
            f"{path}: Expected mentions with {language!r} in the column `lang`, but "
            f"got none: the languages there are {known}. Correct `--language`.",
        )


def list_concept_files(path: Path) -> list[Path]:
    """Return the `.concept` files of a folder, sorted; a file is returned alone."""
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.concept"))
    if not files:
        raise missing_in_folder(file="`.concept` files", folder=path)
    return files


def read_biosyn_concepts(
    path: Path, *, bars_join_parts: bool = False, split_composites: bool = True
) -> Iterator[GoldDocument]:
    """Read lines `pmid||start|end||type||mention||ids`.

    BioSyn has preprocessed the mentions: lower case, without punctuation, abbreviations
    expanded. The offsets are those in the original text.

    Args:
        path: A folder of `.concept` files, or one file.
        bars_join_parts: `A|B` means A and B. BioSyn takes either.
        split_composites: Yield each part of `breast cancer|ovarian cancer` without
            offsets, if there are as many ids. Otherwise it is one mention with bars.

    Yields:
        Each file, also without a mention, with its name as id.

    Raises:
        SapbertError: With file and line, at the first bad line.

    Source: Sung et al. (2020), `preprocess.py` and the data released with it.
    """
    for file in list_concept_files(path):
        spans: list[GoldSpan] = []
        for number, line in iter_lines(file):
            fields = [field.strip() for field in line.split(BARS)]
            check_fields(file, number, fields, BIOSYN_FIELDS, f"`{BARS}`")
            _, place, type, mention, ids = fields
            start, _, end = place.partition("|")
            offsets = parse_offsets(file, number, start, end)
            names = [name.strip() for name in mention.split("|")]
            if not all(names):
                raise blank_mention(path=file, line=number)
            parts = split_ids(ids, bars_join_parts=True)
            if split_composites and 1 < len(names) == len(parts):
                for name, part in zip(names, parts, strict=True):
                    spans.append(GoldSpan(*NOWHERE, type, name, [part], number))
            else:
                parts = split_ids(ids, bars_join_parts=bars_join_parts)
                spans.append(GoldSpan(*offsets, type, mention, parts, number))
        name = file.name.removesuffix(".gz").removesuffix(".concept")
        yield GoldDocument(name, "", spans)


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
    for number, line in iter_lines(path):
        ids, *rest = line.split(BARS, 2)  # a context may have bars
        if not rest or (looks_like_ids(rest[0]) and not looks_like_ids(ids)):
            raise SapbertError(
                "E117",
                f"{path}:{number}: Expected `id||mention` or `id||mention||context`, "
                "but got something else. Correct the line; `--format tsv` reads "
                "`mention||id`.",
            )
        mention, text = rest[0].strip(), ""
        span = make_span(path, number, mention, ids)
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
            start, end, _ = place_mention(path, number, text, offsets, mention)
            span = span._replace(start=start, end=end)
        yield GoldDocument(str(number), text, [span])


def read_cometa(path: Path, *, level: str = "general") -> Iterator[GoldDocument]:
    """Read terms of patients on Reddit from a file of a split of COMETA.

    The file, e.g. `splits/stratified_general/dev.csv`, has tabs and quotes. Its
    columns: an unnamed one, `ID`, `Term`, `General SNOMED ID`, `General SNOMED Label`,
    `Specific SNOMED ID`, `Specific SNOMED Label` and `Example`. The example is not
    read: the position of the term in it is not given.

    Args:
        level: "general" ids for the meaning of the term in any context, as in the
            published results; "specific" ids for its meaning in the example.

    Yields:
        Each row, without text.

    Raises:
        SapbertError: With file and line, at the first bad row.

    Source: Basaldella et al. (2020).
    """
    check_choice("level", list(COMETA_LEVELS), level)
    wanted = ["Term", COMETA_LEVELS[level]]
    columns: list[str] = []
    for number, row in split_rows(read_lines(path), "\t"):
        row = [field.strip() for field in row]
        if not any(row):
            continue
        if not columns:
            columns = row
            if not set(wanted) <= set(columns):
                raise SapbertError(
                    "E117",
                    f"{path}:{number}: Expected a header with tabs and the columns "
                    f"{wanted}, but got another. Name a file of COMETA as it was "
                    "published.",
                )
            continue
        check_fields(path, number, row, len(columns))
        fields = dict(zip(columns, row, strict=True))
        term, ids = (fields[name] for name in wanted)
        span = make_span(path, number, term, ids)
        yield GoldDocument(fields.get("ID") or str(number), "", [span])


def read_askapatient(
    path: Path, *, fold: int = 0, split: str = "test"
) -> Iterator[GoldDocument]:
    """Read lines of an id, the name of the concept and a phrase of a patient.

    Args:
        path: The folder with `AskAPatient.fold-0.train.txt` and the like, or one of
            these files, with tabs. Ids are from SNOMED CT and AMT.
        fold: 0 to 9; published results are the mean of all.
        split: "train", "validation" or "test".

    Yields:
        Each line, without text; its id is the number of the line.

    Raises:
        SapbertError: If there is no such fold; with file and line, at the first bad
            line.

    Source: Limsopatham and Collier (2016).
    """
    check_choice("fold", list(range(10)), fold)
    check_choice("split", ASKAPATIENT_SPLITS, split)
    file = path / f"AskAPatient.fold-{fold}.{split}.txt" if path.is_dir() else path
    for number, line in iter_lines(file):
        fields = [field.strip() for field in line.split("\t")]
        check_fields(file, number, fields, 3)
        ids, _, mention = fields
        yield GoldDocument(str(number), "", [make_span(file, number, mention, ids)])
