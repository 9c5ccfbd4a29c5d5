"""Learn the order that the package ships, from annotated mentions of public corpora.

    python -m benchmarks.general_order DATA WORK --encoder models/minilm

The train documents of NCBI disease and BC5CDR disease are linked with MEDIC, which has
not learned from them. The trees have to work for other vocabularies: they see how a
mention and a candidate are alike, never which they are. Mentions that are made of names
count too, so that a left-out name or a typing error is not forgotten.
"""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.harness import run_cli
from benchmarks.order import SETS, build, leave_out_composites, read_documents
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.io.writing import write_json
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.learned_order.boost import fit_trees, join_candidates
from spacy_sapbert.kb.learned_order.fit import Example
from spacy_sapbert.kb.learned_order.names import (
    GENERAL_FILE,
    LEFT_FAR,
    SEED,
    make_examples,
)
from spacy_sapbert.kb.teaching.documents import resolve_documents
from spacy_sapbert.kb.teaching.examples import search_names
from spacy_sapbert.linking.features import EXCLUDED, OF_NAMES, Features, pool_concepts
from spacy_sapbert.linking.filters import Filter
from spacy_sapbert.linking.groups import Groups
from spacy_sapbert.linking.ranker import BEHIND_FIRST, is_known
from spacy_sapbert.vocabularies.concepts import read_concepts
from training.corpora.biosyn import KnownConcepts, preprocess_documents

LEARNED_FROM = ("ncbi", "bc5cdr-disease")
NAMES_SHARE = 0.25  # of all that counts: mentions made of names
FEATURES = (*OF_NAMES, BEHIND_FIRST)


def find_annotated(kb: KnowledgeBase, mentions: set[tuple[str, str]]) -> list[Example]:
    """Return the candidates of mentions that are no names, each with its concept."""
    texts = sorted({text for text, _ in mentions})
    found = dict(zip(texts, search_names(kb, kb, texts, progress=True), strict=True))
    examples: list[Example] = []
    for text, cui in sorted(mentions):
        names, named, near = found[text]
        pool = pool_concepts(names, kb.searcher.find_provenance)
        if not named and cui in pool.near:
            words = kb.searcher.agreement
            features = words.features([text], [pool], Filter(), around=[near])
            right = pool.cuis.index(cui)
            examples.append(Example(right, features, is_name=False))
    return examples


def is_usable(example: Example) -> bool:
    """Return whether the right one can be found, and no word may be misspelled."""
    features, right = example.features, example.right
    if right is None or features[EXCLUDED][right]:
        return False
    return bool(is_known(features, one_mention(features)).all())


def one_mention(features: Features) -> Groups:
    return Groups([len(features[EXCLUDED])])


def main(
    data: Annotated[Path, typer.Argument(help="Folder with vocabularies and corpora.")],
    folder: Annotated[Path, typer.Argument(help="For what is built.")],
    encoder: Annotated[str, typer.Option(help="Folder or hub id.")],
) -> None:
    """Write the order that the package ships."""
    sets = [SETS[name] for name in LEARNED_FROM]  # of one vocabulary
    path = build(sets[0], data, folder, encoder, SEED, raw=False)
    kb = load_kb(path)
    known = KnownConcepts(read_concepts(path.parent / "concepts.jsonl"))
    annotated: list[Example] = []
    for gold in sets:
        read = map(leave_out_composites, read_documents(data / gold.train, gold))
        documents, _ = resolve_documents(
            preprocess_documents(read, known), partial(find_cui, kb), [], add=False
        )
        mentions = {pair for document in documents for pair in document.mentions}
        annotated += filter(is_usable, find_annotated(kb, mentions))
    made = [e for e in make_examples(kb, progress=True) if e.kind != LEFT_FAR]
    made = [example for example in made if is_usable(example)]
    share = NAMES_SHARE / (1 - NAMES_SHARE) * len(annotated) / len(made)
    order = kb.manifest.order
    assert order is not None
    linear = order.ranker.model_copy(update={"general": None})
    examples = [*annotated, *made]
    candidates = join_candidates(
        [linear.with_order(e.features, one_mention(e.features)) for e in examples],
        [example.right for example in examples if example.right is not None],
        [1.0] * len(annotated) + [share] * len(made),
        FEATURES,
    )
    trees = fit_trees(candidates, FEATURES)
    write_json(GENERAL_FILE, trees.model_dump())
    msg.good(
        f"{GENERAL_FILE.name}: {len(trees.trees)} trees from {len(annotated):,} "
        f"annotated mentions and {len(made):,} made of names"
    )


def find_cui(kb: KnowledgeBase, id: str) -> str | None:
    concept = kb.concept(id)
    return None if concept is None else concept.cui


if __name__ == "__main__":
    run_cli(main)
