"""Encoder folders as Hugging Face reads and writes them, plus how to run them."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Tuple

from .errors import Errors, SapbertError
from .pooling import POOLINGS

SETTINGS_FILE = "sapbert.json"


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

    folder (Path): The encoder folder; hub ids have no such file.
    RETURNS (EncoderSettings): The settings.
    RAISES (SapbertError): If the file says something else than these settings.
    """
    path = folder / SETTINGS_FILE
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


def check_encoder_folder(folder: Path) -> None:
    """Make sure that loading an encoder folder runs no code of its own.

    folder (Path): The encoder folder.
    RAISES (SapbertError): If it has no `.safetensors` file, or its configuration asks
        for code.
    """
    if not any(folder.glob("*.safetensors")):
        raise SapbertError(Errors.E206.format(path=folder))
    for name in ("config.json", "tokenizer_config.json"):
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


def load_encoder(name: str) -> Tuple[Any, Any]:
    """Load tokenizer and encoder of a folder or a hub id, without running its code.

    name (str): A folder that `save_pretrained` wrote, or a hub id.
    RETURNS (Tuple[PreTrainedTokenizerBase, PreTrainedModel]): Both, on the CPU, in
        float32; the encoder without a pooler's dropout, in evaluation mode.
    RAISES (SapbertError): If there is no such encoder.
    """
    from transformers import AutoModel, AutoTokenizer

    check_encoder_name(name)
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
        model = AutoModel.from_pretrained(name, trust_remote_code=False).float()
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().splitlines()[0]
        raise SapbertError(Errors.E203.format(name=name, reason=reason)) from error
    return tokenizer, model.eval()


def save_encoder(
    folder: Path, tokenizer: Any, model: Any, settings: EncoderSettings
) -> None:
    """Write an encoder so that plain AutoModel and AutoTokenizer load it.

    folder (Path): An existing folder.
    tokenizer (PreTrainedTokenizerBase): The tokenizer.
    model (PreTrainedModel): The encoder.
    settings (EncoderSettings): How to run it.
    """
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder, safe_serialization=True)
    text = json.dumps(asdict(settings), indent=2)
    (folder / SETTINGS_FILE).write_text(text + "\n", "utf8")
