"""COMETA: terms of patients on Reddit, with SNOMED CT ids, in a table with quotes."""

import csv
from collections.abc import Iterator
from pathlib import Path

from spacy_sapbert.formats.gold import NOWHERE, split_ids
from spacy_sapbert.system.reading import read_lines
from training.corpora.registry import GoldDocument, GoldSpan
from training.errors import Errors, SapbertError

LEVELS = {"general": "General SNOMED ID", "specific": "Specific SNOMED ID"}
TERM = "Term"
ID = "ID"


def read_cometa(path: Path, *, level: str = "general") -> Iterator[GoldDocument]:
    """Read a file of a split, e.g. `splits/stratified_general/dev.csv`.

    The columns have these names: an unnamed one, `ID`, `Term`, `General SNOMED
    ID`, `General SNOMED Label`, `Specific SNOMED ID`, `Specific SNOMED Label` and
    `Example`, with tabs between them. The example is not read: the
    position of the term in it is not given.

    path (Path): The file, plain or `.gz`.
    level (str): "general" ids for the meaning of the term in any context, as in the
        published results; "specific" ids for its meaning in the example.
    YIELDS (GoldDocument): Each row, without text.
    RAISES (SapbertError): With file and line, at the first bad row.
    SOURCE: Basaldella et al. (2020).
    """
    if level not in LEVELS:
        raise SapbertError(
            Errors.E605.format(setting="level", known=list(LEVELS), value=level)
        )
    wanted = [TERM, LEVELS[level]]
    columns: list[str] = []
    lines = (f"{line}\n" for _, line in read_lines(path))
    rows = csv.reader(lines, delimiter="\t", strict=True)
    while True:
        number = rows.line_num + 1  # a row with quotes may have several lines
        try:
            row = next(rows, None)
        except csv.Error:
            raise SapbertError(Errors.E717.format(path=path, line=number)) from None
        if row is None:
            return
        if not any(map(str.strip, row)):
            continue
        if not columns:
            columns = [name.strip() for name in row]
            if not set(wanted) <= set(columns):
                raise SapbertError(
                    Errors.E718.format(path=path, line=number, wanted=wanted)
                )
            continue
        if len(row) != len(columns):
            raise SapbertError(
                Errors.E703.format(
                    path=path,
                    line=number,
                    expected=len(columns),
                    separator="tabs",
                    got=len(row),
                )
            )
        fields = dict(zip(columns, map(str.strip, row), strict=True))
        term = fields[TERM]
        if not term:
            raise SapbertError(Errors.E704.format(path=path, line=number))
        parts = split_ids(fields[LEVELS[level]])
        span = GoldSpan(*NOWHERE, "", term, parts, number)
        yield GoldDocument(fields.get(ID) or str(number), "", [span])
