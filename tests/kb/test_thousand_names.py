"""Order, filters, edits and languages meet in one knowledge base of 1,000 names."""

import shutil
from typing import Any

import pytest

from spacy_sapbert.kb.edits.change import add_concepts, remove_concepts
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.linking.certainty import SURE
from spacy_sapbert.linking.filters import Filter
from spacy_sapbert.linking.link import Linked
from spacy_sapbert.vocabularies.concepts import Concept
from tests.thousand_names import LACKING, list_mentions, make_concepts

ENGLISH = Filter(document_language="en")
UNRELATED = [
    Concept("X1", ["qqqq"], types=["T047"], languages={"ENG": [0]}),
    Concept("X2", ["jww"], types=["T184"], languages={"GER": [0]}),
]


@pytest.fixture(scope="module")
def built(thousand_names_kb) -> KnowledgeBase:
    return load_kb(thousand_names_kb)


@pytest.fixture(scope="module")
def kb(thousand_names_kb, tmp_path_factory) -> KnowledgeBase:
    """The same with concepts that are far from all mentions by cosine and letters."""
    folder = tmp_path_factory.mktemp("edited") / "kb"
    shutil.copytree(thousand_names_kb, folder)
    kb = add_concepts(load_kb(folder), [*UNRELATED, Concept("X3", ["qk"])])
    return remove_concepts(kb, ["X3"])


def outline(mention: str, linked: Linked) -> Any:
    """What a mention got, but for numbers."""
    found = [(c["cui"], c["alias"], c["tie"]) for c in linked.candidates]
    return mention, linked.note, linked.cui, found


def compare(mentions: list[str], links: list[Linked], others: list[Linked]) -> None:
    """Hold the links of mentions against others, numbers as far as float32 says."""
    for mention, mine, its in zip(mentions, links, others, strict=True):
        assert outline(mention, mine) == outline(mention, its)
        for one, other in zip(mine.candidates, its.candidates, strict=True):
            assert one["score"] == pytest.approx(other["score"], abs=2e-4)
            chances = [c["probability"] or 0 for c in (one, other)]
            assert chances[0] == pytest.approx(chances[1], abs=1e-3)


def keep_first(links: list[Linked], number: int = 1) -> list[Linked]:
    """The links with their first candidates alone."""
    return [linked._replace(candidates=linked.candidates[:number]) for linked in links]


def test_mention_that_narrows_a_name_may_mean_it_if_that_is_sure(
    thousand_names_kb, tmp_path
):
    shutil.copytree(thousand_names_kb, tmp_path / "kb")
    names = ["Borlun", "acute borlun", "borlun of the left ear"]
    kb = add_concepts(load_kb(tmp_path / "kb"), [Concept("N1", names)])
    mentions = ["chronic borlun", "borlun of the right ear"]
    for linked in kb.link(mentions, threshold=0):
        assert (linked.cui, linked.note) == ("N1", None)
    for linked in [*kb.link(mentions), *kb.link(mentions, threshold=0.1)]:
        first = linked.candidates[0]
        sure = first["probability"] >= SURE
        found = (first["cui"], linked.cui, linked.note)
        assert found == ("N1", *(("N1", None) if sure else (None, "excluded")))
    (negated,) = kb.link(["no borlun"], threshold=0)
    assert negated.cui != "N1"


# Filters


def test_mention_that_a_left_concept_also_has_is_linked_to_it(kb):
    """The acute inflammations of the lung and of the liver have one abbreviation."""
    for concept in ("INF-lung-acute", "INF-liver-acute"):
        (linked,) = kb.link(["ALI"], filter={"deny": [concept]})
        assert (linked.cui, linked.note) == (
            {"INF-lung-acute": "INF-liver-acute"}.get(concept, "INF-lung-acute"),
            None,
        )
        assert linked.candidates[0]["score"] == 1
        assert linked.candidates[0]["tie"] is None
    (linked,) = kb.link(["ALI"], filter={"deny": ["INF-lung-acute", "INF-liver-acute"]})
    assert (linked.cui, linked.note) == (None, "filtered")


# Edits


# Languages


@pytest.fixture(scope="module")
def english(make_kb, built, tmp_path_factory) -> KnowledgeBase:
    """A knowledge base of the English names alone."""
    folder = tmp_path_factory.mktemp("english")
    concepts = make_concepts(["ENG"])
    return load_kb(make_kb(folder, concepts, backend="exact"))


def test_order_of_english_names_does_not_depend_on_other_languages(built, english):
    assert built.manifest.order == english.manifest.order


@pytest.mark.parametrize("types", [[], ["T047", "T191"]])
def test_english_mentions_get_the_same_with_and_without_other_languages(
    built, english, types
):
    filter = Filter(types=types, document_language="en")
    mentions = [*list_mentions(0, 60, 20, 60), "fièvre"]
    both = built.link(mentions, filter=filter)
    compare(mentions, both, english.link(mentions, filter=filter))


# Numerals, opposites and letters


@pytest.mark.parametrize(("threshold", "lang"), [(None, "en"), (-1.0, "")])
def test_a_concept_that_is_lacking_is_never_another_one_of_its_family(
    kb, threshold, lang
):
    filter = Filter(document_language=lang)
    links = kb.link([*LACKING], filter=filter, threshold=threshold)
    for linked, (mention, family) in zip(links, LACKING.items(), strict=True):
        assert linked.cui is None or not linked.cui.startswith(family), mention


# One answer


def test_answer_does_not_depend_on_unrelated_edits(built, kb):
    mentions = [*list_mentions(0, 60, 20, 60), "fièvre"]
    for filter in (ENGLISH, Filter()):
        before, after = (one.link(mentions, filter=filter) for one in (built, kb))
        compare(mentions, keep_first(before), keep_first(after))
