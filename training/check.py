"""Settings and inputs of `spacy project run all` → what would stop it, hours later."""

import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer
from confection import Config

from spacy_sapbert.cli.concepts import split_values
from spacy_sapbert.encoder.hub import check_published, choose_weights
from spacy_sapbert.encoder.huggingface import check_encoder_name, find_transformer
from spacy_sapbert.encoder.safety import CONFIG_FILE, read_json
from spacy_sapbert.io.reading import read_line_blocks
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.kb.packages.packaging import check_package_name, check_version
from spacy_sapbert.vocabularies.registry import guess_format
from spacy_sapbert.vocabularies.rrf.tables import find_table
from training.data.options import Quiet
from training.errors import Errors, SapbertError, Warnings
from training.trainer.settings import complete_encoder, parse_overrides, read_config

GB = 1e9
FOLDERS = ("corpus", "models", "packages")  # in which the steps write
WHEELS = ("build", "setuptools")  # without which no package can be built
# Rules of thumb: bytes of the files of a vocabulary for each name, and what gzip saves
NAME_BYTES, GZIP_RATIO = 100, 6
COPIES = 3  # of the knowledge base: itself, in the pipeline, and in its package
# Bytes of a name in concepts and pairs, and in each knowledge base without its vector
OUTPUT_BYTES = 400 + COPIES * 400
BASE_BYTES, BASE_WIDTH = 4.4e8, 768  # BERT-BASE
# sizes of the weights: moments and weights in two checkpoints, and the encoder
CHECKPOINTS = 9


def list_tables(vocabulary: Path) -> list[Path]:
    """Return the files with the names of a vocabulary."""
    if guess_format(vocabulary) == "rrf":
        tables = find_table(vocabulary, "MRCONSO")
        if not tables:
            raise SapbertError(Errors.E001.format(path=vocabulary / "MRCONSO.RRF"))
        return tables
    return [vocabulary] if vocabulary.is_file() else [*vocabulary.iterdir()]


def check_readable(path: Path) -> None:
    """Raise a SapbertError if a file cannot be read."""
    if not os.access(path, os.R_OK):
        raise SapbertError(Errors.E020.format(path=path, reason="Permission denied"))


def find_existing(path: Path) -> Path:
    """Return a path, or the nearest folder above that exists."""
    path = path.absolute()
    return next(each for each in (path, *path.parents) if each.exists())


def check_writable(folder: Path) -> None:
    """Raise a SapbertError if nothing can be written into a folder."""
    place = find_existing(folder)
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        reason = "Permission denied" if place.is_dir() else f"{place} is a file"
        raise SapbertError(Errors.E004.format(path=folder, reason=reason))


def check_language(lang: str) -> None:
    """Raise a SapbertError if spaCy has no such language, or lacks a package for it."""
    import spacy

    try:
        spacy.blank(lang)
    except ImportError as error:
        reason = str(error).strip().partition("\n")[0]
        raise SapbertError(Errors.E723.format(lang=lang, reason=reason)) from None


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
        raise SapbertError(Errors.E626.format(missing=" and ".join(missing)))


def count_names(vocabulary: Path, tables: list[Path], languages: str) -> float:
    """Count the rows of MRCONSO in the languages, or estimate the names of a file."""
    if guess_format(vocabulary) != "rrf":
        sizes = (
            path.stat().st_size * (GZIP_RATIO if path.suffix == ".gz" else 1)
            for path in tables
        )
        return sum(sizes) / NAME_BYTES
    wanted = {language.encode() for language in split_values(languages) or ()}
    names = 0
    for _, lines in read_line_blocks(vocabulary, parts=tables):
        found = (line.split(b"|", 2)[1:2] for line in lines)
        names += sum(not wanted or not wanted.isdisjoint(each) for each in found)
    return names


def estimate_disk(names: float, base: str) -> float:
    """Estimate the bytes of all outputs for so many names and this encoder."""
    weights, width = BASE_BYTES, BASE_WIDTH
    if Path(base).is_dir():
        folder = find_transformer(Path(base))
        width = read_json(folder / CONFIG_FILE).get("hidden_size", width)
        files = choose_weights(path.name for path in folder.iterdir())
        weights = sum((folder / name).stat().st_size for name in files)
    vectors = COPIES * 4 * width
    return names * (OUTPUT_BYTES + vectors) + (COPIES + CHECKPOINTS) * weights


def check_command(
    context: typer.Context,
    vocabulary: Path = typer.Argument(..., help="File or release folder."),
    name: str = typer.Option(..., help="Of the outputs and packages."),
    version: str = typer.Option("0.1.0", help="Of the packages."),
    lang: str = typer.Option("en", help="Language of the pipeline."),
    languages: str = typer.Option(
        "ENG", help="Of MRCONSO, as of `concepts`: ENG,SPA; or all."
    ),
    config_path: Path | None = typer.Option(None, "--config", help="As of `train`."),
    quiet: Quiet = False,
) -> None:
    """Check within seconds that every step of `spacy project run all` can run.

    All problems are listed, each with its fix, and the exit code is 1. Too little disk
    for an estimate is only a warning. Settings of training are accepted as by `train`:
    --encoder.base models/minilm.

    Example: python -m training check assets/umls --name umls --encoder.base
    models/minilm
    """
    problems: list[str] = []
    config: Any = None

    def attempt(function: Callable[..., Any], *values: Any) -> Any:
        try:
            return function(*values)
        except SapbertError as error:
            problems.append(str(error))
        return None

    tables: list[Path] = attempt(list_tables, vocabulary) or []
    for path in tables:
        attempt(check_readable, path)
    attempt(check_package_name, name)
    attempt(check_version, version)
    attempt(check_language, lang)
    attempt(check_wheels)
    for folder in FOLDERS:
        attempt(check_writable, Path(folder, name))
    overrides = attempt(parse_overrides, context.args)
    if overrides is not None:
        config = attempt(read_config, config_path, overrides)
    if config:
        attempt(check_base, config)
    names: Any = tables and attempt(count_names, vocabulary, tables, languages)
    for problem in problems:
        msg.fail(problem)
    if problems:
        raise typer.Exit(1)
    need = estimate_disk(names, config["encoder"]["base"]) / GB
    free = shutil.disk_usage(find_existing(Path("models"))).free / GB
    if need > free:
        msg.warn(Warnings.W602.format(need=f"{need:.1f}", free=f"{free:.1f}"))
    if not quiet:
        rows = [("names, about", f"{int(names):,}"), ("disk, about", f"{need:.1f} GB")]
        msg.table(rows)
        msg.good("Every step can run")
