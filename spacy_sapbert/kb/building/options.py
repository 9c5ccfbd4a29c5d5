"""The options of a build."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ...encoder.encoder import EncoderConfig
from ...encoder.huggingface import EncoderSettings
from ...errors import SapbertError, check_range
from ..indexes.backend import Backend
from ..indexes.registry import check_library, make_backend

ORDERS = ("names", "none")


@dataclass(frozen=True)
class BuildOptions:
    """The keyword arguments of `build_kb`.

    Attributes:
        settings: How names become vectors; None = as in the folder of the encoder.
        backend: "hnsw", "faiss" or "exact"; None = see `choose_index`, or "hnsw" if
            there are settings. A stopped build continues with its own.
        backend_settings: Those that differ from the defaults.
        threshold: Cosine below which a mention has no concept; None = that of the
            learned order, a probability, if there is one; 0 or −1 = link everything.
        sources: The vocabularies and their releases, for `kb info`.
        engine: See `EncoderConfig`. "auto" = OpenVINO on a CPU where it is installed
            and can run the encoder. For OpenVINO the encoder is exported.
        names_per_pass: Names in one forward pass.
        precision: "float32" or "bf16".
        threads: Threads of the index build, 0 = all. With 1, equal input gives equal
            bytes.
        order: "names" = learn an order of candidates from the names, for which their
            character 3-grams are indexed; "none" = candidates are ordered by cosine.
        reuse: A knowledge base of the same encoder, e.g. of the release before: only
            names that it lacks are embedded. The bytes are the same.
        force: Replace an existing folder.
        progress: Show progress bars.

    Raises:
        SapbertError: If an option is out of range, or the index cannot be built.
    """

    settings: EncoderSettings | None = None
    backend: str | None = None
    backend_settings: dict[str, int] | None = None
    threshold: float | None = None
    sources: Sequence[str] = ()
    engine: str = "auto"
    names_per_pass: int = 64
    precision: str = "float32"
    threads: int = 0
    order: str = "names"
    reuse: Path | None = None
    force: bool = False
    progress: bool = False

    def __post_init__(self) -> None:
        if self.threshold is not None:
            check_range("threshold", self.threshold, -1, 1)
        if self.order not in ORDERS:
            raise SapbertError(
                "E593",
                f"Expected the order to be one of {ORDERS}, but got {self.order!r}. "
                "Correct `--order`.",
            )
        if self.index is not None:
            check_library(self.index)
        self.config  # noqa: B018 (it checks its values)

    @cached_property
    def index(self) -> Backend | None:
        """The index; None if it is to be chosen."""
        if self.backend is None and not self.backend_settings:
            return None
        return make_backend(self.backend or "hnsw", self.backend_settings)

    @cached_property
    def config(self) -> EncoderConfig:
        """How the encoder is run."""
        return EncoderConfig(self.engine, self.names_per_pass, self.precision)
