"""Config file + changes on the command line → the settings of a training run."""

import json
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self
from warnings import warn

from catalogue import RegistryError
from confection import Config, ConfigValidationError
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from spacy_sapbert.encoder.huggingface import (
    LONGEST,
    EncoderSettings,
    read_own_settings,
)
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.reading import check_file
from spacy_sapbert.io.version import SITE
from training.losses import from_library, sapbert, schedules  # noqa: F401
from training.losses.functions import Logger, Loss, Miner, Schedule, registry
from training.trainer import tracker  # noqa: F401

DEFAULT_CONFIG = Path(__file__).parents[1] / "configs" / "default.cfg"
LARGEST_SEED = 2**32 - 1  # of NumPy


def make_path(value: Any) -> Any:
    """Convert a text into a path, an empty one into None."""
    return Path(value) if isinstance(value, str) and value else value or None


def resolve_function(section: Any, info: ValidationInfo) -> Any:
    """Call the registered function that a section of the config names."""
    if not isinstance(section, dict):
        return section
    try:
        name = str(info.field_name)
        return registry.resolve({name: section})[name]
    except ConfigValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, each.get('loc', [])))}: {each.get('msg')}"
            for each in error.errors
        )
        raise wrong_functions(problems=problems) from None
    except (RegistryError, TypeError) as error:  # its name may be a list
        raise wrong_functions(problems=error) from None


OptionalPath = Annotated[Path | None, BeforeValidator(make_path)]


class RunPaths(NamedTuple):
    """The pairs, the encoder to write, and what a run keeps beside it."""

    pairs: Path
    encoder: Path

    def beside(self, name: str) -> Path:
        return self.encoder.with_name(f"{self.encoder.name}-{name}")

    @property
    def checkpoint(self) -> Path:
        return self.beside("checkpoint")

    @property
    def log(self) -> Path:
        return self.beside("checkpoint.log.jsonl")

    @property
    def datasets(self) -> dict[str, Path]:
        """The folder of each source's tokenised names, by its name."""
        names = ("pairs", "relations", "families")
        return {name: self.beside(f"corpus-{name}") for name in names}


class Section(BaseModel):
    """A section of the config; see `training/configs/default.cfg`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class EncoderSection(Section):
    base: str
    pooling: Literal["cls", "mean"] | None
    max_length: int = Field(ge=3, le=LONGEST)
    lowercase: bool | None
    adapter_reduction: int = Field(ge=0)

    @property
    def how(self) -> EncoderSettings:
        """How names become vectors, with the defaults for null."""
        names = ("pooling", "max_length", "lowercase")
        given = {name: getattr(self, name) for name in names}
        return EncoderSettings(**{k: v for k, v in given.items() if v is not None})


class OptimizerSection(Section):
    learning_rate: float = Field(ge=0, allow_inf_nan=False)
    weight_decay: float = Field(ge=0, allow_inf_nan=False)


class TrainingSection(Section):
    seed: int = Field(ge=0, le=LARGEST_SEED)
    batch_size: int = Field(ge=2)
    epochs: int = Field(ge=1)
    steps: int = Field(ge=0)
    chunks: Literal["auto"] | Annotated[int, Field(ge=1)]
    precision: Literal["auto", "bf16", "fp16", "float32"]
    checkpoint_seconds: int = Field(ge=0)
    relations: OptionalPath
    optimizer: OptimizerSection
    schedule: Annotated[Schedule, BeforeValidator(resolve_function)]
    miner: Annotated[Miner, BeforeValidator(resolve_function)]
    loss: Annotated[Loss, BeforeValidator(resolve_function)]
    logger: Annotated[Logger | None, BeforeValidator(resolve_function)]


class HierarchySection(Section):
    families: OptionalPath
    concepts: OptionalPath

    @model_validator(mode="after")
    def check_files(self) -> Self:
        if (self.families is None) != (self.concepts is None):
            raise SapbertError(
                "E423",
                "Expected `hierarchy.families` and `hierarchy.concepts` together, "
                "but got one of them. Name the families and the concepts.jsonl that "
                "they were made of.",
            )
        return self


class ValidationSection(Section):
    mentions: OptionalPath
    concepts: OptionalPath
    aliases: OptionalPath
    sample: int = Field(ge=0)
    every: int = Field(ge=1)
    patience: int = Field(ge=0)

    @model_validator(mode="after")
    def check_files(self) -> Self:
        if self.mentions and not self.concepts:
            raise SapbertError(
                "E423",
                "Expected `validation.concepts` beside `validation.mentions`, but "
                "got none. Name the concepts.jsonl that the mentions are linked to.",
            )
        return self


class TrainingSettings(Section):
    """The whole config, with its functions resolved."""

    encoder: EncoderSection
    training: TrainingSection
    hierarchy: HierarchySection
    validation: ValidationSection

    def learning_rate(self, step: int, total: int) -> float:
        """Return the learning rate of a step, from 0, of a run of `total` steps."""
        section = self.training
        return section.optimizer.learning_rate * section.schedule(step, total)


def make_settings(config: Config) -> TrainingSettings:
    """Validate a config from `read_config`; a wrong setting raises a SapbertError."""
    try:
        return TrainingSettings.model_validate(dict(config))
    except ValidationError as error:
        raise describe_error(error) from None


def describe_error(error: ValidationError) -> SapbertError:
    """Return the first problem that pydantic found as an error of ours."""
    first = error.errors()[0]
    if isinstance(own := first.get("ctx", {}).get("error"), SapbertError):
        return own
    name = ".".join(map(str, first["loc"]))
    known = flatten_config(Config().from_disk(DEFAULT_CONFIG))
    if first["type"] == "extra_forbidden":
        near = get_close_matches(name, known, n=1, cutoff=0.0)[0]
        return SapbertError(
            "E333",
            "Expected only settings of `training/configs/default.cfg`, but got "
            f"{name}. Remove it; did you mean {near}?",
        )
    # Each type that a setting may have is a part of the name, with its own problem.
    name = next((key for key in known if name.startswith(f"{key}.")), name)
    parts = name.split(".")
    problems = [e["msg"] for e in error.errors() if [*e["loc"]][: len(parts)] == parts]
    value = first["input"]
    return SapbertError(
        "E331",
        f"Expected {name} as in `training/configs/default.cfg`, but got {value!r}: "
        f"{', or: '.join(problems)}. Correct it.",
    )


def read_config(
    path: Path | None = None, overrides: dict[str, Any] | None = None
) -> Config:
    """Read the default config, changed by a file and by the command line.

    Args:
        path: A config file, with at least the settings that differ.
        overrides: Values by dotted names.

    Returns:
        The whole config, with the defaults of registered functions.

    Raises:
        SapbertError: A setting is unknown, of another type or out of range.
    """
    config = Config().from_disk(DEFAULT_CONFIG)
    if path is not None:
        check_file(path)
        try:
            config = config.merge(Config().from_disk(path))
        except (ValueError, OSError) as error:
            reason = " ".join(str(error).split("\n\n")[-1].split())
            raise SapbertError(
                "E612",
                f"Expected a config file in {path}, but it could not be read: "
                f"{reason} Compare it with `training/configs/default.cfg`: each "
                "section needs the one around it.",
            ) from None
    if overrides:
        config = config.merge(nest_values(overrides))
    make_settings(config)
    filled: Config = registry.fill(config)
    return filled


def complete_encoder(config: Config, *, quiet: bool = False) -> Config:
    """Return a config with the pooling and the case of the base instead of null.

    If the base does not say, the defaults are taken.

    Args:
        config: From `read_config`.
        quiet: Do not warn of settings that differ from those of the base.

    Raises:
        SapbertError: The settings of the base are not valid.
    """
    section = make_settings(config).encoder
    own = read_own_settings(Path(section.base))
    chosen: dict[str, Any] = {}
    for name in ("pooling", "lowercase"):
        given, default = getattr(section, name), getattr(section.how, name)
        chosen[name] = own.get(name, default) if given is None else given
        if chosen[name] != own.get(name, chosen[name]) and not quiet:
            warn(
                f"[W601] Expected encoder.{name} to be {own[name]!r}, as the base "
                f"{section.base} was trained, but got {given!r}, which is used. To "
                "use that of the base, leave the setting out.",
                stacklevel=2,
            )
    return config.merge({"encoder": chosen})


def parse_overrides(arguments: Sequence[str]) -> dict[str, Any]:
    """Return the values of arguments by dotted name, parsed as JSON if possible.

    The arguments are as of spaCy: `--training.seed 1`, `--training.epochs=3`.
    """
    overrides: dict[str, Any] = {}
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        key, equals, value = argument.removeprefix("--").partition("=")
        if not argument.startswith("--") or "." not in key:
            raise unknown_argument(argument=argument)
        if not equals:
            if not rest:
                raise SapbertError(
                    "E331",
                    f"Expected a value after {argument}, but it is the last. Add one.",
                )
            value = rest.pop(0)
        try:
            overrides[key] = json.loads(value)
        except ValueError:
            overrides[key] = value
    return overrides


def nest_values(values: dict[str, Any]) -> dict[str, Any]:
    """Convert dotted names into sections: {"a.b": 1} → {"a": {"b": 1}}."""
    nested: dict[str, Any] = {}
    for dotted, value in values.items():
        *sections, key = dotted.split(".")
        section = nested
        for name in sections:
            section = section.setdefault(name, {})
            if not isinstance(section, dict):
                raise unknown_argument(argument=f"--{dotted}")
        section[key] = value
    return nested


def flatten_config(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Convert sections into dotted names: {"a": {"b": 1}} → {"a.b": 1}."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            flat |= flatten_config(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def unknown_argument(*, argument: str) -> SapbertError:
    return SapbertError(
        "E331",
        "Expected an option of `--help`, or a setting like `--training.seed 1`, but "
        f"got {argument!r}. Correct or remove it.",
    )


def wrong_functions(*, problems: object) -> SapbertError:
    return SapbertError(
        "E612",
        "Expected registered functions with the arguments that they take, but got: "
        f"{problems}. Correct the config; {SITE}training.html lists them.",
    )
