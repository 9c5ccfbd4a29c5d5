"""Speed of reading MRCONSO.RRF, against a bare loop that only splits its lines.

The rows are random. The loops take turns, so that a busy machine affects them alike;
the ratio is the median of the rounds. The file is read once before the first round.
"""

import random
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import typer

from benchmarks.harness import machine_line, print_table, run_cli
from spacy_sapbert.system.terminal import msg
from spacy_sapbert.vocabularies.registry import read_vocabulary

WORDS = """acute chronic primary secondary congenital familial benign malignant left
right upper lower pain fever syndrome disease disorder deficiency carcinoma neoplasm
infection inflammation of the with without due to heart lung liver kidney brain bone
skin artery vein nerve muscle cell type unspecified injury fracture stenosis"""
# languages as in a release of UMLS: about seven rows in ten are English
LANGUAGES = ["ENG"] * 14 + ["SPA", "SPA", "FRE", "GER", "JPN", "RUS"]
SOURCES = ["SNOMEDCT_US", "MSH", "NCI", "MTH", "ICD10CM", "LNC", "RXNORM", "MDR"]
TERM_TYPES = ["PT", "SY", "ET", "PM", "FN", "MH"]
FOREIGN = {"JPN": "心不全の", "RUS": "острый ", "FRE": "maladie héréditaire "}


def make_rows(count: int) -> Iterator[str]:
    """Yield random rows of MRCONSO, one to eight for each concept."""
    random.seed(0)
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


def split_lines(path: Path) -> int:
    """Count the rows as fast as Python reads and splits lines."""
    rows = 0
    with open(path, "rb") as file:
        for line in file:
            line.split(b"|")
            rows += 1
    return rows


def count_concepts(path: Path, languages: list[str]) -> int:
    """Count the concepts that the reader finds; no languages = all."""
    concepts = read_vocabulary(path, "rrf", languages=languages)
    return sum(1 for _ in concepts)


def main(
    rows: int = typer.Option(1_000_000, min=1, help="Number of random rows."),
    rounds: int = typer.Option(5, min=1, help="Runs of each loop."),
) -> None:
    """random MRCONSO.RRF -> table of rows a second

    Example: python -m benchmarks.read_rrf --rounds 3
    """
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "MRCONSO.RRF"
        with open(path, "w", encoding="utf8") as file:
            file.writelines(make_rows(rows))
        loops = {
            "split lines": lambda: split_lines(path),
            "read_rrf, English": lambda: count_concepts(path, ["ENG"]),
            "read_rrf, all languages": lambda: count_concepts(path, []),
        }
        split_lines(path)
        for _ in range(rounds):
            for name, loop in loops.items():
                start = time.perf_counter()
                loop()
                seconds.setdefault(name, []).append(time.perf_counter() - start)
    table = []
    for name, taken in seconds.items():
        pairs = zip(taken, seconds["split lines"], strict=True)
        ratios = [mine / theirs for mine, theirs in pairs]
        speed = f"{rows / statistics.median(taken):,.0f}"
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        table.append((name, speed, f"{statistics.median(ratios):.2f}", spread))
    print_table(("Loop", "Rows/s", "Time, split lines = 1", "Of the rounds"), table)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    msg.text(f"{rows:,} rows, {rounds} rounds, peak {peak:.0f} MB")
    msg.text(machine_line())


if __name__ == "__main__":
    run_cli(main)
