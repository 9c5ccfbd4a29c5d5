"""Runs an encoder as a layer of spaCy: the `TransformerModel` of spacy-transformers."""

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..io.plugins import require
from .device import choose_device
from .huggingface import EncoderSettings, load_model
from .tokenizer import NameTokenizer, load_tokenizer

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span
    from torch import Tensor

    from .encoder import EncoderConfig

PAD = "[PAD]"


def get_entities(docs: "Iterable[Doc]") -> "list[list[Span]]":
    """Return the entities of each Doc."""
    return [[*doc.ents] for doc in docs]


def make_entity_spans() -> "Callable[[Iterable[Doc]], list[list[Span]]]":
    """Return a span getter for `TransformerModel`: each entity is read alone."""
    return get_entities


def open_engine(
    folder: Path, settings: EncoderSettings, _: "EncoderConfig"
) -> "SpacyTransformersEngine":
    """Load an encoder, with its adapter if it has one; see `Encoder.open`."""
    require("spacy_transformers", "spacy-transformers")
    tokenizer = load_tokenizer(folder, settings.max_length)
    return SpacyTransformersEngine(load_model(folder), tokenizer)


class TokenIdReader:
    """What `TransformerModel` calls as its tokenizer: reads texts of token ids."""

    model_max_length = sys.maxsize  # names were truncated before
    pad_token = PAD
    all_special_tokens = (PAD,)

    def __init__(self, pad: int) -> None:
        self.pad = pad

    def __call__(self, texts: Sequence[str], **_: Any) -> dict[str, Any]:
        from .encoder import pad_token_ids

        token_ids = [tuple(map(int, text.split())) for text in texts]
        ids, mask = pad_token_ids(token_ids, self.pad)
        return {"input_ids": ids, "attention_mask": mask}

    def convert_ids_to_tokens(self, ids: np.ndarray) -> list[str]:
        return [PAD if id == self.pad else str(id) for id in ids.tolist()]


class SpacyTransformersEngine:
    """See `Engine`. Each name is a Doc of one entity, whose words are its token ids.

    So a name has the tokens that it has in all engines. It runs where spaCy runs.
    """

    pads, threads, names = True, 1, sys.maxsize

    def __init__(self, model: Any, tokenizer: NameTokenizer) -> None:
        from spacy.vocab import Vocab
        from spacy_transformers.data_classes import HFObjects
        from spacy_transformers.layers import TransformerModel

        self.tokenizer = tokenizer
        self.positions: int = getattr(model.config, "max_position_embeddings", 0)
        self.vocabulary: int = model.get_input_embeddings().num_embeddings
        self.vocab = Vocab()
        self.model = TransformerModel("", get_entities)
        reader, model = TokenIdReader(tokenizer.pad_id), model.to(choose_device(None))
        self.model.attrs["set_transformer"](
            self.model, HFObjects(reader, model, None, {}, {})
        )

    def states(self, ids: np.ndarray, mask: np.ndarray) -> "Tensor":
        """See `Engine.states`."""
        rows = zip(ids.tolist(), mask.sum(axis=1).tolist(), strict=True)
        batch = self.model.predict([self.make_doc(row[:end]) for row, end in rows])
        states: Tensor = batch.model_output.last_hidden_state.float()
        return states

    def make_doc(self, token_ids: Sequence[int]) -> "Doc":
        from spacy.tokens import Doc, Span

        doc = Doc(self.vocab, words=[str(id) for id in token_ids])
        doc.ents = [Span(doc, 0, len(doc), label="NAME")]
        return doc
