"""The files by which sentence-transformers makes the same vectors of an encoder."""

from pathlib import Path

from spacy_sapbert.encoder.huggingface import MODULES_FILE, EncoderSettings
from spacy_sapbert.io.writing import write_json

POOLING = "1_Pooling"
KINDS = {"": "Transformer", POOLING: "Pooling", "2_Normalize": "Normalize"}  # by folder


def write_modules(folder: Path, settings: EncoderSettings, width: int) -> None:
    """Write how names become unit vectors, beside the weights of an encoder.

    Args:
        width: Of its vectors.
    """
    modules = [
        {
            "idx": number,
            "name": str(number),
            "path": path,
            "type": f"sentence_transformers.models.{kind}",
        }
        for number, (path, kind) in enumerate(KINDS.items())
    ]
    write_json(folder / MODULES_FILE, modules)
    limits = {
        "max_seq_length": settings.max_length,
        "do_lower_case": settings.lowercase,
    }
    write_json(folder / "sentence_bert_config.json", limits)
    (folder / POOLING).mkdir()
    pooling = {
        "word_embedding_dimension": width,
        "pooling_mode_cls_token": settings.pooling == "cls",
        "pooling_mode_mean_tokens": settings.pooling == "mean",
    }
    write_json(folder / POOLING / "config.json", pooling)
