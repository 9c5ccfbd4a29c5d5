from spacy_sapbert.evaluation.accuracy import list_concepts
from spacy_sapbert.evaluation.rankers import kb_lookup, kb_ranker
from spacy_sapbert.kb.knowledge_base import KnowledgeBase


def test_kb_ranker_ranks_concepts_as_the_linker_does(kb: KnowledgeBase) -> None:
    mentions = ["heart attack", "fevers", "MI", "head pain acute"]
    ranked = kb_ranker(kb, {}, k=3)(mentions)
    for linked, answers in zip(kb.link(mentions, k=3), ranked, strict=True):
        found = list_concepts(answers)[:3]
        assert [cui for _, cui in found] == [c["cui"] for c in linked.candidates]
        scores = [c["score"] for c in linked.candidates]
        assert [round(score, 4) for score, _ in found] == scores


def test_kb_ranker_has_no_answer_if_the_linker_does_not_search(
    kb: KnowledgeBase,
) -> None:
    assert kb_ranker(kb, {}, k=3)(["...", "   ", "𐎀"]) == [[], [], []]


def test_kb_ranker_returns_all_that_tie(kb: KnowledgeBase) -> None:
    (answers,) = kb_ranker(kb, {}, k=1)(["MI"])
    assert [cui for _, cui in list_concepts(answers)] == ["C0000001", "C0000002"]
    (answers,) = kb_ranker(kb, {"C0000002": "C0000001"}, k=1)(["MI"])
    assert [cui for _, cui in list_concepts(answers)] == ["C0000001"]


def test_kb_lookup_finds_retired_ids(kb: KnowledgeBase) -> None:
    lookup = kb_lookup(kb)
    assert lookup("C9999999") == lookup("C0000001") == "C0000001"
    assert lookup("C1234567") is None
