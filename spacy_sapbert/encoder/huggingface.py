"""Encoder folders as Hugging Face reads and writes them, plus how to run them."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import Errors, SapbertError
from .adapters import SETTINGS_FILE as ADAPTER_FILE
from .adapters import WEIGHTS_FILE as ADAPTER_WEIGHTS
from .adapters import (
    attach_adapter,
    has_adapter,
    own_weights,
    read_adapter,
    save_adapter,
)
from .pooling import POOLINGS

SETTINGS_FILE = "sapbert.json"
TOKENIZER_FILE = "tokenizer_config.json"


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """How an encoder turns a name into a vector, besides its weights.

    pooling (str): "cls" or "mean".
    max_length (int): Wordpieces of a name at the most, special ones included.
    lowercase (bool): Whether names are lower-cased before they are tokenised.
    """

    pooling: str = "cls"
    max_length: int = 25
    lowercase: bool = True


def read_settings(folder: Path) -> EncoderSettings:
    """Read how an encoder was trained to be run, or take the method's defaults.

    folder (Path): The encoder folder; hub ids have no such file. A folder with nothing
        but an adapter is run as its base, unless it says otherwise.
    RETURNS (EncoderSettings): The settings.
    RAISES (SapbertError): If the file says something else than these settings.
    """
    path = folder / SETTINGS_FILE
    if not path.is_file():
        path = Path(find_base(str(folder))) / SETTINGS_FILE
    if not path.is_file():
        return EncoderSettings()
    try:
        return check_settings(json.loads(path.read_text("utf8")))
    except (ValueError, OSError) as error:
        raise SapbertError(Errors.E201.format(path=path, reason=error)) from None


def check_settings(data: Any) -> EncoderSettings:
    """Make settings of what a JSON file says.

    data (Any): The parsed file.
    RETURNS (EncoderSettings): The settings.
    RAISES (SapbertError): If a setting is missing, unknown or of another type.
    """
    expected = asdict(EncoderSettings())
    if (
        not isinstance(data, dict)
        or data.keys() != expected.keys()
        or any(type(data[key]) is not type(value) for key, value in expected.items())
        or data["pooling"] not in POOLINGS
        or data["max_length"] < 3
    ):
        raise SapbertError(
            Errors.E202.format(expected=expected, poolings=sorted(POOLINGS))
        )
    return EncoderSettings(**data)


def write_settings(folder: Path, settings: EncoderSettings) -> None:
    """Write down beside an encoder how it is run; see `read_settings`.

    folder (Path): The encoder folder.
    settings (EncoderSettings): The settings.
    """
    text = json.dumps(asdict(settings), indent=2)
    (folder / SETTINGS_FILE).write_text(text + "\n", "utf8")


def has_weights(folder: Path) -> bool:
    """Return whether a folder has an encoder's own weights, besides an adapter's.

    folder (Path): The folder.
    RETURNS (bool): Whether there are any in safetensors.
    """
    return any(path.name != ADAPTER_WEIGHTS for path in folder.glob("*.safetensors"))


def check_encoder_folder(folder: Path) -> None:
    """Check that loading an encoder folder runs no code of its own.

    folder (Path): The encoder folder; one with nothing but an adapter will do.
    RAISES (SapbertError): If it has no `.safetensors` file, or its configuration asks
        for code, or its adapter is not whole.
    """
    if has_adapter(folder):
        read_adapter(folder)
        path = folder / ADAPTER_WEIGHTS
        if not path.is_file():
            raise SapbertError(Errors.E211.format(path=path, reason="it is missing."))
    elif not has_weights(folder):
        raise SapbertError(Errors.E206.format(path=folder))
    for name in ("config.json", TOKENIZER_FILE):
        path = folder / name
        try:
            text = path.read_text("utf8") if path.is_file() else "{}"
            asks_for_code = "auto_map" in json.loads(text)
        except (ValueError, OSError, TypeError) as error:
            raise SapbertError(Errors.E201.format(path=path, reason=error)) from None
        if asks_for_code:
            raise SapbertError(Errors.E207.format(path=path))


def check_encoder_name(name: str) -> None:
    """Tell a folder from a hub id, so that a misspelt folder asks no network.

    name (str): A folder or a hub id.
    RAISES (SapbertError): If it is a path at which there is no encoder folder.
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
    """Find where an encoder's own weights are: with it, or with its adapter's base.

    name (str): A folder or a hub id.
    RETURNS (str): The same, or the base that a folder with nothing but an adapter
        names.
    RAISES (SapbertError): If that base is not there or has an adapter itself.
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
    """Find where an encoder's tokenizer is: with it, or with its adapter's base.

    name (str): A folder or a hub id.
    RETURNS (str): The same or the base.
    RAISES (SapbertError): See `find_base`.
    """
    return name if (Path(name) / TOKENIZER_FILE).is_file() else find_base(name)


def load_encoder(name: str) -> tuple[Any, Any]:
    """Load tokenizer and encoder of a folder or a hub id, without running its code.

    name (str): A folder that `save_encoder` or `save_pretrained` wrote, or a hub id.
    RETURNS (tuple[PreTrainedTokenizerBase, PreTrainedModel]): Both, on the CPU, in
        float32; the encoder without a pooler's dropout, in evaluation mode. If it has
        an adapter, all but the adapter is frozen.
    RAISES (SapbertError): If there is no such encoder, or its adapter does not fit.
    """
    from transformers import AutoModel, AutoTokenizer

    check_encoder_name(name)
    base, tokens = find_base(name), find_tokenizer(name)
    try:
        tokenizer = AutoTokenizer.from_pretrained(tokens, trust_remote_code=False)
        model = AutoModel.from_pretrained(base, trust_remote_code=False).float()
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().splitlines()[0]
        raise SapbertError(Errors.E203.format(name=name, reason=reason)) from error
    if has_adapter(Path(name)):
        attach_adapter(model, Path(name))
    return tokenizer, model.eval()


def save_encoder(
    folder: Path,
    tokenizer: Any,
    model: Any,
    settings: EncoderSettings,
    *,
    adapter_base: str | None = None,
) -> None:
    """Write an encoder so that plain AutoModel and AutoTokenizer load it.

    An adapter is written next to the encoder's own weights. `load_encoder` and the
    linker apply it; plain AutoModel knows nothing of it and loads the base without.

    folder (Path): An existing folder.
    tokenizer (PreTrainedTokenizerBase): The tokenizer.
    model (PreTrainedModel): The encoder, with or without an adapter.
    settings (EncoderSettings): How to run it.
    adapter_base (str | None): Leave the encoder's own weights out, and load them
        from this folder or hub id; None = the folder holds everything. The folder
        must have no such weights yet.
    """
    # What an earlier encoder left would be put into this one.
    for name in (ADAPTER_FILE, ADAPTER_WEIGHTS):
        (folder / name).unlink(missing_ok=True)
    tokenizer.save_pretrained(folder)
    if adapter_base is None:
        model.save_pretrained(
            folder, state_dict=own_weights(model), safe_serialization=True
        )
    if adapter_base is not None or hasattr(model, "sapbert_adapter"):
        save_adapter(folder, model, base=adapter_base)
    write_settings(folder, settings)
