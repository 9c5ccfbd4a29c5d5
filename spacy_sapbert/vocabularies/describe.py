"""What is in a vocabulary: languages, sources, types, codes, and examples."""

from collections import Counter
from collections.abc import Iterable

from .concepts import Concept

EXAMPLES = 10
KINDS = ("languages", "sources", "types", "codes")
SHOWN = 10  # keys of each kind

Counts = dict[str, Counter[str]]


def describe_concepts(concepts: Iterable[Concept]) -> tuple[Counts, list[Concept]]:
    """Count what concepts have, by kind and key, and keep the first ones.

    Of languages and sources names are counted, of types concepts, of codes themselves.
    """
    counts: Counts = {kind: Counter() for kind in KINDS}
    examples: list[Concept] = []
    for concept in concepts:
        if len(examples) < EXAMPLES:
            examples.append(concept)
        for kind in ("languages", "sources", "codes"):
            for key, values in getattr(concept, kind).items():
                counts[kind][key] += len(values)
        counts["types"].update(concept.types)
    return counts, examples


def describe_rows(counts: Counts) -> list[tuple[str, str]]:
    """Return the counts as rows of a table, the highest first."""
    rows = []
    for kind, of_kind in counts.items():
        shown = of_kind.most_common(SHOWN)
        text = ", ".join(f"{key} {number:,}" for key, number in shown)
        more = len(of_kind) - len(shown)
        rows.append((kind, text + (f" and {more:,} others" if more else "") or "none"))
    return rows


def example_row(concept: Concept) -> tuple[str, str, str, str, str]:
    """Return a concept as a row: id, name, other names, types, codes."""
    others = [name[:40] for name in concept.aliases[1:4]]
    more = [f"… {len(concept.aliases):,}"] if len(concept.aliases) > 4 else []
    codes = [
        f"{source}:{code[:20]}"
        for source, some in concept.codes.items()
        for code in some
    ]
    return (
        concept.cui[:40],
        concept.name[:40],
        "; ".join([*others, *more]),
        ", ".join(concept.types[:3]),
        ", ".join(codes[:3]),
    )
