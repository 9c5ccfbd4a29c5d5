"""Which files, settings and weights an encoder may have: none that run code.

The encoder of a knowledge base is self-contained: it has known files alone, no pickle
among them, and its configuration names no other files. The checks run before
transformers reads it.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from ..errors import SapbertError

CONFIG_FILE = "config.json"
TOKENIZER_FILE = "tokenizer_config.json"
WEIGHTS_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
PICKLED_FILE = "pytorch_model.bin"
PICKLED_INDEX = "pytorch_model.bin.index.json"
SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
PICKLED_SHARD = re.compile(r"pytorch_model-\d{5}-of-\d{5}\.bin")
# Of this package, transformers (configuration, weights, tokenizers) and ONNX Runtime.
FILES = (
    "README.md adapter.safetensors sapbert.json "
    "config.json generation_config.json model.safetensors model.safetensors.index.json "
    "added_tokens.json chat_template.jinja merges.txt sentencepiece.bpe.model "
    "special_tokens_map.json spiece.model spm.model tokenizer.json tokenizer.model "
    "tokenizer_config.json vocab.json vocab.txt "
    "onnx/encoder.onnx onnx/encoder.onnx.data"
)
ENCODER_FILES = frozenset(FILES.split())
# Encoders of text whose configuration cannot name other files or hub ids.
TYPES = (
    "albert bert camembert convbert deberta deberta-v2 distilbert electra ernie "
    "megatron-bert mobilebert modernbert mpnet nystromformer rembert roberta "
    "roberta-prelayernorm squeezebert xlm-roberta xlm-roberta-xl"
)
MODEL_TYPES = frozenset(TYPES.split())
# They load other code, other files or packages.
KEYS = (
    "auto_map attn_implementation _attn_implementation _attn_implementation_internal "
    "base_model_name_or_path compression_config custom_pipelines gguf_file "
    "quantization_config transformers_weights"
)
FOREIGN_KEYS = frozenset(KEYS.split())
NOT_FINITE, ALL_ZERO = "not finite", "all zero"


def is_encoder_file(name: str) -> bool:
    """Return whether the encoder of a knowledge base may have a file, by its path."""
    return name in ENCODER_FILES or SHARD.fullmatch(name) is not None


def read_json(path: Path) -> dict[str, Any]:
    """Return a JSON object of an encoder; empty if there is no such file."""
    try:
        data = json.loads(path.read_text("utf8")) if path.is_file() else {}
        if not isinstance(data, dict):
            raise ValueError("it is not a JSON object")
    except (ValueError, OSError, RecursionError) as error:
        raise SapbertError(
            "E203", f"{path}: Expected the settings of an encoder, but: {error}"
        ) from None
    return data


def read_shards(path: Path) -> list[str]:
    """Return the names of files in an index of weights; none if there is no index."""
    shards = read_json(path).get("weight_map", {})
    names = shards.values() if isinstance(shards, dict) else [shards]
    return sorted({str(name) for name in names})


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


def check_encoder_folder(folder: Path) -> None:
    """Check that an encoder is complete, and runs no code."""
    if not has_safetensors(folder) and not list_pickled(folder):
        raise no_weights(path=folder)
    index, shard = INDEX_FILE, SHARD
    if not has_safetensors(folder):
        index, shard = PICKLED_INDEX, PICKLED_SHARD
    for name in read_shards(folder / index):
        if not shard.fullmatch(name) or not (folder / name).is_file():
            reason = "its `weight_map` names a file that is not part of the encoder"
            refuse(folder / index, reason)
    for name in (CONFIG_FILE, TOKENIZER_FILE):
        if "auto_map" in read_json(folder / name):
            raise SapbertError(
                "E225",
                f"{folder / name}: Expected an encoder that needs no code of its "
                "own, but it has an `auto_map`. Foreign code is not run; choose "
                "another encoder.",
            )


def check_contained(folder: Path) -> None:
    """Check that an encoder runs no code and needs nothing outside of its folder."""
    check_encoder_folder(folder)
    for path in sorted(folder.iterdir()):
        if path.is_file() and not is_encoder_file(path.name):
            refuse(path, "it is not a file of an encoder")
    path = folder / CONFIG_FILE
    config = read_json(path)
    if str(config.get("model_type")) not in MODEL_TYPES:
        refuse(path, f"its `model_type` is none of {sorted(MODEL_TYPES)}")
    for key in sorted(FOREIGN_KEYS & config.keys()):
        if config[key] is not None:
            refuse(path, f"it has `{key}`, which may load something else")


def refuse(path: Path, reason: str) -> NoReturn:
    """Raise the error of an encoder that needs something outside of its folder."""
    raise SapbertError(
        "E225",
        f"{path}: Expected an encoder that needs nothing outside of its folder, but "
        f"{reason}. Save the encoder again with `save_pretrained`, or choose another "
        "one.",
    )


def is_needed(name: str) -> bool:
    """Return whether a weight is used: not the pooler, nor old numbers of positions."""
    # transformers 4.40 names it with a prefix, as in `bert.pooler.dense.bias`
    return "pooler" not in name.split(".")[:2] and not name.endswith("position_ids")


def check_weights(model: Any, missing: Iterable[str], name: str | Path) -> None:
    """Check that weights are trained, and that only the pooler's are `missing`."""
    if needed := sorted(filter(is_needed, missing)):
        raise SapbertError(
            "E203",
            f"Expected all weights of the encoder {name}, but {len(needed)} are "
            f"missing, e.g. {needed[0]}. Save the encoder again with "
            "`save_pretrained`; if its weights have a prefix such as `module.`, "
            "remove it.",
        )
    if bad := find_bad_weight(model):
        raise SapbertError(
            "E203",
            f"Expected trained weights in the encoder {name}, but {bad[0]} is "
            f"{bad[1]}. Train or copy the encoder again.",
        )


def find_bad_weight(model: Any) -> tuple[str, str] | None:
    """Return the first weight that is not finite, or a matrix of zeros, and why."""
    for name, weights in model.state_dict().items():
        if not weights.is_floating_point() or not weights.numel():
            continue
        low, high = (float(value) for value in weights.aminmax())
        if not abs(low) + abs(high) < float("inf"):  # also if it is NaN
            return name, NOT_FINITE
        # Zeros are usual for a bias, and for the only row of a matrix.
        is_matrix = weights.ndim > 1 and min(weights.shape) > 1
        if low == high == 0 and is_matrix and is_needed(name):
            return name, ALL_ZERO
    return None


def no_weights(*, path: object) -> SapbertError:
    return SapbertError(
        "E203",
        f"Expected weights in {path}, in safetensors or in `pytorch_model.bin`, but "
        "found none. Copy the encoder again, or save it with `save_pretrained`.",
    )
