"""The encoder of a knowledge base, which may be of a hostile author.

Such a folder is self-contained: it has only known files, names no other files, and its
numbers are those of its weights. The checks run before transformers reads the folder.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import Errors, SapbertError
from .adapters import has_adapter, read_adapter

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
PICKLED_FILE = "pytorch_model.bin"
PICKLED_INDEX = "pytorch_model.bin.index.json"
ENCODER_FILES = frozenset(
    {
        "README.md",
        "adapter.json",
        "adapter.safetensors",
        "sapbert.json",
        # transformers: configuration, weights, and the files of tokenizers
        CONFIG_FILE,
        "generation_config.json",
        WEIGHTS_FILE,
        INDEX_FILE,
        "added_tokens.json",
        "chat_template.jinja",
        "merges.txt",
        "sentencepiece.bpe.model",
        "special_tokens_map.json",
        "spiece.model",
        "spm.model",
        "tokenizer.json",
        "tokenizer.model",
        "tokenizer_config.json",
        "vocab.json",
        "vocab.txt",
        # OpenVINO; its `.bin` holds plain numbers
        "openvino/encoder.bin",
        "openvino/encoder.xml",
        "openvino/engine.json",
    }
)
SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
PICKLED_SHARD = re.compile(r"pytorch_model-\d{5}-of-\d{5}\.bin")
# Encoders of text whose configuration cannot name other files or hub ids.
MODEL_TYPES = frozenset(
    [
        "albert",
        "bert",
        "camembert",
        "convbert",
        "deberta",
        "deberta-v2",
        "distilbert",
        "electra",
        "ernie",
        "megatron-bert",
        "mobilebert",
        "modernbert",
        "mpnet",
        "nystromformer",
        "rembert",
        "roberta",
        "roberta-prelayernorm",
        "squeezebert",
        "xlm-roberta",
        "xlm-roberta-xl",
    ]
)
# They load other code, other files or packages.
FOREIGN_KEYS = frozenset(
    [
        "auto_map",
        "attn_implementation",
        "_attn_implementation",
        "_attn_implementation_internal",
        "base_model_name_or_path",
        "compression_config",
        "custom_pipelines",
        "gguf_file",
        "quantization_config",
        "transformers_weights",
    ]
)
LAYER_KEYS = ("layer", "group", "networks")  # in keys of numbers of modules
MAX_BYTES = 1 << 24  # of a JSON file
MAX_NUMBER = 1 << 20  # in config.json, unless the weights are larger
MAX_POSITIONS = 1 << 14


def is_encoder_file(name: str) -> bool:
    """Return whether the encoder of a knowledge base may have a file.

    name (str): Relative to the folder of the encoder, with `/`.
    """
    return name in ENCODER_FILES or SHARD.fullmatch(name) is not None


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object of an encoder; empty if there is no such file.

    RAISES (SapbertError): If it is damaged, too large or nested too deeply.
    """
    try:
        if not path.is_file():
            return {}
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES} bytes")
        data = json.loads(path.read_text("utf8"))
        if not isinstance(data, dict):
            raise ValueError("it is no JSON object")
    except (ValueError, OSError, RecursionError) as error:
        raise SapbertError(Errors.E201.format(path=path, reason=error)) from None
    return data


def read_shards(path: Path) -> list[str]:
    """Return the names of files in an index of weights; none if there is no index."""
    shards = read_json(path).get("weight_map", {})
    names = shards.values() if isinstance(shards, dict) else [shards]
    return sorted({str(name) for name in names})


def check_index(folder: Path) -> None:
    """Check that an index of weights names only files beside it.

    The index of pickled weights counts only if there are no others.

    RAISES (SapbertError): If it names another file.
    """
    indexes = {INDEX_FILE: SHARD}
    if not has_safetensors(folder):
        indexes[PICKLED_INDEX] = PICKLED_SHARD
    for index, shard in indexes.items():
        for name in read_shards(folder / index):
            if not shard.fullmatch(name) or not (folder / name).is_file():
                reason = "its `weight_map` names a file that is no part of the encoder"
                raise SapbertError(
                    Errors.E225.format(path=folder / index, reason=reason)
                )


def has_safetensors(folder: Path) -> bool:
    """Return whether a folder has weights in safetensors, which are then read."""
    return any((folder / name).is_file() for name in (WEIGHTS_FILE, INDEX_FILE))


def list_pickled(folder: Path) -> list[Path]:
    """Return the files of pickled weights; none if there are weights in safetensors."""
    if has_safetensors(folder):
        return []
    if (folder / PICKLED_FILE).is_file():
        return [folder / PICKLED_FILE]
    return [folder / name for name in read_shards(folder / PICKLED_INDEX)]


def check_sealed_folder(folder: Path) -> None:
    """Check that an encoder is self-contained; see the head of this module.

    folder (Path): The folder of the encoder.
    RAISES (SapbertError): If it is not.
    """

    def refuse(path: Path, reason: str) -> SapbertError:
        return SapbertError(Errors.E225.format(path=path, reason=reason))

    try:
        present = sorted(folder.iterdir())
    except OSError as error:
        raise refuse(folder, f"it cannot be read ({error.strerror})") from None
    for path in present:
        if path.is_symlink() or path.is_file() and not is_encoder_file(path.name):
            raise refuse(path, "it is no file of an encoder")
    if has_adapter(folder) and read_adapter(folder)[1] is not None:
        raise refuse(folder / "adapter.json", "its `base` is not null")
    check_index(folder)
    path = folder / CONFIG_FILE
    config = read_json(path)
    if str(config.get("model_type")) not in MODEL_TYPES:
        raise refuse(path, f"its `model_type` is none of {sorted(MODEL_TYPES)}")
    for key in sorted(FOREIGN_KEYS & config.keys()):
        if config[key] is not None:
            raise refuse(path, f"it has `{key}`, which may load something else")


def check_numbers(folder: Path, shapes: dict[str, tuple[int, ...]]) -> None:
    """Compare the numbers of config.json with the weights, before they are used.

    folder (Path): The folder of the encoder.
    shapes (dict[str, tuple[int, ...]]): Shape of each weight in the files.
    RAISES (SapbertError): If a number would take far more memory or time.
    """
    path = folder / CONFIG_FILE
    largest = max((n for shape in shapes.values() for n in shape), default=0)
    for key, number in iter_numbers(read_json(path)):
        limit = max(MAX_NUMBER, largest)
        if any(word in key for word in LAYER_KEYS):
            limit = len(shapes)
        elif "position" in key:
            limit = MAX_POSITIONS
        if abs(number) > limit:
            reason = f"`{key}` is {number}, and its weights allow {limit}"
            raise SapbertError(Errors.E225.format(path=path, reason=reason))


def iter_numbers(data: Any, key: str = "") -> Iterator[tuple[str, int]]:
    """Yield the integers in parsed JSON, with the key that they are under."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield from iter_numbers(value, str(name))
    elif isinstance(data, list):
        for value in data:
            yield from iter_numbers(value, key)
    elif isinstance(data, int):
        yield key, data
