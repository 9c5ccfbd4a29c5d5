"""Settings and inputs of `spacy project run all` → what would stop it, hours later."""

import os
from collections.abc import Callable
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import typer
from confection import Config

from spacy_sapbert.encoder.hub import check_published
from spacy_sapbert.encoder.huggingface import check_encoder_name
from spacy_sapbert.errors import SapbertError, not_written, refused_by_system
from spacy_sapbert.evaluation.score_mentions import EvaluationSettings, select_mentions
from spacy_sapbert.io.reading import check_file, read_line_blocks
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.vocabularies.concepts import read_concepts
from spacy_sapbert.vocabularies.locate import Unpacked
from spacy_sapbert.vocabularies.reader_table import find_file, list_readers
from spacy_sapbert.vocabularies.rrf.tables import find_table
from training.data.options import Quiet
from training.trainer.settings import (
    complete_encoder,
    make_settings,
    parse_overrides,
    read_config,
)

FOLDERS = ("corpus", "models", "packages")  # in which the steps write
FIRST = 1_000  # concepts that are read for an estimate
WHEELS = ("build", "setuptools")  # without which no package can be built


def list_tables(vocabulary: Path) -> list[Path]:
    """Return the files with the names of a vocabulary."""
    unpacked = Unpacked()
    with unpacked.name_errors():
        path, format, _ = find_file(vocabulary, list_readers(), unpacked)
    if vocabulary.is_file():
        return [vocabulary]
    return find_table(path, "MRCONSO") if format == "rrf" else [*vocabulary.iterdir()]


def check_readable(path: Path) -> None:
    """Raise a SapbertError if a file cannot be read."""
    if not os.access(path, os.R_OK):
        raise refused_by_system(path=path, reason="Permission denied")


def check_writable(folder: Path) -> None:
    """Raise a SapbertError if nothing can be written into a folder."""
    path = folder.absolute()
    place = next(each for each in (path, *path.parents) if each.exists())
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        reason = "Permission denied" if place.is_dir() else f"{place} is a file"
        raise not_written(path=folder, reason=reason)


def check_base(config: Config) -> None:
    """Raise a SapbertError if the base is no complete folder, nor on the hub."""
    base = config["encoder"]["base"]
    check_encoder_name(base)
    if Path(base).is_dir():
        complete_encoder(config)  # warns of another pooling
    else:
        check_published(base)


def check_wheels() -> None:
    """Raise a SapbertError if a package of the step `package` is missing."""
    missing = [name for name in WHEELS if find_spec(name) is None]
    if missing:
        raise SapbertError(
            "E521",
            f"Expected the packages that build a wheel, but {' and '.join(missing)} is "
            "not installed. Run `pip install build 'setuptools>=70.1'`.",
        )


def estimate_validation(config: Config) -> str:
    """Return a sentence on what a validation costs; empty if there is none.

    The names of the first concepts stand for those of all. Embedding a name takes a
    third of the time of training with it.
    """
    settings = make_settings(config)
    files = settings.validation
    if files.mentions is None or files.concepts is None:
        return ""
    check_file(files.mentions)
    golds, _ = select_mentions(files.mentions, EvaluationSettings())
    concepts = sum(len(lines) for _, lines in read_line_blocks(files.concepts))
    if files.sample:
        ids = {id for gold in golds for part in gold.parts for id in part}
        concepts = min(concepts, files.sample + len(ids))
    first = [len(each.aliases) for each in islice(read_concepts(files.concepts), FIRST)]
    names = round(concepts * sum(first) / max(len(first), 1))
    trained = 2 * settings.training.batch_size * files.every
    share = names / (names + 3 * trained)
    return (
        f"Validation embeds about {names:,} names every {files.every} steps, which "
        f"takes {share:.0%} of the time; fewer with a smaller `validation.sample`"
    )


def check_command(
    context: typer.Context,
    vocabulary: Path = typer.Argument(..., help="File or release folder."),
    name: str = typer.Option(..., help="Of the outputs and packages."),
    version: str = typer.Option("0.1.0", help="Of the packages."),
    lang: str = typer.Option("en", help="Language of the pipeline."),
    config_path: Path | None = typer.Option(None, "--config", help="As of `train`."),
    quiet: Quiet = False,
) -> None:
    """Check within seconds that every step of `spacy project run all` can run.

    All problems are listed, each with its fix, and the exit code is 1. Settings of
    training are accepted as by `train`: --encoder.base models/minilm.

    Example: python -m training check assets/umls --name umls --encoder.base
    models/minilm
    """
    problems: list[str] = []
    costs = ""

    def attempt(function: Callable[..., Any], *values: Any) -> Any:
        try:
            return function(*values)
        except SapbertError as error:
            problems.append(str(error))
        return None

    for path in attempt(list_tables, vocabulary) or []:
        attempt(check_readable, path)
    for folder in FOLDERS:
        attempt(check_writable, Path(folder, name))
    overrides = attempt(parse_overrides, context.args)
    if overrides is not None and (
        config := attempt(read_config, config_path, overrides)
    ):
        attempt(check_base, config)
        costs = attempt(estimate_validation, config)
    if has_spacy := find_spec("spacy") is not None:
        from spacy_sapbert.formats.convert import make_blank
        from spacy_sapbert.kb.packages import check_package_name, check_version

        attempt(check_package_name, name)
        attempt(check_version, version)
        attempt(make_blank, lang)
        attempt(check_wheels)
    for problem in problems:
        msg.fail(problem)
    if problems:
        raise typer.Exit(1)
    if costs and not quiet:
        msg.info(costs)
    if not has_spacy:
        msg.warn("spaCy is not installed: `pairs` and `train` can run, no other step")
    elif not quiet:
        msg.good("Every step can run")
