"""Word lists and parallel titles → pairs.tsv: each translation is a concept of its own.

Files can be plain, `.gz`, or in a zip. Training on translations after concepts aligns
the languages of an encoder.
"""

import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatch
from functools import partial
from heapq import heappushpop
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import typer
from wasabi import msg

from spacy_sapbert.system.reading import BLOCK_BYTES, check_file, read_blocks
from spacy_sapbert.vocabularies.concepts import clean_name, has_letter_or_digit
from spacy_sapbert.vocabularies.report import Report, read_good_lines
from training.data.pairs import hash_text, write_lines
from training.errors import Errors, SapbertError

# In the name of a file, e.g. `en-fi.0-5000.txt`.
LANGUAGES = re.compile(r"(?<![A-Za-z])([a-z]{2,3})-([a-z]{2,3})(?![A-Za-z])")
ALL = "all"
# raised for a zip that is damaged, cut, encrypted or of another method
ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError)

Translation = tuple[str, str]


class WordList(NamedTuple):
    """A file of translations.

    path (Path): The file; in a zip, the zip and the name in it.
    blocks (Callable[[], Iterator[bytes]]): Reads it from its start.
    """

    path: Path
    blocks: Callable[[], Iterator[bytes]]


class Choice(NamedTuple):
    """Which translations to write.

    languages (tuple[str, ...]): Both languages of a file are among them; empty: all.
    sample (int): Number of translations, drawn at random; 0 = all.
    seed (int): Seed of the sample.
    """

    languages: tuple[str, ...] = ()
    sample: int = 0
    seed: int = 0


def read_member(path: Path, name: str) -> Iterator[bytes]:
    """Yield blocks of a file in a zip, without unpacking it to the disk."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(name) as file:
            while block := file.read(BLOCK_BYTES):
                yield block
    except ZIP_ERRORS as error:
        raise SapbertError(
            Errors.E774.format(path=path / name, reason=type(error).__name__)
        ) from None


def list_members(path: Path, members: str) -> list[WordList]:
    """Return the files in a zip that match a pattern, without hidden files."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except ZIP_ERRORS as error:
        raise SapbertError(
            Errors.E774.format(path=path, reason=type(error).__name__)
        ) from None
    chosen = [
        name
        for name in names
        if not name.endswith("/")
        and not name.startswith("__MACOSX/")
        and not name.rpartition("/")[2].startswith(".")
        and fnmatch(name, members)
    ]
    if not chosen:
        raise SapbertError(Errors.E775.format(path=path))
    return [WordList(path / name, partial(read_member, path, name)) for name in chosen]


def list_files(paths: Sequence[Path], members: str = "*") -> list[WordList]:
    """Return files and the files in zips, in this order.

    members (str): Pattern of the names of files in a zip.
    RAISES (SapbertError): If a file is missing, or a zip is damaged or has none.
    """
    files: list[WordList] = []
    for path in paths:
        check_file(path)
        if path.suffix == ".zip":
            files += list_members(path, members)
        else:
            files.append(WordList(path, partial(read_blocks, [path])))
    return files


def find_languages(file: Path) -> tuple[str, str] | None:
    """Return the two languages in the name of a file, or else of its folder.

    The last hyphen between two codes counts: `en-fr/yacle.test.freq.2k.fr-en.tsv`.
    """
    for name in (file.name, file.parent.name):
        if found := LANGUAGES.findall(name):
            one, other = found[-1]
            return one, other
    return None


def filter_files(
    files: Sequence[WordList], languages: Sequence[str], report: Report
) -> list[WordList]:
    """Return the files of some languages, and count the others.

    RAISES (SapbertError): If a file names no languages, or no file one of these.
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


def read_translations(file: WordList, report: Report) -> Iterator[Translation]:
    """Read a file of two words or titles on a line.

    The first line that is not blank decides the separator: a tab, or, if it has none,
    white space, as in MUSE's files, where both sides are one word.

    YIELDS (Translation): Both sides of each line, with single blanks.
    RAISES (SapbertError): With file and line, at the first bad line.
    """
    tabs: bool | None = None
    for number, line in read_good_lines(file.path, report, blocks=file.blocks()):
        if tabs is None:
            tabs = "\t" in line
        sides = [clean_name(side) for side in line.split("\t" if tabs else None)]
        if len(sides) != 2 or not all(sides):
            between = "a tab" if tabs else "white space"
            values = {"path": file.path, "line": number, "separator": between}
            report.skip("bad lines", SapbertError(Errors.E772.format(**values)))
            continue
        yield sides[0], sides[1]


def filter_translations(
    translations: Iterable[Translation], report: Report
) -> Iterator[Translation]:
    """Yield the translations that training can use, and count the others.

    YIELDS (Translation): Two texts with a letter or digit that differ in more than
        case, each pair once in either direction.
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


def sample_translations(
    translations: Iterator[Translation], choice: Choice, report: Report
) -> Iterator[Translation]:
    """Yield a random sample in its original order; only the sample is in memory.

    The sample has the smallest hashes of seed and text, so it does not depend on the
    order of the files.
    """
    drawn: list[tuple[int, int, Translation]] = []  # a heap, the largest hash first
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
    """Write the translations of all files as pairs, each with its own id.

    path (Path): pairs.tsv, or pairs.tsv.gz.
    on_error (str): "fail", or "skip" to count bad lines.
    RETURNS (Report): Counts; `concepts` is the number of pairs.
    RAISES (SapbertError): If a line is bad, a language is missing, or no pair is left.
    """
    if on_error not in ("fail", "skip"):
        raise SapbertError(Errors.E112.format(value=on_error))
    names = ", ".join(str(file.path) for file in files)
    report = Report(path=names, on_error=on_error)
    chosen = filter_files(files, choice.languages, report)
    report.counts["files"] = len(chosen)
    read = (read_translations(each, report) for each in chosen)
    translations = filter_translations(chain.from_iterable(read), report)
    if choice.sample:
        translations = sample_translations(translations, choice, report)
    pairs = (
        (f"translation:{number:06}", one, other)
        for number, (one, other) in enumerate(translations, start=1)
    )

    def describe_empty() -> str:
        dropped = ", ".join(f"{n:,} {what}" for what, n in report.dropped.items())
        return Errors.E773.format(dropped=dropped or "nothing")

    report.concepts = write_lines(pairs, path, describe_empty)
    return report


def translation_pairs_command(
    paths: list[Path] = typer.Argument(
        ..., metavar="FILES…", help="Two words or titles a line; plain, .gz or .zip."
    ),
    output: Path = typer.Option(..., help="pairs.tsv to write."),
    members: str = typer.Option("*", help="Files of a zip, e.g. '*.train.5000.*'."),
    languages: str = typer.Option(
        ALL, help="Both languages of a file are among these: en,fi; or all."
    ),
    sample: int = typer.Option(0, min=0, help="Size of a random sample; 0 = all."),
    seed: int = typer.Option(0, help="Seed of the sample."),
    on_error: str = typer.Option("fail", help="Bad lines: fail, or skip."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """Pairs of equal sides and repeated pairs are left out and counted.

    Example: python -m training translation-pairs en-fi.txt titles.en-fi.tsv.gz
    --output corpus/translations.tsv

    Example: python -m training translation-pairs xling-eval-en.zip --members
    '*train.freq.5k.*' --languages en,fi,de --output corpus/translations.tsv
    """
    named = [language.strip() for language in languages.split(",")]
    choice = Choice(() if named == [ALL] else tuple(named), sample, seed)
    files = list_files(paths, members)
    report = write_translation_pairs(files, output, choice, on_error=on_error)
    if not quiet:
        rows = [("Files", report.counts["files"]), ("Lines", sum(report.rows.values()))]
        rows += [(f"Dropped: {what}", n) for what, n in report.dropped.items()]
        rows.append(("Pairs", report.concepts))
        msg.table([(what, f"{n:,}") for what, n in rows], aligns=("l", "r"))
        msg.good(f"Wrote {output}")
