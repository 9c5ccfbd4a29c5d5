"""PhecodeX: a table of labels, and beside it a table of what rolls up to what."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import Errors, SapbertError
from .checks import count_concepts
from .clean import clean_name, has_letter_or_digit
from .concepts import Concept
from .good_lines import read_good_lines
from .merge import sort_concepts
from .report import Report

LABELS = ("phenotype", "description")
ROLLUP = ("code", "phecode_unrolled")
SOURCE = "PHECODE"
# behind the names of phenotypes that only ICD-10 can tell
MARK = "*"


def read_phecode(
    path: Path,
    *,
    type: str | None = None,
    on_error: str = "fail",
    report: Report | None = None,
) -> Iterator[Concept]:
    """Read phenotypes and, where the map lies beside the labels, their parents.

    path (Path): `…_labels.csv`, plain or `.gz`; the map is `…_rollup_map.csv` beside
        it, with the same ending.
    type (str | None): Semantic type of all concepts.
    on_error (str): "fail", or "skip" to count bad lines and go on.
    report (Report | None): Filled while reading.
    YIELDS (Concept): Each concept, sorted by its id.
    RAISES (SapbertError): With file and line, at the first bad line; if nothing is
        left.
    SOURCE: Shuey et al. (2023), Next-generation phenotyping.
    """
    report = Report() if report is None else report
    report.path, report.format = str(path), "phecode"
    above: dict[str, set[str]] = {}
    rollup = path.with_name(path.name.replace("_labels", "_rollup_map"))
    if rollup != path and rollup.is_file():
        for fields in read_table(rollup, ROLLUP, on_error=on_error, report=report):
            above.setdefault(fields[0], set()).add(fields[1])
    else:
        report.notes.append(f"{rollup.name} is not there: no parents.")
    types = [type] if type else []
    yield from count_concepts(
        sort_concepts(
            name_phenotypes(path, above, types, on_error=on_error, report=report)
        ),
        report,
    )


def name_phenotypes(
    path: Path,
    above: dict[str, set[str]],
    types: list[str],
    *,
    on_error: str,
    report: Report,
) -> Iterator[Concept]:
    """Read the labels; see `read_phecode`.

    above (dict[str, set[str]]): All that a code rolls up to, itself included.
    YIELDS (Concept): One of each line that has a name.
    """
    for code, label in read_table(path, LABELS, on_error=on_error, report=report):
        name = clean_name(label.removesuffix(MARK))
        if not has_letter_or_digit(name):
            report.dropped["names without a letter or digit"] += 1
            continue
        report.rows_kept += 1
        yield Concept(
            code,
            [name],
            types=list(types),
            codes={SOURCE: [code]},
            parents=nearest(code, above),
            sources={SOURCE: [0]},
        )


def nearest(code: str, above: dict[str, set[str]]) -> list[str]:
    """Find the parents of a code among all that it rolls up to.

    code (str): The code.
    above (dict[str, set[str]]): All that each code rolls up to.
    RETURNS (list[str]): Those that no other one of them rolls up to, sorted.
    """
    ancestors = above.get(code, set()) - {code}
    farther = {
        other for each in ancestors for other in above.get(each, ()) if other != each
    }
    return sorted(ancestors - farther)


def read_table(
    path: Path, columns: Sequence[str], *, on_error: str, report: Report
) -> Iterator[list[str]]:
    """Read some columns of a table whose first line names them.

    path (Path): A table with commas, plain or `.gz`.
    columns (Sequence[str]): Their names; the first one is an id and may not be empty.
    on_error (str): "fail", or "skip" to count bad lines and go on.
    report (Report): Is told of lines and bad ones.
    YIELDS (list[str]): The values of these columns.
    RAISES (SapbertError): With file and line; if a column is not there.
    """
    places: list[int] = []
    width = 0
    for number, line in read_good_lines(path, on_error=on_error, report=report):
        if not line.strip():
            report.dropped["blank lines"] += 1
            continue
        try:
            [fields] = csv.reader([line], strict=True)
        except csv.Error:
            fields = []
        if not places:
            missing = [name for name in columns if name not in fields]
            if missing:
                raise SapbertError(
                    Errors.E755.format(
                        path=path,
                        line=number,
                        columns=" and ".join(columns),
                        got=", ".join(fields[:10]) or "no table",
                    )
                )
            places, width = [fields.index(name) for name in columns], len(fields)
            continue
        if len(fields) == width and fields[places[0]].strip():
            yield [fields[place].strip() for place in places]
        elif on_error == "fail":
            raise SapbertError(
                Errors.E117.format(
                    path=path,
                    line=number,
                    expected=f"{width} fields between commas, and an id",
                )
            )
        else:
            report.dropped["bad lines"] += 1
