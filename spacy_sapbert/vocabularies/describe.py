"""What is in a vocabulary: languages, sources, types, codes, and examples."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from .concepts import Concept

EXAMPLES = 10
KEYS = 10_000  # of one kind; a hostile file may have a source for each name


@dataclass(slots=True)
class Description:
    """What was found in a vocabulary.

    Attributes:
        languages: Names in each language.
        sources: Names from each source.
        types: Concepts of each semantic type.
        codes: Codes of each source.
        examples: The first concepts.
    """

    languages: dict[str, int] = field(default_factory=dict)
    sources: dict[str, int] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)
    examples: list[Concept] = field(default_factory=list)


def describe_concepts(concepts: Iterable[Concept]) -> Description:
    """Read all concepts and count what they have."""
    description = Description()
    for concept in concepts:
        if len(description.examples) < EXAMPLES:
            description.examples.append(concept)
        for counts, lists in (
            (description.languages, concept.languages),
            (description.sources, concept.sources),
            (description.codes, concept.codes),
        ):
            for key, values in lists.items():
                add(counts, key, len(values))
        for type in concept.types:
            add(description.types, type, 1)
    return description


def add(counts: dict[str, int], key: str, number: int) -> None:
    """Add to a count; keys above the limit are not counted."""
    if key in counts or len(counts) < KEYS:
        counts[key] = counts.get(key, 0) + number


def describe_rows(description: Description, shown: int = 10) -> list[tuple[str, str]]:
    """Return the counts as rows of a table, the highest first.

    Args:
        shown: Keys of each kind.
    """
    rows = []
    for what in ("languages", "sources", "types", "codes"):
        counts = sorted(getattr(description, what).items(), key=lambda row: -row[1])
        text = ", ".join(f"{key} {number:,}" for key, number in counts[:shown])
        rest = f" and {len(counts) - shown:,} others" if len(counts) > shown else ""
        rows.append((what, text + rest or "none"))
    return rows


def example_row(concept: Concept) -> tuple[str, str, str, str, str]:
    """Return a concept as a row: id, name, other names, types, codes."""
    others = [name[:40] for name in concept.aliases[1:4]]
    more = [f"… {len(concept.aliases):,}"] if len(concept.aliases) > 4 else []
    codes = [
        f"{source}:{code[:20]}" for source, c in concept.codes.items() for code in c
    ]
    return (
        concept.cui[:40],
        concept.name[:40],
        "; ".join([*others, *more]),
        ", ".join(concept.types[:3]),
        ", ".join(codes[:3]),
    )
