"""What a linker saves besides its knowledge base, and how it is read again.

A component cannot change `nlp.config`, and the config of a saved pipeline may have been
edited. So each changed setting is saved with the value that the config had: if the
config has another value when the pipeline is loaded, that value wins.
"""

from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import Errors, SapbertError
from ..linking.options import OPTIONS, LinkOptions, change_options

FILE = "settings.json"
Saved = TypeVar("Saved", bound=BaseModel)


class ConfigValues(NamedTuple):
    """The settings of the config that can change later."""

    kb: str | Path | None
    kb_digest: str | None
    options: LinkOptions


class Change(NamedTuple):
    """A setting in the config, and its value when the component was saved."""

    config: Any
    saved: Any


class SavedLinker(BaseModel):
    """The settings of a saved linker.

    kb (str | None): The setting `kb` of the config.
    installed (str | None): Name of the installed knowledge base that the component
        used; None = its knowledge base is saved with it, or left out.
    changes (dict[str, Change]): Options of linking that were changed, by name.
    kb_digest (Change | None): The setting `kb_digest`, if a pinned linker used another
        version than that of the config.
    """

    model_config = ConfigDict(strict=True, extra="forbid")

    kb: str | None
    installed: str | None
    changes: dict[str, Change]
    kb_digest: Change | None = None


def describe_linker(
    config: ConfigValues, now: ConfigValues, installed: str | None
) -> SavedLinker:
    """Return what a linker saves.

    config (ConfigValues): What the config has.
    now (ConfigValues): The present settings.
    installed (str | None): See `SavedLinker`.
    """
    old, new = config.options.to_config(), now.options.to_config()
    changes = {n: Change(old[n], new[n]) for n in OPTIONS if old[n] != new[n]}
    kb = None if config.kb is None else str(config.kb)
    digest = None
    if now.kb_digest != config.kb_digest:
        digest = Change(config.kb_digest, now.kb_digest)
    return SavedLinker(kb=kb, installed=installed, changes=changes, kb_digest=digest)


def parse_saved(content: bytes | str, path: Path, kind: type[Saved]) -> Saved:
    """Parse saved settings.

    path (Path): The file, for the error.
    kind (type[Saved]): What they are.
    RAISES (SapbertError): If they are damaged.
    """
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise SapbertError(Errors.E304.format(path=path, reason=reason)) from None


def names_other_kb(kb: str | Path | None, saved: SavedLinker | None) -> bool:
    """Return whether the config names another knowledge base than when it was saved.

    kb (str | Path | None): The setting of the config.
    saved (SavedLinker | None): None = saved by an older version, without its settings.
    """
    return saved is not None and kb is not None and str(kb) != saved.kb


def merge_digest(config: str | None, change: Change | None) -> str | None:
    """Return the digest of a config, or the saved one if the config did not change."""
    return change.saved if change is not None and change.config == config else config


def merge_options(config: LinkOptions, changes: dict[str, Change]) -> LinkOptions:
    """Return the options of a config, with the saved ones where it did not change.

    RAISES (SapbertError): If a saved value is not possible.
    """
    values = config.to_config()
    changed = {
        name: change.saved
        for name, change in changes.items()
        if values.get(name) == change.config
    }
    return change_options(config, changed)
