"""What a mention is linked to: it depends on mention, options and version alone."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.search import Threshold, decide
from spacy_sapbert.kb.teaching.teach import teach_documents
from spacy_sapbert.linking.candidates import Entry, RankedEntry
from spacy_sapbert.linking.link import Linked, SearchResult
from spacy_sapbert.linking.ranker import Ranker, Weights
from spacy_sapbert.vocabularies.concepts import Concept
from tests.building import annotated_document, annotated_mention

SYLLABLES = ["ka", "lo", "mi", "ne", "ru", "sta", "pre", "vol", "tin", "gra"]
MODES: dict[str, dict[str, Any]] = {
    "cosine": {},
    "filter": {"filter": {"types": ["T1"]}},
}


def make_words(number: int) -> list[str]:
    chance = random.Random(0)
    return ["".join(chance.choices(SYLLABLES, k=4)) for _ in range(number)]


@pytest.fixture(scope="module")
def plain_kb(
    make_kb: Callable[..., Path], letters_order: Any, tmp_path_factory: Any
) -> Path:
    """600 names of two words that are much alike: more than a search reads at first."""
    words = sorted({*make_words(60)})
    concepts = [
        Concept(
            f"C{place:03}",
            [f"{word} {other}" for other in words[place % 7 :: 7]],
            types=[f"T{place % 2}"],
            parents=[f"C{place // 3:03}"] if place else [],
        )
        for place, word in enumerate(words)
    ]
    folder = tmp_path_factory.mktemp("plain")
    return make_kb(folder, concepts, backend="exact", learned=letters_order)


@pytest.fixture(scope="module")
def taught_kb(plain_kb: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a few annotated mentions, too few for an order."""
    folder = tmp_path_factory.mktemp("taught") / "kb"
    mentions = [annotated_mention("kalomine kalo", [["C001"]])]
    document = annotated_document("made up", "kalomine kalo", mentions)
    kb, _ = teach_documents(load_kb(plain_kb), [document], output=folder, force=True)
    assert kb.manifest.taught is not None
    return folder


def make_ranker(**weights: float) -> Ranker:
    """A learned order by few features; the probability is that of the margin."""
    zeros, ones = dict.fromkeys(weights, 0.0), dict.fromkeys(weights, 1.0)
    taught = Weights(mean=zeros, scale=ones, weight=weights)
    return Ranker(taught=taught, intercept=2.0, threshold=0.5)


@pytest.fixture(params=["plain", "taught order"])
def kb(request: pytest.FixtureRequest, plain_kb: Path, taught_kb: Path) -> Any:
    """The knowledge base, or one with an order that is not that of the cosines."""
    if request.param == "plain":
        return load_kb(plain_kb)
    kb = load_kb(taught_kb)
    kb.parts.ranker = make_ranker(characters=9.0, words_shared=-4.0)
    return kb


@pytest.fixture(scope="module")
def mentions() -> list[str]:
    chance = random.Random(1)
    words = make_words(60)
    made = [f"{chance.choice(words)} {chance.choice(words)}" for _ in range(6)]
    return [*made, *(text[: len(text) // 2] for text in made), "ka", "q 7", "..."]


def list_thresholds(kb: KnowledgeBase, mentions: list[str]) -> Iterator[float | None]:
    """Yield thresholds that some of the candidates pass, and none."""
    scores = sorted(
        candidate["score"]
        for linked in kb.link(mentions, k=10, threshold=-1)
        for candidate in linked.candidates
    )
    yield from (None, *scores[:: len(scores) // 2])


@pytest.mark.parametrize("mode", MODES)
def test_link_does_not_depend_on_k(
    kb: KnowledgeBase, mentions: list[str], mode: str
) -> None:
    nothing = 0
    for threshold in list_thresholds(kb, mentions):
        settings = {**MODES[mode], "threshold": threshold}
        many = kb.link(mentions, k=60, **settings)
        nothing += sum(linked.cui is None for linked in many)
        for k in (1, 25):
            kb.clear_cache()
            few = kb.link(mentions, k=k, **settings)
            cut = [Linked(each.candidates[:k], each.note, each.cui) for each in many]
            assert [each[1:] for each in few] == [each[1:] for each in cut]
            assert few == cut
    assert 0 < nothing < 4 * len(mentions)


@pytest.mark.parametrize("mode", MODES)
def test_link_compares_the_threshold_with_the_concept_that_would_be_linked(
    kb: KnowledgeBase, mentions: list[str], mode: str
) -> None:
    for threshold in list_thresholds(kb, mentions):
        if threshold is None:
            continue
        for linked in kb.link(mentions, threshold=threshold, **MODES[mode]):
            if linked.candidates:
                passes = linked.candidates[0]["score"] >= threshold
                assert (linked.cui is not None) == passes


@pytest.fixture(scope="module")
def families(make_kb: Callable[..., Path], tmp_path_factory: Any) -> KnowledgeBase:
    """Concepts that differ in numerals, opposites and letters, ordered by cosine."""
    concepts = [
        *(Concept(f"V{n:02}", [f"Velmor syndrome type {n}"]) for n in range(1, 16)),
        Concept("A1", ["acute rash"]),
        Concept("L1", ["Tolan fever A"]),
        *(Concept(f"W{n:02}", [word]) for n, word in enumerate(make_words(20))),
    ]
    folder = tmp_path_factory.mktemp("families")
    return load_kb(make_kb(folder, concepts, backend="exact", order="none"))


@pytest.mark.parametrize("threshold", [None, 0.0, -1.0])
def test_mention_whose_nearest_concepts_are_excluded_has_none(
    families: KnowledgeBase, threshold: float | None
) -> None:
    every = families.link(["Velmor syndrome type 99"], k=30, threshold=threshold)[0]
    assert (every.cui, every.note) == (None, "excluded")
    # They are shown in their order all the same, and the first ones for any k.
    scores = [candidate["score"] for candidate in every.candidates]
    assert scores == sorted(scores, reverse=True)
    assert every.candidates[0]["cui"].startswith("V")
    for k in (1, 5, 12):
        few = families.link(["Velmor syndrome type 99"], k=k, threshold=threshold)[0]
        assert few.candidates == every.candidates[:k]
        assert (few.cui, few.note) == (None, "excluded")


@pytest.mark.parametrize(
    ("mention", "excluded"), [("chronic rash", "A1"), ("Tolan fever B", "L1")]
)
def test_excluded_concepts_come_after_the_others_that_are_near(
    families: KnowledgeBase, mention: str, excluded: str
) -> None:
    every = families.link([mention], k=30)[0]
    cuis = [candidate["cui"] for candidate in every.candidates]
    assert excluded in cuis[1:10]
    assert every.cui == cuis[0]
    for k in (1, 5, 12):
        assert families.link([mention], k=k)[0].candidates == every.candidates[:k]
    (alone,) = families.link([mention], filter={"allow": [excluded]})
    assert (alone.cui, alone.note) == (None, "filtered")
    (alone,) = families.link([mention], filter={"allow": [excluded]}, threshold=1)
    assert (alone.cui, alone.note) == (None, "excluded")


@pytest.mark.parametrize(
    ("score", "note"), [(0.94996, None), (0.94994, "below_threshold")]
)
def test_a_threshold_is_reached_by_the_score_that_is_shown(
    score: float, note: str | None
) -> None:
    best = RankedEntry(score, Entry(0, "C1", "Fever", "fever", 0), score)
    result = SearchResult([best], None)
    assert decide(result, Threshold(0.95, 0.0)) == note
