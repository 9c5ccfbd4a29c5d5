"""The content of meta.json, with the range of every value."""

import hashlib
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from ...io.writing import VERSION
from ...linking.chance import Chance, Taught
from ...linking.probability import DEFAULT_THRESHOLD, Correction
from ...linking.ranker import Ranker
from ..indexes.backends import make_backend

# Also raised where an export gives other vectors: those of names are in the index.
FORMAT: Literal[15] = 15
ENCODER = "encoder"  # folder of a version
EXPORTED = f"{ENCODER}/onnx"  # the encoder for another engine
CARD = "README.md"  # of the encoder, in its folder: the model card
MAX_WIDTH = 1 << 16

Count = Annotated[int, Field(ge=0, lt=1 << 40)]
Positive = Annotated[int, Field(ge=1, lt=1 << 40)]
Share = Annotated[FiniteFloat, Field(ge=0, le=1)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Record(BaseModel):
    """A JSON object of meta.json; unknown fields are refused."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class FileRecord(Record):
    """Size in bytes and sha256 of a file, and the version that has it; None = this."""

    size: Count
    sha256: Sha256
    version: Annotated[str, Field(pattern=rf"^{VERSION.pattern}$")] | None = None


class EncoderRecord(Record):
    base: str
    fingerprint: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    width: Annotated[int, Field(ge=1, le=MAX_WIDTH)]
    engine: Literal["torch", "onnx"] = "torch"
    precision: Literal["float32", "bf16"] = "float32"
    pooling: Literal["cls", "mean"]
    max_length: Annotated[int, Field(ge=3, le=MAX_WIDTH)]
    lowercase: bool


class IndexRecord(Record):
    backend: str
    settings: dict[str, int]


class Counts(Record):
    """Numbers; `unreadable` = names of which the encoder has no token."""

    concepts: Positive
    aliases: Positive
    rows: Positive
    unreadable: Count = 0


class AtThreshold(Record):
    """What a threshold does: precision and recall of links, and of no concept."""

    threshold: FiniteFloat
    precision: FiniteFloat | None = None
    recall: FiniteFloat | None = None
    nil_precision: FiniteFloat | None = None
    nil_recall: FiniteFloat | None = None


class TaughtFile(Record):
    """A source of annotated documents; "" = Docs."""

    source: str
    documents: Count
    mentions: Count


class Teaching(Record):
    """What was learned from annotated mentions; accuracies as in `TeachingReport`."""

    files: list[TaughtFile]
    concepts: Count  # with annotated mentions
    before: FiniteFloat
    names: FiniteFloat
    after: FiniteFloat | None = None
    thresholds: list[AtThreshold] = []  # of an order that was learned
    as_names: bool = True  # mentions are names; else they decide for themselves alone
    date: str
    package_version: str

    @property
    def mentions(self) -> int:
        return sum(file.mentions for file in self.files)

    @property
    def best(self) -> float:
        if not self.as_names:
            return self.before
        return self.names if self.after is None else self.after


class OverlayRecord(Record):
    """Numbers of concepts, rows and removals of the overlay, and what was taught."""

    concepts: Count
    rows: Count
    removed: Count
    taught: Teaching | None = None
    ranker: Ranker | None = None  # what corrects the order of names
    chance: Taught | None = None  # … and the probability


class CalibrationFile(Record):
    file: str
    sha256: Sha256


class Calibration(Record):
    """How probabilities were corrected and a threshold chosen, and what that does."""

    criterion: str
    threshold: Share
    mentions: Count
    documents: Count
    files: list[CalibrationFile]
    precision: FiniteFloat
    recall: FiniteFloat
    f1: FiniteFloat
    nil: Count | None = None
    answered: Count | None = None
    right: Count | None = None
    linked: Count | None = None
    accuracy: FiniteFloat | None = None
    nil_precision: FiniteFloat | None = None
    nil_recall: FiniteFloat | None = None
    calibration_error: FiniteFloat | None = None
    thresholds: list[AtThreshold]
    correction: Correction  # of what the order says
    date: str
    package_version: str


class Vocabulary(Record):
    """A source of names, e.g. "MSH", and how many it has; "" = unknown."""

    source: str
    names: Count
    release: str = ""
    licence: str = ""


class Recall(Record):
    """Share of the nearest row, and of the ten nearest, that the index finds."""

    queries: Count
    at_1: FiniteFloat
    at_10: FiniteFloat


class Gain(Record):
    """Share of right first answers for a kind of noise, by cosine and learned order."""

    kind: str
    names: Count
    cosine: FiniteFloat
    order: FiniteFloat


class NilGain(Record):
    """The share of a kind of mentions without a concept that are not linked."""

    kind: str
    mentions: Count
    recall: FiniteFloat


class NamesOrder(Record):
    """An order of candidates that was learned from the names, and what it gains."""

    ranker: Ranker
    examples: Count
    seed: Count
    gains: list[Gain]
    nils: list[NilGain]  # at the threshold of the build
    thresholds: list[AtThreshold]  # it, and those that are always measured


def encoder_fingerprint(files: dict[str, FileRecord]) -> str:
    """Return 16 hexadecimal digits of the files of an encoder but its export."""
    lines = (
        f"{name.removeprefix(f'{ENCODER}/')} {record.sha256}\n"
        for name, record in sorted(files.items())
        if name.startswith(f"{ENCODER}/") and not name.startswith(f"{EXPORTED}/")
    )
    return hashlib.sha256("".join(lines).encode("utf8")).hexdigest()[:16]


class Manifest(Record):
    """Everything that meta.json holds; it has no field whose value is None."""

    format: Literal[15] = 15
    package_version: str
    encoder: EncoderRecord
    index: IndexRecord
    counts: Counts
    ngrams: bool = False
    sources: list[str]
    vocabularies: list[Vocabulary] | None = None
    recall: Recall | None = None
    threshold: Share = DEFAULT_THRESHOLD  # least probability of a link
    calibration: Calibration | None = None
    chance: Chance
    order: NamesOrder | None = None
    overlay: OverlayRecord | None = None
    files: dict[str, FileRecord]
    digest: str = ""

    @property
    def engines(self) -> list[str]:
        exported = any(name.startswith(f"{EXPORTED}/") for name in self.files)
        return ["torch", *(["onnx"] if exported else [])]

    @property
    def taught(self) -> Teaching | None:
        return self.overlay.taught if self.overlay else None

    @property
    def thresholds(self) -> list[AtThreshold]:
        """What thresholds do with its probabilities, as far as it was measured."""
        if self.calibration is not None:
            return self.calibration.thresholds
        if self.has_ranker and self.taught is not None:
            return self.taught.thresholds
        return self.order.thresholds if self.order is not None else []

    @property
    def has_ranker(self) -> bool:
        """Whether the order of candidates was learned from annotated mentions."""
        return self.overlay is not None and self.overlay.ranker is not None

    @property
    def ranker(self) -> Ranker | None:
        """The order of candidates: of names, with the corrections of annotations."""
        of_names = self.order.ranker if self.order is not None else None
        if self.overlay is None or self.overlay.ranker is None:
            return of_names
        return self.overlay.ranker.corrects(of_names or Ranker())

    @property
    def probability(self) -> Chance:
        """The probability of a link, with the corrections of annotations."""
        taught = self.overlay.chance if self.overlay else None
        return self.chance.model_copy(update={"taught": taught})

    @model_validator(mode="after")
    def check(self) -> "Manifest":
        make_backend(self.index.backend, self.index.settings)
        return self
