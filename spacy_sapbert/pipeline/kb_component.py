"""What `sapbert_linker` and `sapbert_mentions` share: a knowledge base, and a config.

The config of the pipeline is the only place where settings are kept: a component is
made from its section, and an attribute that is set is written there. What a component
saves is its knowledge base.
"""

import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from spacy import util
from spacy.language import Language
from spacy.pipeline.pipe import Pipe

from ..errors import check_range
from ..io.forks import ProcessLock
from ..io.writing import write_atomically

if TYPE_CHECKING:
    from ..encoder.encoder import EncoderConfig
    from ..kb.knowledge_base import KnowledgeBase

OPENING = ProcessLock()  # not in the object: a lock cannot be pickled
MAX_SECONDS = 10_000_000


def find_source(kb: str | Path | None) -> str | None:
    """Return the folder of a knowledge base, or the name of an installed one."""
    if kb is not None and Path(kb).is_dir():
        return str(Path(kb).absolute())  # the working directory can change
    return None if kb is None else str(kb)


class KbComponent(Pipe):
    """A component with a knowledge base, which is opened when first used.

    Args:
        kb: Folder or name of the knowledge base, as in the config. A folder is checked
            at once. None = the one that is saved with the component, else the only one
            installed.
        kb_digest: The digest that it must have.
        reload_seconds: How often to look for a new version.

    Attributes:
        source: The folder or name that the config has.
        saved: The folder of the one that was saved with the component.
    """

    settings: ClassVar[tuple[str, ...]]  # attributes whose values the config has
    nlp: Language | None = None  # the pipeline that it was made in

    def __init__(
        self,
        nlp: Language | None,
        name: str,
        kb: str | Path | None,
        *,
        kb_digest: str | None = None,
        reload_seconds: float | None = None,
        encoder: "EncoderConfig | None" = None,
    ) -> None:
        if reload_seconds is not None:
            check_range("reload_seconds", reload_seconds, 0, MAX_SECONDS)
        self.nlp = nlp
        self.name = name
        self.source = find_source(kb)
        self.saved: Path | None = None
        self.opened: KnowledgeBase | None = None
        self.kb_digest = kb_digest
        self.reload_seconds = reload_seconds
        self.encoder = encoder
        self.checked = time.monotonic()  # when a new version was last looked for
        if self.source is not None and not self.source.isidentifier():
            self.check_folder(self.source)  # a package may be installed later

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in self.settings:
            self.write_config(name)

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)  # type: ignore[misc]  # that of Cython
        if self.opened is not None and self.opened.temporary:
            self.saved = self.opened.folder  # a new one

    def __repr__(self) -> str:
        kb = self.opened or self.source or self.saved
        return f"<{type(self).__name__} {self.name}: {kb}>"

    def setting(self, name: str) -> Any:
        """Return the value of a setting as a config has it."""
        return self.source if name == "kb" else getattr(self, name)

    def write_config(self, name: str) -> None:
        """Write a setting to the config of the pipeline, if it has the component."""
        if (nlp := self.nlp) is not None:
            for own_name, component in nlp.components:
                if component is self:
                    nlp.get_pipe_config(own_name)[name] = self.setting(name)

    @property
    def kb(self) -> "KnowledgeBase":
        """The knowledge base, opened when first used.

        Set it to the result of `add_concepts` or `remove_concepts` after an edit, or to
        the folder or name of another one. If that cannot be used, nothing changes; a
        pin, `kb_digest`, becomes its digest.
        """
        known = self.source or self.saved
        if known is None and (borrowed := self.borrow_kb()) is not None:
            return borrowed
        with OPENING:
            if self.opened is None:
                self.opened = self.open_kb(known, self.kb_digest)
            return self.opened

    @kb.setter
    def kb(self, kb: "KnowledgeBase | str | Path") -> None:
        if isinstance(kb, (str, Path)):
            source, opened = find_source(kb), self.open_kb(kb, None)
        else:
            source, opened = str(kb.folder), kb
            self.check_kb(kb)
        with OPENING:
            if opened.temporary or opened.folder == self.saved:
                source, self.saved = None, opened.folder
            self.source, self.opened = source, opened
        if self.kb_digest is not None:
            self.kb_digest = opened.manifest.digest

    def borrow_kb(self) -> "KnowledgeBase | None":
        """Return the one of another component, for a component without one."""
        return None

    def open_kb(self, source: str | Path | None, digest: str | None) -> "KnowledgeBase":
        from ..kb.knowledge_base import load_kb

        kb = load_kb(source, encoder=self.encoder, digest=digest)
        self.check_kb(kb)
        return kb

    def check_kb(self, kb: "KnowledgeBase") -> None:
        """Check that a knowledge base fits the settings."""

    def check_folder(self, source: str | Path) -> None:
        """Check that there is a knowledge base, without opening it."""
        from ..kb.folder.versions import find_kb, read_current

        read_current(find_kb(source))

    def reload(self) -> bool:
        """Use the new version of the folder, and return whether there was one.

        If it cannot be opened, has another digest than `kb_digest`, or does not fit the
        settings, that is an error, and the old one stays in use.
        """
        old = self.kb
        self.checked = time.monotonic()
        new = old.newest(digest=self.kb_digest)
        if new is old:
            return False
        self.check_kb(new)
        with OPENING:
            self.opened = new
        return True

    def reload_in_time(self) -> None:
        """Reload if `reload_seconds` have passed; a failure is a warning (W554)."""
        if self.reload_seconds is None or self.opened is None:
            return
        if time.monotonic() - self.checked < self.reload_seconds:
            return
        try:
            self.reload()
        except Exception as error:  # a service goes on with what it has
            warnings.warn(
                "[W554] The knowledge base has a new version that cannot be opened, so "
                f"the old one stays in use. {error}",
                stacklevel=2,
            )

    def has_own_kb(self) -> bool:
        """Return whether it has one that is saved with it, since it is a folder."""
        from ..kb.folder.versions import installed_name

        if self.source is None:
            return self.saved is not None
        return installed_name(self.source) is None

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save the knowledge base, unless it is an installed one.

        In the config of the pipeline, which spaCy writes before, `kb` becomes null for
        what is saved here. `exclude` may have "kb".
        """
        from ..kb.folder.publication import save_copy

        def save_kb(folder: Path) -> None:
            if self.has_own_kb():
                save_copy(self.kb.version, folder)
            self.correct_config(Path(path))

        Path(path).mkdir(parents=True, exist_ok=True)
        util.to_disk(path, {"kb": save_kb}, exclude)

    def correct_config(self, path: Path) -> None:
        """Correct the config beside a saved component: it says what was saved.

        Two pipelines can share a component, of which one has the settings.
        """
        from ..kb.folder.versions import PIPELINE_FILE, installed_name

        file = path.parent / PIPELINE_FILE
        if not (file.is_file() and (path.parent / "meta.json").is_file()):
            return  # the component alone is saved
        config = util.load_config(file)
        section = config["components"].get(path.name)
        if section is None:
            return
        section.update({name: self.setting(name) for name in self.settings})
        section["kb"] = None if self.has_own_kb() else installed_name(self.source)
        initialize = config["initialize"]["components"].get(path.name, {})
        if "kb" in initialize:
            initialize["kb"] = None
        with write_atomically(file) as output:
            output.write(config.to_str().encode("utf8"))

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        """Use the knowledge base of a saved component, unless the config names one."""

        def read_kb(folder: Path) -> None:
            if folder.is_dir() and self.source is None:
                self.check_folder(folder)
                self.saved, self.opened = folder.absolute(), None

        util.from_disk(path, {"kb": read_kb}, exclude)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialise the knowledge base, unless it is an installed one."""
        from ..kb.folder.publication import version_to_files

        serialize: dict[str, Callable[[], Any]] = {}
        if self.has_own_kb():
            serialize["kb"] = lambda: version_to_files(self.kb.version)
        return util.to_bytes(serialize, exclude)

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> Self:
        """Use a serialised knowledge base, which is then in a temporary folder."""
        from ..kb.knowledge_base import open_files

        def read_kb(files: dict[str, bytes]) -> None:
            self.kb = open_files(files, self.encoder, self.kb_digest)

        deserialize: dict[str, Callable[[Any], Any]] = {"kb": read_kb}
        util.from_bytes(data, deserialize, exclude)
        return self
