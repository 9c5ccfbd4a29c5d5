"""What a package needs that adds readers, formats, index backends or a linker.

And the matcher for packages that use ssslm. These names stay; the modules that they
come from may change. Examples: https://spacy-sapbert.github.io/spacy-sapbert/extending.html
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .formats.format_table import Format
from .kb.indexes.backends import Backend, best_first, setting
from .vocabularies.facts import CODE, NAME, PARENT, Fact
from .vocabularies.reader_table import Reader
from .vocabularies.report import read_good_lines
from .vocabularies.tables.delimited import read_columns

# Names that need other packages: spaCy, ssslm.
LATER = {
    "LINKER_CONFIG": "pipeline.linker",
    "SapbertLinker": "pipeline.linker",
    "SapbertMatcher": "kb.ssslm_matcher",
}

if TYPE_CHECKING:
    from .kb.ssslm_matcher import SapbertMatcher
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
    "SapbertMatcher",
    "best_first",
    "read_columns",
    "read_good_lines",
    "setting",
]


def __getattr__(name: str) -> Any:
    if name in LATER:
        return getattr(import_module(f".{LATER[name]}", __package__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
