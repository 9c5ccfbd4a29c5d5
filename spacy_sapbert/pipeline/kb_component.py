"""What `sapbert_linker` and `sapbert_mentions` share: a knowledge base, and saving."""

import sys
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

import srsly
from spacy import util
from spacy.language import Language
from spacy.pipeline.pipe import Pipe

from ..errors import SapbertError, check_range
from ..io.forks import ProcessLock
from ..io.writing import write_json

if TYPE_CHECKING:
    from ..encoder.encoder import EncoderConfig
    from ..kb.knowledge_base import KnowledgeBase

OPENING = ProcessLock()  # not in the object: a lock cannot be pickled
MAX_SECONDS = 10_000_000
FILE = "settings.json"
Check = Callable[["KnowledgeBase"], None]


def is_made_from_config() -> bool:
    """Return whether a component is being made by `Language.from_config`."""
    code = Language.from_config.__func__.__code__  # type: ignore[attr-defined]
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None


def read_saved(path: Path) -> dict[str, Any]:
    try:
        saved = srsly.read_json(path)
        return {name: dict(saved[name]) for name in ("config", "settings")}
    except (KeyError, TypeError, ValueError) as error:
        raise SapbertError(
            "E553",
            f"{path}: Expected the settings of a saved component, but got "
            f"{type(error).__name__}. Save the pipeline again.",
        ) from None


class OpenedKb:
    """A knowledge base that is opened when first used, and can be exchanged.

    Whether there is one in the source is checked at once, except in `spacy.load`: what
    is loaded next may bring another one. `pin` is the digest that it must have;
    `reload_seconds` is how often to look for a new version.
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
        self.choose(source, pin=pin)
        self.from_config = is_made_from_config()  # and not yet loaded
        if not self.from_config:
            self.check()

    def check(self) -> None:
        """Check that there is a knowledge base in the source, without opening it."""
        from ..kb.folder.versions import find_kb, read_current

        if self.kb is None and self.source is not None:
            read_current(find_kb(self.source))

    def choose(self, source: str | Path | None, *, pin: str | None) -> None:
        if source is not None and Path(source).is_dir():
            source = str(Path(source).absolute())  # the working directory can change
        self.source, self.pin = source, pin
        self.kb: KnowledgeBase | None = None

    def get(self) -> "KnowledgeBase":
        with OPENING:
            if self.kb is None:
                self.kb = self.open(self.source, self.pin)
        return self.kb

    def open(self, source: str | Path | None, digest: str | None) -> "KnowledgeBase":
        from ..kb.knowledge_base import load_kb

        return load_kb(source, encoder=self.encoder, digest=digest)

    def use(self, kb: "KnowledgeBase | str | Path") -> None:
        """Use another knowledge base; a pin becomes the digest of that one.

        If it cannot be opened, nothing changes.
        """
        source: str | Path = kb if isinstance(kb, (str, Path)) else kb.folder
        opened = self.open(kb, None) if isinstance(kb, (str, Path)) else kb
        with OPENING:
            self.choose(source, pin=self.pin and opened.manifest.digest)
            self.kb = opened

    def refresh(self, check: Check) -> bool:
        """Use the new version if there is one, and return whether there was one.

        `check` raises an error if it is unfit.
        """
        old = self.get()
        self.checked = time.monotonic()
        new = old.newest(digest=self.pin)
        if new is old:
            return False
        check(new)
        with OPENING:
            self.kb = new
        return True

    def refresh_in_time(self, check: Check) -> None:
        """Refresh if `reload_seconds` have passed; a failure is a warning (W554)."""
        if self.reload_seconds is None or self.kb is None:
            return
        if time.monotonic() - self.checked < self.reload_seconds:
            return
        try:
            self.refresh(check)
        except Exception as error:  # a service goes on with what it has
            warnings.warn(
                "[W554] The knowledge base has a new version that cannot be opened, so "
                f"the old one stays in use. {error}",
                stacklevel=2,
            )

    @property
    def installed_name(self) -> str | None:
        """The name of the installed knowledge base that the source stands for."""
        from ..kb.folder.versions import installed_name

        return installed_name(self.source)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.kb is not None:  # in a new folder, if the old one was temporary
            self.source = self.kb.folder if self.kb.temporary else self.source


class KbComponent(Pipe):
    """A component with a knowledge base.

    `spacy.load` has overrides, and the config of a saved pipeline may have been edited.
    So `config`, the settings with which the component was made, is saved too. If
    `spacy.load` makes it with another value, that value wins.
    """

    def __init__(self, name: str, opened: OpenedKb) -> None:
        self.name = name
        self.opened = opened
        self.config: dict[str, Any] = {}

    def __repr__(self) -> str:
        kb = self.opened.source if self.opened.kb is None else self.opened.kb
        return f"<{type(self).__name__} {self.name}: {kb}>"

    @property
    def kb(self) -> "KnowledgeBase":
        return self.opened.get()

    def join(self, nlp: Language, linker: Any) -> None:
        """Note that a linker is about to be added to a pipeline with this component."""

    def settings(self) -> dict[str, Any]:
        """Return all settings but the knowledge base, in plain JSON types."""
        raise NotImplementedError

    def use_settings(self, settings: dict[str, Any]) -> None:
        """Use settings, and the knowledge base `kb`; those that are absent stay."""
        raise NotImplementedError

    def saved_source(self) -> str | None:
        """Return the knowledge base that is saved by its name or folder."""
        raise NotImplementedError

    def saves_kb(self) -> bool:
        return False

    def describe(self) -> dict[str, Any]:
        """Return the settings to save, and those with which the component was made."""
        settings = {**self.settings(), "kb": self.saved_source()}
        return {"config": self.config, "settings": settings}

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save the component to a folder.

        The linker copies its knowledge base, unless it is an installed one: then the
        component refers to it by name. `exclude` may have "kb".
        """
        from ..kb.folder.publication import save_copy

        serialize: dict[str, Callable[[Path], Any]] = {}
        if self.saves_kb():
            serialize["kb"] = lambda p: save_copy(self.kb.version, p)
        serialize[FILE] = lambda p: write_json(p, self.describe())
        Path(path).mkdir(parents=True, exist_ok=True)
        util.to_disk(path, serialize, exclude)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        """Use the settings and the knowledge base of a saved component.

        Settings that `spacy.load` gets, or that its config has with another value than
        when the component was saved, win.
        """
        changed: set[str] = set()

        def read_settings(path: Path) -> None:
            if not path.is_file():  # the component was not saved
                return
            saved = read_saved(path)
            if self.opened.from_config:
                made = saved["config"].items()
                changed.update(n for n, v in made if self.config.get(n, v) != v)
            settings = saved["settings"].items()
            self.use_settings({n: v for n, v in settings if n not in changed})

        def read_kb(path: Path) -> None:
            if path.is_dir() and not is_given():
                self.opened.choose(path, pin=self.opened.pin)

        def is_given() -> bool:
            return "kb" in changed and self.config["kb"] is not None

        util.from_disk(path, {FILE: read_settings, "kb": read_kb}, exclude)
        self.opened.from_config = False
        # `spacy package` loads a pipeline whose packages may be installed later.
        if is_given() or not str(self.opened.source).isidentifier():
            self.opened.check()
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialise the component; see `to_disk`."""
        from ..kb.folder.publication import version_to_files

        serialize: dict[str, Callable[[], Any]] = {FILE: self.describe}
        if self.saves_kb():
            serialize["kb"] = lambda: version_to_files(self.kb.version)
        return util.to_bytes(serialize, exclude)

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> Self:
        """Use a serialised component; its knowledge base is in a temporary folder."""
        from ..kb.knowledge_base import open_files

        def read_kb(files: dict[str, bytes]) -> None:
            self.opened.use(open_files(files, self.opened.encoder, self.opened.pin))

        deserialize: dict[str, Callable[[Any], Any]] = {
            FILE: lambda saved: self.use_settings(saved["settings"]),
            "kb": read_kb,
        }
        util.from_bytes(data, deserialize, exclude)
        return self
