"""What people decided for a mention holds for it, until they decide otherwise."""

import csv
import random
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from spacy.tokens import Span

from spacy_sapbert import add_concepts, load_kb, remove_concepts, teach
from spacy_sapbert.evaluation.calibration import fit_correction
from spacy_sapbert.formats.gold import GoldDocument
from spacy_sapbert.kb.knowledge_base import KnowledgeBase
from spacy_sapbert.kb.teaching.teach import TeachingReport, teach_documents
from spacy_sapbert.linking.certainty import judge_link
from spacy_sapbert.linking.decisions import Decision, find_decision, list_keys
from spacy_sapbert.linking.link import Limits, SearchResult
from spacy_sapbert.linking.options import DEFAULT_OPTIONS
from spacy_sapbert.linking.probability import Correction, TopScores
from spacy_sapbert.mapping.lookup import Query, map_queries
from spacy_sapbert.verification.verdicts import Verifier
from spacy_sapbert.vocabularies.concepts import Concept
from tests.building import annotated_document, annotated_mention
from tests.commands import invoke

INFARCTION, MITRAL, HEART, FEVER = "C0000001", "C0000002", "C0000003", "C0000004"
HEADACHE = "C0000007"


def make_terms(*pairs: tuple[str, str]) -> GoldDocument:
    """A table of terms without documents."""
    found = [annotated_mention(text, [[cui]] if cui else []) for text, cui in pairs]
    return annotated_document("terms.csv", "", found)


def make_note(text: str, *pairs: tuple[str, str]) -> GoldDocument:
    return make_terms(*pairs)._replace(text=text, source="notes.txt")


def learn(
    kb: KnowledgeBase | Path, *documents: GoldDocument, **options: Any
) -> tuple[KnowledgeBase, TeachingReport]:
    kb = kb if isinstance(kb, KnowledgeBase) else load_kb(kb)
    return teach_documents(kb, documents, **options)


def answer(kb: KnowledgeBase, text: str, **options: Any) -> tuple[Any, ...]:
    """The concept, the note, and how far it can be trusted."""
    (linked,) = kb.link([text], **options)
    certainty = judge_link(text, linked.cui, linked.candidates, note=linked.note)
    return linked.cui, linked.note, certainty


def test_one_correction_changes_the_answer_at_once_and_the_next_forgets_none(own_kb):
    kb = load_kb(own_kb)
    assert answer(kb, "funny turn")[0] is None
    nlp = spacy.blank("en")
    doc = nlp("She had a funny turn.")
    doc.ents = [Span(doc, 3, 5, label="D", kb_id=HEADACHE)]
    kb, report = teach(kb, [doc])
    assert report.changed
    assert answer(kb, "funny turn") == (HEADACHE, None, "sure")
    candidate = kb.link(["Funny Turn"])[0].candidates[0]
    assert (candidate["cui"], candidate["probability"]) == (HEADACHE, 1.0)
    assert candidate["tie"] == "decided"

    kb, report = learn(kb, make_note("hot ward", ("hot ward", FEVER)))
    assert report.counts.dropped == 0
    assert answer(kb, "funny turn")[0] == HEADACHE
    assert answer(kb, "hot ward")[0] == FEVER
    # the same again is no new version
    again, report = learn(kb, make_note("hot ward", ("hot ward", FEVER)))
    assert (report.changed, again) == (False, kb)
    kb, report = learn(kb, make_note("hot bed", ("hot bed", FEVER)), add=False)
    assert report.counts.dropped == 2
    assert answer(kb, "hot ward")[0] is None
    assert answer(load_kb(own_kb), "hot bed")[0] == FEVER


def test_no_concept_and_one_meaning_of_an_acronym_are_remembered(own_kb):
    kb = load_kb(own_kb)
    assert answer(kb, "Fever") == (FEVER, None, "sure")
    assert answer(kb, "MI")[1:] == ("ambiguous", "tied")
    kb, report = learn(kb, make_terms(("fever", ""), ("MI", MITRAL)))
    (linked,) = kb.link(["Fever"])
    assert (linked.cui, linked.note) == (None, "decided")
    assert linked.candidates[0]["cui"] == FEVER  # still proposed
    assert linked.candidates[0]["probability"] == 0
    assert answer(kb, "MI") == (MITRAL, None, "sure")
    assert answer(kb, "MI", k=1, threshold=1) == (MITRAL, None, "sure")
    assert answer(kb, "M\ud800I")[0] is None  # what SQLite does not take
    # a concept that people call so is one after all
    kb = add_concepts(kb, [Concept("L1", ["Fever"])])
    assert answer(kb, "Fever")[1] != "decided"


def test_what_people_decide_later_holds(own_kb):
    """A term stands for itself everywhere; the last table that has it counts."""
    notes = [make_note(f"note {n}: MI", ("MI", INFARCTION)) for n in range(3)]
    kb, _ = learn(own_kb, *notes)
    assert answer(kb, "MI") == (INFARCTION, None, "sure")
    for cui in (MITRAL, HEART, ""):
        kb, report = learn(kb, make_terms(("MI", cui)))
        assert answer(kb, "MI")[0] == (cui or None)
        (learned,) = report.learned
        assert (learned.text, learned.cui, learned.place) == ("MI", cui, "terms.csv")
    # a note of before, corrected, and a table that says two things
    kb, _ = learn(kb, make_terms(("MI", MITRAL), ("MI", HEART)))
    assert answer(kb, "MI")[2] != "sure"
    kb, _ = learn(kb, *notes, add=False)
    kb, _ = learn(kb, make_note("note 0: MI", ("MI", MITRAL)))
    assert answer(kb, "MI")[2] != "sure"  # two of three
    assert kb.link(["MI"])[0].candidates[0]["tie"] == "annotated"


def test_what_people_decided_is_not_corrected_and_corrects_nothing():
    correction = Correction(slope=0.5, intercept=-1.0)
    result = SearchResult([], None, probability=0.9)
    corrected, kept = (
        Limits(0.5, correction=correction).correct(result._replace(decision=decision))
        for decision in (None, Decision(MITRAL, 9, 10))
    )
    assert corrected < kept == 0.9
    chance = random.Random(3)
    probabilities = np.array([chance.uniform(0.1, 0.9) for _ in range(200)])
    right = np.array([chance.random() < each for each in probabilities])
    expected = fit_correction(TopScores.sorted(probabilities, right, right))
    decided = [np.append(probabilities, [1.0] * 20), np.append(right, [False] * 20)]
    assert fit_correction(TopScores.sorted(*decided, decided[1])) == expected


def test_the_order_in_which_documents_are_taught_does_not_count(own_kb, tmp_path):
    documents = [
        make_terms(("MI", MITRAL), ("warm", FEVER), ("warm", FEVER)),
        make_terms(("warm", FEVER), ("cold", "")),
        make_note("MI and warm", ("MI", INFARCTION), ("warm", "")),
        make_note("funny turn", ("funny turn", HEADACHE)),
    ]
    texts = ["MI", "mi", "warm", "cold", "funny turn", "Fever"]
    once, report = learn(own_kb, *documents, output=tmp_path / "once")
    expected = once.link(texts)
    assert [linked.cui for linked in expected] == [
        *(MITRAL, MITRAL, FEVER, None, HEADACHE, FEVER)
    ]
    backwards, _ = learn(own_kb, *documents[::-1], output=tmp_path / "backwards")
    assert backwards.link(texts) == expected
    for document in documents:
        kb, _ = learn(load_kb(own_kb), document)
    assert kb.link(texts) == expected
    assert [kb.link([text])[0] for text in texts] == expected  # in any batch


def test_capitals_tell_an_abbreviation_from_a_word(own_kb):
    kb, _ = learn(own_kb, make_terms(("ALL", HEART), ("all", ""), ("Warm", FEVER)))
    cuis = [linked.cui for linked in kb.link(["ALL", "all", "All", "WARM", "warm"])]
    assert cuis == [HEART, None, None, FEVER, FEVER]
    assert list_keys("(ALL)") == ("ALL", "all")
    votes = {"ALL": {HEART: 4, MITRAL: 1}, "all": {"": 1}, "x": {FEVER: 3, "": 1}}
    assert find_decision("ALL", votes) == Decision(HEART, 4, 5)
    assert find_decision("aLL", votes) == Decision("", 1, 1)
    assert find_decision("x", votes) is None  # three of four
    assert find_decision("y", votes) is None
    assert [votes and find_decision(t, votes).probability for t in ("ALL", "all")] == [
        0.8,
        0.0,
    ]


def test_a_decision_for_a_concept_that_a_filter_or_a_removal_excludes(own_kb):
    kb, _ = learn(own_kb, make_terms(("warmth", FEVER), ("MI", MITRAL)))
    assert answer(kb, "warmth")[0] == FEVER
    assert answer(kb, "warmth", filter={"types": ["T047"]})[0] is None
    assert answer(kb, "MI", filter={"deny": [MITRAL]})[0] == INFARCTION
    # annotated mentions are no names of a source, and decide all the same
    sourced = add_concepts(kb, [Concept(FEVER, ["calor"], sources={"LOCAL": [0]})])
    assert answer(sourced, "warmth", filter={"sources": ["LOCAL"]})[0] == FEVER
    assert answer(sourced, "MI", filter={"sources": ["LOCAL"]})[0] is None
    kb = remove_concepts(sourced, [FEVER])
    assert answer(kb, "warmth")[0] is None


def test_names_and_order_are_used_for_others_only_if_they_do_no_harm(own_kb):
    """What is decided holds, whatever cross-validation says of other mentions."""
    # each document calls another concept nearly so
    cuis = [f"C000000{1 + n % 8}" for n in range(24)]
    pairs = [(f"fever{'x' * n}", cui) for n, cui in enumerate(cuis, 1)]
    pairs = [*pairs, ("Pyrexias", FEVER), ("feverish", FEVER), ("Fevers", FEVER)]
    notes = [make_note(f"a {text}", (text, cui)) for text, cui in pairs]
    before = load_kb(own_kb)
    kb, report = learn(before, *notes)
    assert report.changed
    assert not report.as_names
    assert kb.manifest.taught.as_names is False
    assert kb.ranker == before.ranker
    texts = [text for text, _ in pairs]
    links = kb.link(texts)
    cuis = [linked.cui for linked in links]
    assert cuis == [cui for _, cui in pairs]
    firsts = [linked.candidates[0] for linked in links]
    for k in (1, 3):  # which may not find the concept
        assert [linked.candidates[0] for linked in kb.link(texts, k=k)] == firsts
    assert "feverx" not in kb[cuis[0]].aliases
    forced, report = learn(own_kb, *notes, force=True)
    assert report.as_names
    assert "feverx" in forced[cuis[0]].aliases


def test_map_follows_what_people_decided(own_kb):
    terms = ["MI", "Fever", "h/o warmth", "C0000005", "warmth"]
    kb = load_kb(own_kb)

    def look_up(kb: KnowledgeBase) -> list[tuple[str, str | None, str | None]]:
        found = map_queries(kb, [Query(term) for term in terms], DEFAULT_OPTIONS)
        return [(one.status, one.cui, one.note) for one in found]

    assert [status for status, *_ in look_up(kb)[:2]] == ["review", "exact"]
    decided = zip(terms, (MITRAL, "", FEVER, HEART, FEVER), strict=True)
    kb, _ = learn(kb, make_terms(*decided))
    assert look_up(kb) == [
        ("exact", MITRAL, None),
        ("none", None, "decided"),
        ("exact", FEVER, None),
        ("exact", HEART, None),
        ("exact", FEVER, None),
    ]


def test_what_people_say_of_a_doubt_holds_for_nothing_else(own_kb):
    kb = load_kb(own_kb)

    def look_up(kb: KnowledgeBase, term: str) -> tuple[str, str | None]:
        (found,) = map_queries(kb, [Query(term)], DEFAULT_OPTIONS)
        return found.status, found.cui

    doubt = look_up(kb, "MI?")
    assert doubt == ("review", None)
    kb, _ = learn(kb, make_terms(("? fever", ""), ("MI", MITRAL)))
    assert answer(kb, "fever")[0] == FEVER
    assert look_up(kb, "fever") == ("exact", FEVER)
    assert look_up(kb, "MI") == ("exact", MITRAL)
    assert look_up(kb, "MI?") == doubt
    assert list_keys("(fever?)") == ()


def test_verify_knows_what_people_decided(own_kb):
    pairs = [("MI", INFARCTION), ("MI", MITRAL), ("Fever", FEVER), ("MI", HEART)]
    texts, ids = map(list, zip(*pairs, strict=True))
    kb, _ = learn(own_kb, make_terms(("MI", MITRAL), ("Fever", "")))
    verdicts = Verifier(kb).verify(texts, ids)
    assert [(one.verdict, one.probability) for one in verdicts] == [
        *(("wrong", 0.0), ("right", 1.0), ("wrong", 0.0), ("wrong", 0.0))
    ]
    assert [one.why for one in verdicts[:3]] == [
        "People decided that the text means Mitral insufficiency.",
        "People decided that the text means Mitral insufficiency.",
        "People decided that the text has no concept.",
    ]
    assert (verdicts[0].better, verdicts[2].better) == (MITRAL, None)


def test_explain_says_that_people_decided(own_kb):
    kb, _ = learn(own_kb, make_terms(("MI", MITRAL), ("Fever", "")))
    result = invoke("explain", kb.folder, "MI", "--expected", INFARCTION, code=3)
    assert "by people: C0000002 Mitral insufficiency, in 1 of 1 document" in (
        " ".join(result.output.split())
    )
    assert "Teach the mention again" in result.output
    result = invoke("explain", kb.folder, "Fever", code=3)
    assert "NIL (decided)" in result.output
    assert "by people: NIL" in " ".join(result.output.split())
    result = invoke("explain", kb.folder, "Headache", code=0)
    assert "by people" not in result.output


def test_teach_command_adds_and_says_what_it_learned_by_term_and_row(own_kb, tmp_path):
    path = tmp_path / "terms.csv"
    rows = [("term", "cui"), ("Fever", "NIL"), ("MI", MITRAL), ("=ward", HEART)]
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(rows)
    result = invoke("teach", own_kb, path, code=0)
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert "Fever Fever NIL terms.csv:2" in lines
    assert "MI NIL Mitral insufficiency terms.csv:3" in lines
    other = tmp_path / "other.csv"
    other.write_text(f"term,cui\nwarm,{FEVER}\n")
    invoke("teach", own_kb, other, code=0)
    assert answer(load_kb(own_kb), "MI")[0] == MITRAL
    result = invoke("teach", own_kb, other, code=0)
    assert "nothing new" in result.output
    invoke("teach", own_kb, other, "--anew", code=0)
    assert answer(load_kb(own_kb), "MI")[0] is None
    assert answer(load_kb(own_kb), "warm")[0] == FEVER


def test_decision_makes_an_id_right_for_a_text_that_says_something_else(own_kb):
    text = "h/o heart attack"
    before = Verifier(load_kb(own_kb)).verify([text], [INFARCTION])[0]
    kb, _ = learn(own_kb, make_terms((text, INFARCTION)))
    after = Verifier(kb).verify([text], [INFARCTION])[0]
    assert (before.verdict, after.verdict) == ("unsure", "right")
    assert after.why.startswith("People decided")
