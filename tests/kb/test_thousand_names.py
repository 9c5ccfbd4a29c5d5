"""Order, filters, edits and languages meet in one knowledge base of 1,000 names."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from spacy_sapbert.kb.edits.change import add_concepts, remove_concepts
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.linking.filters import Filter
from spacy_sapbert.linking.link import Linked
from spacy_sapbert.vocabularies.concepts import Concept
from tests.thousand_names import list_mentions, make_concepts

MENTIONS = [*list_mentions(0, 60, 20, 60), "fièvre"]
# far from all mentions by cosine and letters
UNRELATED = [
    Concept("X1", ["qqqq"], types=["T047"], languages={"ENG": [0]}),
    Concept("X2", ["jww"], types=["T184"], languages={"GER": [0]}),
    Concept("X3", ["qk"]),
]


def compare(links: list[Linked], others: list[Linked], k: int) -> None:
    """Hold the links of mentions against others, numbers as far as float32 says."""
    for mention, mine, its in zip(MENTIONS, links, others, strict=True):
        assert (mine.note, mine.cui) == (its.note, its.cui), mention
        pairs = zip(mine.candidates[:k], its.candidates[:k], strict=True)
        for one, other in pairs:
            for key in ("cui", "alias", "tie"):
                assert one[key] == other[key], mention  # type: ignore[literal-required]
            assert one["score"] == pytest.approx(other["score"], abs=2e-4)
            chances = [c["probability"] or 0 for c in (one, other)]
            assert chances[0] == pytest.approx(chances[1], abs=1e-3)


def list_numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Yield each number in a record, with its place."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in pairs:
            yield from list_numbers(part, f"{name}.{key}")
    elif isinstance(value, int | float):
        yield name, value


def test_english_mentions_get_the_same_with_and_without_other_languages(
    thousand_names_kb, make_kb, tmp_path
):
    built = load_kb(thousand_names_kb)
    concepts = make_concepts(["ENG"])
    english = load_kb(make_kb(tmp_path / "own", concepts, backend="exact"))
    assert built.manifest.order is not None
    assert english.manifest.order is not None
    orders = [kb.manifest.order.model_dump() for kb in (built, english)]
    mine, its = (dict(list_numbers(order)) for order in orders)
    assert mine == pytest.approx(its, rel=0.01, abs=0.01)
    # With one order, since digits of two decide between concepts that are equally far.
    order = built.manifest.order
    folder = make_kb(tmp_path / "same", concepts, backend="exact", learned=order)
    english = load_kb(folder)
    for types in ([], ["T047", "T191"]):
        filter = Filter(types=types, document_language="en")
        both, alone = (kb.link(MENTIONS, filter=filter) for kb in (built, english))
        compare(both, alone, k=9)


def test_answer_does_not_depend_on_unrelated_edits(thousand_names_kb, tmp_path):
    built = load_kb(thousand_names_kb)
    edited = load_kb(shutil.copytree(thousand_names_kb, tmp_path / "kb"))
    edited = remove_concepts(add_concepts(edited, UNRELATED), ["X3"])
    for filter in (Filter(document_language="en"), Filter()):
        before, after = (kb.link(MENTIONS, filter=filter) for kb in (built, edited))
        compare(before, after, k=1)


def test_answer_after_a_removal_is_that_of_a_filter(thousand_names_kb, tmp_path):
    """What is removed takes no place of others, near names by cosine and 3-grams."""
    built = load_kb(thousand_names_kb)
    near = built.link(MENTIONS, k=3)
    removed = sorted({c["cui"] for link in near for c in link.candidates})[::2]
    edited = load_kb(shutil.copytree(thousand_names_kb, tmp_path / "kb"))
    edited = remove_concepts(edited, removed)
    left = built.link(MENTIONS, filter=Filter(deny=removed), k=5)
    for mention, mine, its in zip(
        MENTIONS, edited.link(MENTIONS, k=5), left, strict=True
    ):
        cuis, others = ([c["cui"] for c in link.candidates] for link in (mine, its))
        assert cuis == others, mention
        scores = [c["score"] for c in its.candidates]
        assert [c["score"] for c in mine.candidates] == pytest.approx(scores, abs=2e-4)
    vectors = built.embed(MENTIONS[:1]).vectors
    rows, _ = edited.search(vectors, 30)
    assert {*rows[0].tolist()} == {*edited.entries(rows[0].tolist())}


@pytest.mark.parametrize("backend", ["exact", "hnsw", "faiss"])
def test_answer_after_a_removal_is_that_without_the_concept(
    make_kb, letters_order, tmp_path, backend
):
    """Of a concept with more names than are searched for."""
    kept = [Concept("G", ["metformin"]), Concept("O", ["oxygen", "Glucophage"])]
    names = [f"metformin tablet {number} of them" for number in range(100, 300)]
    many = Concept("Z", names)
    mentions = ["metformin tablet of them", "metformin tablets 3 of them", "tablet"]
    folder = make_kb(
        tmp_path / "all", [*kept, many], backend=backend, learned=letters_order
    )
    edited = remove_concepts(load_kb(folder), ["Z"])
    without = load_kb(
        make_kb(tmp_path / "kept", kept, backend=backend, learned=letters_order)
    )
    for mine, its in zip(edited.link(mentions), without.link(mentions), strict=True):
        assert mine.cui == its.cui
        assert [c["cui"] for c in mine.candidates] == [c["cui"] for c in its.candidates]
        assert len(mine.candidates) == 2
    assert add_concepts(edited, [many]).link(names[:1])[0].cui == "Z"
