"""A table of texts and ids → the same table with the verdict on each id.

What was verified is kept beside the output until that is written, so that a stopped
run continues, and equal rows cost nothing. Memory does not grow with the rows.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import SapbertError
from ..io.html import load_templates
from ..io.progress import show_progress
from ..io.reading import check_file
from ..io.tables.files import find_kind, is_sssom, read_cell, read_header, read_rows
from ..io.tables.headers import find_columns
from ..io.tables.spreadsheets import Cell
from ..io.writing import write_atomically
from ..kb.knowledge_base import KnowledgeBase
from ..mapping.terms import is_term
from ..vocabularies.sssom import (
    CLAIM,
    CLOSE,
    EXACT,
    NOTHING,
    check_sssom,
    read_claim,
    read_curie,
    says_same,
    write_again,
)
from .kept import KeptVerdicts, Pair, open_kept
from .verdicts import (
    RETIRED,
    RIGHT,
    UNKNOWN,
    UNSURE,
    VERDICTS,
    WRONG,
    Verdict,
    Verifier,
)

PREFIX = "verify_"  # of all columns that are added
FIELDS = (
    *("verdict", "probability", "why", "cui", "name", "relation"),
    *("better", "better_name", "better_probability", "meant", "label", "label_text"),
)
HTML = ".html"
ROWS_AT_ONCE = 1_000
MOST_SHOWN = 2_000  # rows of a page


class PairColumns(NamedTuple):
    """Which columns of a table are what."""

    text: str
    id: str
    label: str | None = None
    context: str | None = None


SSSOM = PairColumns("subject_label", "object_id", "object_label")
OTHER = "other"  # the verdict on a mapping that is not verified


def check_verified(path: Path, output: Path) -> None:
    """Raise an error if an output has no ending that a verified table can have."""
    if output.suffix.lower() != HTML:
        find_kind(output)
        check_sssom(path, output)


def choose_columns(
    path: Path,
    column: str | None,
    id: str | None,
    label: str | None,
    context: str | None,
    encoding: str = "utf-8",
) -> PairColumns:
    """Return the columns; those that SSSOM has need not be named."""
    if is_sssom(path) and column is None and id is None:
        header = read_header(read_rows(path, encoding=encoding))
        known = SSSOM.label if SSSOM.label in header else None
        return SSSOM._replace(label=label or known, context=context)
    if column is None or id is None:
        raise SapbertError(
            "E410",
            f"{path}: Expected the names of the columns of terms and of ids, but got "
            "none for one of them. Pass `--column` and `--id`.",
        )
    return PairColumns(column, id, label, context)


def verify_table(
    kb: KnowledgeBase,
    path: Path,
    output: Path,
    columns: PairColumns,
    *,
    encoding: str = "utf-8",
    progress: bool = False,
) -> Counter[str]:
    """Write a table with the verdicts on its ids, and count the rows by verdict.

    A row without an id is counted as "empty", a mapping that says something else than
    that text and concept are the same as `OTHER`. A table of columns of an earlier run
    loses them.
    """
    check_file(path)
    counts = Counter[str](dict.fromkeys(VERDICTS, 0))
    with open_kept(output, kb.manifest.digest) as kept:
        header, rows = verify_rows(Verifier(kb), path, columns, encoding, kept)
        bar = show_progress(rows, unit="rows", quiet=not progress)
        counted = count_rows(bar, counts)
        if output.suffix.lower() == HTML:
            write_page(output, path.name, columns, header, counted, counts)
        else:
            added = [f"{PREFIX}{name}" for name in FIELDS]
            cells = (row + list_cells(verdict) for row, verdict in counted)
            write_again(path, output, [*header, *added], cells, encoding)
    return counts


Judged = tuple[list[Cell], Verdict | None]


def verify_rows(
    verifier: Verifier,
    path: Path,
    columns: PairColumns,
    encoding: str,
    kept: KeptVerdicts,
) -> tuple[list[str], Iterator[Judged]]:
    """Return the columns, and each row with its verdict; None = it has no id."""
    rows = read_rows(path, encoding=encoding)
    header = read_header(rows)
    places = find_columns(path, header, columns)
    has_curies = is_sssom(path)
    like = next(iter(verifier.kb), "")
    claim = [header.index(n) for n in CLAIM if has_curies and n in header]
    own = [n for n, name in enumerate(header) if not name.startswith(PREFIX)]

    def read(row: Sequence[Cell]) -> Pair:
        cells = ("" if p is None else read_cell(row[p]).strip() for p in places)
        text, id, label, context = cells
        if has_curies:
            id = "" if id == NOTHING else read_curie(id, like)
        return text if is_term(text) else "", id, label, context

    def judge() -> Iterator[Judged]:
        while batch := list(islice(rows, ROWS_AT_ONCE)):
            pairs = [read(row) for row in batch]
            verdicts = verify_kept(verifier, [p for p in pairs if p[1]], kept)
            for row, pair in zip(batch, pairs, strict=True):
                verdict = verdicts.get(pair)
                if verdict and claim:
                    verdict = judge_claim(verdict, *(read_cell(row[p]) for p in claim))
                yield [row[place] for place in own], verdict

    return [header[place] for place in own], judge()


def judge_claim(verdict: Verdict, predicate: str, modifier: str = "") -> Verdict:
    """Return the verdict on a mapping of SSSOM, by what it says of the concept.

    A mapping may say that the concept is close, broader, narrower or related, or is not
    what the text means. Then it is not wrong if the text means something else.
    """
    relation, says_not = read_claim(predicate, modifier)
    if verdict.verdict == UNKNOWN or (relation == EXACT and not says_not):
        return verdict
    if relation == CLOSE and not says_not:
        if verdict.verdict != WRONG:
            return verdict
        why = f"The mapping only says that they are close. {verdict.why}"
        return replace(verdict, verdict=UNSURE, why=why)
    if says_same(predicate) and verdict.verdict in (RIGHT, RETIRED):
        why = f"The mapping says that this is not {verdict.name}. {verdict.why}"
        return replace(verdict, verdict=UNSURE, why=why)
    why = "The mapping does not say that text and concept are the same."
    return Verdict(
        OTHER, cui=verdict.cui, name=verdict.name, label=verdict.label, why=why
    )


def verify_kept(
    verifier: Verifier, pairs: Sequence[Pair], kept: KeptVerdicts
) -> dict[Pair, Verdict]:
    """Return the verdicts on pairs, those that are kept from before or new."""
    verdicts = kept.find(dict.fromkeys(pairs))
    new = [pair for pair in dict.fromkeys(pairs) if pair not in verdicts]
    if new:
        texts, ids, labels, contexts = zip(*new, strict=True)
        found = verifier.verify(
            texts,
            ids,
            labels=labels if any(labels) else None,
            contexts=contexts if any(contexts) else None,
        )
        added = dict(zip(new, found, strict=True))
        kept.add(added)
        verdicts |= added
    return verdicts


def count_rows(rows: Iterator[Judged], counts: Counter[str]) -> Iterator[Judged]:
    for row, verdict in rows:
        counts["empty" if verdict is None else verdict.verdict] += 1
        yield row, verdict


def list_cells(verdict: Verdict | None) -> list[Cell]:
    """Return the cells of `FIELDS`."""
    if verdict is None:
        return [None] * len(FIELDS)
    values: dict[str, Any] = asdict(verdict)
    values["meant"] = " ".join(verdict.meant) or None
    return [values[name] for name in FIELDS]


def write_page(
    output: Path,
    name: str,
    columns: PairColumns,
    header: Sequence[str],
    rows: Iterator[Judged],
    counts: Counter[str],
) -> None:
    """Write a page: the counts, and the first rows whose id is not right."""
    places = find_columns(output, header, columns[:3])
    shown: list[list[Any]] = []
    for number, (row, verdict) in enumerate(rows, 2):
        if verdict is None or verdict.verdict in (RIGHT, OTHER):
            continue
        if len(shown) == MOST_SHOWN:
            continue
        cells = ["" if p is None else read_cell(row[p]) for p in places]
        better = f"{verdict.better} {verdict.better_name}" if verdict.better else ""
        chance = "" if verdict.probability is None else f"{verdict.probability:.2f}"
        meant = better or " ".join(verdict.meant)
        shown.append([number, verdict.verdict, *cells, meant, chance, verdict.why])
    totals = [(v, f"{counts[v]:,}", meaning) for v, meaning in VERDICTS.items()]
    template = load_templates(__package__).get_template("verify.html")
    page = template.generate(name=name, totals=totals, rows=shown, most=MOST_SHOWN)
    with write_atomically(output) as file:
        for part in page:
            file.write(part.encode("utf8", "replace"))
