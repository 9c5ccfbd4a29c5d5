"""What a package needs that adds readers, formats or index backends: docs/extending.md.

These names stay; the modules that they come from may change.
"""

from .formats.registry import Format
from .kb.indexes.backend import Backend, best_first, setting
from .vocabularies.facts import NAME, Fact
from .vocabularies.registry import Reader
from .vocabularies.report import read_good_lines

__all__ = [
    "NAME",
    "Backend",
    "Fact",
    "Format",
    "Reader",
    "best_first",
    "read_good_lines",
    "setting",
]
