"""What a component saves besides its knowledge base, and what of it counts later.

All of it is restored, as spaCy does it. But a component cannot change `nlp.config`, and
`spacy.load` has overrides, or the config of the saved pipeline may have been edited. So
each setting is saved with the value that the config had. If `spacy.load` makes the
component with another value, that value wins, otherwise the saved one.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from weakref import ReferenceType

from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import SapbertError
from ..io.writing import write_atomically

if TYPE_CHECKING:
    from spacy.language import Language

FILE = "settings.json"
PIPELINE_FILE = "config.cfg"


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
            raise SapbertError(
                "E553",
                f"{path}: Expected the settings of a saved component, but {reason}. "
                "Save the pipeline again.",
            ) from None

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
        """Return the saved values of the settings that a config does not change."""
        return {
            name: change.saved
            for name, change in self.settings.items()
            if config.get(name, change.config) == change.config
        }


def loaded_config(
    pipeline: "ReferenceType[Language] | None",
    config: Mapping[str, Any],
    folder: Path,
) -> Mapping[str, Any]:
    """Return the config of a component if it is that of the pipeline being loaded.

    It is in `spacy.load`, with its overrides. It is not if `nlp.from_disk` loads a
    saved pipeline into one that was made with other settings, or if the component is
    loaded alone: then the result is empty.

    Args:
        pipeline: That of the component.
        config: The settings with which the component was made.
        folder: What the component loads.
    """
    nlp = pipeline() if pipeline is not None else None
    if nlp is None or not (folder.parent / PIPELINE_FILE).is_file():
        return {}
    # What `from_disk` of the pipeline has just read; `nlp.config` would replace it by
    # what the components were made with.
    loaded = nlp._config["components"].get(folder.name)
    if loaded is None or folder.name not in nlp.component_names:
        return {}
    made = nlp.get_pipe_config(folder.name)
    same = all(loaded.get(name, made[name]) == made[name] for name in config)
    return config if same else {}
