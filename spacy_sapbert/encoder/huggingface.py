"""Encoder folders of Hugging Face, and the settings to run them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import Errors, SapbertError
from ..system.forks import ProcessLock
from ..system.writing import FolderKind
from .adapters import SETTINGS_FILE as ADAPTER_FILE
from .adapters import WEIGHTS_FILE as ADAPTER_WEIGHTS
from .adapters import (
    attach_adapter,
    has_adapter,
    own_weights,
    read_adapter,
    save_adapter,
)
from .hub import find_hub_problem
from .pooling import POOLINGS
from .sealed import (
    CONFIG_FILE,
    check_index,
    check_sealed_folder,
    is_encoder_file,
    read_json,
)

LOADING = ProcessLock()
SETTINGS_FILE = "sapbert.json"
# An encoder that was downloaded, or that something else wrote, has no such settings.
ENCODER_FOLDER = FolderKind(
    "an encoder that this project wrote",
    SETTINGS_FILE,
    lambda name: is_encoder_file(name) or name in ("training.cfg", "training.jsonl"),
)
TOKENIZER_FILE = "tokenizer_config.json"


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """How an encoder turns a name into a vector, besides its weights.

    pooling (str): "cls" or "mean".
    max_length (int): Maximum of tokens in a name, special tokens included.
    lowercase (bool): Whether names are lower-cased before tokenisation.
    """

    pooling: str = "cls"
    max_length: int = 25
    lowercase: bool = True


def read_settings(folder: Path) -> EncoderSettings:
    """Read the settings of an encoder; the defaults if it has none.

    folder (Path): The encoder folder, or a hub id, which has no settings. A folder
        with only an adapter has the settings of its base.
    RAISES (SapbertError): If the file is not valid.
    """
    path = folder / SETTINGS_FILE
    if not path.is_file():
        path = Path(find_base(str(folder))) / SETTINGS_FILE
    if not path.is_file():
        return EncoderSettings()
    try:
        return check_settings(json.loads(path.read_text("utf8")))
    except (ValueError, OSError, RecursionError) as error:
        raise SapbertError(Errors.E201.format(path=path, reason=error)) from None


def check_settings(data: Any) -> EncoderSettings:
    """Return the settings in parsed JSON.

    RAISES (SapbertError): If a setting is missing, unknown or of another type.
    """
    expected = asdict(EncoderSettings())
    if (
        not isinstance(data, dict)
        or data.keys() != expected.keys()
        or any(type(data[key]) is not type(value) for key, value in expected.items())
        or data["max_length"] < 3
    ):
        raise SapbertError(Errors.E202.format(expected=expected))
    if data["pooling"] not in POOLINGS:
        known = " or ".join(sorted(POOLINGS))
        raise SapbertError(Errors.E635.format(known=known, pooling=data["pooling"]))
    return EncoderSettings(**data)


def write_settings(folder: Path, settings: EncoderSettings) -> None:
    """Write the settings into an encoder folder."""
    text = json.dumps(asdict(settings), indent=2)
    (folder / SETTINGS_FILE).write_text(text + "\n", "utf8")


def has_weights(folder: Path) -> bool:
    """Return whether a folder has safetensors weights other than an adapter's."""
    return any(path.name != ADAPTER_WEIGHTS for path in folder.glob("*.safetensors"))


def check_encoder_folder(folder: Path, *, sealed: bool = False) -> None:
    """Check that loading an encoder folder runs no code.

    folder (Path): The encoder folder; it may have only an adapter.
    sealed (bool): Check also that it is self-contained, as in a knowledge base.
    RAISES (SapbertError): If it has no `.safetensors` file, its configuration names
        code, its weights are outside, or its adapter is incomplete.
    """
    if has_adapter(folder):
        read_adapter(folder)
        path = folder / ADAPTER_WEIGHTS
        if not path.is_file():
            raise SapbertError(Errors.E211.format(path=path, reason="it is missing."))
    elif not has_weights(folder):
        raise SapbertError(Errors.E206.format(path=folder))
    check_index(folder)
    for name in (CONFIG_FILE, TOKENIZER_FILE):
        if "auto_map" in read_json(folder / name):
            raise SapbertError(Errors.E207.format(path=folder / name))
    if sealed:
        check_sealed_folder(folder)


def check_encoder_name(name: str) -> None:
    """Check a folder or hub id, so that a misspelt folder is not looked up on the hub.

    RAISES (SapbertError): If the name is a path without an encoder folder.
    """
    path = Path(name)
    if path.is_dir():
        check_encoder_folder(path)
    elif (
        path.is_absolute()
        or name.startswith(".")
        or path.exists()
        or path.parent != Path()
        and path.parent.is_dir()
    ):
        raise SapbertError(Errors.E208.format(path=path))


def find_base(name: str) -> str:
    """Return the folder or hub id that has the weights of an encoder.

    name (str): A folder or a hub id.
    RETURNS (str): The same name; for a folder with only an adapter, its base.
    RAISES (SapbertError): If the base is missing or has an adapter itself.
    """
    folder = Path(name)
    if not has_adapter(folder) or has_weights(folder):
        return name
    path = folder / ADAPTER_FILE
    _, base = read_adapter(folder)
    if base is None:
        reason = "it names none, and the folder has no other weights."
        raise SapbertError(Errors.E212.format(path=path, reason=reason))
    try:
        check_encoder_name(base)
    except SapbertError as error:
        raise SapbertError(Errors.E212.format(path=path, reason=error)) from None
    if has_adapter(Path(base)):
        reason = f"{base} has an adapter itself."
        raise SapbertError(Errors.E212.format(path=path, reason=reason))
    return base


def find_tokenizer(name: str) -> str:
    """Return the folder or hub id that has the tokenizer; see `find_base`."""
    return name if (Path(name) / TOKENIZER_FILE).is_file() else find_base(name)


def load_encoder(name: str) -> tuple[Any, Any]:
    """Load tokenizer and encoder without running code of theirs.

    name (str): A folder that `save_encoder` or `save_pretrained` wrote, or a hub id.
    RETURNS (tuple[PreTrainedTokenizerBase, PreTrainedModel]): The tokenizer, and the
        encoder as `load_model` returns it.
    RAISES (SapbertError): If there is no such encoder, its weights are damaged or not
        complete, or its adapter does not fit.
    """
    from transformers import AutoTokenizer

    check_encoder_name(name)
    source = find_tokenizer(name)
    problem = find_hub_problem(source)
    with name_damage(name, problem):
        tokenizer = AutoTokenizer.from_pretrained(
            source, trust_remote_code=False, local_files_only=problem is not None
        )
    return tokenizer, load_model(name)


def load_model(name: str, *, sealed: bool = False) -> Any:
    """Load an encoder without its tokenizer.

    name (str): A folder that `save_encoder` or `save_pretrained` wrote, or a hub id.
    sealed (bool): Nothing outside the folder is opened, and its author is not trusted;
        for the encoder of a knowledge base.
    RETURNS (PreTrainedModel): The encoder, on the CPU, in float32 and evaluation mode.
        With an adapter, only the adapter is trainable.
    RAISES (SapbertError): See `load_encoder`.
    """
    from transformers import AutoModel

    from .weights import check_missing, check_shapes, check_weights

    folder = Path(name)
    if sealed:
        check_encoder_folder(folder, sealed=True)
    else:
        check_encoder_name(name)
    base = name if sealed else find_base(name)
    problem = None if sealed else find_hub_problem(base)
    # transformers changes torch for all threads while it creates a model.
    with LOADING, name_damage(name, problem):
        if sealed:
            check_shapes(folder)
        model, found = AutoModel.from_pretrained(
            base,
            trust_remote_code=False,
            use_safetensors=True,
            local_files_only=sealed or problem is not None,
            output_loading_info=True,
        )
    check_missing(found["missing_keys"], base)
    for key, weights in model.named_parameters():
        # transformers makes random ones, and equal encoders would have other files.
        if key in found["missing_keys"]:
            weights.detach().zero_()
    if has_adapter(folder):
        attach_adapter(model, folder)
    model = model.float().eval()
    check_weights(model, name)
    return model


@contextmanager
def name_damage(name: str, hub_problem: str | None = None) -> Iterator[None]:
    """Raise a named error if a library cannot load an encoder within.

    name (str): The folder or hub id.
    hub_problem (str | None): Why only the cache of the hub can be read.
    """
    try:
        yield
    except SapbertError:
        raise
    except Exception as error:  # they raise almost any for a damaged file
        if hub_problem:
            values = {"name": name, "reason": hub_problem}
            raise SapbertError(Errors.E634.format(**values)) from error
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise SapbertError(Errors.E203.format(name=name, reason=reason)) from error


def save_encoder(
    folder: Path,
    tokenizer: Any,
    model: Any,
    settings: EncoderSettings,
    *,
    adapter_base: str | None = None,
) -> None:
    """Write an encoder so that plain AutoModel and AutoTokenizer load it.

    An adapter is written beside the weights of the encoder. `load_encoder` and the
    linker apply it; plain AutoModel loads the base without it.

    folder (Path): An existing folder.
    tokenizer (PreTrainedTokenizerBase): The tokenizer.
    model (PreTrainedModel): The encoder, with or without an adapter.
    settings (EncoderSettings): How to run it.
    adapter_base (str | None): Folder or hub id of the encoder's own weights, which
        are then not written; None = the folder holds everything. The folder must have
        no weights yet.
    """
    # Files of an earlier adapter would be loaded with this encoder.
    for name in (ADAPTER_FILE, ADAPTER_WEIGHTS):
        (folder / name).unlink(missing_ok=True)
    if tokenizer.is_fast:
        # Left by its last call, they would make other files of the same tokenizer.
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
    tokenizer.save_pretrained(folder)
    if adapter_base is None:
        model.save_pretrained(
            folder, state_dict=own_weights(model), safe_serialization=True
        )
    if adapter_base is not None or hasattr(model, "sapbert_adapter"):
        save_adapter(folder, model, base=adapter_base)
    write_settings(folder, settings)
