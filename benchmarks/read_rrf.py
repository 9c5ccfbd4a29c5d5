"""How fast MRCONSO.RRF is read, against a bare loop that only splits its lines.

    python -m benchmarks.read_rrf                    # a made-up file of a million rows
    python -m benchmarks.read_rrf assets/umls        # a release of your own

The loops take turns, so that a noisy machine disturbs them alike; the ratio is the
median of the rounds. The file is read unpacked, and once before the first round.
"""

import gzip
import random
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import typer
from wasabi import msg

from benchmarks.machine import machine_line
from spacy_sapbert.vocabularies.rrf import read_rrf
from spacy_sapbert.vocabularies.rrf_tables import find_table

WORDS = """acute chronic primary secondary congenital familial benign malignant left
right upper lower pain fever syndrome disease disorder deficiency carcinoma neoplasm
infection inflammation of the with without due to heart lung liver kidney brain bone
skin artery vein nerve muscle cell type unspecified injury fracture stenosis"""
# languages as in a release of UMLS: about seven rows in ten are English
LANGUAGES = ["ENG"] * 14 + ["SPA", "SPA", "FRE", "GER", "JPN", "RUS"]
SOURCES = ["SNOMEDCT_US", "MSH", "NCI", "MTH", "ICD10CM", "LNC", "RXNORM", "MDR"]
TERM_TYPES = ["PT", "SY", "ET", "PM", "FN", "MH"]
FOREIGN = {"JPN": "心不全の", "RUS": "острый ", "FRE": "maladie héréditaire "}


def make_rows(count: int, seed: int) -> Iterator[str]:
    """Make rows of MRCONSO: one to eight for each concept, as in a release.

    count (int): How many rows.
    seed (int): Of the random numbers.
    YIELDS (str): Rows with their ends.
    """
    random.seed(seed)
    words = WORDS.split()
    row, concept = 0, 0
    while row < count:
        concept += 1
        rows = min(random.choice((1, 1, 2, 3, 4, 5, 6, 8)), count - row)
        for place in range(rows):
            row += 1
            language = random.choice(LANGUAGES) if place else "ENG"
            name = " ".join(random.choices(words, k=random.randint(1, 6)))
            name = FOREIGN.get(language, "") + name
            source = random.choice(SOURCES)
            status, form = ("S", "VC") if place else ("P", "PF")
            mark = "O" if random.random() < 0.1 else "N"
            yield (
                f"C{concept:07}|{language}|{status}|L{row:07}|{form}|S{row:07}|Y|"
                f"A{row:08}|||D{concept:06}|{source}|{random.choice(TERM_TYPES)}|"
                f"D{concept:06}|{name}|0|{mark}|256|\n"
            )


def write_rows(path: Path, count: int, seed: int) -> None:
    """Write a made-up MRCONSO.RRF; see `make_rows`.

    path (Path): The file.
    count (int): How many rows.
    seed (int): Of the random numbers.
    """
    with open(path, "w", encoding="utf8") as file:
        file.writelines(make_rows(count, seed))


def copy_rows(release: Path, path: Path) -> None:
    """Copy the MRCONSO of a release, unpacked and without the tables beside it.

    release (Path): The folder of the release.
    path (Path): The file to write.
    """
    with open(path, "wb") as file:
        for part in find_table(release, "MRCONSO"):
            opener = gzip.open if part.suffix == ".gz" else open
            with opener(part, "rb") as packed:
                shutil.copyfileobj(packed, file)


def split_lines(path: Path) -> int:
    """Read a file as fast as Python reads lines and splits them: the yardstick.

    path (Path): The file.
    RETURNS (int): How many rows there were.
    """
    rows = 0
    with open(path, "rb") as file:
        for line in file:
            line.split(b"|")
            rows += 1
    return rows


def count_concepts(path: Path, languages: list[str], cui_pattern: str) -> int:
    """Read a file with the reader.

    path (Path): The file.
    languages (list[str]): Languages kept; empty: all.
    cui_pattern (str): What an id looks like.
    RETURNS (int): How many concepts there were.
    """
    concepts = read_rrf(path, languages=languages, cui_pattern=cui_pattern)
    return sum(1 for _ in concepts)


def main(
    release: Path | None = typer.Argument(None, help="A folder with MRCONSO."),
    rows: int = typer.Option(1_000_000, min=1, help="Rows of the made-up file."),
    rounds: int = typer.Option(5, min=1, help="How often each loop runs."),
    seed: int = typer.Option(0, help="Of the made-up file."),
    cui_pattern: str = typer.Option(r"C\d{7}", help="What an id looks like."),
) -> None:
    """MRCONSO.RRF -> table of rows a second"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "MRCONSO.RRF"
        if release is None:
            write_rows(path, rows, seed)
        else:
            copy_rows(release, path)
        total = split_lines(path)
        loops = {
            "split lines": lambda: split_lines(path),
            "read_rrf, English": lambda: count_concepts(path, ["ENG"], cui_pattern),
            "read_rrf, all languages": lambda: count_concepts(path, [], cui_pattern),
        }
        seconds: dict[str, list[float]] = {name: [] for name in loops}
        for _ in range(rounds):
            for name, loop in loops.items():
                start = time.perf_counter()
                loop()
                seconds[name].append(time.perf_counter() - start)
        size = path.stat().st_size / 1e6
    bare = seconds["split lines"]
    table = []
    for name, taken in seconds.items():
        ratios = [mine / theirs for mine, theirs in zip(taken, bare, strict=True)]
        speed = total / statistics.median(taken)
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        ratio = f"{statistics.median(ratios):.2f}"
        table.append((name, f"{speed:,.0f}", ratio, spread))
    header = ("loop", "rows/s", "time, split lines = 1", "of the rounds")
    msg.table(table, header=header, divider=True, aligns=("l", "r", "r", "r"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    msg.text(f"{total:,} rows, {size:,.0f} MB, {rounds} rounds, peak {peak:.0f} MB")
    msg.text(machine_line())


if __name__ == "__main__":
    typer.run(main)
