"""Any encoder → the one that embeds names, as that of a knowledge base does."""

from pathlib import Path
from tempfile import TemporaryDirectory

from spacy_sapbert.encoder.encoder import Encoder, EncoderConfig
from spacy_sapbert.encoder.huggingface import load_encoder, read_settings, save_encoder


def open_encoder(name: str | Path) -> Encoder:
    """Open a folder or a hub id in PyTorch, by a copy as a build makes it."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary) / "encoder"
        folder.mkdir()
        settings = read_settings(Path(name))
        save_encoder(folder, *load_encoder(str(name)), settings)
        return Encoder.open(folder, EncoderConfig("torch"), settings=settings)
