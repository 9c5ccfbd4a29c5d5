"""What a package needs that adds readers, formats, index backends or a linker.

See docs/extending.md and docs/linker.md. These names stay; the modules that they come
from may change.
"""

from typing import TYPE_CHECKING, Any

from .formats.format_table import Format
from .kb.indexes.backends import Backend, best_first, setting
from .vocabularies.facts import CODE, NAME, PARENT, Fact
from .vocabularies.reader_table import Reader
from .vocabularies.report import read_good_lines
from .vocabularies.tables.delimited import read_columns

if TYPE_CHECKING:
    from .pipeline.linker import SapbertLinker
    from .pipeline.linker_config import LINKER_CONFIG

__all__ = [
    "CODE",
    "LINKER_CONFIG",
    "NAME",
    "PARENT",
    "Backend",
    "Fact",
    "Format",
    "Reader",
    "SapbertLinker",
    "best_first",
    "read_columns",
    "read_good_lines",
    "setting",
]


def __getattr__(name: str) -> Any:
    if name in ("LINKER_CONFIG", "SapbertLinker"):  # which import spaCy
        from .pipeline import linker

        return getattr(linker, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
