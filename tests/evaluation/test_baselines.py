import numpy as np
import pytest

from spacy_sapbert.evaluation.accuracy import list_concepts
from spacy_sapbert.evaluation.baselines import (
    make_exact_lookup,
    make_tfidf_search,
    read_dictionary,
)
from spacy_sapbert.vocabularies.concepts import Concept


def test_read_dictionary_folds_names_and_knows_retired_ids() -> None:
    concepts = [
        Concept("C1", ["Fever", "FEVER", "high  temperature"], retired=["C9", "C2"]),
        Concept("C2", ["fever"]),
    ]
    dictionary = read_dictionary(concepts)
    assert dictionary.names == {"fever": 0, "high temperature": 1}
    assert dictionary.cuis == [["C1", "C2"], ["C1"]]
    assert dictionary.lookup("C9") == "C1"
    assert dictionary.lookup("C2") == "C2"  # an id in use was not retired
    assert dictionary.lookup("C3") is None


def test_a_cased_dictionary_keeps_case_and_looks_mentions_up_by_it() -> None:
    concepts = [Concept("C1", ["Polish", "POLISH"]), Concept("C2", [" polish  it"])]
    dictionary = read_dictionary(concepts, lowercase=False)
    assert dictionary.names == {"Polish": 0, "POLISH": 1, "polish it": 2}
    rank = make_exact_lookup(dictionary, {})
    found = [list_concepts(answers) for answers in rank([" Polish", "polish"])]
    assert found == [[(1.0, "C1")], []]


def test_exact_lookup_ties_all_concepts_of_the_name(
    few_concepts: list[Concept],
) -> None:
    rank = make_exact_lookup(read_dictionary(few_concepts), {})
    both, fever, unknown = rank(["mi", " FEVER", "heart atack"])
    assert list_concepts(both) == [(1.0, "C0000001"), (1.0, "C0000002")]
    assert list_concepts(fever) == [(1.0, "C0000004")]
    assert unknown == []


def test_baselines_answer_with_the_id_that_stands_for_others(
    few_concepts: list[Concept],
) -> None:
    dictionary = read_dictionary(few_concepts)
    aliases = {"C0000002": "C0000001"}
    (answers,) = make_exact_lookup(dictionary, aliases)(["MI"])
    assert list_concepts(answers) == [(1.0, "C0000001")]
    (answers,) = make_tfidf_search(dictionary, aliases, k=3)(["MI"])
    assert list_concepts(answers)[0] == (1.0, "C0000001")


def test_tfidf_search_equals_dense_cosines(few_concepts: list[Concept]) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    dictionary = read_dictionary(few_concepts)
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3))
    names = vectorizer.fit_transform(dictionary.names).toarray()
    rank = make_tfidf_search(dictionary, {}, k=2)
    mentions = ["heart atack", "Headaches", "diabetes"]
    for mention, answers in zip(mentions, rank(mentions), strict=True):
        cosines = names @ vectorizer.transform([mention]).toarray()[0]
        assert answers[0].row == np.argmax(cosines)
        for answer in answers:
            assert answer.score == pytest.approx(cosines[answer.row], abs=1e-6)


def test_tfidf_search_gives_whole_ties_and_nothing_without_a_common_ngram() -> None:
    concepts = [Concept(f"C{i:03}", ["fever", f"name {i}"]) for i in range(300)]
    rank = make_tfidf_search(read_dictionary(concepts), {}, k=1)
    tied, nothing = rank(["fever", "qqq"])
    assert {cui for score, cui in list_concepts(tied) if score == 1} == {
        concept.cui for concept in concepts
    }
    assert nothing == []


def test_tfidf_search_asks_for_more_where_one_concept_has_many_names() -> None:
    many = Concept("C1", [f"fever {i:03}" for i in range(500)])
    rank = make_tfidf_search(
        read_dictionary([many, Concept("C2", ["feverfew"])]), {}, k=2
    )
    (answers,) = rank(["fever"])
    assert [cui for _, cui in list_concepts(answers)] == ["C1", "C2"]
