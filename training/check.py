"""Settings and inputs of `spacy project run all` → what would stop it, hours later."""

import os
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer
from confection import Config

from spacy_sapbert.cli.app import WRONG_OPTION
from spacy_sapbert.cli.concepts import try_reading
from spacy_sapbert.cli.options import split_values
from spacy_sapbert.encoder.device import choose_device
from spacy_sapbert.encoder.hub import check_published, find_cached
from spacy_sapbert.encoder.huggingface import check_encoder_name
from spacy_sapbert.errors import SapbertError, not_written
from spacy_sapbert.evaluation.score_mentions import EvaluationSettings, select_mentions
from spacy_sapbert.io.system import free_memory
from spacy_sapbert.io.terminal import msg
from training.data.options import Quiet
from training.trainer.settings import (
    RunPaths,
    TrainingSettings,
    complete_encoder,
    flatten_config,
    make_settings,
    parse_overrides,
    read_config,
)

SHORT = ".12g"  # a number without the rounding of weasel: 0.30000000000000004
FOLDERS = ("corpus", "models", "results", "packages")  # in which the steps write
ROWS = 100_000  # of a vocabulary that are read
LOCK = Path("project.lock")  # of weasel: what each step was last run with
# That build a wheel, and compare two encoders
PACKAGES = {"build": "build", "setuptools": "'setuptools>=70.1'", "scipy": "scipy"}
# Of a training, in bytes: of a process without an encoder, for each parameter (weight,
# gradient and two moments), and for each value of a layer of a token, measured.
PROCESS, PARAMETER, ACTIVATION = 260_000_000, 16, 130
TOKENS = 8  # of a name, on average
# A checkpoint has weights and two moments, and is written beside the one before; the
# best weights, and the encoder.
WEIGHTS_ON_DISK = 2 * 3 + 2


def check_writable(folder: Path) -> None:
    """Raise a SapbertError if nothing can be written into a folder."""
    place = find_place(folder)
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        reason = "Permission denied" if place.is_dir() else f"{place} is a file"
        raise not_written(path=folder, reason=reason)


def find_place(folder: Path) -> Path:
    """Return the folder itself, or the nearest around it that exists."""
    path = folder.absolute()
    return next(each for each in (path, *path.parents) if each.exists())


def check_base(config: Config) -> Path | None:
    """Return the folder of the base; None if it is still to be fetched from the hub.

    It is complete, or the hub has it.
    """
    base = config["encoder"]["base"]
    check_encoder_name(base)
    if Path(base).is_dir():
        complete_encoder(config)  # warns of another pooling
        return Path(base)
    check_published(base)
    return find_cached(base)


def check_space(base: Path, models: Path) -> None:
    """Raise a SapbertError if the disk is too small for checkpoints and encoder."""
    needed = WEIGHTS_ON_DISK * count_parameters(base) * 4
    free = shutil.disk_usage(find_place(models)).free
    if free < needed:
        raise SapbertError(
            "E004",
            f"Expected {needed / 1e9:.1f} GB on the disk of {models} for the "
            f"checkpoints of a training, but {free / 1e9:.1f} GB are free. Make space, "
            "or choose a smaller `encoder.base`.",
        )


def count_parameters(base: Path) -> int:
    """Return about how many parameters an encoder has, from the sizes of its files."""
    files = [*base.glob("*.safetensors")] or [*base.glob("*.bin")]
    return sum(file.stat().st_size for file in files) // 4


def check_memory(base: Path, settings: TrainingSettings, device: str) -> None:
    """Raise a SapbertError if a batch does not fit into the memory of a device."""
    from transformers import AutoConfig

    section = settings.training
    if device != "cpu" and section.chunks == "auto":
        return  # a step is repeated in smaller parts
    of_encoder = AutoConfig.from_pretrained(base, local_files_only=True)
    chunks = 1 if section.chunks == "auto" else section.chunks
    values = of_encoder.num_hidden_layers * of_encoder.hidden_size * ACTIVATION
    of_batch = 2 * section.batch_size * TOKENS * values
    needed = PROCESS + PARAMETER * count_parameters(base) + of_batch // chunks
    free = free_memory() if device == "cpu" else free_on_gpu(device)
    if free is not None and free < needed:
        raise SapbertError(
            "E004",
            f"Expected about {needed / 1e9:.1f} GB of memory for a batch of "
            f"{section.batch_size} pairs, but {free / 1e9:.1f} GB are free. Lower "
            "`training.batch_size`, or raise `training.chunks`, which makes steps "
            "slower, or choose a smaller `encoder.base`.",
        )


def free_on_gpu(device: str) -> int:
    """Return the free bytes of a GPU."""
    import torch

    return int(torch.cuda.mem_get_info(device)[0])


def check_packages() -> None:
    """Raise a SapbertError if a package of a later step is missing."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise SapbertError(
            "E521",
            "Expected the packages that compare encoders and build a wheel, but "
            f"{' and '.join(missing)} is not installed. Run `pip install "
            f"{' '.join(PACKAGES[name] for name in missing)}`.",
        )


def check_trained(
    paths: RunPaths, config: Config, needed: dict[str, list[str]]
) -> None:
    """Raise a SapbertError if `train` would find an encoder of another run.

    weasel skips a step if its line and its files are those of `LOCK`.

    Args:
        needed: Words of the lines of the steps up to `train`.

    Raises:
        SapbertError: An encoder, or the checkpoint of one, was made with others.
    """
    import srsly
    from weasel.util import get_checksum

    if paths.encoder.exists():
        path = paths.encoder
    elif paths.checkpoint.exists():
        path = paths.checkpoint
        check_checkpoint(path, config)
        needed = {step: needed[step] for step in needed if step != "train"}
    else:
        return
    lock = srsly.read_yaml(LOCK) if LOCK.is_file() else {}
    changes = []
    for step, words in needed.items():
        if step not in lock:
            changes += [f"no `{step}` in {LOCK}"] * (step == "train")
            continue
        line = write_alike(lock[step]["script"][0])
        if step != "train" and f" corpus/{paths.encoder.parent.name}/" not in line:
            continue  # of another name since then: it is repeated, with the same result
        changes += [each for each in words if write_alike(each) not in line]
        changes += [
            f"another content of {dep['path']}"
            for dep in lock[step]["deps"]
            if not dep["path"].startswith("corpus/")  # of the steps before
            and Path(dep["path"]).exists()
            and get_checksum(dep["path"]) != dep["md5"]
        ]
    if changes:
        raise SapbertError(
            "E003",
            f"Expected the settings and files of the last run, since {path} is there, "
            f"but got {', '.join(dict.fromkeys(changes))}. `train` does not replace "
            f"it, and would stop. Remove {path} to train again, or choose another "
            "`--name` (of the project `--vars.name`).",
        )


def write_alike(line: str) -> str:
    """Return a line with blanks around each word; paths and numbers in one way."""
    words = [Path(word).as_posix() for word in line.split()]
    for number, word in enumerate(words):
        with suppress(ValueError):
            words[number] = f"{float(word):{SHORT}}"
    return f" {' '.join(words)} "


def check_checkpoint(folder: Path, config: Config) -> None:
    """Raise a SapbertError if a checkpoint was made with other settings."""
    from training.trainer.checkpoints import can_resume, read_settings
    from training.trainer.run import CHANGING_SETTINGS, OTHER_SETTINGS

    saved = read_settings(folder)
    free = (*CHANGING_SETTINGS, *OTHER_SETTINGS, "training.precision")
    settings = flatten_config(complete_encoder(config, quiet=True))
    fixed = {key: settings[key] for key in settings if not key.startswith(free)}
    can_resume(folder, saved | fixed, CHANGING_SETTINGS, force=False)


def describe_device(device: str) -> str:
    """Return in one sentence what runs where."""
    if device == "cpu":
        return "No GPU is used: the CPU trains, and embeds names, many times slower"
    import torch

    name = torch.cuda.get_device_name(device)
    return (
        f"{name} ({device}) trains and embeds names; the CPU reads the vocabulary and "
        "builds the index"
    )


def split_words(words: Sequence[str]) -> tuple[list[Path], list[str], list[str]]:
    """Return the gold mentions, the settings of training and the options of reading.

    Gold mentions come before the first option, and a setting has a dot in its name.
    """
    rest, mentions, settings, reading = [*words], list[Path](), list[str](), list[str]()
    while rest and not rest[0].startswith("--"):
        mentions.append(Path(rest.pop(0)))
    while rest:
        word = rest.pop(0)
        is_setting = word.startswith("--") and "." in word.partition("=")[0]
        (settings if is_setting else reading).append(word)
        if is_setting and "=" not in word and rest:
            settings.append(rest.pop(0))
    return mentions, settings, reading


def check_command(
    vocabulary: Path = typer.Argument(..., help="File or release folder."),
    words: list[str] = typer.Argument(
        None, metavar="[MENTIONS]...", help="Gold mentions of `evaluate`."
    ),
    name: str = typer.Option(..., help="Of the outputs and packages."),
    version: str = typer.Option("0.1.0", help="Of the packages."),
    lang: str = typer.Option("en", help="Language of the pipeline."),
    device: str = typer.Option("auto", help="As of `train`."),
    config_path: Path | None = typer.Option(None, "--config", help="As of `train`."),
    held_out: float = typer.Option(
        0.1, min=0, max=1, help="As `--share` of `hold-out-names`."
    ),
    most_pairs: int = typer.Option(50, min=1, help="As `--most` of `pairs`."),
    may_distribute: str = typer.Option("", help="As of `kb package`."),
    quiet: Quiet = False,
) -> None:
    """Check within seconds that every step of `spacy project run all` can run.

    All problems are listed, each with its fix, and the exit code is 1. Settings of
    training are accepted as by `train`: --encoder.base models/minilm. Options of
    `spacy sapbert concepts` are accepted too, and the first rows of the vocabulary are
    read with them.

    Example: python -m training check assets/umls --name umls --encoder.base
    models/minilm --languages ENG,SPA
    """
    problems: list[str] = []

    def attempt(function: Callable[..., Any], *values: Any) -> Any:
        try:
            return function(*values)
        except SapbertError as error:
            problems.append(str(error))
        except WRONG_OPTION as error:  # of an option of `concepts`
            problems.append(error.format_message())
        return None

    mentions, settings, reading = split_words(words or [])
    for folder in FOLDERS:
        attempt(check_writable, Path(folder, name))
    chosen = attempt(choose_device, device)
    overrides = attempt(parse_overrides, settings)
    config = None
    if overrides is not None:
        config = attempt(read_config, config_path, overrides)
    if config is not None:
        base = attempt(check_base, config)
        if base is not None:
            attempt(check_space, base, Path("models", name))
            if chosen is not None:
                attempt(check_memory, base, make_settings(config), chosen)
    if has_spacy := find_spec("spacy") is not None:
        from spacy_sapbert.formats.convert import make_blank
        from spacy_sapbert.kb.packages import (
            check_distribution,
            check_package_name,
            check_version,
            list_vocabularies,
        )

        read = attempt(try_reading, [str(vocabulary), *reading], ROWS)
        for path in mentions:
            attempt(select_mentions, path, EvaluationSettings())
        attempt(check_package_name, name)
        attempt(check_version, version)
        attempt(make_blank, lang)
        attempt(check_packages)
        if config is not None:
            given = re.split(r" (?=--)", " ".join(settings))
            paths = RunPaths(Path(), Path("models", name, "encoder"))
            needed = {
                "concepts": [str(vocabulary), " ".join(reading)],
                "hold-out": [f"--share {held_out:{SHORT}}"],
                "pairs": [f"--most {most_pairs}"],
                "train": [paths.encoder.as_posix(), f"--device {device}", *given],
            }
            if config_path is not None:
                needed["train"].append(f"--config {config_path.as_posix()}")
            attempt(check_trained, paths, config, needed)
    for problem in problems:
        msg.fail(problem)
    if problems:
        raise typer.Exit(1)
    if not quiet:
        msg.info(describe_device(chosen))
    if not has_spacy:
        msg.warn("spaCy is not installed: `pairs` and `train` can run, no other step")
        return
    permitted = split_values(may_distribute) or ()
    attempt(check_distribution, list_vocabularies(*read), permitted)
    for problem in problems:
        msg.warn(f"`package`, the last step, will stop: {problem}")
    if not quiet:
        msg.good(f"Every {'other ' * bool(problems)}step can run")
