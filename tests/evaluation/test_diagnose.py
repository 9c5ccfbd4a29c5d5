import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.evaluation.diagnose import (
    CAUSES,
    KnownConcept,
    find_ancestors,
    find_cause,
    is_short_form,
)

Ranking = list[tuple[float, str]]


def make(names: str, types: str = "", parents: str = "") -> KnownConcept:
    return KnownConcept(
        (),
        names.split("|")[0],
        frozenset(names.split("|")),
        frozenset(types.split()),
        frozenset(parents.split()),
    )


# disease > heart disease > infarction > old infarction; an organ; two namesakes
KNOWN = {
    "disease": make("Disease", "T047"),
    "heart": make("Heart disease", "T047", "disease"),
    "infarction": make("Heart attack|MI", "T047", "heart"),
    "old": make("Old infarction", "T047", "infarction"),
    "organ": make("Heart", "T023"),
    "mitral": make("Mitral insufficiency|MI|MVI", "T047"),
    "untyped": make("Something"),
}


def info(cui: str) -> KnownConcept:
    return KNOWN.get(cui, KnownConcept())


def ranked(*cuis: str) -> Ranking:
    """An equals sign before a concept makes it tie with the one before."""
    score, ranking = 1.0, []
    for cui in cuis:
        score -= 0 if cui.startswith("=") else 0.1
        ranking.append((score, cui.lstrip("=")))
    return ranking


def cause(mention: str, gold: str, *answers: str, **settings: int) -> str | None:
    parts = [frozenset(part.split("|")) - {""} for part in gold.split("+")]
    return find_cause(mention, parts, ranked(*answers), info, **settings)


@pytest.mark.parametrize(
    ("mention", "gold", "answers", "expected"),
    [
        ("heart attack", "infarction", ["infarction", "heart"], None),
        ("heart attack", "infarction|old", ["infarction", "=old"], None),
        ("lupus", "", ["heart"], "not covered"),
        ("lupus and flu", "+heart", ["heart"], "not covered"),
        ("heart and mitral", "heart+mitral", ["heart", "mitral"], "composite"),
        ("...", "heart", [], "no answer"),
        ("MI", "infarction", ["mitral", "=infarction"], "tie"),
        ("MVI", "infarction", ["mitral", "infarction"], "equal name elsewhere"),
        ("mvi", "infarction", ["mitral", "infarction"], "equal name elsewhere"),
        ("AMI", "infarction", ["mitral", "infarction"], "abbreviation"),
        ("cardiac", "infarction", ["heart", "infarction"], "too general"),
        ("cardiac", "infarction", ["disease", "infarction"], "too general"),
        ("cardiac", "infarction", ["old", "infarction"], "too specific"),
        ("cardiac", "infarction", ["organ", "infarction"], "wrong type"),
        ("cardiac", "infarction", ["mitral", "infarction"], "near miss"),
        ("cardiac", "infarction", ["untyped", "infarction"], "near miss"),
        ("cardiac", "infarction", ["mitral", "heart"], "synonym missing"),
        # "MI" is a name of both: neither the name nor the short form is at fault
        ("MI", "infarction", ["mitral", "infarction"], "near miss"),
        # several causes hold; the one that comes first in the list is named
        ("lupus", "+", [], "not covered"),
        ("...", "heart+organ", [], "composite"),
        ("MI", "heart+organ", ["heart", "=organ"], "composite"),
        ("MVI", "infarction", ["mitral", "=infarction"], "tie"),
        ("AMI", "infarction", ["heart", "=infarction"], "tie"),
        ("heart disease", "infarction", ["heart"], "equal name elsewhere"),
        ("heart", "infarction", ["organ"], "equal name elsewhere"),
        ("AMI", "infarction", ["heart", "infarction"], "abbreviation"),
        ("AMI", "infarction", ["organ"], "abbreviation"),
        ("cardiac", "old|organ", ["infarction", "old"], "too general"),
        ("cardiac", "infarction", ["organ"], "wrong type"),
    ],
)
def test_find_cause_finds_the_first_cause(
    mention: str, gold: str, answers: list[str], expected: str | None
) -> None:
    assert cause(mention, gold, *answers) == expected


@pytest.mark.parametrize("answer", ["mitral", "heart", "organ"])
def test_find_cause_blames_the_index_before_names_hierarchy_and_types(
    answer: str,
) -> None:
    gold = [frozenset({"infarction"})]
    nearest = frozenset({"infarction", "untyped"})
    for mention in ("MVI", "AMI", "cardiac"):
        ranking = ranked(answer)
        found = find_cause(mention, gold, ranking, info, nearest=nearest)
        assert found == "index miss"
    tied = ranked("mitral", "=infarction")
    assert find_cause("MI", gold, tied, info, nearest=nearest) == "tie"
    # An index that misses another concept is not at fault.
    nearest = frozenset({"organ"})
    found = find_cause("cardiac", gold, ranked("mitral"), info, nearest=nearest)
    assert found == "synonym missing"


def test_find_cause_uses_k() -> None:
    answers = ["mitral", "organ", "infarction"]
    assert cause("cardiac", "infarction", *answers, k=2) == "synonym missing"
    assert cause("cardiac", "infarction", *answers, k=3) == "near miss"
    assert cause("cardiac", "old", "disease") == "too general"  # three steps


@given(
    st.text("MIa ", max_size=4),
    st.lists(st.frozensets(st.sampled_from(sorted(KNOWN))), min_size=1, max_size=2),
    st.lists(st.sampled_from(sorted(KNOWN)), unique=True),
    st.frozensets(st.sampled_from(sorted(KNOWN))),
)
def test_find_cause_returns_one_cause_for_every_error(
    mention: str,
    parts: list[frozenset[str]],
    cuis: list[str],
    nearest: frozenset[str],
) -> None:
    right = bool(cuis) and all(cuis[0] in part for part in parts)
    found = find_cause(mention, parts, ranked(*cuis), info, nearest=nearest)
    assert (found is None) == right
    assert right or found in CAUSES


def test_find_ancestors_stops_after_three_steps() -> None:
    parents = {"a": "b", "b": "c", "c": "d", "d": "e", "x": "y", "y": "x"}

    def of(cui: str) -> KnownConcept:
        return KnownConcept(parents=frozenset(parents.get(cui, "")))

    assert find_ancestors(["a"], of) == {"b", "c", "d"}
    assert find_ancestors(["d", "c"], of) == {"d", "e"}
    assert find_ancestors(["x"], of) == {"x", "y"}  # a circle
    assert find_ancestors(["e"], of) == set()


def test_is_short_form_accepts_abbreviations_and_no_words() -> None:
    accepted = ["MI", "mRNA", "NIDDM", "COVID-19", "SARS-CoV-2", "AVMs", "iPSC", "G6PD"]
    words = ["M", "mi", "Fever", "McArdle", "TYPE II DM", "HYPERTENSION", "", "12"]
    assert [each for each in [*accepted, *words] if is_short_form(each)] == accepted
