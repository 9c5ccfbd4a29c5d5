import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.evaluation.accuracy import Answer
from spacy_sapbert.evaluation.diagnose import (
    CAUSES,
    KnownConcept,
    find_ancestors,
    find_cause,
    info_finder,
    is_short_form,
    score_candidates,
)
from spacy_sapbert.evaluation.error_report import find_errors
from spacy_sapbert.evaluation.rankers import kb_ranker
from spacy_sapbert.evaluation.score_mentions import EvaluationSettings, rank_mentions
from spacy_sapbert.formats.gold import GoldMention
from spacy_sapbert.kb.knowledge_base import load_kb
from tests.commands import invoke
from tests.rows import read_dicts

from .conftest import IncompleteIndex

SENTINEL = "xyzzy"
SCRIPT = '<script>alert("x")</script>'
GOLD = (
    f"""mention\tids
Fever\tC0000004
MI\tC0000001
MI\tC0000002
MI\tC0000001
{SENTINEL} {SCRIPT} & \u202eabc\tC0000003|C0000007
Heart disease\tC9999999
{SENTINEL} and fever\tC0000001+C0000004
lupus\tMESH:1
...\tC0000005
nothing\t-1
heart\tC0000003
Fever\tC0000001
"""
    + "lupus\tMESH:1\n" * 5
)
INFARCTION, FEVER = ("C0000001", "MI"), ("C0000004", "Fever")
# line, cause, gold concepts, their names, id and alias of the first answer, rank
ERRORS: list[Any] = [
    (3, "tie", ["C0000001"], ["Myocardial infarction"], INFARCTION, 1),
    (4, "tie", ["C0000002"], ["Mitral insufficiency"], INFARCTION, 2),
    (5, "tie", ["C0000001"], ["Myocardial infarction"], INFARCTION, 1),
    (6, "wrong type", ["C0000003|C0000007"], ["Heart disease", "Headache"],
     ("C0000006", "acetylsalicylic acid"), None),
    (7, "equal name elsewhere", ["C0000001"], ["Myocardial infarction"],
     ("C0000003", "Heart disease"), None),
    (8, "composite", ["C0000001", "C0000004"], ["Myocardial infarction", "Fever"],
     ("C0000008", "Appendectomy"), 2),
    (9, "not covered", ["MESH:1"], [""], ("C0000006", "ASA"), None),
    (10, "no answer", ["C0000005"], ["Diabetes mellitus"], None, None),
    (12, "too specific", ["C0000003"], ["Heart disease"],
     ("C0000001", "Heart attack"), 5),
    (13, "equal name elsewhere", ["C0000001"], ["Myocardial infarction"], FEVER, 3),
    *((line, "not covered", ["MESH:1"], [""], ("C0000006", "ASA"), None)
      for line in range(14, 19)),
]  # fmt: skip
SCORES = [1, 1, 1, 0.9556, 1, 0.9531, 0.9414, 0.9644, 1, *[0.9414] * 5]


def report(kb: Path, gold: Path) -> tuple[list[dict], dict]:
    """Return the lines of the errors, and the results."""
    lines, output = gold.with_suffix(".jsonl"), gold.with_suffix(".json")
    written = ["--errors", lines, "--output", output]
    result = invoke("evaluate", kb, gold, *written, code=0)
    assert SENTINEL not in result.output + output.read_text("utf8")
    rows = [json.loads(line) for line in lines.read_text("utf8").splitlines()]
    invoke("evaluate", kb, gold, "--errors", gold.with_suffix(".csv"), code=0)
    firsts = [row["answers"][0]["cui"] if row["answers"] else "" for row in rows]
    table = read_dicts(gold.with_suffix(".csv"))
    assert [row["cui"] for row in table] == firsts
    assert [row["cause"] for row in table] == [row["cause"] for row in rows]
    return rows, json.loads(output.read_text("utf8"))


def test_find_errors_under_a_learned_order(
    make_kb, letters_order, few_concepts, tmp_path
):
    """The names of answers are shown, and what the index misses is named."""
    kb = load_kb(make_kb(tmp_path, few_concepts, learned=letters_order))

    def find(text: str, cui: str, answers: Any, aliases: dict[str, str]) -> Any:
        golds = [("dev", GoldMention(-1, -1, "", text, [[cui]], 2))]
        (error,) = find_errors(kb, golds, answers, aliases, EvaluationSettings())
        return error

    aliases = {"C0000004": "X"}
    answers = rank_mentions(kb_ranker(kb, aliases, k=3), ["feverr"])
    error = find("feverr", "C0000002", answers, aliases)
    (linked,) = kb.link(["feverr"], k=3)
    shown = [(a.cui, a.name, a.alias, a.score) for a in error.answers]
    assert shown == [
        (c["cui"], c["name"], c["alias"], c["score"]) for c in linked.candidates
    ]
    assert shown[0][:2] == ("C0000004", "Fever")
    (tied,) = kb_ranker(kb, {}, k=2)(["MI"])
    assert tied[0].score == tied[1].score
    rows = [entry.row for entry in kb.store.entries_of("C0000004")]
    kb.parts.index = IncompleteIndex(kb.index, kb.rows, rows)  # type: ignore
    (first, *_) = kb.store.entries_of("C0000001")
    wrong = {"pyrexia": [Answer(first.row, "C0000001", 1.0)]}
    assert find("pyrexia", "C0000004", wrong, {}).cause == "index miss"


def test_info_finder_follows_aliases(kb):
    info = info_finder(kb, {"C0000003": "X", "C0000005": "Y", "C0000006": "Y"})
    assert info("C0000001").parents == {"X"}
    assert "Myocardial infarction" in info("C0000001").names
    assert (info("X").name, info("X").types) == ("Heart disease", {"T047"})
    assert info("Y").types == {"T047", "T121"}
    assert info("C9999999") == info("nowhere") == KnownConcept()  # retired, unknown


def test_error_report_counts_what_evaluate_does_not_count(sample_kb, tmp_path):
    path = tmp_path / "gold.tsv"
    path.write_text(GOLD, "utf8")
    rows, data = report(sample_kb, path)
    counts = data["causes"]
    assert list(counts) == [c.name for c in CAUSES.values() if not c.of_linker]
    assert {name: count for name, count in counts.items() if count} == {
        **{"not covered": 6, "composite": 1, "no answer": 1, "tie": 3},
        **{"equal name elsewhere": 2, "too specific": 1, "wrong type": 1},
    }
    (file,) = data["files"]
    strict = file["accuracy"]["all"]["concepts"]["acc@1"]["strict"]
    assert strict == pytest.approx(1 - len(rows) / file["judged"], abs=1e-6)
    for row in rows:
        answers, gold = row["answers"], {*chain(*row["gold"])}
        assert [answer["rank"] for answer in answers] == [*range(1, len(answers) + 1)]
        assert [each["cui"] for each in answers if each["right"]] == [
            each["cui"] for each in answers if each["cui"] in gold
        ]
    mentions = [line.split("\t")[0] for line in GOLD.splitlines()]
    found, scores = [], []
    for row in rows:
        assert (row["file"], row["mention"]) == (path.name, mentions[row["line"] - 1])
        best = row["answers"][0] if row["answers"] else None
        answer = (best["cui"], best["alias"]) if best else None
        gold = ["|".join(part) for part in row["gold"]]
        case = row["line"], row["cause"], gold, row["gold_names"]
        found.append((*case, answer, row["rank"]))
        scores += [best["score"]] if best else []
    assert found == ERRORS
    assert scores == pytest.approx(SCORES, abs=2e-3)


def test_find_errors_lists_the_first_right_answer_beyond_k(kb):
    for aliases, cui in (({}, "C0000003"), ({"C0000003": "X"}, "X")):
        answers = rank_mentions(kb_ranker(kb, aliases, k=5), ["heart"])
        golds = [("dev", GoldMention(-1, -1, "", "heart", [[cui]], 2))]
        settings = EvaluationSettings(ks=(1, 2))
        (error,) = find_errors(kb, golds, answers, aliases, settings)
        places = [(answer.rank, answer.right) for answer in error.answers]
        assert places == [(1, False), (2, False), (5, True)]
        assert (error.rank, error.gold) == (5, [["C0000003"]])
        assert error.answers[2].cui == "C0000003"


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


def ranked(*cuis: str) -> list[tuple[float, str]]:
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
        ("lupus", "", ["heart"], "not covered"),
        ("heart and mitral", "heart+mitral", ["heart", "mitral"], "composite"),
        ("...", "heart", [], "no answer"),
        ("MI", "infarction", ["mitral", "=infarction"], "tie"),
        ("MVI", "infarction", ["mitral", "infarction"], "equal name elsewhere"),
        ("AMI", "infarction", ["mitral", "infarction"], "abbreviation"),
        ("cardiac", "infarction", ["heart", "infarction"], "too general"),
        ("cardiac", "infarction", ["old", "infarction"], "too specific"),
        ("cardiac", "infarction", ["organ", "infarction"], "wrong type"),
        ("cardiac", "infarction", ["mitral", "infarction"], "near miss"),
        ("cardiac", "infarction", ["mitral", "heart"], "synonym missing"),
        # "MI" is a name of both: neither the name nor the short form is at fault
        ("MI", "infarction", ["mitral", "infarction"], "near miss"),
        # several causes hold; the one that comes first in the list is named
        ("...", "heart+organ", [], "composite"),
        ("MVI", "infarction", ["mitral", "=infarction"], "tie"),
        ("AMI", "infarction", ["heart", "infarction"], "abbreviation"),
        ("cardiac", "old|organ", ["infarction", "old"], "too general"),
    ],
)
def test_find_cause_finds_the_first_cause(mention, gold, answers, expected):
    assert cause(mention, gold, *answers) == expected


def test_find_cause_uses_k():
    answers = ["mitral", "organ", "infarction"]
    assert cause("cardiac", "infarction", *answers, k=2) == "synonym missing"
    assert cause("cardiac", "infarction", *answers, k=3) == "near miss"
    assert cause("cardiac", "old", "disease") == "too general"  # three steps


@pytest.mark.parametrize(("tie", "second"), [("id", 1), (None, 2)])
def test_score_candidates_by_ranks_of_which_some_tie(tie, second):
    candidates: Any = [
        {"cui": cui, "score": score, "rank": rank, "tie": tie}
        for rank, (cui, score) in enumerate([("a", 0.9), ("b", 0.9), ("c", 0.8)], 1)
    ]
    assert score_candidates(candidates) == [(-1, "a"), (-second, "b"), (-3, "c")]
    assert score_candidates(candidates[:1]) == [(-1, "a")]


def test_find_ancestors_stops_after_three_steps():
    parents = {"a": "b", "b": "c", "c": "d", "d": "e", "x": "y", "y": "x"}

    def of(cui: str) -> KnownConcept:
        return KnownConcept(parents=frozenset(parents.get(cui, "")))

    assert find_ancestors(["a"], of) == {"b", "c", "d"}
    assert find_ancestors(["d", "c"], of) == {"d", "e"}
    assert find_ancestors(["x"], of) == {"x", "y"}  # a circle
    assert find_ancestors(["e"], of) == set()


def test_is_short_form_accepts_abbreviations_and_no_words():
    accepted = ["MI", "mRNA", "COVID-19", "SARS-CoV-2", "NaClOx", "iPSC", "G6PD"]
    words = ["M", "mi", "Fever", "McArdl", "TYPE II DM", "HYPERTENSION", "", "12"]
    assert [each for each in [*accepted, *words] if is_short_form(each)] == accepted
