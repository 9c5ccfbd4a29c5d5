"""Our side of `benchmarks.linking`, which starts it."""

from typing import Any

from benchmarks.linking_measure import Side, run_side

LIBRARIES = ("spacy", "spacy-transformers", "transformers", "torch", "numpy")


def make_side(settings: dict[str, Any]) -> Side:
    """Make the pipeline.

    settings (dict[str, Any]): `config` of the linker.
    RETURNS (Side): With index and encoder loaded.
    """
    import spacy

    nlp = spacy.blank("en")
    linker: Any = nlp.add_pipe("sapbert_linker", config=settings["config"])
    # Both would be loaded with the first mention.
    linker.kb.index  # noqa: B018
    linker.kb.encoder  # noqa: B018
    return Side(nlp, give_answers, LIBRARIES)


def give_answers(ent: Any) -> list[tuple[str, float]]:
    """Return the candidates of an entity that has a concept."""
    if ent._.cui is None:
        return []
    return [(found["cui"], found["score"]) for found in ent._.candidates]


if __name__ == "__main__":
    run_side(make_side)
