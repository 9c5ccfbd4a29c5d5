"""Names → unit vectors: the one function that embeds mentions and aliases alike."""

import threading
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, List, Optional, Sequence, Tuple, Union

import numpy as np
from thinc.api import Model

from .adapters import attach_adapter, has_adapter
from .errors import Errors, SapbertError
from .hf import (
    EncoderSettings,
    check_encoder_name,
    find_base,
    find_tokenizer,
    read_settings,
)

if TYPE_CHECKING:
    from spacy_transformers.data_classes import WordpieceBatch

NameModel = Model[List[str], np.ndarray]
Wordpieces = Tuple[int, ...]
LONGEST_NAME = 1000  # characters that are looked at; 25 wordpieces are far fewer


def create_transformer_encoder(
    names_per_pass: int = 64, precision: str = "float32"
) -> NameModel:
    """Describe how an encoder is run; `open_encoder` gives it one to run.

    The encoder runs where spaCy runs: call `spacy.prefer_gpu()` first for a GPU.

    names_per_pass (int): Names that go through the encoder at once.
    precision (str): "float32", or "bf16" on machines that are faster in it; scores
        then move in the third digit.
    RETURNS (Model[List[str], Floats2d]): Names to unit vectors.
    RAISES (SapbertError): If the precision is another.
    """
    if precision not in ("float32", "bf16"):
        raise SapbertError(Errors.E204.format(precision=precision))
    return Model(
        "sapbert_encoder",
        forward,
        attrs={
            "names_per_pass": names_per_pass,
            "precision": precision,
            "settings": EncoderSettings(),
            # The tokenizer and the switch between training and evaluation inside
            # spacy-transformers are not made for several threads.
            "lock": threading.Lock(),
        },
        dims={"nO": None},
    )


def open_encoder(
    model: NameModel,
    source: Union[str, Path],
    *,
    settings: Optional[EncoderSettings] = None,
) -> None:
    """Load an encoder into the model that runs it.

    model (Model[List[str], Floats2d]): From `create_transformer_encoder`.
    source (Union[str, Path]): A folder, or the hub id of an encoder. If the folder has
        an adapter, the encoder runs with it.
    settings (Optional[EncoderSettings]): How to run it; None = as the folder says.
    RAISES (SapbertError): If there is no such encoder, its weights are pickled, or its
        adapter does not fit.
    SOURCE: spacy-transformers' TransformerModel: tokenizer, device, forward pass.
    """
    from spacy_transformers.layers import TransformerModel
    from transformers import AutoTokenizer
    from transformers.utils import logging

    folder = Path(source)
    check_encoder_name(str(source))
    base, tokens = find_base(str(source)), find_tokenizer(str(source))
    transformer = TransformerModel(
        base,
        get_spans=list,
        tokenizer_config={"trust_remote_code": False},
        transformer_config={"trust_remote_code": False},
    )
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        transformer.initialize()
        if tokens != base:
            # TransformerModel loads both from one place.
            loaded = transformer.layers[0].shims[0]._hfmodel
            loaded.tokenizer = AutoTokenizer.from_pretrained(
                tokens, trust_remote_code=False
            )
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise SapbertError(Errors.E203.format(name=source, reason=reason)) from error
    finally:
        logging.set_verbosity(verbosity)
    if not transformer.tokenizer.is_fast:
        raise SapbertError(Errors.E205.format(name=source))
    if has_adapter(folder):
        attach_adapter(transformer.transformer, folder)
    model.attrs["settings"] = settings or read_settings(folder)
    model.layers.clear()
    model.layers.append(transformer)
    model.set_dim("nO", transformer.get_dim("nO"), force=True)


def forward(
    model: NameModel, names: Sequence[str], is_train: bool
) -> Tuple[np.ndarray, Callable[[Any], List[Any]]]:
    """Embed names; training is the business of `training.train_encoder`.

    model (Model[List[str], Floats2d]): With an encoder opened in it.
    names (Sequence[str]): Any texts.
    is_train (bool): Not used.
    RETURNS (Tuple[Floats2d, Callable]): Unit vectors in float32, the zero vector for a
        text without wordpieces; shape (n, width). A callback that gives nothing back.
    """
    pieces, _ = tokenize_names(model, names)
    return encode_wordpieces(model, pieces), lambda _: []


def tokenize_names(
    model: NameModel, names: Sequence[str]
) -> Tuple[List[Wordpieces], List[bool]]:
    """Turn names into wordpieces: equal wordpieces are one name to the encoder.

    model (Model[List[str], Floats2d]): With an encoder opened in it.
    names (Sequence[str]): Any texts.
    RETURNS (Tuple[List[Wordpieces], List[bool]]): For each name its ids, `[CLS]` and
        `[SEP]` included, none if it has no wordpiece that the encoder knows; and
        whether it was too long and cut.
    """
    if not names:
        return [], []
    settings: EncoderSettings = model.attrs["settings"]
    transformer: Any = model.layers[0]
    tokenizer = transformer.tokenizer
    texts = [" ".join(name[:LONGEST_NAME].split()) for name in names]
    if settings.lowercase:
        texts = [text.lower() for text in texts]
    # A lone surrogate is no text to the tokenizer.
    texts = [text.encode("utf8", "replace").decode("utf8") for text in texts]
    with model.attrs["lock"]:
        encodings = tokenizer(
            texts, truncation=True, max_length=settings.max_length
        ).encodings
    nothing = {*tokenizer.all_special_ids}
    pieces = [tuple(encoding.ids) for encoding in encodings]
    cut = [
        bool(encoding.overflowing) or len(name) > LONGEST_NAME
        for encoding, name in zip(encodings, names, strict=True)
    ]
    return [() if nothing.issuperset(ids) else ids for ids in pieces], cut


def encode_wordpieces(model: NameModel, pieces: Sequence[Wordpieces]) -> np.ndarray:
    """Embed tokenised names, sorted by length so that little is padding.

    model (Model[List[str], Floats2d]): With an encoder opened in it.
    pieces (Sequence[Wordpieces]): From `tokenize_names`.
    RETURNS (np.ndarray): Unit vectors in float32, zero for no wordpieces.
        Shape: (n, width).
    """
    vectors = np.zeros((len(pieces), model.get_dim("nO")), dtype=np.float32)
    order = sorted(
        (i for i, ids in enumerate(pieces) if ids), key=lambda i: len(pieces[i])
    )
    size = model.attrs["names_per_pass"]
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        vectors[rows] = encode_batch(model, [pieces[row] for row in rows])
    return vectors


def encode_batch(model: NameModel, pieces: Sequence[Wordpieces]) -> np.ndarray:
    """Embed one batch of tokenised names.

    model (Model[List[str], Floats2d]): With an encoder opened in it.
    pieces (Sequence[Wordpieces]): None of them empty.
    RETURNS (np.ndarray): Unit vectors in float32. Shape: (n, width).
    """
    import torch

    from .pooling import POOLINGS

    transformer: Any = model.layers[0]
    batch = pad_wordpieces(pieces, transformer.tokenizer.pad_token_id or 0)
    device = transformer.transformer.device
    fast = model.attrs["precision"] == "bf16"
    autocast = torch.autocast(device.type, torch.bfloat16) if fast else nullcontext()
    with model.attrs["lock"], autocast:
        # The inner layer takes wordpieces as they are; the outer one would tokenise
        # again, and cut long names without leaving their [SEP].
        states = transformer.layers[0].predict(batch).last_hidden_state
    mask = torch.from_numpy(batch.attention_mask).to(device)
    pooled = POOLINGS[model.attrs["settings"].pooling](states.float(), mask)
    return torch.nn.functional.normalize(pooled, dim=1).cpu().numpy()


def pad_wordpieces(pieces: Sequence[Wordpieces], pad: int) -> "WordpieceBatch":
    """Lay tokenised names side by side.

    pieces (Sequence[Wordpieces]): The names.
    pad (int): The id to fill up with.
    RETURNS (WordpieceBatch): Ids and mask. Shape: (n, length of the longest) each.
    """
    from spacy_transformers.data_classes import WordpieceBatch

    lengths = [len(ids) for ids in pieces]
    ids = np.full((len(pieces), max(lengths)), pad, dtype=np.int64)
    mask = np.zeros(ids.shape, dtype=np.int64)
    for row, wordpieces in enumerate(pieces):
        ids[row, : len(wordpieces)] = wordpieces
        mask[row, : len(wordpieces)] = 1
    return WordpieceBatch(
        strings=[[] for _ in pieces],
        input_ids=ids,
        attention_mask=mask,
        lengths=lengths,
        token_type_ids=None,
    )
