"""Names → unit vectors: one function for mentions and aliases."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from thinc.api import Model

from ..errors import Errors, SapbertError
from ..system.forks import ProcessLock, make_fork_safe
from .engines.registry import Engine, check_engine, open_engine
from .huggingface import EncoderSettings, read_settings
from .pooling import POOLINGS
from .sealed_tokenizer import name_panics

NameModel = Model[list[str], np.ndarray]
TokenIds = tuple[int, ...]
LEAST_NORM = np.float32(1e-12)
MAX_CHARACTERS = 1000  # of a name; 25 tokens are far fewer


class Embeddings(NamedTuple):
    """Embedded texts.

    vectors (np.ndarray): Unit vectors in float32, zero for texts that the encoder
        cannot read. Shape: (n, width).
    truncated (np.ndarray): Texts longer than the maximum of the encoder, bool.
        Shape: (n,).
    readable (np.ndarray): Texts with a token that the encoder has, bool. Shape: (n,).
    """

    vectors: np.ndarray
    truncated: np.ndarray
    readable: np.ndarray


def create_encoder(
    engine: str = "torch", names_per_pass: int = 64, precision: str = "float32"
) -> NameModel:
    """Create the model that runs an encoder; `open_encoder` loads the encoder.

    engine (str): "torch" or "openvino".
    names_per_pass (int): Names in one forward pass.
    precision (str): "float32" or "bf16". bf16 is faster on some machines and changes
        scores in the third digit.
    RETURNS (Model[list[str], Floats2d]): Names → unit vectors.
    RAISES (SapbertError): If there is no such engine or precision.
    """
    check_engine(engine, precision)
    return Model(
        "sapbert_encoder",
        forward,
        attrs={
            "run": (engine, names_per_pass, precision),
            "engine": None,
            "settings": EncoderSettings(),
            # Engines are not safe for threads.
            "lock": ProcessLock(),
        },
        dims={"nO": None},
    )


def create_transformer_encoder(
    names_per_pass: int = 64, precision: str = "float32"
) -> NameModel:
    """Create an encoder that runs in PyTorch; call `spacy.prefer_gpu()` for a GPU.

    See `create_encoder` for the arguments.
    """
    return create_encoder("torch", names_per_pass, precision)


def create_openvino_encoder(
    names_per_pass: int = 64, precision: str = "float32"
) -> NameModel:
    """Create an encoder that runs in OpenVINO, the fastest engine on a CPU.

    See `create_encoder` for the arguments.
    """
    return create_encoder("openvino", names_per_pass, precision)


def open_encoder(
    model: NameModel,
    source: str | Path,
    *,
    settings: EncoderSettings | None = None,
    sealed: bool = False,
) -> None:
    """Load an encoder into the model that runs it.

    model (Model[list[str], Floats2d]): From `create_encoder`.
    source (str | Path): A folder, with or without an adapter, or a hub id.
    settings (EncoderSettings | None): How to run it; None = as in the folder.
    sealed (bool): The encoder is part of a knowledge base: nothing outside its folder
        is opened, and its author is not trusted.
    RAISES (SapbertError): If there is no such encoder, its weights are pickled, damaged
        or incomplete, its adapter does not fit, or the engine cannot run it.
    """
    make_fork_safe()
    engine, _, precision = model.attrs["run"]
    settings = settings or read_settings(Path(source))
    opened = open_engine(engine, source, settings, precision, sealed=sealed)
    use_engine(model, opened, settings)


def use_engine(model: NameModel, engine: Engine, settings: EncoderSettings) -> None:
    """Set the loaded encoder of a model."""
    model.attrs["settings"] = settings
    model.attrs["engine"] = engine
    model.set_dim("nO", engine.width, force=True)


def forward(
    model: NameModel, names: Sequence[str], is_train: bool
) -> tuple[np.ndarray, Callable[[Any], list[Any]]]:
    """Embed names; the backward pass does nothing, since spaCy does not train it.

    RETURNS (tuple[Floats2d, Callable]): Unit vectors in float32, zero for a name
        without known tokens. Shape: (n, width).
    """
    token_ids, _ = tokenize_names(model, names)
    return encode_token_ids(model, token_ids), lambda _: []


def tokenize_names(
    model: NameModel, names: Sequence[str]
) -> tuple[list[TokenIds], list[bool]]:
    """Tokenise names; names with equal token ids are one name to the encoder.

    model (Model[list[str], Floats2d]): With an encoder.
    names (Sequence[str]): Any texts.
    RETURNS (tuple[list[TokenIds], list[bool]]): For each name its token ids, with
        `[CLS]` and `[SEP]`, empty if the encoder has none of its tokens; and whether it
        was truncated.
    """
    if not names:
        return [], []
    engine: Engine = model.attrs["engine"]
    texts = [" ".join(name[:MAX_CHARACTERS].split()) for name in names]
    if model.attrs["settings"].lowercase:
        texts = [text.lower() for text in texts]
    # The tokenizer refuses a lone surrogate.
    texts = [text.encode("utf8", "replace").decode("utf8") for text in texts]
    with model.attrs["lock"], name_panics("tokenizer.json"):
        encodings = engine.tokenizer.backend.encode_batch(texts)
    special = engine.tokenizer.special_ids
    token_ids = [tuple(encoding.ids) for encoding in encodings]
    truncated = [
        bool(encoding.overflowing) or len(name) > MAX_CHARACTERS
        for encoding, name in zip(encodings, names, strict=True)
    ]
    return [() if special.issuperset(ids) else ids for ids in token_ids], truncated


def encode_token_ids(model: NameModel, token_ids: Sequence[TokenIds]) -> np.ndarray:
    """Embed tokenised names, sorted by length to save padding.

    model (Model[list[str], Floats2d]): With an encoder.
    token_ids (Sequence[TokenIds]): From `tokenize_names`.
    RETURNS (np.ndarray): Unit vectors in float32, zero for no token ids.
        Shape: (n, width).
    """
    vectors = np.zeros((len(token_ids), model.get_dim("nO")), dtype=np.float32)
    order = sorted(
        (i for i, ids in enumerate(token_ids) if ids), key=lambda i: len(token_ids[i])
    )
    _, size, _ = model.attrs["run"]
    for start in range(0, len(order), size):
        batch = order[start : start + size]
        vectors[batch] = encode_batch(model, [token_ids[i] for i in batch])
    return vectors


def encode_batch(model: NameModel, token_ids: Sequence[TokenIds]) -> np.ndarray:
    """Embed one batch of tokenised names, none of them empty. Shape: (n, width)."""
    engine: Engine = model.attrs["engine"]
    pool = POOLINGS[model.attrs["settings"].pooling]
    ids, mask = pad_token_ids(token_ids, engine.tokenizer.pad_id)
    # Libraries read outside of their weights, or raise an error without a name.
    if (largest := int(ids.max())) >= engine.vocabulary:
        raise SapbertError(Errors.E232.format(limit=engine.vocabulary, got=largest))
    with model.attrs["lock"]:
        states = engine.states(ids, mask)
        if isinstance(states, np.ndarray):  # where torch need not be installed
            pooled = pool(states, mask.astype(np.float32))
            norms = np.linalg.norm(pooled, axis=1, keepdims=True)
            return pooled / np.maximum(norms, LEAST_NORM)
        import torch

        pooled = pool(states, torch.from_numpy(mask).to(states.device))
        unit: np.ndarray = torch.nn.functional.normalize(pooled, dim=1).cpu().numpy()
        return unit


def pad_token_ids(
    token_ids: Sequence[TokenIds], pad: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return padded token ids and mask, int64. Shape: (n, longest) each."""
    lengths = np.array([len(ids) for ids in token_ids])
    mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
    padded = np.full(mask.shape, pad, dtype=np.int64)
    padded[mask.astype(bool)] = np.fromiter(
        (id for ids in token_ids for id in ids), dtype=np.int64, count=lengths.sum()
    )
    return padded, mask
