"""Word lists and parallel titles → pairs.tsv: each translation is a concept of its own.

Training on translations after concepts aligns the languages of an encoder.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from spacy_sapbert.errors import SapbertError, unknown_on_error
from spacy_sapbert.io.reading import check_file
from spacy_sapbert.io.writing import check_outputs
from spacy_sapbert.vocabularies.concepts import clean_name, has_letter_or_digit
from spacy_sapbert.vocabularies.report import Report, read_good_lines
from training.data.options import Force, Quiet, print_counts
from training.data.pairs import hash_text, write_lines

Translation = tuple[str, str]


def read_translations(path: Path, report: Report) -> Iterator[Translation]:
    """Yield both sides of each line, two words or titles, with single blanks.

    The first line that is not blank decides the separator: a tab, or, if it has none,
    white space, as in MUSE's files, where both sides are one word.
    """
    tabs: bool | None = None
    for number, line in read_good_lines(path, report):
        if tabs is None:
            tabs = "\t" in line
        sides = [clean_name(side) for side in line.split("\t" if tabs else None)]
        if len(sides) != 2 or not all(sides):
            between = "a tab" if tabs else "white space"
            report.skip(
                "bad lines",
                SapbertError(
                    "E117",
                    f"{path}:{number}: Expected two words or titles with {between} "
                    "between them, as on the first line, but got something else. "
                    "Correct the line, or count such lines with `--on-error skip`.",
                ),
            )
            continue
        yield sides[0], sides[1]


def filter_translations(
    translations: Iterable[Translation], report: Report
) -> Iterator[Translation]:
    """Yield translations with letters or digits that differ in more than case.

    Each pair comes once, in either direction; the others are counted.
    """
    known: set[int] = set()  # hashes
    for one, other in translations:
        first, second = sorted((one.lower(), other.lower()))
        key = hash_text(f"{first}\t{second}")
        if not has_letter_or_digit(one) or not has_letter_or_digit(other):
            report.dropped["pairs without a letter or digit"] += 1
        elif first == second:
            report.dropped["pairs of equal words"] += 1
        elif key in known:
            report.dropped["repeated pairs"] += 1
        else:
            known.add(key)
            yield one, other


def write_translation_pairs(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES…", help="Two words or titles a line; plain or .gz."
        ),
    ],
    output: Annotated[Path, typer.Option(help="pairs.tsv to write.")],
    on_error: Annotated[str, typer.Option(help="Bad lines: fail, or skip.")] = "fail",
    force: Force = False,
    quiet: Quiet = False,
) -> Report:
    """Write translations as pairs; equal sides and repeated pairs are only counted.

    Example: python -m training translation-pairs en-fi.txt titles.en-fi.tsv.gz
    --output corpus/translations.tsv
    """
    if on_error not in ("fail", "skip"):
        raise unknown_on_error(value=on_error)
    check_outputs(output, force=force)
    report = Report(on_error=on_error)
    for path in paths:
        check_file(path)
    read = (pair for path in paths for pair in read_translations(path, report))
    pairs = (
        (f"translation:{number:06}", one, other)
        for number, (one, other) in enumerate(filter_translations(read, report), 1)
    )

    def describe_empty() -> SapbertError:
        dropped = ", ".join(f"{n:,} {what}" for what, n in report.dropped.items())
        return SapbertError(
            "E106",
            "Expected at least one pair of different words, but nothing is left. "
            f"Dropped: {dropped or 'nothing'}. Name other files.",
        )

    report.concepts = write_lines(pairs, output, describe_empty)
    counts = {"files": len(paths), "lines": sum(report.rows.values())}
    counts.update({f"dropped: {what}": n for what, n in report.dropped.items()})
    print_counts({**counts, "pairs": report.concepts}, output, quiet=quiet)
    return report
