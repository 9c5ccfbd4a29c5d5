"""What a mention gets depends on the mention, the options and the version alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.kb.edits.change import add_concepts, remove_concepts
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.nearest import add_concepts as add_nearest
from spacy_sapbert.kb.search import VOCABULARY_NAME, decide, order_pool
from spacy_sapbert.linking.candidates import Entry, RankedEntry
from spacy_sapbert.linking.features import (
    FoundName,
    pool_concepts,
)
from spacy_sapbert.linking.link import Limits, Linked, SearchResult
from spacy_sapbert.linking.probability import Correction
from spacy_sapbert.vocabularies.concepts import Concept

PLACES = {"ENG": [0, 1]}
BUILT = [
    Concept("C1", ["heart attack", "cardiac attack"], ["T047"], languages=PLACES),
    Concept("C2", ["heart failure", "cardiac failure"], ["T047"], languages=PLACES),
    Concept("C3", ["fever", "pyrexia"], ["T184"], languages=PLACES),
    Concept("C4", ["fevers of the ward", "ward 7"], ["T184"], languages=PLACES),
]
ADDED = [
    Concept("C5", ["heart", "hearts"], ["T023"], languages=PLACES),
    Concept("C3", ["febrile"], languages={"ENG": [0]}),
    Concept("C6", ["acute pain", "pain"], ["T184"], languages=PLACES),
]
MENTIONS = ["heart", "acute heart syndrom", "fevers", "fevërs", "fever", "MI", "", "?!"]
MENTIONS += ["pains", "ward", "cardiac", "hart atack", "febrile", "attack, heart"]
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "threshold": st.sampled_from([0.0, 0.6, 0.9, 0.99]),
        "least_cosine": st.sampled_from([-1.0, 0.6, 0.9, 0.99]),
        "filter": st.sampled_from([{}, {"types": ["T184"]}, {"deny": ["C3"]}]),
    },
)


@pytest.fixture(scope="module", params=["learned", "cosine"])
def learned(request, letters_order) -> Any:
    """The order of both knowledge bases; None = by cosine."""
    return letters_order if request.param == "learned" else None


@pytest.fixture(scope="module")
def built(make_kb, learned, tmp_path_factory) -> KnowledgeBase:
    """A knowledge base of all concepts."""
    united = {concept.cui: concept for concept in BUILT}
    both = Concept("C3", ["fever", "pyrexia", "febrile"], ["T184"])
    both.languages = {"ENG": [0, 1, 2]}
    concepts = [*(united | {"C3": both}).values(), ADDED[0], ADDED[2]]
    folder = tmp_path_factory.mktemp("built")
    folder = make_kb(folder, concepts, learned=learned)
    return load_kb(folder)


@pytest.fixture(scope="module")
def edited(make_kb, learned, tmp_path_factory) -> KnowledgeBase:
    """The same by edits: some are taken back, and one is in another language."""
    folder = tmp_path_factory.mktemp("edited")
    folder = make_kb(folder, BUILT, learned=learned)
    kb = add_concepts(load_kb(folder), ADDED[:1])
    kb = add_concepts(kb, [Concept("X1", ["hart"]), *ADDED[1:]])
    return remove_concepts(kb, ["X1"])


def outline(linked: Linked) -> Any:
    """What a mention got, with scores as far as two machines agree."""
    found = [
        (one["cui"], round(one["score"], 3), one["tie"]) for one in linked.candidates
    ]
    return linked.note, linked.cui, found


@given(
    edit=st.booleans(),
    mentions=st.lists(st.sampled_from(MENTIONS), min_size=1, max_size=9),
    options=OPTIONS,
    k=st.integers(1, 6),
)
def test_a_link_does_not_depend_on_the_batch_or_on_k(
    built, edited, edit, mentions, options, k
):
    kb = edited if edit else built
    kb.clear_cache()
    together = kb.link(mentions, k=k, **options)
    for mention, linked in zip(mentions, together, strict=True):
        kb.clear_cache()
        (alone,) = kb.link([mention], k=k, **options)
        assert outline(linked) == outline(alone)
        (longer,) = kb.link([mention], k=10, **options)
        assert (alone.note, alone.cui) == (longer.note, longer.cui)
        assert outline(longer)[2][:k] == outline(alone)[2][: len(alone.candidates)]
        scores = [one["score"] for one in longer.candidates]
        assert kb.ranker or scores == sorted(scores, reverse=True)


@given(
    mentions=st.lists(st.sampled_from(MENTIONS), min_size=1, max_size=6),
    options=OPTIONS,
    k=st.integers(1, 6),
)
def test_a_name_that_was_added_is_linked_as_if_it_had_been_built_in(
    built, edited, mentions, options, k
):
    for one, other in zip(
        built.link(mentions, k=k, **options),
        edited.link(mentions, k=k, **options),
        strict=True,
    ):
        assert outline(one) == outline(other)


def rank(cui: str, score: float, key: float | None = None) -> RankedEntry:
    name = Entry(0, cui, cui, cui, 0)
    return RankedEntry(score, name, score if key is None else key)


def list_keys(concepts: list[RankedEntry]) -> list[tuple[str, float]]:
    return [(concept.entry.cui, concept.key) for concept in concepts]


def test_concepts_of_a_larger_search_come_after_those_found_before():
    known = [rank("A", 0.9), rank("B", 0.7)]
    # An index that is not exact may find a nearer one late.
    more = [rank("A", 0.9), rank("C", 0.8), rank("D", 0.5), rank("E", 0.4)]
    found = add_nearest(known, more, k=4)
    assert list_keys(found) == [("A", 0.9), ("B", 0.7), ("C", 0.7), ("D", 0.5)]
    assert found[2].score == 0.8
    assert list_keys(add_nearest([], more, k=2)) == [("A", 0.9), ("C", 0.8)]


def test_concepts_that_an_order_does_not_know_come_last():
    """They keep their order by cosine, behind all those of the pool."""
    found = [
        FoundName(0.9, 0, rank("A", 0).entry),
        FoundName(0.8, 0, rank("B", 0).entry),
    ]
    pool = pool_concepts(found, lambda _: VOCABULARY_NAME)
    others = [rank("B", 0.8), rank("C", 0.7), rank("D", -0.5)]
    ordered = [*order_pool(pool, [-9.0, -8.0], others)]
    expected = [("B", -8), ("A", -9), ("C", -10.3), ("D", -11.5)]
    assert list_keys(ordered) == [(cui, pytest.approx(key)) for cui, key in expected]
    assert [concept.score for concept in ordered] == [0.8, 0.9, 0.7, -0.5]
    nothing = pool_concepts([], lambda _: VOCABULARY_NAME)
    assert [*order_pool(nothing, [], others)] == []


LESS = Correction(slope=1.0, intercept=-1.0)


@pytest.mark.parametrize(
    ("result", "limits", "note"),
    [
        ({"probability": 0.5}, {}, None),
        ({"probability": 0.49}, {}, "below_threshold"),
        ({"probability": 0.3}, {"threshold": 0.3}, None),
        ({"probability": 0.0}, {"threshold": 0.0}, None),
        # a limit of cosines is reached by the score that is shown …
        ({"ranked": [rank("A", 0.94996)]}, {"least_cosine": 0.95}, None),
        ({"ranked": [rank("A", 0.94994)]}, {"least_cosine": 0.95}, "below_threshold"),
        # … and the probability counts too, also with any cosine
        ({"probability": 0.4}, {"least_cosine": 0.5}, "below_threshold"),
        ({"probability": 0.4}, {"least_cosine": -1.0}, "below_threshold"),
        ({"probability": 0.4}, {"least_cosine": 0.5, "threshold": 0.4}, None),
        ({}, {"least_cosine": 0.95, "threshold": 0.0}, "below_threshold"),
        # a correction of the log-odds by -1: log(0.7 / 0.3) - 1 < 0
        ({"probability": 0.7}, {"correction": LESS}, "below_threshold"),
        ({"probability": 0.74}, {"correction": LESS}, None),
        ({"excluded": True}, {"threshold": 0.0}, "excluded"),
        ({"ranked": []}, {"threshold": 0.0}, "below_threshold"),
    ],
)
def test_decisions_by_hand(result, limits, note):
    given = SearchResult([rank("A", 0.9)], None, probability=0.9)._replace(**result)
    limits = Limits(**{"threshold": 0.5, **limits})
    assert decide(given, limits) == note
    assert decide(given, limits, barred=True) == "filtered"
