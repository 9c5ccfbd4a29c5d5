"""The knowledge base of a component: which one, its opened version, and later ones."""

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from spacy.language import Language

from ..errors import check_range
from ..io.forks import ProcessLock

if TYPE_CHECKING:
    from ..encoder.encoder import EncoderConfig
    from ..kb.knowledge_base import KnowledgeBase

OPENING = ProcessLock()  # not in the object: a lock cannot be pickled
MAX_SECONDS = 10_000_000
Check = Callable[["KnowledgeBase"], None]


def is_made_from_config() -> bool:
    """Return whether a component is being made by `Language.from_config`."""
    code = Language.from_config.__func__.__code__  # type: ignore[attr-defined]
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None


class OpenedKb:
    """A knowledge base that is opened when first used, and can be exchanged.

    Whether there is one in the source is checked at once, except in `spacy.load`: what
    is loaded next may bring another one.

    Args:
        source: Folder or name of an installed one; None = the only one installed.
        pin: The digest that it must have; None = any.
        encoder: How to run its encoder; None = by default.
        reload_seconds: How often to look for a new version; None = never.

    Attributes:
        given: The source, as it was given.

    Raises:
        SapbertError: If the number is out of its range, or the source is none.
    """

    def __init__(
        self,
        source: str | Path | None,
        *,
        pin: str | None = None,
        encoder: "EncoderConfig | None" = None,
        reload_seconds: float | None = None,
    ) -> None:
        if reload_seconds is not None:
            check_range("reload_seconds", reload_seconds, 0, MAX_SECONDS)
        self.encoder = encoder
        self.reload_seconds = reload_seconds
        self.checked = time.monotonic()  # when a new version was last looked for
        self.given = None if source is None else str(source)
        self.choose(source, pin=pin)
        if not is_made_from_config():
            self.check()

    def check(self, *, packages: bool = True) -> None:
        """Check that there is a knowledge base in the source, without opening it.

        Args:
            packages: Check the name of a package too. `spacy package` loads a pipeline
                whose packages may be installed later.

        Raises:
            SapbertError: If there is none.
        """
        from ..kb.folder.installed import find_kb
        from ..kb.folder.versions import read_current

        if self.kb is not None or self.source is None:
            return
        if packages or not str(self.source).isidentifier():
            read_current(find_kb(self.source))

    def choose(self, source: str | Path | None, *, pin: str | None) -> None:
        """Choose a source, which is opened when first used."""
        if source is not None and Path(source).is_dir():
            source = str(Path(source).absolute())  # the working directory can change
        self.source, self.pin = source, pin
        self.kb: KnowledgeBase | None = None

    def get(self) -> "KnowledgeBase":
        """Return the knowledge base, opened.

        Raises:
            SapbertError: If there is none, or it is damaged.
        """
        with OPENING:
            if self.kb is None:
                self.kb = self.open(self.source, self.pin)
        return self.kb

    def open(self, source: str | Path | None, digest: str | None) -> "KnowledgeBase":
        from ..kb.knowledge_base import load_kb

        return load_kb(source, encoder=self.encoder, digest=digest)

    def use(self, kb: "KnowledgeBase | str | Path") -> None:
        """Use another knowledge base; a pin becomes the digest of that one.

        Args:
            kb: Opened, or its folder or name.

        Raises:
            SapbertError: If it cannot be opened. Then nothing changes.
        """
        source: str | Path = kb if isinstance(kb, (str, Path)) else kb.folder
        opened = self.open(kb, None) if isinstance(kb, (str, Path)) else kb
        with OPENING:
            self.choose(source, pin=self.pin and opened.manifest.digest)
            self.kb = opened

    def find_newer(self, check: Check) -> "KnowledgeBase | None":
        """Return the new version of the folder, opened and loaded, if there is one.

        Args:
            check: Raises an error if it does not fit the component.

        Raises:
            SapbertError: If it does not fit, has not the pinned digest, or cannot be
                loaded.
        """
        old = self.get()
        self.checked = time.monotonic()
        new = old.newest(digest=self.pin)
        if new is old:
            return None
        check(new)
        return new

    def refresh(self, check: Check) -> bool:
        """Use the new version if there is one; see `find_newer`.

        Returns:
            Whether there was one. If it raises, the old version stays in use.
        """
        new = self.find_newer(check)
        if new is not None:
            with OPENING:
                self.kb = new
        return new is not None

    def refresh_in_time(self, check: Check) -> None:
        """Refresh if `reload_seconds` have passed; a failure is a warning (W554)."""
        if self.reload_seconds is None or self.kb is None:
            return
        if time.monotonic() - self.checked >= self.reload_seconds:
            try:
                self.refresh(check)
            except Exception as error:  # a service goes on with what it has
                warnings.warn(
                    "[W554] The knowledge base has a new version that cannot be "
                    f"opened, so the old one stays in use. {error}",
                    stacklevel=2,
                )

    @property
    def installed_name(self) -> str | None:
        """The name of the installed knowledge base that the source stands for."""
        from ..kb.folder.installed import installed_name

        return installed_name(self.source)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.kb is not None:  # in a new folder, if the old one was temporary
            self.source = self.kb.folder if self.kb.temporary else self.source
