"""The paper's comparison of losses and mining, at one budget, in one table.

Each run is a training of its own, kept in its folder: what is there is not trained
again, and a run that was stopped goes on.

python -m benchmarks.compare_losses corpus/pairs.tsv DEV.tsv … --concepts
    corpus/concepts.jsonl --base models/minilm --out /tmp/losses --steps 391
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional

import typer
from wasabi import msg

from benchmarks.compare_linkers import render_row
from benchmarks.machine import describe_machine, machine_line
from spacy_sapbert.concepts import read_concepts
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.files import write_atomically
from spacy_sapbert.hf import load_encoder
from training import losses, mining, other_losses, schedules  # noqa: F401 (registers)
from training.accuracy import TIES
from training.baselines import read_dictionary
from training.config import read_config
from training.judging import (
    EvaluationSettings,
    answer_mentions,
    choose_mentions,
    judge_mentions,
)
from training.mentions import read_aliases
from training.settings import TrainingSettings, make_settings
from training.validation import Validation, make_encoder_search

# what differs from the paper's settings, by the name of the run
VARIANTS: Dict[str, Dict[str, str]] = {
    "Multi-Similarity, mining": {},
    "Multi-Similarity, no mining": {
        "training.miner.@miners": "spacy-sapbert.NoMiner.v1"
    },
    "cosine": {"training.loss.@losses": "spacy-sapbert.CosineLoss.v1"},
    "triplet": {"training.loss.@losses": "spacy-sapbert.TripletLoss.v1"},
    "NCA": {"training.loss.@losses": "spacy-sapbert.NcaLoss.v1"},
    "lifted structure": {
        "training.loss.@losses": "spacy-sapbert.LiftedStructureLoss.v1"
    },
    "InfoNCE": {"training.loss.@losses": "spacy-sapbert.InfoNceLoss.v1"},
    "circle": {"training.loss.@losses": "spacy-sapbert.CircleLoss.v1"},
}
KS = (1, 5)


def train_variant(
    pairs: Path, output: Path, corpus: Path, overrides: Dict[str, Any]
) -> None:
    """Train an encoder in a process of its own, unless it is there.

    pairs (Path): pairs.tsv.
    output (Path): The encoder folder.
    corpus (Path): Where all runs keep the tokenised names.
    overrides (Dict[str, Any]): Settings by their dotted names.
    """
    if output.is_dir():
        return
    command = [sys.executable, "-m", "training.train_encoder", str(pairs), str(output)]
    for key, value in overrides.items():
        command += [f"--{key}", str(value)]
    subprocess.run([*command, "--corpus", str(corpus)], check=True)


def judge_encoder(
    encoder: Path,
    validation: Validation,
    files: Dict[str, Path],
    settings: TrainingSettings,
) -> Dict[str, Any]:
    """Link gold mentions with an encoder, by exact search.

    encoder (Path): Folder.
    validation (Validation): Dictionary and aliases.
    files (Dict[str, Path]): Gold mentions by name.
    settings (TrainingSettings): How the encoder is run.
    RETURNS (Dict[str, Any]): By file its accuracy by concepts.
    """
    tokenizer, model = load_encoder(str(encoder))
    search = make_encoder_search(model, tokenizer, validation, settings, k=max(KS))
    judged: Dict[str, Any] = {}
    how = EvaluationSettings(ks=KS)
    for name, path in files.items():
        golds, _ = choose_mentions(path, how)
        answers = answer_mentions(
            search, (gold.mention for gold in golds), progress=sys.stderr.isatty()
        )
        lookup, aliases = validation.dictionary.lookup, validation.aliases
        result = judge_mentions(golds, answers, lookup, aliases, how)
        judged[name] = result["accuracy"]["all"]["concepts"]
    return judged


def render_table(results: Dict[str, Any], files: List[str]) -> str:
    """Write the comparison down.

    results (Dict[str, Any]): By run and file, accuracy.
    files (List[str]): Their order.
    RETURNS (str): Markdown.
    """
    columns = [(file, f"acc@{k}") for file in files for k in KS]
    lines = [
        f"By concepts; ties {' / '.join(TIES)}.",
        "",
        render_row(["Run", *(f"{file} {key}" for file, key in columns)]),
        render_row(["---", *["---:"] * len(columns)]),
    ]
    for name, judged in results.items():
        cells = [
            " / ".join(f"{judged[file][key][tie]:.3f}" for tie in TIES)
            for file, key in columns
        ]
        lines.append(render_row([name, *cells]))
    return "\n".join(lines)


def main(
    pairs: Path = typer.Argument(..., help="pairs.tsv"),
    mentions: List[Path] = typer.Argument(..., help="Gold mentions to report on."),
    concepts: Path = typer.Option(..., help="concepts.jsonl, the dictionary."),
    base: Path = typer.Option(..., help="Encoder folder to start from."),
    out: Path = typer.Option(..., help="Folder for encoders and comparison.json."),
    aliases: Optional[Path] = typer.Option(None, help="Ids and what they alias."),
    pooling: str = typer.Option("mean", help="cls or mean."),
    steps: int = typer.Option(391, min=1, help="Of each run: 391 are 100,096 pairs."),
    learning_rate: float = typer.Option(2e-5, help="Of all runs."),
    seed: int = typer.Option(0, help="Of all runs."),
    only: List[str] = typer.Option([], help="A run of these alone; may be repeated."),
) -> None:
    """pairs.tsv + mentions.tsv … + concepts.jsonl -> table, comparison.json"""
    overrides: Dict[str, Any] = {
        "encoder.base": str(base),
        "encoder.pooling": pooling,
        "training.steps": steps,
        "training.seed": seed,
        "training.optimizer.learning_rate": learning_rate,
    }
    out.mkdir(parents=True, exist_ok=True)
    try:
        settings = make_settings(
            read_config(None, {**overrides, "training.precision": "float32"})
        )
        known = read_aliases(aliases) if aliases else {}
        dictionary = read_dictionary(read_concepts(concepts))
        validation = Validation([], dictionary, known)
        files = {path.name.split(".tsv")[0]: path for path in mentions}
        results = {"base": judge_encoder(base, validation, files, settings)}
        for name, variant in VARIANTS.items():
            if only and name not in only:
                continue
            encoder = out / name.replace(", ", "-").replace(" ", "_")
            train_variant(pairs, encoder, out / "corpus", {**overrides, **variant})
            results[name] = judge_encoder(encoder, validation, files, settings)
            msg.good(f"{name}: {results[name]}")
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    data = {"machine": describe_machine(), "settings": overrides, "runs": results}
    with write_atomically(out / "comparison.json") as file:
        file.write(json.dumps(data, indent=2).encode("utf8") + b"\n")
    msg.text(machine_line())
    typer.echo(render_table(results, list(files)))


if __name__ == "__main__":
    typer.run(main)
