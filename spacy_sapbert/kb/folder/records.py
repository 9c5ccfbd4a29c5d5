"""The content of meta.json, with the range of every value."""

import hashlib
import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from ...encoder.safety import is_encoder_file
from ...io.writing import CURRENT, VERSION, FolderKind
from ...linking.ranker import Ranker
from ..indexes.registry import check_settings, index_files

FILE = "meta.json"
LOCK = ".lock"
FORMAT: Literal[6] = 6
STORE_FILE = "concepts.db"
OVERLAY = "overlay"  # folder of what was changed since the build
TAUGHT_FILE = "taught.jsonl"  # of an overlay
ENCODER = "encoder"
EXPORTED = "encoder/openvino"  # the encoder for another engine
NGRAMS = "ngrams"
NGRAM_FILES = ("grams", "starts", "rows", "weights", "scales") + (
    *("english_weights", "english_scales"),
)
WORDS = "words"
WORD_FILES = (
    *("hashes", "kinds", "english", "every"),
    *("starts", "places", "real", "totals"),
)
DRAFT_NAME = "version"  # of temporary folders: not published yet, or removed
DRAFT = re.compile(rf"\.{DRAFT_NAME}\..+\.tmp")
INDEX_FILE = re.compile(r"index\.[a-z0-9]{1,16}")  # of any backend
MAX_WIDTH = 1 << 16


def may_be_in_kb(name: str) -> bool:
    """Return whether a file, by its path with "/", may be in a knowledge base."""
    version, _, rest = name.partition("/")
    if not rest:
        return name in (CURRENT, LOCK)
    if not (VERSION.fullmatch(version) or DRAFT.fullmatch(version)):
        return False
    folder, _, inner = rest.partition("/")
    if folder == ENCODER:
        return is_encoder_file(inner)
    if inner:
        return folder in (NGRAMS, OVERLAY, WORDS)
    return rest in (FILE, STORE_FILE) or INDEX_FILE.fullmatch(rest) is not None


KB_FOLDER = FolderKind("a knowledge base", CURRENT, may_be_in_kb, nested=False)

Count = Annotated[int, Field(ge=0, lt=1 << 40)]
Positive = Annotated[int, Field(ge=1, lt=1 << 40)]
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
    """The encoder, and how the build ran it."""

    base: str
    fingerprint: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    width: Annotated[int, Field(ge=1, le=MAX_WIDTH)]
    engine: Literal["torch", "openvino"] = "torch"
    precision: Literal["float32", "bf16"] = "float32"
    pooling: Literal["cls", "mean"]
    max_length: Annotated[int, Field(ge=3, le=MAX_WIDTH)]
    lowercase: bool


class IndexRecord(Record):
    """The backend of the index, and all its settings."""

    backend: str
    settings: dict[str, int]


class Counts(Record):
    """Number of concepts, aliases, rows, and aliases that the encoder cannot read."""

    concepts: Positive
    aliases: Positive
    rows: Positive
    unreadable: Count = 0


class TaughtFile(Record):
    """A source of annotated documents; "" = Docs."""

    source: str
    documents: Count
    mentions: Count


class Teaching(Record):
    """What a knowledge base has learned from annotated mentions.

    The accuracies are those of the first answer, by cross-validation.

    Attributes:
        concepts: Number of concepts with annotated mentions.
        before: Accuracy without the mentions.
        names: Accuracy with the mentions as names.
        after: Accuracy with the learned order too; None if there is none.
    """

    files: list[TaughtFile]
    concepts: Count
    before: FiniteFloat
    names: FiniteFloat
    after: FiniteFloat | None
    date: str
    package_version: str

    @property
    def mentions(self) -> int:
        """Number of annotated mentions."""
        return sum(file.mentions for file in self.files)

    @property
    def best(self) -> float:
        """Accuracy with all that was learned."""
        return self.names if self.after is None else self.after


class OverlayRecord(Record):
    """The number of concepts, rows and removals of the overlay, and what was taught.

    Attributes:
        ranker: What annotated mentions correct in the order learned from names, whose
            weights are not repeated here; None = nothing.
    """

    concepts: Count
    rows: Count
    removed: Count
    taught: Teaching | None = None
    ranker: Ranker | None = None


class Logistic(Record):
    """The logistic curve from score to probability."""

    slope: FiniteFloat
    intercept: FiniteFloat


class CalibrationFile(Record):
    """Name and sha256 of a file of annotated mentions."""

    file: str
    sha256: Sha256


class Calibration(Record):
    """How the threshold was chosen, and what it was measured to do.

    Attributes:
        by: What the threshold is: a cosine, or a probability of the learned order,
            which `logistic` corrected.
    """

    by: Literal["cosine", "probability"] = "cosine"
    criterion: str
    threshold: FiniteFloat
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
    logistic: Logistic
    date: str
    package_version: str


class Vocabulary(Record):
    """A source of names, e.g. "MSH", and how many it has; "" = unknown."""

    source: str
    names: Count
    release: str = ""
    licence: str = ""


class Recall(Record):
    """Share of the nearest rows that the index finds, against exact search.

    Attributes:
        queries: Number of names searched for, each with a letter left out.
        at_1: Of the nearest row, 0 to 1.
        at_10: Of the ten nearest rows, 0 to 1.
    """

    queries: Count
    at_1: FiniteFloat
    at_10: FiniteFloat


class Gain(Record):
    """The share of right first answers for a kind of mention, on held-out names.

    Attributes:
        kind: Of noise, e.g. "one typing error", or "left out".
        cosine: By cosine.
        order: In the learned order.
    """

    kind: str
    names: Count
    cosine: FiniteFloat
    order: FiniteFloat


class NilGain(Record):
    """The share of a kind of mentions without a concept that are not linked."""

    kind: str
    mentions: Count
    recall: FiniteFloat


class AtThreshold(Record):
    """What a threshold does: precision and recall of links, and of no concept."""

    threshold: FiniteFloat
    precision: FiniteFloat | None
    recall: FiniteFloat | None
    nil_precision: FiniteFloat | None
    nil_recall: FiniteFloat | None


class NamesOrder(Record):
    """An order of candidates that was learned from the names, and what it gains.

    Attributes:
        examples: Mentions that were made of names and of words.
        nils: Of mentions without a concept, at the threshold of the order.
        thresholds: What that threshold does, and some beside it.
    """

    ranker: Ranker
    examples: Count
    seed: Count
    gains: list[Gain]
    nils: list[NilGain]
    thresholds: list[AtThreshold]


def encoder_fingerprint(files: dict[str, FileRecord]) -> str:
    """Return 16 hexadecimal digits that are equal for equal files of an encoder.

    Files of the exported encoder and of other folders do not count.
    """
    lines = (
        f"{name.removeprefix(f'{ENCODER}/')} {record.sha256}\n"
        for name, record in sorted(files.items())
        if name.startswith(f"{ENCODER}/") and not name.startswith(f"{EXPORTED}/")
    )
    return hashlib.sha256("".join(lines).encode("utf8")).hexdigest()[:16]


class Manifest(Record):
    """Everything that meta.json holds.

    Attributes:
        digest: sha256 of the rest of meta.json, which has the sha256 of every file: it
            is equal for equal knowledge bases only, wherever their files are.
    """

    format: Literal[6] = 6
    package_version: str
    encoder: EncoderRecord
    index: IndexRecord
    counts: Counts
    ngrams: bool = False
    sources: list[str]
    vocabularies: list[Vocabulary] | None = None
    recall: Recall | None = None
    threshold: Annotated[FiniteFloat, Field(ge=-1, le=1)] | None
    calibration: Calibration | None = None
    order: NamesOrder | None = None
    overlay: OverlayRecord | None = None
    files: dict[str, FileRecord]
    digest: str = ""

    @property
    def engines(self) -> list[str]:
        """The engines that can run the encoder."""
        exported = any(name.startswith(f"{EXPORTED}/") for name in self.files)
        return ["torch", *(["openvino"] if exported else [])]

    @property
    def taught(self) -> Teaching | None:
        """What was learned from annotated mentions."""
        return self.overlay.taught if self.overlay else None

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

    @model_validator(mode="after")
    def check_files(self) -> "Manifest":
        """Check that meta.json names all files, and no file outside of the folder."""
        check_settings(self.index.backend, self.index.settings)
        needed = self.needed_files()
        if missing := sorted(needed - self.files.keys()):
            raise ValueError(f"`files` lacks {missing[0]}")
        for name in sorted(self.files.keys() - needed):
            folder, _, rest = name.partition("/")
            if folder != ENCODER or not is_encoder_file(rest):
                raise ValueError(f"`files` has {name}, which no knowledge base has")
        of_encoder = (name for name in self.files if name.startswith(f"{ENCODER}/"))
        if len({self.files[name].version for name in of_encoder}) > 1:
            # It is opened as one folder.
            raise ValueError("the files of the encoder are in several versions")
        return self

    def needed_files(self) -> set[str]:
        """Return the names of the files without which nothing works."""
        ngrams = [f"{NGRAMS}/{name}.npy" for name in NGRAM_FILES] * self.ngrams
        words = [f"{WORDS}/{name}.npy" for name in WORD_FILES]
        index = index_files(self.index.backend, self.index.settings)
        needed = {STORE_FILE, f"{ENCODER}/config.json", *index, *ngrams, *words}
        if self.overlay is not None:
            names = [STORE_FILE, "concepts.jsonl", "removed.json"]
            names += [*index_files("exact", {}), *ngrams] * bool(self.overlay.rows)
            names += [TAUGHT_FILE] * (self.taught is not None)
            needed |= {f"{OVERLAY}/{name}" for name in names}
        return needed
