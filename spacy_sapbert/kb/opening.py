"""Opens a knowledge base, from a folder or an installed package."""

from pathlib import Path

from ..encoder.encoder import EncoderConfig
from ..errors import Errors, SapbertError
from .folder.files import open_files
from .folder.installed import find_kb
from .folder.manifest import read_manifest
from .knowledge_base import KnowledgeBase

ATTEMPTS = 20  # to open a folder that other processes replace


def load_kb(
    name: str | Path | None = None,
    *,
    encoder: EncoderConfig | None = None,
    digest: str | None = None,
) -> KnowledgeBase:
    """Open a knowledge base after every file in it has been checked.

    name (str | Path | None): A folder, or the name of an installed knowledge base; None
        = the only one that is installed.
    encoder (EncoderConfig | None): How to run its encoder; None = by default.
    digest (str | None): The digest that it must have (`kb info` prints it); None = any.
    RETURNS (KnowledgeBase): Index and encoder are loaded when first used.
    RAISES (SapbertError): If there is none, or it is damaged, of another version or
        with another digest.
    """
    return open_kb(find_kb(name), encoder=encoder, digest=digest)


def check_digest(kb: KnowledgeBase, digest: str | None) -> None:
    """Check that a knowledge base has a digest; None = any.

    RAISES (SapbertError): If it has another.
    """
    if digest is not None and digest != kb.manifest.digest:
        raise SapbertError(
            Errors.E351.format(path=kb.folder, expected=digest, got=kb.manifest.digest)
        )


def open_kb(
    folder: Path,
    *,
    encoder: EncoderConfig | None = None,
    digest: str | None = None,
    old_overlay: bool = False,
    whole: bool = False,
    load: bool = False,
) -> KnowledgeBase:
    """Open the folder of a knowledge base; see `load_kb`.

    A folder that is replaced meanwhile is opened again, so that all files are of one
    version.

    old_overlay (bool): See `read_manifest`.
    whole (bool): See `open_files`.
    load (bool): Load index and encoder too; see `KnowledgeBase.load`.
    """
    for attempt in range(ATTEMPTS):
        manifest = read_manifest(folder, old_overlay=old_overlay)
        try:
            files = open_files(folder, manifest.files, whole=whole)
            kb = KnowledgeBase(files, manifest, encoder_config=encoder)
            check_digest(kb, digest)
            if load:
                kb.load()
            return kb
        except SapbertError:
            new = read_manifest(folder, old_overlay=old_overlay)
            if new == manifest or attempt == ATTEMPTS - 1:
                raise
    raise AssertionError
