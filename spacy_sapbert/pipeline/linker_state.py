"""The state of a linker: its options, its opened knowledge base, how it is saved."""

import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import srsly
from spacy.pipeline.pipe import Pipe
from spacy.tokens import Doc

from ..encoder.encoder import EncoderConfig
from ..errors import Warnings, check_range
from ..linking.options import OPTIONS, LinkOptions, change_options
from ..system.forks import ProcessLock, TemporaryFolder
from ..system.writing import write_atomically
from .annotations import set_extensions
from .saved_linker import (
    FILE,
    ConfigValues,
    SavedLinker,
    describe_linker,
    merge_digest,
    merge_options,
    names_other_kb,
    parse_saved,
)

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase

OPENING = ProcessLock()  # not in the component: a lock cannot be pickled
MAX_SECONDS = 10_000_000


class LinkerState(Pipe):
    """Options and knowledge base of a component.

    Each option of linking is also a property that can be set: `linker.threshold = 0.8`.
    """

    name: str
    spans_key: str | None

    def start(
        self,
        kb: str | Path | None,
        *,
        digest: str | None,
        options: LinkOptions,
        encoder: EncoderConfig,
        reload_seconds: float | None,
    ) -> None:
        """Set the state that the config describes; see `default_config`.

        RAISES (SapbertError): If a number is out of its range.
        """
        if reload_seconds is not None:
            check_range("reload_seconds", reload_seconds, 0, MAX_SECONDS)
        self.config = ConfigValues(kb, digest, options)
        self.source = kb
        self.kb_digest = digest
        self.first_digest: str | None = None  # of the version to open first
        self.options = options
        self.encoder = encoder
        self.reload_seconds = reload_seconds
        self.checked = time.monotonic()  # when a new version was last looked for
        self.opened: KnowledgeBase | None = None
        self.unpacked: TemporaryFolder | None = None

    @property
    def kb(self) -> "KnowledgeBase":
        """The knowledge base, opened when first used.

        Set it to the result of `add_concepts` or `remove_concepts` after an edit, or to
        the folder or name of another knowledge base.
        """
        with OPENING:
            if self.opened is None:
                from ..kb.knowledge_base import load_kb

                self.opened = load_kb(
                    self.source,
                    encoder=self.encoder,
                    digest=self.kb_digest or self.first_digest,
                )
        return self.opened

    @kb.setter
    def kb(self, kb: "KnowledgeBase | str | Path") -> None:
        if isinstance(kb, (str, Path)):
            from ..kb.knowledge_base import load_kb

            kb = load_kb(kb, encoder=self.encoder)
        with OPENING:
            self.source, self.opened = kb.folder, kb
            self.kb_digest = self.kb_digest and kb.manifest.digest

    def reload(self) -> bool:
        """Load the knowledge base again if its folder has a new version.

        RETURNS (bool): Whether there was one.
        RAISES (SapbertError): If the new version cannot be loaded, has another digest
            than `kb_digest`, or does not fit the options. Then the linker uses the old
            version.
        """
        old = self.kb
        self.checked = time.monotonic()
        new = old.newest(digest=self.kb_digest)
        if new is old:
            return False
        new.check_options(self.options)
        with OPENING:
            self.opened = new
        return True

    def reload_in_time(self) -> None:
        """Open a new version if `reload_seconds` have passed since the last check."""
        if self.reload_seconds is None or self.opened is None:
            return
        if time.monotonic() - self.checked >= self.reload_seconds:
            try:
                self.reload()
            except Exception as error:  # a service goes on with what it has
                warnings.warn(Warnings.W554.format(reason=error), stacklevel=2)

    def teach(self, docs: Iterable[Doc]) -> None:
        """Teach a copy of the knowledge base with Docs; use it if it is better.

        docs (Iterable[Doc]): See `teaching.teach`. The copy is saved with the pipeline.
        """
        from .teaching import annotate_docs

        documents = [
            d for d in annotate_docs(docs, spans_key=self.spans_key) if d.mentions
        ]
        if not documents:
            return
        from ..kb.teaching.teach import teach_documents

        temporary = TemporaryFolder(prefix="sapbert-kb-")
        output = temporary.path.resolve() / "kb"
        kb, report = teach_documents(self.kb, documents, output=output)
        if report.changed:
            self.kb, self.unpacked = kb, temporary

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save the component to a folder.

        The knowledge base is copied, unless it is an installed one: then the component
        refers to it by name. `exclude` may have "kb".
        """
        from ..kb.packages.copies import save_copy

        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        saved = self.describe()
        if "kb" not in exclude and saved.installed is None:
            save_copy(self.kb, folder / "kb")
        with write_atomically(folder / FILE) as file:
            file.write(saved.model_dump_json(indent=2).encode())

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        """Use the knowledge base and the settings of a saved component.

        A value that the config had not when the component was saved wins.

        RAISES (SapbertError): If the config names a knowledge base that does not exist.
        """
        folder, file = Path(path) / "kb", Path(path) / FILE
        saved = None
        if file.is_file():
            saved = parse_saved(file.read_bytes(), file, SavedLinker)
        packed = folder if "kb" not in exclude and folder.is_dir() else None
        self.use_saved(saved, packed, config_wins=True)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialise the component; see `to_disk`."""
        from ..kb.packages.copies import kb_to_files

        saved = self.describe()
        copied = "kb" not in exclude and saved.installed is None
        files = kb_to_files(self.kb) if copied else {}
        return srsly.msgpack_dumps({"kb": files, FILE: saved.model_dump_json()})

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> Self:
        """Unpack a serialised component into a temporary folder; see `from_disk`.

        RAISES (SapbertError): If the knowledge base in it is damaged.
        """
        from ..kb.packages.copies import unpack_kb

        content = srsly.msgpack_loads(data)
        files = content["kb"] if "kb" not in exclude else None
        saved = None
        if FILE in content:
            saved = parse_saved(content[FILE], Path(FILE), SavedLinker)
        self.unpacked = unpack_kb(files) if files else None
        folder = self.unpacked.path if self.unpacked else None
        # The receiver of bytes may have no such folder as the config names.
        self.use_saved(saved, folder, config_wins=False)
        return self

    def installed_name(self) -> str | None:
        """Return the name of the installed knowledge base that the linker uses."""
        from ..kb.folder.installed import installed_name

        return installed_name(self.source)

    def describe(self) -> SavedLinker:
        """Return the settings to save."""
        now = ConfigValues(self.source, self.kb_digest, self.options)
        return describe_linker(self.config, now, self.installed_name())

    def use_saved(
        self, saved: SavedLinker | None, packed: Path | None, *, config_wins: bool
    ) -> None:
        """Apply what was saved, as far as the config has not changed since.

        saved (SavedLinker | None): The settings.
        packed (Path | None): Folder of the knowledge base that was saved with them.
        config_wins (bool): Use the knowledge base of a config that has changed.
        RAISES (SapbertError): See `from_disk`.
        """
        from ..kb.folder.installed import find_kb

        if saved is not None:
            self.options = merge_options(self.config.options, saved.changes)
        if config_wins and names_other_kb(self.config.kb, saved):
            find_kb(self.config.kb)
            return
        self.first_digest = None
        if packed is not None:
            self.source, self.opened = packed, None
        elif saved is not None and saved.installed is not None:
            self.source, self.opened = saved.installed, None
        if saved is not None:
            self.kb_digest = merge_digest(self.config.kb_digest, saved.kb_digest)

    def __reduce__(self) -> tuple[Any, ...]:
        # The other process opens the same version of the same folder, and finds later
        # ones as this process does.
        state = {**self.__dict__, "opened": None, "unpacked": None}
        if self.opened is not None and self.reload_seconds is None:
            state["first_digest"] = self.opened.manifest.digest
        return restore_linker, (self.name, state)


def option_property(name: str) -> property:
    """Return the property of an option of linking; a value that is set is checked."""

    def set_option(linker: LinkerState, value: Any) -> None:
        linker.options = change_options(linker.options, {name: value})

    return property(lambda linker: getattr(linker.options, name), set_option)


for option_name in OPTIONS:
    setattr(LinkerState, option_name, option_property(option_name))


def restore_linker(name: str, state: dict[str, Any]) -> Any:
    """Return a component from a pickle.

    state (dict[str, Any]): Its attributes.
    """
    from .linker import SapbertLinker

    linker = SapbertLinker.__new__(SapbertLinker)
    linker.__dict__.update(state)
    linker.name = name
    set_extensions(linker.attrs, linker.kb_ents_attr, linker.codes_attr)
    return linker
