"""scispaCy's side of `benchmarks.linking`, which starts it in scispaCy's environment.

Nothing is imported but the standard library, spaCy and scispaCy. `build` makes
scispaCy's index of a dictionary, which its linker then takes as it takes its own.
"""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from benchmarks.linking_measure import Side, run_side

LIBRARIES = ("scispacy", "spacy", "nmslib-metabrainz", "scikit-learn", "scipy", "numpy")


def make_side(settings: dict[str, Any]) -> Side:
    """Make the pipeline.

    settings (dict[str, Any]): `entities` and `index`, see `build_index`; `linker`, the
        keyword arguments of scispaCy's `EntityLinker`.
    RETURNS (Side): With everything loaded.
    """
    import spacy
    from scispacy.candidate_generation import CandidateGenerator, LinkerPaths
    from scispacy.linking import EntityLinker
    from scispacy.linking_utils import KnowledgeBase
    from spacy.language import Language

    kb = KnowledgeBase(settings["entities"])
    names, vectorizer, index = LinkerPaths.from_directory(settings["index"]).load()
    generator = CandidateGenerator(index, vectorizer, names, kb)

    # Its own factory takes no generator: a config holds plain values only.
    @Language.factory("local_scispacy_linker")
    def make_linker(nlp: Language, name: str) -> EntityLinker:
        return EntityLinker(
            nlp, name, candidate_generator=generator, **settings["linker"]
        )

    nlp = spacy.blank("en")
    nlp.add_pipe("local_scispacy_linker")
    return Side(nlp, lambda ent: ent._.kb_ents, LIBRARIES)


def build_index(entities: Path, out: Path) -> None:
    """Make scispaCy's index.

    entities (Path): JSONL of scispaCy's `Entity`.
    out (Path): Folder, which takes its name once it is whole.
    """
    from scispacy.candidate_generation import create_tfidf_ann_index
    from scispacy.linking_utils import KnowledgeBase

    part = out.with_name(f"{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    create_tfidf_ann_index(os.fspath(part), KnowledgeBase(entities))
    part.rename(out)


if __name__ == "__main__":
    if sys.argv[1] == "build":
        build_index(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        run_side(make_side)
