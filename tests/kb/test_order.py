"""An order of candidates that is learned from the names of a knowledge base."""

import random
import re
import shutil
from os.path import commonprefix
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import srsly
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.kb.folder.records import AtThreshold
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.learned_order import names as order_of_names
from spacy_sapbert.kb.learned_order.fit import (
    Example,
    check_right,
    compute_chances,
    fit_taught,
    fit_weights,
    measure_thresholds,
)
from spacy_sapbert.kb.learned_order.names import (
    LEFT_FAR,
    LEFT_OUT,
    NameExample,
    NameMention,
    choose_examples,
    choose_names,
    has_enough,
    language_of,
    make_batch,
    make_examples,
    make_mentions,
    make_new_words,
    make_other_groups,
)
from spacy_sapbert.kb.learned_order.noise import (
    KINDS,
    drop_word,
    join_words,
    type_wrong,
)
from spacy_sapbert.linking.chance import OF_FIRST, OF_TAUGHT, Chance
from spacy_sapbert.linking.features import EXCLUDED, MISSPELLED, REAL
from spacy_sapbert.linking.filters import Filter
from spacy_sapbert.linking.probability import TopScores
from spacy_sapbert.linking.ranker import MOST_WEIGHT, Ranker, Weights
from spacy_sapbert.linking.trees import Trees
from spacy_sapbert.vocabularies.concepts import Concept
from tests.commands import invoke
from tests.thousand_names import make_concepts

MENTIONS = Path(__file__).parent / "mentions.jsonl"


@pytest.fixture(scope="module")
def kb(thousand_names_kb) -> KnowledgeBase:
    return load_kb(thousand_names_kb)


def test_kb_set_changes_the_probability_that_a_link_must_have(kb, tmp_path):
    folder = shutil.copytree(kb.folder, tmp_path / "kb")
    mention = next(iter(kb.values())).name[:-1] + "q"
    probability = kb.link([mention])[0].candidates[0]["probability"]
    assert 0 < probability < 1
    for threshold, note in (
        (probability, None),
        (probability + 1e-5, "below_threshold"),
        (0, None),
    ):
        invoke("kb", "set", folder, f"threshold={threshold}", code=0)
        changed = load_kb(folder)
        assert changed.manifest.threshold == threshold
        assert changed.link([mention])[0].note == note
        # Candidates and their probability stay, and the options come first.
        assert changed.link([mention])[0].candidates == kb.link([mention])[0].candidates
        assert changed.link([mention], threshold=0)[0].cui is not None
        assert changed.link([mention], threshold=1)[0].cui is None
    for wrong in ("-0.1", "1.01", "nan"):
        done = invoke("kb", "set", folder, f"threshold={wrong}", code=1)
        assert re.search(r"\[E331\].*a probability.*`least_cosine`", done.output)
    for wrong, fix in (("treshold=0.8", "Did you mean 'threshold'?"), ("q=1", "name.")):
        done = invoke("kb", "set", folder, wrong, code=1)
        assert "[E333]" in done.output
        assert fix in done.output


def test_threshold_and_cosine_of_the_options_count_both(kb):
    """What is not linked keeps its candidates."""
    (free,) = kb.link(["quux plonk"], threshold=0)
    first = free.candidates[0]
    score, probability = first["score"], first["probability"]
    assert free.cui == first["cui"]
    assert 0 < probability < 1
    low, high = {"threshold": probability}, {"threshold": probability + 1e-5}
    for options, is_linked in (
        (low, True),
        (high, False),
        ({**high, "least_cosine": score}, False),
        ({**high, "least_cosine": -1.0}, False),
        ({**low, "least_cosine": score}, True),
        ({**low, "least_cosine": score + 0.001}, False),
        ({"threshold": 0.0, "least_cosine": score + 0.001}, False),
    ):
        (linked,) = kb.link(["quux plonk"], **options)
        assert (linked.cui is not None) == is_linked, options
        assert linked.note == (None if is_linked else "below_threshold")
        assert linked.candidates == free.candidates


def test_thresholds_that_learning_an_order_measures(kb):
    figures = kb.manifest.order.thresholds
    assert [at.threshold for at in figures] == [0.3, 0.5, 0.8]
    assert kb.manifest.threshold == 0.5
    # Of a higher threshold, fewer are linked.
    assert [at.nil_recall for at in figures] == sorted(at.nil_recall for at in figures)
    recalls = [at.recall for at in figures]
    assert recalls == sorted(recalls, reverse=True)
    info = " ".join(invoke("kb", "info", kb.folder, code=0).output.split())
    assert "Threshold 0.5, the least probability of a link" in info
    for at in figures:
        used = " (used)" if at.threshold == 0.5 else ""
        precision = "–" if at.precision is None else f"{at.precision:.3f}"
        assert (
            f"… {at.threshold:g}{used} precision {precision}, recall {at.recall:.3f} "
            f"of links; NIL recall {at.nil_recall:.3f}"
        ) in info


def test_build_kb_without_an_order_has_no_3_grams(few_concepts, make_kb, tmp_path):
    spanish = [Concept("C1", ["fiebre", "dolor"], languages={"SPA": [0, 1]})]
    for name, concepts, options, language in (
        ("none", few_concepts, {"order": "none"}, "en"),
        ("few", spanish, {}, ""),
    ):
        (tmp_path / name).mkdir()
        kb = load_kb(make_kb(tmp_path / name, concepts, **options))
        manifest = kb.manifest
        found = manifest.order, manifest.ngrams, manifest.threshold
        assert found == (None, False, 0.5)
        assert not (kb.folder / "v1" / "ngrams").exists()
        assert language_of(kb) == language


@pytest.fixture(scope="module")
def families_kb(make_kb, tmp_path_factory) -> KnowledgeBase:
    """Families of the thousand names and some more, without an order."""
    families = ("VEL", "TOL", "LAB", "DRUG", "EPO", "ADA")
    concepts = make_concepts(["ENG", "SPA"])
    concepts = [c for c in concepts if c.cui.startswith(families)] + [
        Concept(
            "X1",
            ["Borlun", "Borlun fever", "BORLUN FEVER", "Marsh ache"],
            types=["T047"],
        ),
        Concept("X2", ["Borlun gland", "shared name"], types=["T047", "T121"]),
        Concept("X3", ["heart drops", "shared name", "XY"]),
        *(Concept(f"P{n}", [f"pain rest {n}"], types=["T061"]) for n in range(3)),
    ]
    folder = tmp_path_factory.mktemp("families")
    return load_kb(make_kb(folder, concepts, backend="exact", order="none"))


def test_mentions_that_are_made_of_names_and_words(families_kb, monkeypatch):
    """If a change is meant, delete the file, run this test, and read what git shows."""
    limits = {"MOST_NAMES": 66, "MOST_OTHERS": 5, "FEWEST_CONCEPTS": 3, "FEWEST": 40}
    for name, value in limits.items():
        monkeypatch.setattr(order_of_names, name, value)
    names = families_kb.entries(range(families_kb.rows))
    chosen = choose_names(families_kb, 30)
    made: list[list[Any]] = [[entry.alias for entry in chosen]]
    others = make_other_groups(families_kb, chosen)
    for mention in (*others, *make_mentions(families_kb)):
        rows = sorted(names[row][0].alias for row in mention.rows)
        made.append([mention.kind, mention.text, mention.cui, rows, *mention.types])
    monkeypatch.setattr(order_of_names, "MOST_OTHERS", 60)
    new_words = make_new_words(choose_names(families_kb, 200), random.Random(0))
    made.append([mention.text for mention in new_words])
    # What was made of those that are no names, or were left out. The place of the right
    # concept is by cosine, in which others are as near.
    monkeypatch.setattr(order_of_names, "MOST_OTHERS", limits["MOST_OTHERS"])
    examples = [*make_examples(families_kb)]
    for e in examples:
        covered = round(100 * e.features["covered"].max())  # percent of its words
        made.append([e.kind, e.right is not None, e.known, covered])
    assert {e.features["cosine"].max() < 1 for e in examples if e.kind == LEFT_OUT} == {
        True
    }
    if not MENTIONS.exists():
        srsly.write_jsonl(MENTIONS, made)
        pytest.fail(f"{MENTIONS} is written anew: read what git shows.")
    assert made == [*srsly.read_jsonl(MENTIONS)]


def make_examples_of(
    kind: str, count: int, *, known: bool, right: int | None = 0
) -> list[NameExample]:
    features = {REAL: np.array([float(known)])}
    example = NameExample(right, features, is_name=False, kind=kind, by_cosine=True)
    return [example] * count


@pytest.mark.parametrize(
    ("known", "others", "folds", "enough"),
    [
        *((100, 100, 1, True), (99, 100, 1, False), (100, 99, 1, False)),
        *((99, 901, 1, True), (99, 900, 1, False)),
        *((50, 50, 2, True), (49, 50, 2, False), (0, 500, 2, True), (0, 499, 2, False)),
    ],
)
def test_examples_are_enough_and_of_both_kinds_if_there_are_enough(
    known, others, folds, enough, monkeypatch
):
    monkeypatch.setattr(order_of_names, "MANY", 1_000)
    unusable = [
        *make_examples_of(LEFT_OUT, 2_000, known=True, right=None),
        *make_examples_of(LEFT_FAR, 2_000, known=True),
    ]
    some = make_examples_of(LEFT_OUT, known, known=True)
    rest = make_examples_of(LEFT_OUT, others, known=False)
    examples = [*unusable, *some, *rest]
    assert has_enough(examples, folds=folds) is enough
    of_known = choose_examples(examples, known=True, folds=folds)
    fewest = 100 // folds
    assert len(of_known) == 2_000 + known + (0 if known >= fewest else others)
    of_others = choose_examples(examples, known=False, folds=folds)
    assert len(of_others) == others + (0 if others >= fewest else 2_000 + known)


def test_a_disturbed_name_that_is_another_name_is_no_example(kb):
    name = next(iter(kb.values())).name
    wrong = f"{name[:2]}x{name[3:]}"
    mentions = [NameMention(text, "", "one typing error") for text in (name, wrong)]
    made = dict(make_batch(kb, mentions, Filter()))
    assert [mention.text for mention in made] == [wrong]


def test_a_misspelled_name_has_the_cosine_of_what_is_written(kb):
    name = next(iter(kb.values())).name
    wrong = f"{name[:2]}x{name[3:]}"
    best = kb.link([wrong], threshold=0)[0].candidates[0]
    mention, vector = kb.embed([wrong, best["alias"]]).vectors
    assert (best["name"], best["score"]) == (
        name,
        pytest.approx(float(mention @ vector), abs=1e-4),
    )


@given(st.text(max_size=40), st.integers(0, 9))
def test_noise_takes_any_text(text, seed):
    for disturb, _ in KINDS.values():
        assert disturb(text, random.Random(seed)) == disturb(text, random.Random(seed))


def is_one_error(name: str, wrong: str) -> bool:
    """Return whether a letter was dropped, added or changed, or two were swapped."""
    start = len(commonprefix([name, wrong]))
    end = min(
        len(commonprefix([name[::-1], wrong[::-1]])),
        *(len(t) - start for t in (name, wrong)),
    )
    left, right = (text[start : len(text) - end] for text in (name, wrong))
    return max(len(left), len(right)) < 2 or (len(left) == 2 and left == right[::-1])


def test_noise_by_hand():
    for seed in range(100):
        wrong = type_wrong("migraine", random.Random(seed))
        assert is_one_error("migraine", wrong), wrong
    split = {join_words("migraine", random.Random(seed)) for seed in range(100)}
    assert split == {"mig raine", "mig-raine", "migr aine", "migr-aine"}
    joined = {join_words("a b c", random.Random(seed)) for seed in range(100)}
    assert joined == {"ab c", "a-b c", "a bc", "a b-c", "a b c"}
    # What is too short stays.
    assert {join_words("anaemia", random.Random(seed)) for seed in range(9)} == {
        "anaemia"
    }
    assert {drop_word("a b", random.Random(seed)) for seed in range(9)} == {"a b"}
    dropped = {drop_word("a b c", random.Random(seed)) for seed in range(100)}
    assert dropped == {"a b", "a c", "b c"}


def test_ranker_scores_by_hand():
    weights = Weights(
        mean={"ngrams": 0.5},
        scale={"ngrams": 0.25},
        weight={"ngrams": 2.0},
        temperature=10.0,
    )
    features = {
        "cosine": np.array([0.8, 0.7]),
        "ngrams": np.array([0.5, 9.0]),
        MISSPELLED: np.array([0.0, 1.0]),
        REAL: np.ones(2),
        EXCLUDED: np.zeros(2),
    }
    # 34 standard deviations count as four
    assert weights.scores(features) == pytest.approx([8.0, 15.0])
    ranker = Ranker(known=weights)
    assert ranker.scores(features) == pytest.approx([8.0, 15.0])
    features[REAL] = np.zeros(2)
    assert ranker.scores(features) == pytest.approx([0.0, 0.0])
    # new words that are no misspelled words
    features[MISSPELLED] = np.zeros(2)
    assert ranker.scores(features) == pytest.approx([8.0, 15.0])
    with pytest.raises(ValueError, match="features"):
        Weights(mean={"x": 0.0}, scale={"x": 1.0}, weight={"x": 1.0})


def test_fit_weights_equals_scikit_learn():
    """With two candidates the loss is that of logistic regression of differences."""
    model = pytest.importorskip("sklearn.linear_model").LogisticRegression
    chance = np.random.default_rng(0)
    names = ["ngrams", "characters"]
    examples = []
    for _ in range(200):
        values = chance.normal(size=(2, 2))
        right = int(values[1].sum() + chance.normal() > values[0].sum())
        features = dict(zip(names, values.T, strict=True))
        features |= {"cosine": np.zeros(2), EXCLUDED: np.zeros(2)}
        examples.append(Example(right, features, is_name=False))
    penalty = 0.01
    fitted = fit_weights(examples, names, penalty=penalty)
    stacked = np.concatenate(
        [np.stack([e.features[n] for n in names], 1) for e in examples]
    )
    scale = stacked.std(axis=0) + 1e-3
    sides = [np.stack([e.features[n] for n in names], 1) / scale for e in examples]
    differences = np.array([side[1] - side[0] for side in sides])
    expected = model(C=1 / (2 * penalty * len(examples)), fit_intercept=False)
    expected.fit(differences, [e.right for e in examples])
    got = [fitted.weight[name] for name in names]
    assert got == pytest.approx(expected.coef_[0], abs=2e-3)
    scores = [fitted.scores(e.features) for e in examples]
    assert check_right(examples, scores).mean() > 0.7


def make_cosines(*cosines: float, right: int | None = 0, excluded: int = -1) -> Example:
    values = np.array(cosines)
    behind = np.array([float(place == excluded) for place in range(len(values))])
    features = {"cosine": values, EXCLUDED: behind, "ngrams": 0 * values}
    return Example(right, features, is_name=False)


def test_temperature_by_hand():
    """The first of two candidates is right in three of four mentions."""
    examples = [make_cosines(0.6, 0.5, right=number == 3) for number in range(4)]
    examples += [make_cosines(0.9, 0.6, 0.5, right=1, excluded=0)] * 3
    examples += [make_cosines(0.9, 0.6, 0.5, right=2, excluded=0)]
    examples += [make_cosines(0.1, 0.9, 0.2, right=None)]
    fitted = fit_weights(examples, ["ngrams"], penalty=0.03, temperature=True)
    assert fitted.temperature == pytest.approx(np.log(3) / 0.1, rel=1e-4)
    assert fitted.weight == {"ngrams": 0.0}
    assert fitted.scale == {"ngrams": 0.001}
    # All are right, by so little that no weight is large enough.
    examples = [make_cosines(0.501, 0.5)] * 3
    fitted = fit_weights(examples, ["ngrams"], penalty=0.03, temperature=True)
    assert fitted.temperature == MOST_WEIGHT


def test_what_annotations_add_by_hand():
    """Three of four mentions that were annotated so are right, of others one."""
    chance = Chance(trees=Trees(trees=["characters>9: 0 0"]), intercept=0, names=[0, 0])
    names = ("cosine", *OF_FIRST, *OF_TAUGHT[2:], MISSPELLED, REAL)
    first = dict.fromkeys(names, 1.0)

    def make(right: int | None, excluded: float, *values: dict[str, float]) -> Example:
        features = {name: np.array([v[name] for v in values]) for name in names}
        features[EXCLUDED] = np.full(len(values), excluded)
        return Example(right, features, is_name=False)

    seen, new = {**first, "mention_share": 1.0}, {**first, "mention_share": 0.0}
    wrong = {**seen, "annotated_share": 2.0}  # for which few examples say that it is
    examples = [make(0, 0.0, seen)] * 3 + [make(None, 0.0, wrong)]
    examples += [make(None, 0.0, new)] * 3 + [make(0, 0.0, new)]
    # These say nothing.
    examples += [make(0, 1.0, new)] * 9 + [make(None, 0.0)]
    scores = [np.ones(len(example.features["cosine"])) for example in examples]
    counts = [1e6] * len(examples)
    fitted = fit_taught(chance, examples, scores, counts=counts)
    assert fitted.weights == {"mention_share": pytest.approx(2 * np.log(3), abs=1e-4)}
    assert fitted.intercept == pytest.approx(-np.log(3), abs=1e-4)
    # Nothing is less likely if it was annotated so: no weight is left.
    counts[4:7] = [0.0] * 3
    fitted = fit_taught(chance, examples, scores, counts=counts)
    expected = pytest.approx(np.log(4), abs=1e-4)
    assert (fitted.weights, fitted.intercept) == ({}, expected)
    # The highest score of the first two is of what is right; others have no answer.
    tops = [np.array([0.1, 0.9]), np.array([0.9, 0.1]), np.array([0.9, 0.1])]
    some = [make(right, 0.0, seen, new) for right in (1, 1, None)]
    assert check_right(some, tops).tolist() == [True, False, False]
    chances = compute_chances(chance, [*some, examples[-1]], [*tops, np.ones(0)])
    assert chances.tolist() == [0.5, 0.5, 0.5, 0]
    # Links of 0.9 and 0.6, of which one is right; then of 0.9 alone
    top = TopScores.sorted(
        np.array([0.9, 0.6, 0.2]), np.array([1, 0, 1]) > 0, np.ones(3) > 0
    )
    for threshold, shares in (
        (0.5, ((0.3, 0.5), (0.5, 0.5), (0.8, 1.0))),
        (0.7, ((0.3, 0.5), (0.5, 0.5), (0.7, 1.0), (0.8, 1.0))),
    ):
        assert measure_thresholds(top, threshold) == [
            AtThreshold(threshold=t, precision=p, recall=0.3333) for t, p in shares
        ]
