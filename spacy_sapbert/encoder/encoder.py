"""TEMPORARY shim until the encoder branch is merged."""

from dataclasses import dataclass

from .engines.registry import check_engine
from .name_encoder import (  # noqa
    Embeddings,
    TokenIds,
    create_encoder,
    encode_token_ids,
    open_encoder,
    tokenize_names,
)


@dataclass(frozen=True)
class EncoderConfig:
    engine: str = "torch"
    names_per_pass: int = 64
    precision: str = "float32"

    def __post_init__(self):
        check_engine(self.engine, self.precision)


class Encoder:
    def __init__(self, model, config):
        self.model, self.config = model, config
        self.width = model.get_dim("nO")
        self.settings = model.attrs["settings"]

    @classmethod
    def open(cls, source, config=EncoderConfig(), *, settings=None, trusted=True):
        model = create_encoder(config.engine, config.names_per_pass, config.precision)
        open_encoder(model, source, settings=settings, sealed=not trusted)
        return cls(model, config)

    def tokenize(self, names):
        return tokenize_names(self.model, names)

    def encode(self, token_ids):
        return encode_token_ids(self.model, token_ids)

    def embed(self, names):
        return self.encode(self.tokenize(names)[0])
