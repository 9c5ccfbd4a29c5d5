"""Word lists and parallel titles → pairs.tsv: each translation is a concept of its own.

Continued training on them brings the languages of an encoder together.
"""

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from heapq import heappushpop
from pathlib import Path
from typing import NamedTuple

import typer
from wasabi import msg

from training.errors import Errors, SapbertError
from spacy_sapbert.system.writing import write_atomically
from spacy_sapbert.vocabularies.clean import clean_name, has_letter_or_digit
from spacy_sapbert.vocabularies.good_lines import read_good_lines
from spacy_sapbert.vocabularies.report import Report
from training.data.tokenized_pairs import hash_text
from training.data.word_lists import WordList, list_files

# In the name of a file, e.g. `en-fi.0-5000.txt`.
LANGUAGES = re.compile(r"(?<![A-Za-z])([a-z]{2,3})-([a-z]{2,3})(?![A-Za-z])")
ALL = "all"

Translation = tuple[str, str]


class Choice(NamedTuple):
    """Which translations are kept.

    languages (tuple[str, ...]): Of a file both languages have to be among them; empty:
        all.
    sample (int): How many, drawn at random; 0 = all.
    seed (int): Which ones.
    """

    languages: tuple[str, ...] = ()
    sample: int = 0
    seed: int = 0


def find_languages(file: Path) -> tuple[str, str] | None:
    """Tell the two languages of a file by its name, else by that of its folder.

    file (Path): E.g. `en-fi.txt`, `fi-bg.train.5000.cc.trans`, `en-fi/words.tsv`.
    RETURNS (tuple[str, str] | None): What stands around the last hyphen between two
        codes; None if there are no such codes.
    """
    for name in (file.name, file.parent.name):
        if found := LANGUAGES.findall(name):
            one, other = found[-1]
            return one, other
    return None


def choose_files(
    files: Sequence[WordList], languages: Sequence[str], report: Report
) -> list[WordList]:
    """Leave out files of other languages.

    files (Sequence[WordList]): The files.
    languages (Sequence[str]): See `Choice`.
    report (Report): Counts.
    RETURNS (list[WordList]): Those that are left.
    RAISES (SapbertError): If a file does not tell its languages, or no file has one of
        them.
    """
    if not languages:
        return list(files)
    chosen: list[WordList] = []
    known: set[str] = set()
    for file in files:
        found = find_languages(file.path)
        if found is None:
            raise SapbertError(Errors.E770.format(path=file.path))
        known.update(found)
        if {*found} <= {*languages}:
            chosen.append(file)
        else:
            report.dropped["files of other languages"] += 1
    if unknown := sorted({*languages} - known):
        raise SapbertError(
            Errors.E771.format(
                unknown=", ".join(unknown), known=", ".join(sorted(known))
            )
        )
    return chosen


def read_translations(
    file: WordList, *, on_error: str, report: Report
) -> Iterator[Translation]:
    """Read a file of two words or titles a line.

    The first line that is not blank says what parts the two: a tab, or, if it has
    none, white space, as in MUSE's files; there both are one word.

    file (WordList): The file.
    on_error (str): "fail", or "skip" to count bad lines and go on.
    report (Report): Counts.
    YIELDS (Translation): Both sides of each line, with single blanks and otherwise as
        they are.
    RAISES (SapbertError): With file and line, at the first bad line.
    """
    separator: str | None = None
    tabs: bool | None = None
    lines = read_good_lines(
        file.path, on_error=on_error, report=report, blocks=file.blocks()
    )
    for number, line in lines:
        if not line.strip():
            report.dropped["blank lines"] += 1
            continue
        if tabs is None:
            tabs = "\t" in line
            separator = "\t" if tabs else None
        sides = [clean_name(side) for side in line.split(separator)]
        if len(sides) != 2 or not all(sides):
            if on_error == "fail":
                between = "a tab" if tabs else "white space"
                raise SapbertError(
                    Errors.E772.format(path=file.path, line=number, separator=between)
                )
            report.dropped["bad lines"] += 1
            continue
        yield sides[0], sides[1]


def keep_useful(
    translations: Iterator[Translation], known: set[int], report: Report
) -> Iterator[Translation]:
    """Leave out what there is nothing to learn of.

    Sides that differ in case alone are equal, as the names of a concept are.

    translations (Iterator[Translation]): Translations.
    known (set[int]): Hashes of those that were there before; is added to.
    report (Report): Counts.
    YIELDS (Translation): Two different texts, with a letter or digit each.
    """
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


def sample_translations(
    translations: Iterator[Translation], choice: Choice, report: Report
) -> Iterator[Translation]:
    """Draw some, in memory for these alone, in the order that they came in.

    Each has a random number of its own, of the seed and its text; the smallest are
    drawn. So whether one is drawn does not depend on the order of the files.

    translations (Iterator[Translation]): Translations.
    choice (Choice): How many.
    report (Report): Counts.
    YIELDS (Translation): Those that were drawn.
    """
    drawn: list[tuple[int, int, Translation]] = []  # a heap, the largest number first
    for place, (one, other) in enumerate(translations):
        number = hash_text(f"{choice.seed}\t{one}\t{other}")
        entry = (-number, place, (one, other))
        if len(drawn) < choice.sample:
            drawn.append(entry)
            if len(drawn) == choice.sample:
                drawn.sort()  # a sorted list is a heap
        else:
            heappushpop(drawn, entry)
            report.dropped["pairs not drawn"] += 1
    for _, _, translation in sorted(drawn, key=lambda entry: entry[1]):
        yield translation


def write_translation_pairs(
    files: Sequence[WordList],
    path: Path,
    choice: Choice = Choice(),  # noqa: B008 (it cannot be changed)
    *,
    on_error: str = "fail",
) -> Report:
    """Write the translations of all files as pairs, each with an id of its own.

    files (Sequence[WordList]): From `list_files`.
    path (Path): pairs.tsv, or pairs.tsv.gz.
    choice (Choice): Which ones.
    on_error (str): "fail", or "skip" to count bad lines and go on.
    RETURNS (Report): What was read and dropped; `concepts` is how many were written.
    RAISES (SapbertError): With file and line, at the first bad line; if a language is
        not there; if nothing is left.
    """
    if on_error not in ("fail", "skip"):
        raise SapbertError(Errors.E112.format(value=on_error))
    report = Report(path=", ".join(str(file.path) for file in files))
    known: set[int] = set()
    chosen = choose_files(files, choice.languages, report)
    report.counts["files"] = len(chosen)
    translations: Iterator[Translation] = (
        translation
        for file in chosen
        for translation in keep_useful(
            read_translations(file, on_error=on_error, report=report), known, report
        )
    )
    if choice.sample:
        translations = sample_translations(translations, choice, report)
    with write_atomically(path) as output:
        for one, other in translations:
            report.concepts += 1
            line = f"translation:{report.concepts:06}\t{one}\t{other}\n"
            output.write(line.encode("utf8"))
        if not report.concepts:
            dropped = ", ".join(f"{n:,} {what}" for what, n in report.dropped.items())
            raise SapbertError(Errors.E773.format(dropped=dropped or "nothing"))
    return report


def main(
    paths: list[Path] = typer.Argument(
        ..., metavar="FILES…", help="Two words or titles a line; plain, .gz or .zip."
    ),
    output: Path = typer.Option(..., help="pairs.tsv to write."),
    members: str = typer.Option("*", help="Files of a zip, e.g. '*.train.5000.*'."),
    languages: str = typer.Option(
        ALL, help="Both languages of a file are among these: en,fi; or all."
    ),
    sample: int = typer.Option(0, min=0, help="So many, drawn at random; 0 = all."),
    seed: int = typer.Option(0, help="Which ones are drawn."),
    on_error: str = typer.Option("fail", help="Of a bad line: fail, or skip it."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """word lists, parallel titles -> pairs.tsv

    What stands equal on both sides, or comes again, is left out and counted.

    Example: python -m training.data.translation_pairs en-fi.txt titles.en-fi.tsv.gz
    --output corpus/translations.tsv

    Example: python -m training.data.translation_pairs xling-eval-en.zip --members
    '*train.freq.5k.*' --languages en,fi,de --output corpus/translations.tsv
    """
    named = [language.strip() for language in languages.split(",")]
    choice = Choice(() if named == [ALL] else tuple(named), sample, seed)
    try:
        files = list_files(paths, lambda name: fnmatch(name, members))
        report = write_translation_pairs(files, output, choice, on_error=on_error)
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    if not quiet:
        rows = [("Files", report.counts["files"]), ("Lines", sum(report.rows.values()))]
        rows += [(f"Dropped: {what}", n) for what, n in report.dropped.items()]
        rows.append(("Pairs", report.concepts))
        msg.table([(what, f"{n:,}") for what, n in rows], aligns=("l", "r"))
        msg.good(f"Wrote {output}")


if __name__ == "__main__":
    typer.run(main)
