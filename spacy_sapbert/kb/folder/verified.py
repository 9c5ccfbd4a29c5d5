"""Large files that were verified before on this machine.

The vectors of millions of names are gigabytes that no native code parses, and each row
is checked when it is read. So their checksum is computed once, and again only if the
file is another one. An empty file of the user's cache stands for each.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

LARGE = 1 << 26  # bytes; smaller files are verified each time
SUFFIX = ".i16"  # of files with rows of vectors


def cache_folder() -> Path:
    """Return the folder for what was verified.

    RAISES (RuntimeError): If the user has no home.
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "spacy_sapbert" / "verified"


def cache_entry(identity: tuple[int, ...], sha256: str) -> Path:
    """Return the file that stands for a verified file."""
    text = " ".join(map(str, (*identity, sha256)))
    return cache_folder() / hashlib.sha256(text.encode("ascii")).hexdigest()


def was_verified(name: str, identity: tuple[int, int, int, int], sha256: str) -> bool:
    """Return whether a large file of vectors was verified before.

    name (str): Of the file.
    identity (tuple[int, int, int, int]): Device, inode, size and time of change.
    sha256 (str): That it must have.
    """
    if not name.endswith(SUFFIX) or identity[2] < LARGE:
        return False
    try:
        return cache_entry(identity, sha256).is_file()
    except (OSError, RuntimeError):
        return False


def keep_verified(name: str, identity: tuple[int, int, int, int], sha256: str) -> None:
    """Note that a large file of vectors was verified, if the user has a cache."""
    if name.endswith(SUFFIX) and identity[2] >= LARGE:
        with suppress(OSError, RuntimeError):
            entry = cache_entry(identity, sha256)
            entry.parent.mkdir(parents=True, exist_ok=True)
            entry.touch()
