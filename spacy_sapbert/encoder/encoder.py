"""Names → unit vectors: one function for mentions and names."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from ..errors import SapbertError, check_choice, check_range
from ..io.forks import ProcessLock, make_fork_safe
from ..linking.text import clean_text
from .device import choose_device
from .huggingface import EncoderSettings, read_settings
from .pooling import POOLINGS
from .safety import check_contained
from .tokenizer import NameTokenizer

if TYPE_CHECKING:
    from torch import Tensor

TokenIds = tuple[int, ...]
States = tuple["Tensor | np.ndarray", np.ndarray]  # and the mask, see `Engine`
Batch = tuple[list[int], list[TokenIds]]  # numbers of names, and their token ids
Pass = tuple[list[int], np.ndarray]  # numbers of names, and vectors (names, width)
# Each but "auto" is a module `…_engine` here with a function
# `open_engine(folder, settings, config)`; see `Encoder.open`.
ENGINES = ("auto", "torch", "onnx", "spacy_transformers")
EXPORTED = "onnx"  # folder of an exported encoder, in that of the encoder
GRAPH_FILE = "encoder.onnx"  # its weights are in encoder.onnx.data
PRECISIONS = ("float32", "bf16")
PASSES_AHEAD = 16  # at least: their states take up to 1 MB each
LEAST_NORM = np.float32(1e-12)
MAX_CHARACTERS = 1000  # of a name; 25 tokens are far fewer
MAX_NAMES = 1 << 16  # in one forward pass
LEAST_NAMES = 8  # in a forward pass that ends early, since each pass has a cost
MOST_PADDED = 1.25  # tokens with padding, of those without, of a pass that goes on


class Engine(Protocol):
    """A loaded encoder.

    Attributes:
        positions: Maximum of tokens in a name; 0 = not known.
        vocabulary: Number of its token ids.
        pads: Whether names of several lengths may be in one pass.
        threads: How many passes it computes at once; with 1 it is not safe for threads.
        names: Most names of a pass: more take memory, and as long.
    """

    tokenizer: NameTokenizer
    positions: int
    vocabulary: int
    pads: bool
    names: int

    @property
    def threads(self) -> int: ...

    def states(self, ids: np.ndarray, mask: np.ndarray) -> "Tensor | np.ndarray":
        """Compute the token states of the last layer.

        Ids and mask (1 for a token, 0 for padding) are int64, of shape (n, length).
        States are float32, on any device, and valid until the next call.
        Shape: (n, length, width).
        """


@dataclass(frozen=True)
class EncoderConfig:
    """How to run an encoder, whichever it is.

    Attributes:
        engine: "torch", "onnx", "spacy_transformers" or "auto", which is ONNX Runtime
            for an exported encoder and "float32" on a CPU where ONNX Runtime is
            installed, else PyTorch.
        names_per_pass: Names in one forward pass; ONNX Runtime takes at most 16.
        precision: "float32" or, in PyTorch, "bf16". bf16 is faster on some machines
            and changes scores in the third digit, as the weights of an exported
            encoder do, which have 8 bits.
        device: Of PyTorch: "cpu", "cuda", "cuda:1", "auto" = a GPU if there is one, or
            None = where spaCy runs, see `spacy.prefer_gpu`. For a knowledge base whose
            vectors are of ONNX Runtime, the engine "auto" makes "auto" the CPU.
    """

    engine: str = "auto"
    names_per_pass: int = 64
    precision: str = "float32"
    device: str | None = None

    def __post_init__(self) -> None:
        check_choice("engine", ENGINES, self.engine)
        check_choice("precision", PRECISIONS, self.precision)
        check_range("names_per_pass", self.names_per_pass, 1, MAX_NAMES)
        needs = [self.precision] if self.precision != "float32" else []
        if self.device not in (None, "auto", "cpu"):
            needs.append(choose_device(self.device))
        if needs and self.engine not in ("auto", "torch"):
            raise SapbertError(
                "E331",
                f'Expected the engine "torch" for {" and ".join(needs)}, but got '
                f'"{self.engine}". Choose "torch", or "float32" and the device "auto".',
            )


def make_encoder(
    engine: str = "auto", names_per_pass: int = 64, precision: str = "float32"
) -> EncoderConfig:
    """Run the encoder in the fastest engine that there is, or a named one."""
    return EncoderConfig(engine, names_per_pass, precision)


def make_transformer_encoder(
    names_per_pass: int = 64, precision: str = "float32"
) -> EncoderConfig:
    """Run the encoder in PyTorch; call `spacy.prefer_gpu()` for a GPU."""
    return EncoderConfig("torch", names_per_pass, precision)


def make_onnx_encoder(names_per_pass: int = 64) -> EncoderConfig:
    """Run the encoder in ONNX Runtime, the fastest engine on a CPU."""
    return EncoderConfig("onnx", names_per_pass)


def make_spacy_transformers_encoder(names_per_pass: int = 64) -> EncoderConfig:
    """Run the encoder as a layer of spaCy, the model of spacy-transformers."""
    return EncoderConfig("spacy_transformers", names_per_pass)


@dataclass(frozen=True, eq=False)
class Encoder:
    """The opened encoder of one folder, for any number of threads.

    Attributes:
        width: Columns of a vector.
    """

    config: EncoderConfig
    settings: EncoderSettings
    engine: Engine
    width: int
    lock: ProcessLock = field(default_factory=ProcessLock, repr=False)

    @classmethod
    def open(
        cls,
        folder: Path,
        config: EncoderConfig = EncoderConfig(),  # noqa: B008, it is frozen
        *,
        settings: EncoderSettings | None = None,
    ) -> Self:
        """Load an encoder as `save_encoder` writes it; others are copied with it first.

        Nothing outside of its folder is opened, and nothing is unpickled. `settings`
        say how names become vectors; None = as in the folder.
        """
        make_fork_safe()
        check_contained(folder)
        settings = settings or read_settings(folder)
        name = config.engine
        if name == "auto":
            exported = (folder / EXPORTED / GRAPH_FILE).is_file()
            prefers = exported and prefers_onnx(config)
            name = "onnx" if prefers else "torch"
        module: Any = import_module(f".{name}_engine", __package__)
        engine = module.open_engine(folder, settings, config)
        width = measure_width(engine, settings.max_length, folder)
        return cls(config, settings, engine, width)

    def embed(self, names: Sequence[str]) -> np.ndarray:
        """Embed texts; see `tokenize` and `encode`. Shape: (n, width)."""
        token_ids, _ = self.tokenize(names)
        return self.encode(token_ids)

    def tokenize(self, names: Sequence[str]) -> tuple[list[TokenIds], list[bool]]:
        """Return the token ids of texts, and whether each was truncated.

        The ids have `[CLS]` and `[SEP]`, and are empty if the encoder has none of the
        tokens. Texts with equal ids are one name to the encoder.
        """
        if not names:
            return [], []
        texts = [clean_text(name[:MAX_CHARACTERS]) for name in names]
        if self.settings.lowercase:
            texts = [text.lower() for text in texts]
        tokenizer = self.engine.tokenizer
        with self.lock:
            encodings = tokenizer.encode(texts)
        token_ids = [tuple(encoding.ids) for encoding in encodings]
        truncated = [
            bool(encoding.overflowing) or len(name) > MAX_CHARACTERS
            for encoding, name in zip(encodings, names, strict=True)
        ]
        unread = tokenizer.special_ids
        return [() if unread.issuperset(ids) else ids for ids in token_ids], truncated

    def encode(self, token_ids: Sequence[TokenIds]) -> np.ndarray:
        """Embed tokenised names, sorted by length to save padding.

        Returns unit vectors in float32, zero for no token ids. Shape: (n, width).
        """
        vectors = np.zeros((len(token_ids), self.width), dtype=np.float32)
        with self.encode_passes(token_ids) as passes:
            for numbers, encoded in passes:
                vectors[numbers] = encoded
        return vectors

    @contextmanager
    def encode_passes(self, token_ids: Sequence[TokenIds]) -> Iterator[Iterator[Pass]]:
        """Embed tokenised names in parts; iterate over which, and their unit vectors.

        Those without token ids are left out. Other threads begin at once, go on while a
        part is used, and change neither the parts nor their order.
        """
        readable = [number for number, ids in enumerate(token_ids) if ids]
        order = sorted(readable, key=lambda number: len(token_ids[number]))
        lengths = [len(token_ids[number]) for number in order]
        most = min(self.config.names_per_pass, self.engine.names)
        ends = split_passes(lengths, most, self.engine.pads)
        passes = [order[start:end] for start, end in ends]
        passes.reverse()  # the longest first: none is left to one thread at the end
        batches = deque((ns, [token_ids[number] for number in ns]) for ns in passes)
        others = min(self.engine.threads - 1, len(passes))
        if others < 1 or len(passes) == 1:  # another thread would begin later
            yield ((names, self._encode_batch(batch)) for names, batch in batches)
            return
        pool = ThreadPoolExecutor(others)
        try:
            ahead = deque[tuple[Batch, Future[States]]]()

            def go_on() -> None:
                while batches and len(ahead) < max(PASSES_AHEAD, 2 * others):
                    batch = batches.popleft()
                    ahead.append((batch, pool.submit(self._compute_states, batch[1])))

            go_on()
            yield self._take_passes(ahead, batches, go_on)
        finally:
            pool.shutdown(cancel_futures=True)

    def _take_passes(
        self,
        ahead: "deque[tuple[Batch, Future[States]]]",
        batches: "deque[Batch]",
        go_on: Callable[[], None],
    ) -> Iterator[Pass]:
        """Yield passes that other threads compute; this one does not wait for them.

        They leave to it what runs in Python, for which they would wait for each other.
        `go_on` gives them as many of the `batches` as they are `ahead`.
        """
        own: list[Pass] = []
        while ahead:
            (names, _), states = ahead[0]
            while not states.done():
                # It begins with the shortest ones.
                if batches:
                    mine, batch = batches.pop()
                elif ahead[-1][1].cancel():
                    (mine, batch), _ = ahead.pop()
                else:
                    break
                own.append((mine, self._encode_batch(batch)))
            if states.cancelled():
                break
            ahead.popleft()
            go_on()
            yield names, self._pool(*states.result())
        yield from reversed(own)

    def _encode_batch(self, token_ids: Sequence[TokenIds]) -> np.ndarray:
        """Embed one batch of names, none of them empty. Shape: (n, width)."""
        with self.lock if self.engine.threads == 1 else nullcontext():
            return self._pool(*self._compute_states(token_ids))

    def _compute_states(self, token_ids: Sequence[TokenIds]) -> "States":
        """Return the token states of names, none of them empty, and their mask."""
        ids, mask = pad_token_ids(token_ids, self.engine.tokenizer.pad_id)
        # Libraries read outside of their weights, or raise an error without a name.
        if (largest := int(ids.max())) >= self.engine.vocabulary:
            raise SapbertError(
                "E203",
                f"Expected token ids below {self.engine.vocabulary}, the number that "
                f"the encoder has, but its tokenizer made {largest}. Copy the encoder "
                "again, with its own tokenizer.",
            )
        return self.engine.states(ids, mask), mask

    def _pool(self, states: "Tensor | np.ndarray", mask: np.ndarray) -> np.ndarray:
        """Return the unit vectors of names. Shape: (n, width)."""
        pool = POOLINGS[self.settings.pooling]
        if isinstance(states, np.ndarray):  # where torch need not be installed
            pooled = pool(states, mask.astype(np.float32))
            norms = np.linalg.norm(pooled, axis=1, keepdims=True)
            return pooled / np.maximum(norms, LEAST_NORM)
        import torch

        pooled = pool(states, torch.from_numpy(mask).to(states.device))
        unit = torch.nn.functional.normalize(pooled, dim=1)
        vectors: np.ndarray = unit.cpu().numpy()
        return vectors


def prefers_onnx(config: EncoderConfig) -> bool:
    """Return whether ONNX Runtime is installed and has the precision, on the CPU."""
    on_cpu = choose_device(config.device) == "cpu"
    return on_cpu and config.precision == "float32" and bool(find_spec("onnxruntime"))


def split_passes(
    lengths: Sequence[int], most: int, pads: bool
) -> Iterator[tuple[int, int]]:
    """Yield start and end of the names of each forward pass, from ascending lengths.

    If it pads, all names of a pass get the length of the longest one. A few mentions
    differ much in length, and without a limit half of the work would be padding.
    """
    start, tokens = 0, 0
    for end, length in enumerate(lengths):
        padded = length * (end + 1 - start)
        wasteful = padded > MOST_PADDED * (tokens + length)
        if pads:
            ends = end - start >= LEAST_NAMES and wasteful
        else:
            ends = length > lengths[start]
        if ends or end - start == most:
            yield start, end
            start, tokens = end, 0
        tokens += length
    if start < len(lengths):
        yield start, len(lengths)


def measure_width(engine: Engine, length: int, name: Path) -> int:
    """Return the columns of a vector of the encoder `name`, from a trial."""
    if 0 < engine.positions < length:
        raise SapbertError(
            "E230",
            f"Expected a `max_length` of at most {engine.positions}, the positions of "
            f"the encoder {name}, but got {length}. Correct it in sapbert.json or "
            "with `--max-length`.",
        )
    ids = np.full((1, length), engine.tokenizer.pad_id + 1)  # any but padding
    try:
        shape = tuple(engine.states(ids, np.ones_like(ids)).shape)
        reason = f"its states have the shape {shape}"
    except SapbertError:
        raise
    except Exception as error:  # the libraries raise almost any
        shape, reason = (), " ".join(str(error).split())[:300]
    if len(shape) != 3 or shape[:2] != ids.shape:
        raise SapbertError(
            "E203",
            "Expected token states for a name of `max_length` tokens from the "
            f"encoder {name}, but it failed: {reason} Lower `max_length`, or choose "
            "another encoder.",
        )
    return int(shape[2])


def pad_token_ids(
    token_ids: Sequence[TokenIds], pad: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return padded token ids and mask, int64. Shape: (n, longest) each."""
    longest = max(map(len, token_ids))
    padded = np.array([[*ids, *[pad] * (longest - len(ids))] for ids in token_ids])
    lengths = np.array([[len(ids)] for ids in token_ids])
    return padded, (np.arange(longest) < lengths).astype(np.int64)
