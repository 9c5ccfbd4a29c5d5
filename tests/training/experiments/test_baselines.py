import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from spacy_sapbert.evaluation.accuracy import Answer, list_concepts
from spacy_sapbert.evaluation.gold_mentions import make_resolver
from spacy_sapbert.vocabularies.concepts import Concept
from tests.commands import invoke
from training.__main__ import app
from training.data.dictionary import read_dictionary
from training.experiments.baselines import (
    back_off_ranker,
    exact_lookup,
    read_training_mentions,
    tfidf_ranker,
)

run = partial(invoke, "evaluate-baseline", app=app)
GOLD = """mention\tids
Fever\tC0000004
MI\tC0000001
heart attack\tC9999999
nonsense\tC0000001+C0000002
headache\tC0000007
"""


@pytest.mark.parametrize(
    ("baseline", "lenient"), [("exact", 0.8), ("tfidf", 0.8), ("back-off", 0.6)]
)
def test_evaluate_baseline_writes_results_as_evaluate_does(
    sample_kb: Path, tmp_path: Path, baseline: str, lenient: float
) -> None:
    if baseline == "tfidf":
        pytest.importorskip("sklearn", reason="no scikit-learn")
    gold, train, output = (tmp_path / name for name in ("g.tsv", "t.txt", "r.json"))
    gold.write_text(GOLD, "utf8")
    train.write_text("mi||C0000001\nheadache||C0000004\n", "utf8")
    options = ("--baseline", baseline, "--train", train, "--seen", train)
    run(sample_kb, gold, *options, "-o", output, code=0)
    results = json.loads(output.read_text("utf8"))
    assert results["baseline"] == baseline
    (file,) = results["files"]
    assert file["accuracy"]["all"]["concepts"]["acc@1"]["lenient"] == lenient
    assert file["accuracy"]["seen"]["mentions"] == 1
    evaluated = tmp_path / "kb.json"
    invoke("evaluate", sample_kb, gold, "--seen", train, "-o", evaluated, code=0)
    shown = invoke("results-table", output, evaluated, app=app, code=0).output
    assert "kb" in shown


def test_read_dictionary_folds_names_and_reads_retired_ids() -> None:
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


def test_read_dictionary_keeps_case_if_asked() -> None:
    concepts = [Concept("C1", ["Polish", "POLISH"]), Concept("C2", [" polish  it"])]
    dictionary = read_dictionary(concepts, lowercase=False)
    assert dictionary.names == {"Polish": 0, "POLISH": 1, "polish it": 2}
    rank = exact_lookup(dictionary, {})
    found = [list_concepts(answers) for answers in rank([" Polish", "polish"])]
    assert found == [[(1.0, "C1")], []]


def test_exact_lookup_ties_all_concepts_of_the_name(
    few_concepts: list[Concept],
) -> None:
    rank = exact_lookup(read_dictionary(few_concepts), {})
    both, fever, unknown = rank(["mi", " FEVER", "heart atack"])
    assert list_concepts(both) == [(1.0, "C0000001"), (1.0, "C0000002")]
    assert list_concepts(fever) == [(1.0, "C0000004")]
    assert unknown == []


def test_exact_lookup_and_tfidf_ranker_replace_aliases(
    few_concepts: list[Concept],
) -> None:
    dictionary = read_dictionary(few_concepts)
    aliases = {"C0000002": "C0000001"}
    (answers,) = exact_lookup(dictionary, aliases)(["MI"])
    assert list_concepts(answers) == [(1.0, "C0000001")]
    (answers,) = tfidf_ranker(dictionary, aliases, k=3)(["MI"])
    assert list_concepts(answers)[0] == (1.0, "C0000001")


def test_tfidf_ranker_equals_dense_cosines(few_concepts: list[Concept]) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    dictionary = read_dictionary(few_concepts)
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3))
    names = vectorizer.fit_transform(dictionary.names).toarray()
    rank = tfidf_ranker(dictionary, {}, k=2)
    mentions = ["heart atack", "Headaches", "diabetes"]
    for mention, answers in zip(mentions, rank(mentions), strict=True):
        cosines = names @ vectorizer.transform([mention]).toarray()[0]
        assert answers[0].row == np.argmax(cosines)
        for answer in answers:
            assert answer.score == pytest.approx(cosines[answer.row], abs=1e-6)


def test_tfidf_ranker_returns_whole_ties_and_nothing_without_a_common_ngram() -> None:
    concepts = [Concept(f"C{i:03}", ["fever", f"name {i}"]) for i in range(300)]
    rank = tfidf_ranker(read_dictionary(concepts), {}, k=1)
    tied, nothing = rank(["fever", "qqq"])
    assert {cui for score, cui in list_concepts(tied) if score == 1} == {
        concept.cui for concept in concepts
    }
    assert nothing == []


def test_tfidf_ranker_searches_deeper_for_a_concept_with_many_names() -> None:
    many = Concept("C1", [f"fever {i:03}" for i in range(500)])
    rank = tfidf_ranker(read_dictionary([many, Concept("C2", ["feverfew"])]), {}, k=2)
    (answers,) = rank(["fever"])
    assert [cui for _, cui in list_concepts(answers)] == ["C1", "C2"]


def test_back_off_ranker_prefers_the_training_mentions(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    lines = ["mi||C1", "coronary  infarct||C8", "Coronary infarct||C1"]
    lines += ["pyrexia||OLD", "leak||C2", "Leak||C3", "both||C1+C2", "nothing||C9"]
    path.write_text("\n".join(lines) + "\n", "utf8")
    live = {"C1": "C1", "C2": "C2", "C3": "C3", "C8": "C1"}
    known = read_training_mentions([path], make_resolver(live.get, {"OLD": "C3"}))
    assert known == {
        "mi": ["C1"],
        "coronary infarct": ["C1"],
        "pyrexia": ["C3"],
        "leak": ["C2", "C3"],
    }

    def rank(mentions: Sequence[str]) -> list[list[Answer]]:
        return [[Answer(5, "C2", 0.9)] for _ in mentions]

    answers = back_off_ranker(rank, known)(["MI", "other", "Leak"])
    assert [[(each.cui, each.score) for each in found] for found in answers] == [
        [("C1", 2.0), ("C2", 0.9)],
        [("C2", 0.9)],
        [("C2", 2.0), ("C3", 2.0), ("C2", 0.9)],
    ]
    rows = [each.row for found in answers for each in found if each.score > 1]
    assert max(rows) < 0  # no row of the index
