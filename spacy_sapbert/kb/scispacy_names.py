"""Attributes of scispaCy's linker and knowledge base, and what is there instead."""

from collections.abc import Mapping

from ..errors import SapbertError
from ..io.version import SITE

LINKER = {
    "umls": "`linker.kb`",
    "candidate_generator": "`linker.kb.link(texts, k=k)`",
    "resolve_abbreviations": "the pipe `sapbert_abbreviations` before the linker",
    "max_entities_per_mention": "`linker.k`",
    "filter_for_definitions": '`linker.filter = {"defined": True}`',
}
KNOWLEDGE_BASE = {
    "alias_to_cuis": "`kb.link([alias])`",
    "semantic_type_tree": "`filter.types`, which takes types and groups",
}


class MovedAttributeError(SapbertError, AttributeError):
    """An object has no attribute of this name, and something else in its place."""


def missing_attribute(
    owner: object, name: str, moved: Mapping[str, str]
) -> AttributeError:
    """Return the error for an attribute that an object has not; it may have moved."""
    instead = moved.get(name)
    kind = type(owner).__name__
    if instead is None:
        text = f"{kind!r} object has no attribute {name!r}"
        return AttributeError(text, name=name, obj=owner)
    return MovedAttributeError(
        "E333",
        f"Expected an attribute of {kind}, but got `{name}` of scispaCy. Use "
        f"{instead}; see {SITE}migration.html.",
    )
