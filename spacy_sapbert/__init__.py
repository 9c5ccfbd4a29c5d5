"""Link entities of spaCy pipelines to UMLS or any vocabulary with SapBERT encoders.

The public names are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# public name: module that defines it
PUBLIC = {
    "Candidate": "linking.candidates",
    "Concept": "vocabularies.concepts",
    "Filter": "linking.filters",
    "KnowledgeBase": "kb.knowledge_base",
    "LinkOptions": "linking.options",
    "Linked": "linking.link",
    "SapbertError": "errors",
    "add_concepts": "kb.overlay",
    "build_kb": "kb.build",
    "load_kb": "kb.knowledge_base",
    "package_kb": "kb.packaging",
    "read_concepts": "vocabularies.concepts",
    "read_docs": "formats.registry",
    "read_vocabulary": "vocabularies.registry",
    "remove_concepts": "kb.overlay",
    "write_concepts": "vocabularies.concepts",
    "write_linked": "formats.registry",
}
__all__ = [*PUBLIC, "__version__"]  # noqa: PLE0604

if TYPE_CHECKING:
    from .errors import SapbertError
    from .formats.registry import read_docs, write_linked
    from .kb.build import build_kb
    from .kb.knowledge_base import KnowledgeBase, load_kb
    from .kb.overlay import add_concepts, remove_concepts
    from .kb.packaging import package_kb
    from .linking.candidates import Candidate
    from .linking.filters import Filter
    from .linking.link import Linked
    from .linking.options import LinkOptions
    from .vocabularies.concepts import Concept, read_concepts, write_concepts
    from .vocabularies.registry import read_vocabulary


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{PUBLIC[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC})
