"""What a mention gets depends on the mention, the options and the version alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.kb.edits.change import add_concepts, remove_concepts
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.search import Threshold, decide
from spacy_sapbert.linking.candidates import Entry, RankedEntry
from spacy_sapbert.linking.link import Linked, SearchResult
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
        "threshold": st.sampled_from([-1.0, 0.6, 0.9, 0.99]),
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
    options = {"threshold": 0.5, **options}  # each has an estimate of its own
    for one, other in zip(
        built.link(mentions, k=k, **options),
        edited.link(mentions, k=k, **options),
        strict=True,
    ):
        assert outline(one) == outline(other)


@pytest.mark.parametrize(
    ("score", "note"), [(0.94996, None), (0.94994, "below_threshold")]
)
def test_a_threshold_is_reached_by_the_score_that_is_shown(score, note):
    best = RankedEntry(score, Entry(0, "C1", "Fever", "fever", 0), score)
    result = SearchResult([best], None)
    assert decide(result, Threshold(0.95, 0.0)) == note
