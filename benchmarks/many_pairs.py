"""Memory of a training over many pairs: it must not grow with them.

Made-up pairs are written, tokenised and trained on for some steps, twice: a tenth of
them, and all. The peak is that of the training process alone.

python -m benchmarks.many_pairs --encoder models/minilm --out /tmp/many --steps 200
"""

import random
from collections.abc import Iterator
from pathlib import Path

import typer
from tqdm import tqdm
from wasabi import msg

from benchmarks.machine import machine_line
from benchmarks.main_job import run_step
from benchmarks.read_rrf import WORDS
from spacy_sapbert.system.writing import write_atomically


def make_lines(pairs: int, seed: int) -> Iterator[str]:
    """Make pairs as a large vocabulary has them: one to fifty for each concept.

    pairs (int): How many.
    seed (int): Of the random numbers.
    YIELDS (str): Lines of pairs.tsv.
    """
    chance = random.Random(seed)
    words = WORDS.split()
    done, concept = 0, 0
    while done < pairs:
        concept += 1
        names = [
            f"{' '.join(chance.choices(words, k=chance.randint(1, 6)))} {concept}"
            for _ in range(chance.choice((2, 2, 2, 3, 3, 4, 6, 11)))
        ]
        for place, name in enumerate(names):
            for other in names[place + 1 :]:
                if name != other and done < pairs:
                    yield f"C{concept:07}\t{name}\t{other}\n"
                    done += 1


def main(
    encoder: Path = typer.Option(..., help="Folder of the encoder to train."),
    out: Path = typer.Option(..., help="Folder for pairs and encoders."),
    pairs: int = typer.Option(12_000_000, min=1000, help="How many."),
    steps: int = typer.Option(200, min=1, help="Of training."),
    batch_size: int = typer.Option(64, min=2, help="Pairs in a step."),
    seed: int = typer.Option(0, help="Of the made-up pairs."),
) -> None:
    """encoder -> table of pairs, seconds and peak memory"""
    out.mkdir(parents=True, exist_ok=True)
    rows: list[tuple] = []
    for count in (pairs // 10, pairs):
        path, target = out / f"pairs-{count}.tsv", out / f"encoder-{count}"
        if not path.is_file():
            bar = tqdm(make_lines(count, seed), total=count, disable=None)
            with write_atomically(path) as file:
                for line in bar:
                    file.write(line.encode("utf8"))
        command = [
            "-m",
            "training",
            "train",
            str(path),
            str(target),
            "--quiet",
        ]
        command += ["--encoder.base", str(encoder), "--fresh"]
        command += ["--training.batch_size", str(batch_size)]
        for number in (1, steps):
            seconds, peak = run_step([*command, "--training.steps", str(number)])
            size = path.stat().st_size / 1e6
            rows.append(
                (
                    f"{count:,}",
                    f"{size:,.0f} MB",
                    number,
                    f"{seconds:.0f} s",
                    f"{peak:,.0f} MB",
                )
            )
    msg.text(machine_line())
    header = ("Pairs", "File", "Steps", "Time, with tokenising", "Peak memory")
    msg.table(rows, header=header, divider=True, aligns=("r",) * 5)
    msg.text(f"{batch_size} pairs a step, encoder {encoder.name}.")


if __name__ == "__main__":
    typer.run(main)
