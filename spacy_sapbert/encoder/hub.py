"""Encoders of the Hugging Face hub: what it has, and the files that are needed."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ..errors import SapbertError
from .adapters import WEIGHTS_FILE as ADAPTER_WEIGHTS
from .safety import no_weights

SECONDS = 5.0
NAME_FOLDER = (  # the end of an error
    "name a folder that `save_pretrained` wrote; `spacy sapbert fetch-encoder` makes "
    "one."
)
# Files of configuration and of tokenizers, also in the folders of sentence-transformers
SMALL_FILE = re.compile(r"(\d+_\w+/)?[^/]+\.(json|txt|model)")
SAFETENSORS = re.compile(
    r"(0_\w+/)?model(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?"
)
PICKLED = re.compile(r"(0_\w+/)?pytorch_model(-\d{5}-of-\d{5})?\.bin(\.index\.json)?")


class Answer(NamedTuple):
    """What the hub says: why an encoder cannot be fetched, or its files."""

    problem: str | None
    files: list[str] = []


def ask_hub(
    name: str, *, endpoint: str | None = None, seconds: float = SECONDS
) -> Answer:
    """Find an encoder of the hub by an old or new id, before something waits long.

    transformers repeats each request, for more than a minute without a network.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    try:
        info = HfApi(endpoint=endpoint).model_info(name, timeout=seconds)
        return Answer(None, [file.rfilename for file in info.siblings or ()])
    except HFValidationError:
        return Answer("this is no folder, and cannot be a hub id.")
    except RepositoryNotFoundError:
        return Answer("the hub has no such encoder, or not without a token.")
    except Exception as error:  # of requests or httpx, by the version
        return Answer(f"the hub did not answer ({type(error).__name__}).")


def choose_weights(files: Iterable[str]) -> list[str]:
    """Return the files of weights: safetensors, or pickled ones if there are none."""
    names = [*files]
    chosen = [name for name in names if SAFETENSORS.fullmatch(name)]
    return chosen or [name for name in names if PICKLED.fullmatch(name)]


def choose_files(files: Iterable[str]) -> list[str]:
    """Return which files of an encoder are needed, not those of other libraries."""
    names = [*files]
    others = [n for n in names if SMALL_FILE.fullmatch(n) or n == ADAPTER_WEIGHTS]
    return sorted({*others, *choose_weights(names)})


def find_cached(name: str) -> Path | None:
    """Return the folder of an encoder in the cache of the hub; None if it has none."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, local_files_only=True))
    except (HFValidationError, LocalEntryNotFoundError):
        return None
    files = (path.relative_to(folder).as_posix() for path in folder.rglob("*"))
    return folder if choose_weights(files) else None


def check_published(name: str) -> Answer:
    """Check that the hub or its cache has an encoder, and return the hub's answer."""
    answer = ask_hub(name)
    if answer.problem is None:
        if not choose_weights(answer.files):
            raise no_weights(path=name)
    elif find_cached(name) is None:
        raise not_on_hub(name=name, reason=answer.problem)
    return answer


def fetch_encoder(name: str) -> Path:
    """Return the folder of an encoder in the cache of the hub.

    If the hub cannot be asked, the cache is used as it is.
    """
    from huggingface_hub import snapshot_download

    answer = check_published(name)
    if answer.problem is not None and (folder := find_cached(name)):
        return folder
    try:
        needed = choose_files(answer.files)
        # Without the commit, which the cache would not find again by the name.
        return Path(snapshot_download(name, allow_patterns=needed))
    except Exception as error:  # of requests or httpx, by the version
        reason = f"its files could not be fetched ({type(error).__name__})."
        raise not_on_hub(name=name, reason=reason) from error


def not_on_hub(*, name: object, reason: object) -> SapbertError:
    return SapbertError(
        "E634",
        f"Expected an encoder folder or a hub id, but {name!r} is no folder, and was "
        f"not found on the hub: {reason} Nor is it in the cache of the hub. Check the "
        f"name and the network, or {NAME_FOLDER}",
    )
