"""Encoder folders of Hugging Face, and the settings to run them."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from warnings import warn

from ..errors import SapbertError, check_choice
from ..io.forks import ProcessLock
from ..io.plugins import require, require_torch
from ..io.writing import FolderKind
from .adapters import PREFIX as ADAPTER_PREFIX
from .adapters import WEIGHTS_FILE as ADAPTER_WEIGHTS
from .adapters import attach_adapter, has_adapter, save_adapter
from .hub import NAME_FOLDER, fetch_encoder
from .pooling import POOLINGS
from .safety import (
    CONFIG_FILE,
    check_encoder_folder,
    check_weights,
    is_encoder_file,
    list_pickled,
    read_json,
)

LOADING = ProcessLock()
LONGEST = 1 << 16  # of `max_length`; encoders have fewer positions
TOKENIZER = "tokenizer.json"
# The files of tokenizers, of which one is enough
VOCABULARIES = (
    *(TOKENIZER, "vocab.txt", "vocab.json", "sentencepiece.bpe.model"),
    *("spiece.model", "spm.model", "tokenizer.model"),
)
PIECE_LIBRARIES = ("sentencepiece", "google.protobuf")  # that read such a file
SETTINGS_FILE = "sapbert.json"
MODULES_FILE = "modules.json"  # of sentence-transformers
MEAN_PADDED = "-mean-token"  # how the name of a released SapBERT ends
# Files of a trained encoder that a knowledge base does not have
BESIDE = (
    *("training.cfg", "training.jsonl", MODULES_FILE),
    *("sentence_bert_config.json", "1_Pooling/config.json"),
)
# An encoder that was downloaded, or that something else wrote, has no such settings.
ENCODER_FOLDER = FolderKind(
    "an encoder that this project wrote",
    SETTINGS_FILE,
    lambda name: is_encoder_file(name) or name in BESIDE,
)
MODULE_FOLDER = re.compile(r"\w*")
MODULES = frozenset(["Transformer", "Pooling", "Normalize"])


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """How an encoder turns a name into a vector, besides its weights.

    Attributes:
        pooling: "cls" or "mean".
        max_length: Maximum of tokens in a name, special tokens included.
        lowercase: Whether names are lower-cased before tokenisation.
    """

    pooling: str = "cls"
    max_length: int = 25
    lowercase: bool = True


def read_settings(folder: Path) -> EncoderSettings:
    """Read the settings of an encoder, with defaults; see `read_own_settings`."""
    return EncoderSettings(**read_own_settings(folder))


def read_own_settings(folder: Path) -> dict[str, Any]:
    """Read which settings an encoder (a folder or a hub id) has, without defaults.

    One of sentence-transformers has a pooling.
    """
    name = folder.as_posix()
    if not folder.is_dir():
        check_encoder_name(name)
        folder = fetch_encoder(name)
    path = folder / SETTINGS_FILE
    if path.is_file():
        try:
            return asdict(check_settings(json.loads(path.read_text("utf8"))))
        except (ValueError, OSError, RecursionError) as error:
            raise SapbertError(
                "E203", f"{path}: Expected the settings of an encoder, but: {error}"
            ) from None
    pooling = read_modules_pooling(folder)
    if pooling is None and any(part.endswith(MEAN_PADDED) for part in Path(name).parts):
        raise SapbertError(
            "E203",
            f"Expected an encoder whose pooling is known, but {name} averages the "
            "tokens of a name and its padding, which is not supported. Use the "
            "encoder that is trained with `[CLS]`, without `-mean-token` at the end; "
            f"or write `{SETTINGS_FILE}` into its folder, with `pooling`, "
            "`max_length` and `lowercase`, to pool it otherwise.",
        )
    return {} if pooling is None else {"pooling": pooling}


def check_settings(data: Any) -> EncoderSettings:
    """Return the settings in parsed JSON, which must have all of them."""
    expected = asdict(EncoderSettings())
    if (
        not isinstance(data, dict)
        or {name: type(value) for name, value in data.items()}
        != {name: type(value) for name, value in expected.items()}
        or not 3 <= data["max_length"] <= LONGEST
    ):
        raise SapbertError(
            "E203",
            f"Expected settings like {expected}, but got something else. Train or "
            "copy the encoder again.",
        )
    check_choice("pooling", sorted(POOLINGS), data["pooling"])
    return EncoderSettings(**data)


def write_settings(folder: Path, settings: EncoderSettings) -> None:
    text = json.dumps(asdict(settings), indent=2)
    (folder / SETTINGS_FILE).write_text(text + "\n", "utf8")


def read_modules(folder: Path) -> dict[str, Path]:
    """Read the folders of the parts of an encoder of sentence-transformers, by kind."""
    path = folder / MODULES_FILE
    if not path.is_file():
        return {}
    try:
        modules = {
            str(module["type"]).rpartition(".")[2]: str(module["path"])
            for module in json.loads(path.read_text("utf8"))
        }
    except (ValueError, OSError, RecursionError, TypeError, KeyError):
        modules = {}
    inside = all(MODULE_FOLDER.fullmatch(name) for name in modules.values())
    if "Transformer" not in modules or not inside:
        reason = "it names no `Transformer`, or a folder that is not beside it"
        raise wrong_sentence_transformer(path=path, reason=reason)
    return {kind: folder / name for kind, name in modules.items()}


def read_modules_pooling(folder: Path) -> str | None:
    """Return the pooling of an encoder of sentence-transformers; None = no such."""
    modules = read_modules(folder)
    if others := sorted(modules.keys() - MODULES):
        reason = f"it has a part {others[0]!r}"
        path = folder / MODULES_FILE
        raise wrong_sentence_transformer(path=path, reason=reason)
    if "Pooling" not in modules:
        return None
    path = modules["Pooling"] / CONFIG_FILE
    config = read_json(path)
    modes = config.get("pooling_mode")  # a name or a list since version 5
    if modes is None:
        flags = [key for key, value in config.items() if value is True]
        modes = [key for key in flags if key.startswith("pooling_mode_")]
    mode = modes[0] if isinstance(modes, list) and len(modes) == 1 else modes
    names = {name: name for name in POOLINGS}
    names |= {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}
    if not isinstance(mode, str) or mode not in names:
        reason = f"its pooling is {modes}"
        raise wrong_sentence_transformer(path=path, reason=reason)
    return names[mode]


def find_transformer(folder: Path) -> Path:
    """Return the folder with weights and tokenizer: itself, or one in it."""
    return read_modules(folder).get("Transformer", folder)


def check_encoder_name(name: str) -> None:
    """Check a folder or hub id, so that no misspelt folder is looked up on the hub."""
    path = Path(name)
    if path.is_dir():
        check_encoder_folder(find_transformer(path))
        return
    in_folder = path.parent != Path() and path.parent.is_dir()
    if path.is_absolute() or name.startswith(".") or path.exists() or in_folder:
        raise SapbertError(
            "E634",
            f"Expected an encoder folder at {path}, but found none. Check the path, "
            f"name a hub id, or {NAME_FOLDER}",
        )


def locate_encoder(name: str) -> Path:
    """Return the folder with weights and tokenizer of a folder or hub id."""
    check_encoder_name(name)
    if Path(name).is_dir():
        return find_transformer(Path(name))
    folder = find_transformer(fetch_encoder(name))
    check_encoder_folder(folder)
    return folder


def load_encoder(name: str) -> tuple[Any, Any]:
    """Load a tokenizer of transformers and an encoder without running code of theirs.

    The encoder is a folder as `save_encoder` or `save_pretrained` writes it or as it is
    on the hub, or a hub id.
    """
    require_torch()
    from transformers import AutoTokenizer

    folder = locate_encoder(name)
    # Without any of them, transformers 5 makes a tokenizer that knows no word.
    if not any((folder / name).is_file() for name in VOCABULARIES):
        raise encoder_not_loaded(name=name, reason=f"{folder} has no tokenizer.")
    # transformers does not name the libraries that it needs without `tokenizer.json`.
    if not (folder / TOKENIZER).is_file() and any(folder.glob("*.model")):
        for library in PIECE_LIBRARIES:
            require(library, "sentencepiece protobuf")
    with name_damage(name):
        tokenizer = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
        if (folder / TOKENIZER).is_file():
            keep_steps(tokenizer, folder / TOKENIZER)
    return tokenizer, load_model(folder)


def keep_steps(tokenizer: Any, path: Path) -> None:
    """Set the steps of a tokenizer to those of its file, if transformers replaced them.

    Version 5 makes a tokenizer of a class with the vocabulary of the file, but with the
    usual steps of the class. Settings of `BertNormalizer` are in tokenizer_config.json
    too.
    """
    from tokenizers import Tokenizer
    from tokenizers.normalizers import Sequence

    saved, used = Tokenizer.from_file(str(path)), tokenizer.backend_tokenizer
    for step in ("normalizer", "pre_tokenizer"):
        own = getattr(saved, step)
        if type(own) is not type(getattr(used, step)) or isinstance(own, Sequence):
            setattr(used, step, own)


def load_model(folder: Path) -> Any:
    """Load an encoder of a folder that was checked.

    It is in float32 and evaluation mode; of one with an adapter, the adapter trains.
    Of pickled weights, transformers makes tensors and nothing else (`weights_only`).
    """
    from transformers import AutoModel

    pickled = list_pickled(folder)
    if pickled:  # one warning, even if there are shards
        warn(
            "[W600] Expected weights in safetensors, but got the pickled weights "
            f"{pickled[0]}. They are read as weights alone, without running code; "
            "what is written is safetensors.",
            stacklevel=2,
        )
    # transformers changes torch for all threads while it creates a model.
    with LOADING, quiet_transformers(), name_damage(pickled[0] if pickled else folder):
        model, info = AutoModel.from_pretrained(
            folder,
            trust_remote_code=False,
            use_safetensors=not pickled,
            local_files_only=True,
            output_loading_info=True,
        )
    missing = info["missing_keys"]
    for key, weights in model.named_parameters():
        # transformers makes random ones, and equal encoders would have other files.
        if key in missing:
            weights.detach().zero_()
    if has_adapter(folder):
        attach_adapter(model, folder)
    model = model.float().eval()
    check_weights(model, missing, folder)
    return model


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Show errors of transformers only, and no bars."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def name_damage(name: str | Path) -> Iterator[None]:
    """Raise a named error if a library cannot load the encoder `name` within."""
    try:
        yield
    except SapbertError:
        raise
    except Exception as error:  # they raise almost any for a damaged file
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise encoder_not_loaded(name=name, reason=reason) from error


def save_encoder(
    folder: Path, tokenizer: Any, model: Any, settings: EncoderSettings
) -> None:
    """Write an encoder so that plain AutoModel and AutoTokenizer load it.

    An adapter is written beside the weights, and plain AutoModel does not apply it.
    """
    # An earlier adapter would be loaded with this encoder.
    (folder / ADAPTER_WEIGHTS).unlink(missing_ok=True)
    if tokenizer.is_fast:
        # Left by its last call, they would make other files of the same tokenizer.
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
    tokenizer.save_pretrained(folder)
    weights = {
        key: value
        for key, value in model.state_dict().items()
        if not key.startswith(ADAPTER_PREFIX)
    }
    with quiet_transformers():
        model.save_pretrained(folder, state_dict=weights, safe_serialization=True)
    if hasattr(model, "sapbert_adapter"):
        save_adapter(folder, model)
    write_settings(folder, settings)


def encoder_not_loaded(*, name: object, reason: object) -> SapbertError:
    return SapbertError(
        "E203",
        f"Expected an encoder under {name}, but it could not be loaded: {reason} "
        "Name a folder that `save_pretrained` wrote, or a hub id with the network on.",
    )


def wrong_sentence_transformer(*, path: object, reason: object) -> SapbertError:
    return SapbertError(
        "E203",
        f"{path}: Expected an encoder of sentence-transformers with the parts "
        f"`Transformer`, `Pooling` (cls or mean) and `Normalize`, but {reason}. "
        "Choose another encoder; or write `sapbert.json` into its folder, with "
        "`pooling`, `max_length` and `lowercase`, to run the `Transformer` alone.",
    )
