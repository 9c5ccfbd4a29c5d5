"""What decides the result of a run, as the config says it."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confection import Config

from spacy_sapbert.encoder.pooling import POOLINGS
from training.errors import Errors, SapbertError
from training.data.hierarchy import Distances
from training.losses.registry import Loss, Miner, Schedule
from training.trainer.config import flatten_config, resolve_config

PRECISIONS = ("auto", "bf16", "fp16", "float32")
TRACKERS = ("tensorboard", "wandb")
CHOICES: dict[str, Collection[str | None]] = {
    "encoder.pooling": POOLINGS,
    "training.precision": PRECISIONS,
    "training.tracker": (None, *TRACKERS),
}
LEAST = {
    "encoder.max_length": 3,
    "encoder.adapter_reduction": 0,
    "training.batch_size": 2,
    "training.epochs": 1,
    "training.steps": 0,
    "training.chunks": 1,
    "training.checkpoint_every": 1,
    "hierarchy.siblings": 1,
    "hierarchy.parents": 1,
    "hierarchy.others": 1,
    "validation.every": 1,
    "validation.patience": 0,
}


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """The settings of `training/configs/default.cfg`, which says what each is.

    base (str): The encoder to start from, a folder or a hub id.
    pooling (str): "cls" or "mean".
    max_length (int): Wordpieces of a name at the most.
    lowercase (bool): Whether names are lower-cased, at training and ever after.
    adapter_reduction (int): Of the adapters that are trained; 0 = none.
    adapter_only (bool): Whether the adapters are written without the encoder.
    seed (int): Of the order of the pairs, and of dropout.
    batch_size (int): Pairs in a step; twice as many names.
    epochs (int): How often each pair is seen.
    steps (int): Stop after so many steps; 0 = at the end of the last epoch.
    chunks (int): Parts of a batch that go through the encoder one after the other.
    recompute (bool): Whether a chunk's activations are computed again for its gradient.
    precision (str): "bf16", "fp16" or "float32"; mining and loss are in float32.
    compile (bool): Whether the encoder is compiled.
    checkpoint_every (int): Steps between two checkpoints.
    tracker (str | None): "tensorboard" or "wandb".
    relations (Path | None): Pairs of related concepts, trained on besides.
    learning_rate (float): Of AdamW.
    weight_decay (float): Of AdamW.
    schedule (Schedule): Factor of the learning rate.
    miner (Miner): Chooses pairs.
    loss (Loss): Of the pairs that are chosen; of families at each threshold.
    hierarchy (HierarchySettings): Families, and how far concepts are apart.
    validation (ValidationSettings): When and on what the encoder is tried.
    """

    base: str
    pooling: str
    max_length: int
    lowercase: bool
    adapter_reduction: int
    adapter_only: bool
    seed: int
    batch_size: int
    epochs: int
    steps: int
    chunks: int
    recompute: bool
    precision: str
    compile: bool
    checkpoint_every: int
    tracker: str | None
    relations: Path | None
    learning_rate: float
    weight_decay: float
    schedule: Schedule
    miner: Miner
    loss: Loss
    hierarchy: "HierarchySettings"
    validation: "ValidationSettings"


@dataclass(frozen=True, slots=True)
class HierarchySettings:
    """What is trained on besides pairs, to keep related concepts near.

    families (Path | None): From `training.data.families`; None = nothing.
    concepts (Path | None): concepts.jsonl, whose parents say the distances.
    distances (Distances): How far related concepts are apart.
    """

    families: Path | None
    concepts: Path | None
    distances: Distances


@dataclass(frozen=True, slots=True)
class ValidationSettings:
    """When and on what the encoder is tried.

    mentions (Path | None): Gold mentions; None = never.
    concepts (Path | None): The dictionary.
    aliases (Path | None): Ids that another one stands for.
    every (int): Steps between two.
    patience (int): Stop after so many without a better one; 0 = never.
    """

    mentions: Path | None
    concepts: Path | None
    aliases: Path | None
    every: int
    patience: int


def make_settings(config: Config) -> TrainingSettings:
    """Turn a config into settings.

    config (Config): From `read_config`.
    RETURNS (TrainingSettings): The settings.
    RAISES (SapbertError): If a value is out of its range.
    """
    flat = dict(flatten_config(config))
    for name, known in CHOICES.items():
        if flat[name] not in known:
            choices = sorted(map(str, known))
            raise SapbertError(
                Errors.E605.format(setting=name, known=choices, value=flat[name])
            )
    for name, least in LEAST.items():
        if flat[name] < least:
            raise SapbertError(
                Errors.E616.format(setting=name, least=least, value=flat[name])
            )
    resolved = resolve_config(config)
    training = dict(resolved["training"])
    training["relations"] = to_path(training["relations"])
    return TrainingSettings(
        **resolved["encoder"],
        **training.pop("optimizer"),
        **training,
        hierarchy=make_hierarchy_settings(resolved["hierarchy"]),
        validation=make_validation_settings(resolved["validation"]),
    )


def to_path(text: str | None) -> Path | None:
    """Make a path of a text, and of no text none."""
    return Path(text) if text else None


def make_hierarchy_settings(section: dict[str, Any]) -> HierarchySettings:
    """Turn the section `hierarchy` into settings.

    section (dict[str, Any]): The section.
    RETURNS (HierarchySettings): The settings.
    RAISES (SapbertError): If there are families without concepts, or the reverse.
    """
    families, concepts = (to_path(section[key]) for key in ("families", "concepts"))
    if (families is None) != (concepts is None):
        raise SapbertError(Errors.E757)
    distances = Distances(**{key: section[key] for key in Distances._fields})
    return HierarchySettings(families, concepts, distances)


def make_validation_settings(section: dict[str, Any]) -> ValidationSettings:
    """Turn the section `validation` into settings.

    section (dict[str, Any]): The section.
    RETURNS (ValidationSettings): The settings.
    RAISES (SapbertError): If there are mentions without a dictionary.
    """
    if section["mentions"] and not section["concepts"]:
        raise SapbertError(Errors.E617)
    paths = {key: to_path(section[key]) for key in ("mentions", "concepts", "aliases")}
    return ValidationSettings(**{**section, **paths})


def scheduled_rate(step: int, total: int, settings: TrainingSettings) -> float:
    """Compute the learning rate of a step.

    step (int): From 0.
    total (int): Steps of the whole run.
    settings (TrainingSettings): The schedule and its highest rate.
    RETURNS (float): The rate.
    """
    return settings.learning_rate * settings.schedule(step, total)
