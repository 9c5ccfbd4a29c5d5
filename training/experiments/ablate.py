"""A grid of training runs → one table with the accuracy of each setting."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import typer
from wasabi import msg

from spacy_sapbert.encoder.huggingface import EncoderSettings, load_encoder
from spacy_sapbert.evaluation.accuracy import LEVELS, TIES, format_mean
from spacy_sapbert.evaluation.gold_mentions import check_names, read_aliases
from spacy_sapbert.evaluation.rankers import read_dictionary
from spacy_sapbert.evaluation.score_mentions import (
    EvaluationSettings,
    rank_mentions,
    score_mentions,
    select_mentions,
)
from spacy_sapbert.system.reading import check_file, file_digest
from spacy_sapbert.system.writing import write_atomically, write_json
from spacy_sapbert.vocabularies.concepts import read_concepts
from training.data.pairs import write_pairs
from training.errors import Errors, SapbertError
from training.trainer.settings import TrainingSettings, make_settings, read_config
from training.trainer.validation import Validation, encoder_ranker

SEED = "training.seed"
# Settings of a run besides those of training: pairs of a concept at most, and another
# concepts.jsonl to make pairs from, e.g. one without trade names.
MOST, CONCEPTS = "pairs.most", "pairs.concepts"
SECTIONS = ("every", "grid", "runs")


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
    folder (Path): Folder of encoders and results.
    """

    concepts: Path
    validations: dict[bool, Validation]
    files: dict[str, Path]
    folder: Path


def read_grid(path: Path) -> list[Run]:
    """Read a grid: named runs, times all combinations of values.

    path (Path): TOML with the tables `every` (settings of every run), `runs` (a table
        of settings for each name) and `grid` (a list of values for each setting), all
        optional.
    RETURNS (list[Run]): All combinations.
    RAISES (SapbertError): If the file is something else.
    """
    try:
        data = tomllib.loads(path.read_text("utf8"))
        if unknown := sorted(data.keys() - set(SECTIONS)):
            raise ValueError(f"it has a table {unknown[0]!r}")
        every, grid = dict(data.get("every", {})), dict(data.get("grid", {}))
        named = dict(data.get("runs", {})) or {"": {}}
        if not all(isinstance(each, list) and each for each in grid.values()):
            raise ValueError("a value in `grid` is no list")
        if not all(isinstance(each, dict) for each in named.values()):
            raise ValueError("a run is no table")
    except (ValueError, OSError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise SapbertError(Errors.E750.format(path=path, reason=reason)) from None
    runs: list[Run] = []
    for name, own in named.items():
        for values in product(*grid.values()):
            chosen = dict(zip(grid, values, strict=True))
            parts = [name] if name else []
            parts += [f"{key} {val}" for key, val in chosen.items() if key != SEED]
            runs.append(Run(", ".join(parts) or "run", {**every, **chosen, **own}))
    return runs


def shared_settings(runs: list[Run]) -> dict[str, Any]:
    """Return the settings of the encoder that all runs have in common."""
    return {
        key: value
        for key, value in runs[0].settings.items()
        if key.startswith("encoder.")
        and all(run.settings.get(key) == value for run in runs)
    }


def validate_run(run: Run) -> TrainingSettings:
    """Return the settings of a run, as validated as before its training."""
    return make_settings(read_config(None, run.training))


def train_run(run: Run, inputs: Inputs) -> Path:
    """Train the encoder of a run in its own process, if it does not exist yet.

    RETURNS (Path): The encoder folder.
    """
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


def score_encoder(encoder: Path, run: Run, inputs: Inputs) -> dict[str, Any]:
    """Link gold mentions with an encoder, by exact search.

    RETURNS (dict[str, Any]): The result of `score_mentions` for each file.
    """
    section = validate_run(run).encoder
    how = EncoderSettings(section.pooling, section.max_length, section.lowercase)
    tokenizer, model = load_encoder(str(encoder))
    validation = inputs.validations[how.lowercase]
    ranker = encoder_ranker(model, tokenizer, validation, how, k=5)
    settings = EvaluationSettings()
    scored: dict[str, Any] = {}
    for name, path in inputs.files.items():
        golds, _ = select_mentions(path, settings)
        texts = (gold.mention for gold in golds)
        answers = rank_mentions(ranker, texts, progress=sys.stderr.isatty())
        lookup, aliases = validation.dictionary.lookup, validation.aliases
        scored[name] = score_mentions(golds, answers, lookup, aliases, settings)
    return scored


def finish_run(
    run: Run, inputs: Inputs, made_of: dict[str, Any], *, encoder: Path | None = None
) -> dict[str, Any]:
    """Train and score a run, or read its earlier result.

    encoder (Path | None): An encoder to score without training.
    RETURNS (dict[str, Any]): Name, settings and scores.
    RAISES (SapbertError): If the folder has a run of other settings.
    """
    if CONCEPTS in run.settings:
        made_of = {**made_of, CONCEPTS: file_digest(Path(run.settings[CONCEPTS]))}
    path = inputs.folder / run.folder / "result.json"
    begun = path.with_name("run.json")
    data = {"name": run.name, "settings": run.settings, "made_of": made_of}
    if begun.is_file() and json.loads(begun.read_text("utf8")) != data:
        raise SapbertError(Errors.E751.format(path=path.parent, name=run.name))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(begun, data)
    if path.is_file():
        return dict(json.loads(path.read_text("utf8")))
    encoder = encoder or train_run(run, inputs)
    result = {**data, "files": score_encoder(encoder, run, inputs)}
    write_json(path, result)
    return result


def iter_accuracies(result: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the name and value of each accuracy of a run, in the table's order."""
    for file, scored in result["files"].items():
        for level in LEVELS:
            for k in ("acc@1", "acc@5"):
                for tie in TIES:
                    value = scored["accuracy"]["all"][level][k][tie]
                    yield f"{file}|{k} by {level}|{tie}", value


def format_grid(results: Sequence[dict[str, Any]]) -> str:
    """Format all runs as Markdown, one table for each file of mentions.

    results (Sequence[dict[str, Any]]): From `finish_run`; runs of one name are seeds.
    """
    groups: dict[str, list[dict[str, float]]] = {}
    for result in results:
        groups.setdefault(result["name"], []).append(dict(iter_accuracies(result)))
    lines: list[str] = []
    for file, scored in results[0]["files"].items():
        columns = [f"{k} by {level}" for level in LEVELS for k in ("acc@1", "acc@5")]
        titles = [column.capitalize() for column in columns]
        lines += [
            f"**{file}**: {scored['judged']:,} mentions, the dictionary covers "
            f"{scored['coverage']:.1%}; ties {' / '.join(TIES)}.",
            "",
            f"| Run | Seeds | {' | '.join(titles)} |",
            f"| --- | ---: |{' ---: |' * len(columns)}",
        ]
        for name, seeds in groups.items():
            cells = [
                " / ".join(
                    format_mean([seed[f"{file}|{column}|{tie}"] for seed in seeds])
                    for tie in TIES
                )
                for column in columns
            ]
            lines.append(f"| {name} | {len(seeds)} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def ablate_command(
    grid: Path = typer.Argument(..., help="TOML file, e.g. of training/configs."),
    mentions: list[Path] = typer.Argument(..., help="Gold mentions to report on."),
    concepts: Path = typer.Option(..., help="concepts.jsonl to make pairs from."),
    base: str = typer.Option(..., help="Default of encoder.base."),
    out: Path = typer.Option(..., help="Folder for encoders, results and the table."),
    dictionary: Path | None = typer.Option(
        None, help="concepts.jsonl that mentions are linked to. [--concepts]"
    ),
    aliases: Path | None = typer.Option(None, help="Alias ids and their ids."),
    pooling: str = typer.Option("cls", help="Default of encoder.pooling."),
    steps: int = typer.Option(0, min=0, help="Steps of every run; 0 = as the grid."),
    only: list[str] = typer.Option([], help="Runs with this name; may be repeated."),
) -> None:
    """Each run has its own folder: finished runs are not repeated, and a stopped run is
    resumed.

    Example: python -m training ablate training/configs/ablations/losses.toml
    corpus/dev.tsv --concepts corpus/concepts.jsonl --base models/minilm --pooling mean
    --out results/losses
    """
    defaults = {"encoder.base": base, "encoder.pooling": pooling}
    budget = {"training.steps": steps} if steps else {}
    every_run = read_grid(grid)
    runs = [
        Run(name, {**defaults, **settings, **budget})
        for name, settings in every_run
        if not only or name in only
    ]
    untrained = Run("before training", {**defaults, **shared_settings(every_run)})
    casings: set[bool] = set()
    for run in (untrained, *runs):  # find wrong settings before the first training
        casings.add(validate_run(run).encoder.lowercase)
        check_file(Path(run.settings.get(CONCEPTS, concepts)))
    known = read_aliases(aliases) if aliases else {}
    validations: dict[bool, Validation] = {}
    for lowercase in casings:
        names = read_dictionary(
            read_concepts(dictionary or concepts), lowercase=lowercase
        )
        validations[lowercase] = Validation([], names, known)
    files = {path.name.split(".tsv")[0]: path for path in mentions}
    inputs = Inputs(concepts, validations, files, out)
    check_names(mentions)
    read = {"concepts": concepts, "dictionary": dictionary, "aliases": aliases}
    read.update(files)
    made_of = {name: file_digest(path) for name, path in read.items() if path}
    out.mkdir(parents=True, exist_ok=True)
    encoder = Path(untrained.settings["encoder.base"])
    results = [finish_run(untrained, inputs, made_of, encoder=encoder)]
    for number, run in enumerate(runs, start=1):
        results.append(finish_run(run, inputs, made_of))
        msg.good(f"{number} of {len(runs)}: {run.folder}")
    table = format_grid(results)
    write_json(out / "ablation.json", results)
    with write_atomically(out / "ablation.md") as file:
        file.write(table.encode("utf8"))
    typer.echo(table)
    msg.good(f"Wrote {out / 'ablation.md'} and {out / 'ablation.json'}")
