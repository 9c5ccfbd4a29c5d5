"""What a component saves besides its knowledge base, and what of it counts later.

A component cannot change `nlp.config`, and the config of a saved pipeline may have been
edited. So each setting is saved with the value that the config had. If the config has
another value when the pipeline is loaded, that value wins, otherwise the saved one.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import Errors, SapbertError
from ..io.writing import write_atomically

FILE = "settings.json"


class Change(NamedTuple):
    """A setting in the config, and its value when the component was saved."""

    config: Any
    saved: Any


class SavedSettings(BaseModel):
    """The settings of a saved component, by name.

    Values are plain JSON types.
    """

    model_config = ConfigDict(strict=True, extra="forbid")

    settings: dict[str, Change]

    @classmethod
    def compare(cls, config: Mapping[str, Any], now: Mapping[str, Any]) -> Self:
        """Return the present settings, with those of the config."""
        return cls(settings={n: Change(config[n], value) for n, value in now.items()})

    @classmethod
    def parse(cls, content: str | bytes, path: Path) -> Self:
        """Parse a file."""
        try:
            return cls.model_validate_json(content)
        except ValidationError as error:
            reason = error.errors()[0]["msg"]
            raise SapbertError(Errors.E553.format(path=path, reason=reason)) from None

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Read the settings in a folder; None = the component was not saved."""
        path = folder / FILE
        return cls.parse(path.read_bytes(), path) if path.is_file() else None

    def write(self, folder: Path) -> None:
        """Write the settings into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        with write_atomically(folder / FILE) as file:
            file.write(self.model_dump_json(indent=2).encode())

    def kept(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the saved values of the settings that the config has not changed."""
        return {
            name: change.saved
            for name, change in self.settings.items()
            if name in config and config[name] == change.config
        }
