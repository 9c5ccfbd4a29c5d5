"""Concepts and names in SQLite, and the concepts nearest to a concept."""

import shutil
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from spacy_sapbert.kb.edits.change import add_concepts, remove_concepts
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.vocabularies.concepts import Concept

WORDS = ["heart", "attack", "fever", "pain", "diabetes", "acute"]
# Six trunks, and under each six branches; some share names, one has none to read.
CONCEPTS = [
    *(Concept(f"T{i}", [word, f"the {word}"]) for i, word in enumerate(WORDS)),
    *(
        Concept(
            f"B{i}{j}",
            [f"{word} {other}", f"{other} of {word}"],
            parents=[f"T{i}", *(["T0"] if j == 5 else [])],
        )
        for (i, word), (j, other) in product(enumerate(WORDS), enumerate(WORDS))
    ),
    Concept("S1", ["pain of heart", "heartpain"], parents=["none"], retired=["OLD"]),
    Concept("S2", ["pain of the heart"], parents=["none"]),
    Concept("U", ["頭痛"], parents=["T2"]),
]


@pytest.fixture(scope="module", params=["hnsw", "faiss"])
def built(request, make_kb, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("related")
    return make_kb(folder, CONCEPTS, backend=request.param)


@pytest.fixture(scope="module")
def kb(built) -> KnowledgeBase:
    return load_kb(built)


def compare_all(kb: KnowledgeBase, cui: str) -> dict[str, float]:
    """The highest cosine of any name of each other concept and any of this one."""
    entries = [e for some in kb.entries(range(kb.rows)).values() for e in some]
    vectors = kb.vectors(np.array([entry.row for entry in entries]))
    own = vectors[[entry.cui == cui for entry in entries]]
    best: dict[str, float] = {}
    for entry, score in zip(entries, (vectors @ own.T).max(axis=1), strict=True):
        best[entry.cui] = max(best.get(entry.cui, -1), float(score))
    del best[cui]
    return best


def check_all(kb: KnowledgeBase) -> None:
    concepts = {concept.cui: concept for concept in kb.concepts()}
    for cui in concepts:
        if cui == "U":
            continue
        wanted = compare_all(kb, cui)
        found = kb.related(cui, k=1000)
        assert {one.cui: one.score for one in found} == pytest.approx(wanted, abs=6e-5)
        assert found == sorted(found, key=lambda one: (-one.score, one.cui))
        for one in found:
            assert one.name == concepts[one.cui].name
        for k in range(1, 12):  # whichever of equal scores is the nearest by digits
            assert kb.related(cui, k=k) == found[:k]


def test_related_has_added_and_no_removed_concepts(built, tmp_path):
    kb = load_kb(shutil.copytree(built, tmp_path / "kb"))
    added = [
        Concept("L1", ["acute pain of it"], parents=["T3"]),
        Concept("L2", ["it"], parents=["L1"]),
        Concept("B00", ["broken heart"], parents=["L1"]),
    ]
    kb = remove_concepts(add_concepts(kb, added), ["T4", "B45"])
    kb = remove_concepts(kb, ["B01"], alias="heart attack")
    check_all(kb)
    kinds = {one.cui: one.relation for one in kb.related("L1", k=1000)}
    assert {kinds["T3"], kinds["L2"], kinds["B31"]} == {"parent", "child", "sibling"}
    assert kinds["B00"] == "child"  # by what was added to it
    assert {"T4", "B45"}.isdisjoint(kinds)


def test_related_concepts_with_an_equal_name_come_first(kb, encoded):
    check_all(kb)
    names: dict[str, list[str]] = {"B03": ["S1"], "S1": ["B03"]}
    for cui, others in names.items():
        first = kb.related(cui, k=1)
        assert [one.cui for one in first] == others
        assert first[0].score == pytest.approx(1, abs=6e-5)
        assert first[0].relation is None
    # A parent that is no concept makes siblings all the same.
    kinds = {one.cui: one.relation for one in kb.related("S1")}
    assert kinds["S2"] == "sibling"
    assert kb.related("U") == []  # which the encoder cannot read
    encoded.clear()
    with pytest.warns(UserWarning, match="W001.*OLD.*S1"):
        assert kb.related("OLD") == kb.related("S1")
    assert encoded == []
