"""A grid of trainings → one table: what each setting brings, at one budget."""

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

from spacy_sapbert.encoder.huggingface import load_encoder
from training.errors import Errors, SapbertError
from spacy_sapbert.evaluation.accuracy import LEVELS, TIES, render_mean
from spacy_sapbert.evaluation.baselines import read_dictionary
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
from training.losses import miners as mining  # noqa: F401
from training.losses import multi_similarity as losses  # noqa: F401 (registers)
from training.losses import other_losses, schedules  # noqa: F401
from training.trainer.config import read_config
from training.trainer.settings import make_settings
from training.trainer.validation import Validation, make_encoder_search

SEED = "training.seed"
# Not of the training: pairs of one concept at the most, and another concepts.jsonl to
# make pairs of, e.g. one without trade names.
MOST, CONCEPTS = "pairs.most", "pairs.concepts"
SECTIONS = ("every", "grid", "runs")


class Run(NamedTuple):
    """One training of a grid.

    name (str): Without the seed.
    settings (dict[str, Any]): What differs from the default config, by dotted names.
    """

    name: str
    settings: dict[str, Any]


class Inputs(NamedTuple):
    """What all runs of a grid are given.

    concepts (Path): concepts.jsonl, of which pairs are made.
    validations (dict[bool, Validation]): The dictionary that mentions are linked to,
        and aliases, by whether an encoder lower-cases names.
    files (dict[str, Path]): Gold mentions by name.
    folder (Path): Where encoders and results are kept.
    """

    concepts: Path
    validations: dict[bool, Validation]
    files: dict[str, Path]
    folder: Path


def read_grid(path: Path) -> list[Run]:
    """Read a grid: named runs, times a product of values, with what all have.

    path (Path): TOML with the tables `every` (settings of every run), `runs` (a table
        of settings for each name) and `grid` (a list of values for each setting); each
        may be missing.
    RETURNS (list[Run]): All combinations.
    RAISES (SapbertError): If it is no such file.
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
    """Find what all runs say of the encoder, which holds before training too.

    runs (list[Run]): From `read_grid`.
    RETURNS (dict[str, Any]): Settings of the section `encoder`.
    """
    first = runs[0].settings
    return {
        key: value
        for key, value in first.items()
        if key.startswith("encoder.")
        and all(run.settings.get(key) == value for run in runs)
    }


def name_folder(run: Run) -> str:
    """Name the folder of a run by what people call it, and by its seed."""
    words = re.sub(r"[^\w.+-]+", "-", run.name).strip("-")
    return f"{words}-seed-{run.settings.get(SEED, 0)}"


def training_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """RETURNS (dict[str, Any]): Without what says how pairs are made."""
    return {k: val for k, val in settings.items() if k not in (MOST, CONCEPTS)}


def list_overrides(settings: dict[str, Any]) -> list[str]:
    """Write settings as options of a command."""
    parts: list[str] = []
    for key, value in training_settings(settings).items():
        text = value if isinstance(value, str) else json.dumps(value)
        parts += [f"--{key}", text]
    return parts


def train_run(run: Run, inputs: Inputs) -> Path:
    """Train the encoder of a run in a process of its own, unless it is there.

    run (Run): The run.
    inputs (Inputs): Concepts and folder.
    RETURNS (Path): The encoder folder.
    """
    folder = inputs.folder / name_folder(run)
    encoder = folder / "encoder"
    if encoder.is_dir():
        return encoder
    most = run.settings.get(MOST, 50)
    concepts = Path(run.settings.get(CONCEPTS, inputs.concepts))
    pairs = inputs.folder / f"pairs-{file_digest(concepts)[:8]}-{most}.tsv"
    if not pairs.is_file():
        write_pairs(read_concepts(concepts), pairs, most=most)
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "training.trainer.train_encoder",
        str(pairs),
        str(encoder),
    ]
    done = subprocess.run([*command, *list_overrides(run.settings)], check=False)
    if done.returncode:  # it has said why; Ctrl-C ends all the runs
        raise typer.Exit(done.returncode)
    return encoder


def judge_encoder(
    encoder: Path, settings: dict[str, Any], inputs: Inputs
) -> dict[str, Any]:
    """Link gold mentions with an encoder, by exact search.

    encoder (Path): Folder.
    settings (dict[str, Any]): How it was trained, by dotted names.
    inputs (Inputs): Mentions and dictionary.
    RETURNS (dict[str, Any]): By file what `score_mentions` says.
    """
    known = training_settings(settings)
    known["training.precision"] = "float32"  # the same figures on every machine
    how = make_settings(read_config(None, known))
    tokenizer, model = load_encoder(str(encoder))
    validation = inputs.validations[how.lowercase]
    search = make_encoder_search(model, tokenizer, validation, how, k=5)
    counted = EvaluationSettings()
    judged: dict[str, Any] = {}
    for name, path in inputs.files.items():
        golds, _ = select_mentions(path, counted)
        texts = (gold.mention for gold in golds)
        answers = rank_mentions(search, texts, progress=sys.stderr.isatty())
        lookup, aliases = validation.dictionary.lookup, validation.aliases
        judged[name] = score_mentions(golds, answers, lookup, aliases, counted)
    return judged


def finish_run(
    run: Run,
    inputs: Inputs,
    made_of: dict[str, Any],
    *,
    encoder: Path | None = None,
) -> dict[str, Any]:
    """Train and judge a run, or read what an earlier time found.

    run (Run): The run.
    inputs (Inputs): What it is given.
    made_of (dict[str, Any]): Checksums of the inputs.
    encoder (Path | None): An encoder to judge, instead of one to train.
    RETURNS (dict[str, Any]): Name, settings and results.
    RAISES (SapbertError): If its folder holds a run of other settings.
    """
    if CONCEPTS in run.settings:
        own = Path(run.settings[CONCEPTS])
        made_of = {**made_of, CONCEPTS: file_digest(own)}
    path = inputs.folder / name_folder(run) / "result.json"
    begun = path.with_name("run.json")
    data = {"name": run.name, "settings": run.settings, "made_of": made_of}
    if begun.is_file() and json.loads(begun.read_text("utf8")) != data:
        raise SapbertError(Errors.E751.format(path=path.parent, name=run.name))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(begun, data)
    if path.is_file():
        return dict(json.loads(path.read_text("utf8")))
    encoder = encoder or train_run(run, inputs)
    result = {**data, "files": judge_encoder(encoder, run.settings, inputs)}
    write_json(path, result)
    return result


def list_figures(result: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Return the accuracies of a run by name, in the order of the table's columns."""
    for file, judged in result["files"].items():
        for level in LEVELS:
            for k in ("acc@1", "acc@5"):
                for tie in TIES:
                    value = judged["accuracy"]["all"][level][k][tie]
                    yield f"{file}|{k} by {level}|{tie}", value


def render_grid(results: Sequence[dict[str, Any]]) -> str:
    """Write all runs as Markdown, one table for each file of mentions.

    results (Sequence[dict[str, Any]]): From `finish_run`; those of one name are seeds.
    RETURNS (str): Markdown.
    """
    groups: dict[str, list[dict[str, float]]] = {}
    for result in results:
        groups.setdefault(result["name"], []).append(dict(list_figures(result)))
    lines: list[str] = []
    for file, judged in results[0]["files"].items():
        columns = [f"{k} by {level}" for level in LEVELS for k in ("acc@1", "acc@5")]
        titles = [column.capitalize() for column in columns]
        lines += [
            f"**{file}**: {judged['judged']:,} mentions, the dictionary covers "
            f"{judged['coverage']:.1%}; ties {' / '.join(TIES)}.",
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


def main(
    grid: Path = typer.Argument(..., help="TOML file, e.g. of training/configs."),
    mentions: list[Path] = typer.Argument(..., help="Gold mentions to report on."),
    concepts: Path = typer.Option(..., help="concepts.jsonl to make pairs of."),
    base: str = typer.Option(..., help="Encoder to start from, where a run has none."),
    out: Path = typer.Option(..., help="Folder for encoders, results and the table."),
    dictionary: Path | None = typer.Option(
        None, help="concepts.jsonl that mentions are linked to. [that of the pairs]"
    ),
    aliases: Path | None = typer.Option(None, help="Ids and what they alias."),
    pooling: str = typer.Option("cls", help="Where a run has none: cls or mean."),
    steps: int = typer.Option(0, min=0, help="Of every run; 0 = as the grid says."),
    only: list[str] = typer.Option([], help="Runs with this name; may be repeated."),
) -> None:
    """grid.toml + concepts.jsonl + mentions.tsv … -> ablation.md, ablation.json

    Each run is kept in a folder of its own: what is there is not trained again, and a
    run that was stopped goes on.

    Example: python -m training.experiments.ablate training/configs/ablations/losses.toml
    corpus/dev.tsv --concepts corpus/concepts.jsonl --base models/minilm --pooling mean
    --out results/losses
    """
    try:
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
        for run in (untrained, *runs):
            # so that a misspelt setting shows before the first training
            how = make_settings(read_config(None, training_settings(run.settings)))
            casings.add(how.lowercase)
            check_file(Path(run.settings.get(CONCEPTS, concepts)))
        known = read_aliases(aliases) if aliases else {}
        validations: dict[bool, Validation] = {}
        for lowercase in casings:
            named = read_concepts(dictionary or concepts)
            names = read_dictionary(named, lowercase=lowercase)
            validations[lowercase] = Validation([], names, known)
        files = {path.name.split(".tsv")[0]: path for path in mentions}
        inputs = Inputs(concepts, validations, files, out)
        check_names(mentions)
        read = {"concepts": concepts, "dictionary": dictionary, "aliases": aliases}
        read.update(files)
        made_of = {name: file_digest(path) for name, path in read.items() if path}
        out.mkdir(parents=True, exist_ok=True)
        results = [
            finish_run(
                untrained,
                inputs,
                made_of,
                encoder=Path(untrained.settings["encoder.base"]),
            )
        ]
        for number, run in enumerate(runs, start=1):
            results.append(finish_run(run, inputs, made_of))
            msg.good(f"{number} of {len(runs)}: {name_folder(run)}")
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    table = render_grid(results)
    write_json(out / "ablation.json", results)
    with write_atomically(out / "ablation.md") as file:
        file.write(table.encode("utf8"))
    typer.echo(table)
    msg.good(f"Wrote {out / 'ablation.md'} and {out / 'ablation.json'}")


if __name__ == "__main__":
    typer.run(main)
