"""A grid of training runs → one table with the accuracy of each setting."""

import json
import re
import subprocess
import sys
import tomllib
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from pydantic import BaseModel, ConfigDict, Field

from spacy_sapbert.encoder.huggingface import EncoderSettings, load_encoder
from spacy_sapbert.evaluation.gold_mentions import check_names, read_aliases
from spacy_sapbert.evaluation.rankers import read_dictionary
from spacy_sapbert.evaluation.score_mentions import (
    EvaluationSettings,
    FileScores,
    rank_mentions,
    score_mentions,
    select_mentions,
)
from spacy_sapbert.system.reading import check_file, file_digest
from spacy_sapbert.system.terminal import msg
from spacy_sapbert.system.writing import remove_folder, write_atomically, write_json
from spacy_sapbert.vocabularies.concepts import read_concepts
from training.data.pairs import write_pairs
from training.data.reporting import AliasFile, Force
from training.errors import Errors, SapbertError
from training.experiments.ablation_table import RunResult, check_table, format_grid
from training.trainer.settings import complete_encoder, make_settings, read_config
from training.trainer.validation import Validation, encoder_ranker

SEED = "training.seed"
# Settings of a run besides those of training: pairs of a concept at most, and another
# concepts.jsonl to make pairs from, e.g. one without trade names.
MOST, CONCEPTS = "pairs.most", "pairs.concepts"


class Grid(BaseModel):
    """A TOML file of settings by dotted names.

    every (dict[str, Any]): Settings of every run.
    grid (dict[str, list[Any]]): Values of each setting.
    runs (dict[str, dict[str, Any]]): Settings of each run by name.
    """

    model_config = ConfigDict(extra="forbid")

    every: dict[str, Any] = {}
    grid: dict[str, Annotated[list[Any], Field(min_length=1)]] = {}
    runs: dict[str, dict[str, Any]] = {}


class Run(NamedTuple):
    """One training run of a grid.

    name (str): Without the seed.
    settings (dict[str, Any]): Differences from the default config, by dotted names.
    """

    name: str
    settings: dict[str, Any]

    @property
    def folder(self) -> str:
        """Return the name of the run's folder."""
        words = re.sub(r"[^\w.+-]+", "-", self.name).strip("-")
        return f"{words}-seed-{self.settings.get(SEED, 0)}"

    @property
    def training(self) -> dict[str, Any]:
        """Return the settings of training, without those of pairs."""
        return {k: v for k, v in self.settings.items() if k not in (MOST, CONCEPTS)}


class Inputs(NamedTuple):
    """The inputs of all runs of a grid.

    concepts (Path): concepts.jsonl to make pairs from.
    validations (dict[bool, Validation]): The dictionary and aliases, by whether an
        encoder lower-cases names.
    files (dict[str, Path]): Gold mentions by name.
    digests (dict[str, str]): The sha256 of each file.
    folder (Path): Folder of encoders and results.
    """

    concepts: Path
    validations: dict[bool, Validation]
    files: dict[str, Path]
    digests: dict[str, str]
    folder: Path


def read_grid(path: Path) -> list[Run]:
    """Read a grid: named runs, times all combinations of values.

    path (Path): TOML with the tables of `Grid`.
    RAISES (SapbertError): If the file is something else.
    """
    try:
        tables = Grid.model_validate(tomllib.loads(path.read_text("utf8")))
    except (ValueError, OSError) as error:
        reason = " ".join(str(error).partition(" [type=")[0].split())
        raise SapbertError(Errors.E750.format(path=path, reason=reason)) from None
    runs: list[Run] = []
    for name, own in (tables.runs or {"": {}}).items():
        for values in product(*tables.grid.values()):
            chosen = dict(zip(tables.grid, values, strict=True))
            parts = [name] if name else []
            parts += [f"{key} {val}" for key, val in chosen.items() if key != SEED]
            settings = {**tables.every, **chosen, **own}
            runs.append(Run(", ".join(parts) or "run", settings))
    return runs


def shared_settings(runs: list[Run]) -> dict[str, Any]:
    """Return the settings of the encoder that all runs have in common."""
    return {
        key: value
        for key, value in runs[0].settings.items()
        if key.startswith("encoder.")
        and all(run.settings.get(key) == value for run in runs)
    }


def read_how(run: Run) -> EncoderSettings:
    """Return how a run embeds names; a wrong setting raises a SapbertError."""
    config = complete_encoder(read_config(None, run.training), quiet=True)
    return make_settings(config).encoder.how


def train_run(run: Run, inputs: Inputs) -> Path:
    """Train the encoder of a run in its own process, unless it exists; return it."""
    folder = inputs.folder / run.folder
    encoder = folder / "encoder"
    if encoder.is_dir():
        return encoder
    most = run.settings.get(MOST, 50)
    concepts = Path(run.settings.get(CONCEPTS, inputs.concepts))
    pairs = inputs.folder / f"pairs-{file_digest(concepts)[:8]}-{most}.tsv"
    if not pairs.is_file():
        write_pairs(read_concepts(concepts), pairs, most=most)
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "training", "train", str(pairs), str(encoder)]
    for key, value in run.training.items():
        command += [f"--{key}", value if isinstance(value, str) else json.dumps(value)]
    done = subprocess.run(command, check=False)
    if done.returncode:  # it has printed why; Ctrl-C stops all runs
        raise typer.Exit(done.returncode)
    return encoder


def score_encoder(encoder: Path, run: Run, inputs: Inputs) -> dict[str, FileScores]:
    """Link the gold mentions of each file with an encoder, by exact search."""
    how = read_how(run)
    tokenizer, model = load_encoder(str(encoder))
    validation = inputs.validations[how.lowercase]
    ranker = encoder_ranker(model, tokenizer, validation, how, k=5)
    settings = EvaluationSettings()
    scored: dict[str, FileScores] = {}
    for name, path in inputs.files.items():
        golds, _ = select_mentions(path, settings)
        texts = (gold.mention for gold in golds)
        answers = rank_mentions(ranker, texts, progress=sys.stderr.isatty())
        lookup, aliases = validation.dictionary.lookup, validation.aliases
        scored[name] = score_mentions(golds, answers, lookup, aliases, settings)
    return scored


def finish_run(
    run: Run, inputs: Inputs, encoder: Path | None = None, *, force: bool = False
) -> RunResult:
    """Train and score a run, or read its earlier result.

    encoder (Path | None): An encoder to score without training.
    force (bool): Replace a run of other settings.
    RAISES (SapbertError): If the folder has a run of other settings.
    """
    made_of = dict(inputs.digests)
    if CONCEPTS in run.settings:
        made_of[CONCEPTS] = file_digest(Path(run.settings[CONCEPTS]))
    path = inputs.folder / run.folder / "result.json"
    begun = path.with_name("run.json")
    data = {"name": run.name, "settings": run.settings, "made_of": made_of}
    if begun.is_file() and json.loads(begun.read_text("utf8")) != data:
        if not force:
            raise SapbertError(Errors.E751.format(path=path.parent, name=run.name))
        remove_folder(path.parent)
    write_json(begun, data)
    if not path.is_file():
        encoder = encoder or train_run(run, inputs)
        write_json(path, {**data, "files": score_encoder(encoder, run, inputs)})
    result: RunResult = json.loads(path.read_text("utf8"))
    return result


def ablate_command(
    grid: Path = typer.Argument(..., help="TOML file, e.g. of training/configs."),
    mentions: list[Path] = typer.Argument(..., help="Gold mentions to report on."),
    concepts: Path = typer.Option(..., help="concepts.jsonl to make pairs from."),
    base: str = typer.Option(..., help="Default of encoder.base."),
    out: Path = typer.Option(..., help="Folder for encoders, results and the table."),
    dictionary: Path | None = typer.Option(
        None, help="concepts.jsonl that mentions are linked to. [--concepts]"
    ),
    aliases: AliasFile = None,
    pooling: str | None = typer.Option(
        None, help="Default of encoder.pooling. [as the base]"
    ),
    force: Force = False,
) -> None:
    """Train and score all runs of a grid.

    Each run has its own folder: finished runs are not repeated, and a stopped run is
    resumed. `--force` replaces runs of other settings, and the table of another grid.

    Example: python -m training ablate training/configs/ablations/losses.toml
    corpus/dev.tsv --concepts corpus/concepts.jsonl --base models/minilm
    --out results/losses
    """
    defaults = {"encoder.base": base}
    if pooling:
        defaults["encoder.pooling"] = pooling
    read_runs = read_grid(grid)
    runs = [Run(name, {**defaults, **settings}) for name, settings in read_runs]
    untrained = Run("before training", {**defaults, **shared_settings(read_runs)})
    casings: set[bool] = set()
    for run in (untrained, *runs):  # find wrong settings before the first training
        casings.add(read_how(run).lowercase)
        check_file(Path(run.settings.get(CONCEPTS, concepts)))
    check_table(out, [run.name for run in (untrained, *runs)], force=force)
    known = read_aliases(aliases) if aliases else {}
    validations: dict[bool, Validation] = {}
    for lowercase in casings:
        names = read_dictionary(
            read_concepts(dictionary or concepts), lowercase=lowercase
        )
        validations[lowercase] = Validation([], names, known)
    files = {path.name.split(".tsv")[0]: path for path in mentions}
    check_names(mentions)
    read = {"concepts": concepts, "dictionary": dictionary, "aliases": aliases, **files}
    digests = {name: file_digest(path) for name, path in read.items() if path}
    inputs = Inputs(concepts, validations, files, digests, out)
    base_encoder = Path(untrained.settings["encoder.base"])
    results = [finish_run(untrained, inputs, base_encoder, force=force)]
    for number, run in enumerate(runs, start=1):
        results.append(finish_run(run, inputs, force=force))
        msg.good(f"{number} of {len(runs)}: {run.folder}")
    table = format_grid(results)
    write_json(out / "ablation.json", results)
    with write_atomically(out / "ablation.md") as file:
        file.write(table.encode("utf8"))
    typer.echo(table)
    msg.good(f"Wrote {out / 'ablation.md'} and {out / 'ablation.json'}")
