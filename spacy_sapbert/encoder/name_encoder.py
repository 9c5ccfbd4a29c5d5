"""Names → unit vectors: the one function that embeds mentions and aliases alike."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from thinc.api import Model

from ..system.forks import ProcessLock, make_fork_safe
from .engines.registry import Engine, check_engine, open_engine
from .huggingface import EncoderSettings, read_settings

NameModel = Model[list[str], np.ndarray]
Wordpieces = tuple[int, ...]
LONGEST_NAME = 1000  # characters that are looked at; 25 wordpieces are far fewer


def create_encoder(
    engine: str = "torch", names_per_pass: int = 64, precision: str = "float32"
) -> NameModel:
    """Describe how an encoder is run; `open_encoder` gives it one to run.

    engine (str): What runs it, "torch" or "openvino".
    names_per_pass (int): Names that go through the encoder at once.
    precision (str): "float32", or "bf16" on machines that are faster in it; scores
        then move in the third digit.
    RETURNS (Model[list[str], Floats2d]): Names to unit vectors.
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
            # Engines are not made for several threads.
            "lock": ProcessLock(),
        },
        dims={"nO": None},
    )


def create_transformer_encoder(
    names_per_pass: int = 64, precision: str = "float32"
) -> NameModel:
    """Run an encoder in PyTorch, where spaCy runs.

    Call `spacy.prefer_gpu()` first for a GPU.

    names_per_pass (int): See `create_encoder`.
    precision (str): See `create_encoder`.
    RETURNS (Model[list[str], Floats2d]): Names to unit vectors.
    RAISES (SapbertError): If the precision is another.
    """
    return create_encoder("torch", names_per_pass, precision)


def create_openvino_encoder(
    names_per_pass: int = 64, precision: str = "float32"
) -> NameModel:
    """Run an encoder that was exported for OpenVINO: the fastest on a CPU.

    names_per_pass (int): See `create_encoder`.
    precision (str): See `create_encoder`.
    RETURNS (Model[list[str], Floats2d]): Names to unit vectors.
    RAISES (SapbertError): If the precision is another.
    """
    return create_encoder("openvino", names_per_pass, precision)


def open_encoder(
    model: NameModel,
    source: str | Path,
    *,
    settings: EncoderSettings | None = None,
) -> None:
    """Load an encoder into the model that runs it.

    model (Model[list[str], Floats2d]): From `create_encoder`.
    source (str | Path): A folder, or the hub id of an encoder. If the folder has
        an adapter, the encoder runs with it.
    settings (EncoderSettings | None): How to run it; None = as the folder says.
    RAISES (SapbertError): If there is no such encoder, its weights are pickled, its
        adapter does not fit, or the engine cannot run it.
    """
    make_fork_safe()
    engine, _, precision = model.attrs["run"]
    settings = settings or read_settings(Path(source))
    use_engine(model, open_engine(engine, source, settings, precision), settings)


def use_engine(model: NameModel, engine: Engine, settings: EncoderSettings) -> None:
    """Put an opened encoder into the model that runs it.

    model (Model[list[str], Floats2d]): From `create_encoder`.
    engine (Engine): The encoder.
    settings (EncoderSettings): How it is run.
    """
    model.attrs["settings"] = settings
    model.attrs["engine"] = engine
    model.set_dim("nO", engine.width, force=True)


def forward(
    model: NameModel, names: Sequence[str], is_train: bool
) -> tuple[np.ndarray, Callable[[Any], list[Any]]]:
    """Embed names; training is the business of `training.trainer.train_encoder`.

    model (Model[list[str], Floats2d]): With an encoder opened in it.
    names (Sequence[str]): Any texts.
    is_train (bool): Not used.
    RETURNS (tuple[Floats2d, Callable]): Unit vectors in float32, the zero vector for a
        text without wordpieces; shape (n, width). A callback that gives nothing back.
    """
    pieces, _ = tokenize_names(model, names)
    return encode_wordpieces(model, pieces), lambda _: []


def tokenize_names(
    model: NameModel, names: Sequence[str]
) -> tuple[list[Wordpieces], list[bool]]:
    """Turn names into wordpieces: equal wordpieces are one name to the encoder.

    model (Model[list[str], Floats2d]): With an encoder opened in it.
    names (Sequence[str]): Any texts.
    RETURNS (tuple[list[Wordpieces], list[bool]]): For each name its ids, `[CLS]` and
        `[SEP]` included, none if it has no wordpiece that the encoder knows; and
        whether it was too long and cut.
    """
    if not names:
        return [], []
    engine: Engine = model.attrs["engine"]
    texts = [" ".join(name[:LONGEST_NAME].split()) for name in names]
    if model.attrs["settings"].lowercase:
        texts = [text.lower() for text in texts]
    # A lone surrogate is no text to the tokenizer.
    texts = [text.encode("utf8", "replace").decode("utf8") for text in texts]
    with model.attrs["lock"]:
        encodings = engine.tokenizer.pieces.encode_batch(texts)
    nothing = engine.tokenizer.special_ids
    pieces = [tuple(encoding.ids) for encoding in encodings]
    cut = [
        bool(encoding.overflowing) or len(name) > LONGEST_NAME
        for encoding, name in zip(encodings, names, strict=True)
    ]
    return [() if nothing.issuperset(ids) else ids for ids in pieces], cut


def encode_wordpieces(model: NameModel, pieces: Sequence[Wordpieces]) -> np.ndarray:
    """Embed tokenised names, sorted by length so that little is padding.

    model (Model[list[str], Floats2d]): With an encoder opened in it.
    pieces (Sequence[Wordpieces]): From `tokenize_names`.
    RETURNS (np.ndarray): Unit vectors in float32, zero for no wordpieces.
        Shape: (n, width).
    """
    vectors = np.zeros((len(pieces), model.get_dim("nO")), dtype=np.float32)
    order = sorted(
        (i for i, ids in enumerate(pieces) if ids), key=lambda i: len(pieces[i])
    )
    _, size, _ = model.attrs["run"]
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        vectors[rows] = encode_batch(model, [pieces[row] for row in rows])
    return vectors


def encode_batch(model: NameModel, pieces: Sequence[Wordpieces]) -> np.ndarray:
    """Embed one batch of tokenised names.

    model (Model[list[str], Floats2d]): With an encoder opened in it.
    pieces (Sequence[Wordpieces]): None of them empty.
    RETURNS (np.ndarray): Unit vectors in float32. Shape: (n, width).
    """
    import torch

    from .pooling import POOLINGS

    engine: Engine = model.attrs["engine"]
    pool = POOLINGS[model.attrs["settings"].pooling]
    ids, mask = pad_wordpieces(pieces, engine.tokenizer.pad_id)
    with model.attrs["lock"], torch.inference_mode():
        states = engine.states(ids, mask)
        pooled = pool(states, torch.from_numpy(mask).to(states.device))
        return torch.nn.functional.normalize(pooled, dim=1).cpu().numpy()


def pad_wordpieces(
    pieces: Sequence[Wordpieces], pad: int
) -> tuple[np.ndarray, np.ndarray]:
    """Lay tokenised names side by side.

    pieces (Sequence[Wordpieces]): The names.
    pad (int): The id to fill up with.
    RETURNS (tuple[np.ndarray, np.ndarray]): Ids and mask, int64.
        Shape: (n, length of the longest) each.
    """
    lengths = np.array([len(ids) for ids in pieces])
    mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
    ids = np.full(mask.shape, pad, dtype=np.int64)
    ids[mask.astype(bool)] = np.fromiter(
        (id for one in pieces for id in one), dtype=np.int64, count=lengths.sum()
    )
    return ids, mask
