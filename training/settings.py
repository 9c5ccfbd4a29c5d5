"""The constants of a run, each with the values that the paper tried."""

from dataclasses import dataclass
from typing import Iterable

from spacy_sapbert.errors import Errors, SapbertError
from spacy_sapbert.pooling import POOLINGS
from training.losses import MULTI_SIMILARITY_PRESETS

SCHEDULES = ("constant", "linear")
PRECISIONS = ("bf16", "float32")


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """What decides the result of a run; equal settings give equal weights on a CPU.

    base (str): The encoder to start from, a folder or a hub id.
    pooling (str): "cls" or "mean".
    max_length (int): Wordpieces of a name at the most.
    lowercase (bool): Whether names are lower-cased, at training and ever after.
    batch_size (int): Pairs in a step; twice as many names.
    epochs (int): How often each pair is seen.
    steps (int): Stop after so many steps; 0 = at the end of the last epoch.
    learning_rate (float): Of AdamW.
    schedule (str): "constant", or "linear" down to 0 at the end.
    weight_decay (float): Of AdamW.
    margin (float): Slack of the miner, in Euclidean distance.
    loss (str): Preset of the Multi-Similarity loss's constants.
    chunks (int): Parts of a batch that go through the encoder one after the other;
        mining and loss see all of them at once.
    precision (str): "bf16" or "float32"; mining and loss are always in float32.
    seed (int): Of the order of the pairs, and of dropout.
    """

    base: str
    pooling: str = "cls"
    max_length: int = 25
    lowercase: bool = True
    batch_size: int = 256
    epochs: int = 1
    steps: int = 0
    learning_rate: float = 2e-5
    schedule: str = "constant"
    weight_decay: float = 0.01
    margin: float = 0.2
    loss: str = "paper"
    chunks: int = 4
    precision: str = "float32"
    seed: int = 0


def check_choice(setting: str, value: str, known: Iterable[str]) -> None:
    """Make sure that a setting has one of its values.

    setting (str): Its name on the command line.
    value (str): What was given.
    known (Iterable[str]): What may be given.
    RAISES (SapbertError): If it is another.
    """
    if value not in known:
        raise SapbertError(
            Errors.E605.format(setting=setting, known=sorted(known), value=value)
        )


def check_settings(settings: TrainingSettings) -> None:
    """Make sure that every setting has one of its values.

    settings (TrainingSettings): The settings.
    RAISES (SapbertError): At the first that has not.
    """
    check_choice("pooling", settings.pooling, POOLINGS)
    check_choice("loss", settings.loss, MULTI_SIMILARITY_PRESETS)
    check_choice("schedule", settings.schedule, SCHEDULES)
    check_choice("precision", settings.precision, PRECISIONS)


def scheduled_rate(step: int, total: int, settings: TrainingSettings) -> float:
    """Compute the learning rate of a step.

    step (int): From 0.
    total (int): Steps of the whole run.
    settings (TrainingSettings): The schedule and its highest rate.
    RETURNS (float): The rate.
    """
    if settings.schedule == "linear":
        return settings.learning_rate * (1 - step / total)
    return settings.learning_rate


def count_steps(total: int, settings: TrainingSettings) -> int:
    """Count the steps of a whole run.

    total (int): How many pairs there are.
    settings (TrainingSettings): Batch size, epochs and steps.
    RETURNS (int): The steps.
    """
    steps = -(-total // settings.batch_size) * settings.epochs
    return min(steps, settings.steps) if settings.steps else steps
