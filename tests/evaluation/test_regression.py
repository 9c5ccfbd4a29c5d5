from pathlib import Path

import pytest
import spacy
from spacy.language import Language

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.regression import judge, make_doc, run_cases
from spacy_sapbert.evaluation.regression_cases import Case, read_cases
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.pipeline.running import complete_pipeline

PATH = Path("cases.yaml")


@Language.component("test_regression_remember", assigns=["doc.sents"])
def remember(doc):
    SEEN.append((doc.text, [(ent.text, ent.label_) for ent in doc.ents]))
    return doc


SEEN: list = []


def make_case(text, mention, *expected, label=None, line=1):
    return Case(PATH, line, text, text.index(mention), mention, expected, label, None)


def make_linker(kb, **config):
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_linker", config={"kb": str(kb), **config})
    return nlp, complete_pipeline(nlp, detection=False)


def test_regression_says_what_was_found_instead(sample_kb):
    nlp, linker = make_linker(sample_kb)
    cases = [
        make_case("no fever", "fever", "C0000004", line=1),
        make_case("pyrexia", "pyrexia", "C0000001", line=2),
        make_case("MI", "MI", "C0000001", "C0000002", line=3),
        make_case("--", "--", "NIL", line=4),
        make_case("fever", "fever", "NIL", line=5),
        make_case("--", "--", "C0000004", line=6),
        make_case("fever", "fever", "NIL", "C0000004", line=7),
        make_case("heart attack", "heart attack", "C9999999", line=8),
        make_case("fever", "fever", "C7777777", line=9),
    ]
    outcomes = list(run_cases(nlp, linker, cases))
    assert [outcome["line"] for outcome in outcomes if not outcome["passed"]] == [
        *(2, 5, 6, 9)
    ]
    wrong = outcomes[1]
    assert (wrong["cui"], wrong["name"], wrong["score"]) == ("C0000004", "Fever", 1.0)
    assert wrong["rank"] > 1
    assert wrong["remarks"] == [f"the expected is rank {wrong['rank']}"]
    assert wrong["candidates"][wrong["rank"] - 1]["cui"] == "C0000001"
    assert outcomes[5]["remarks"] == ["the expected is no candidate"]
    assert outcomes[5]["link_note"]
    assert outcomes[7]["remarks"] == ["C9999999 is C0000001 now"]
    assert outcomes[8]["remarks"] == ["C7777777 is unknown"]


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("no fever today", "fever"),
        ("nofevertoday", "fever"),
        ("pre-fever  state", "fever  st"),
        ("\nfever\n", "fever"),
        ("fever", "fever"),
        ("x fever", " fever"),
        ("don't", "n"),
        ("头痛頭痛", "頭痛"),
    ],
)
@pytest.mark.parametrize("key", [None, "sc"])
def test_regression_mention_is_the_entity_wherever_tokens_begin(text, mention, key):
    doc = make_doc(spacy.blank("en"), make_case(text, mention, "C1"), spans_key=key)
    (span,) = doc.ents if key is None else doc.spans[key]
    assert doc.text == text
    assert (span.text, span.start_char) == (mention, text.index(mention))
    assert span.label_ == "CONCEPT"


def test_regression_runs_the_pipeline_on_the_context(sample_kb):
    nlp, linker = make_linker(sample_kb)
    nlp.add_pipe("test_regression_remember", before="sapbert_linker")
    nlp.add_pipe("entity_ruler", first=True).add_patterns(
        [{"label": "OTHER", "pattern": "no"}]
    )
    SEEN.clear()
    case = make_case("no fever", "fever", "C0000004", label="SIGN")
    (outcome,) = run_cases(nlp, linker, [case])
    assert outcome["passed"]
    assert SEEN == [("no fever", [("fever", "SIGN")])]


def test_regression_of_a_linker_of_span_groups(sample_kb):
    nlp, linker = make_linker(sample_kb, spans_key="sc", cui_attr="other_cui")
    (outcome,) = run_cases(nlp, linker, [make_case("a fever", "fever", "C0000004")])
    assert outcome["passed"]


def test_regression_threshold_makes_nil(sample_kb):
    nlp, linker = make_linker(sample_kb, threshold=1.0)
    cases = [make_case("feverx", "feverx", "NIL"), make_case("fever", "fever", "NIL")]
    outcomes = list(run_cases(nlp, linker, cases))
    assert [outcome["passed"] for outcome in outcomes] == [True, False]


def test_regression_too_long_a_context_is_an_error():
    nlp = spacy.blank("en")
    nlp.max_length = 4
    with pytest.raises(SapbertError, match="E506.*cases.yaml:3: "):
        make_doc(nlp, make_case("fever", "fever", "C1", line=3), spans_key=None)


def test_regression_rank_is_the_first_of_those_that_were_expected(few_concepts):
    concepts = {concept.cui: concept for concept in few_concepts}
    candidates = [{"cui": f"C000000{number}"} for number in (4, 3, 2)]
    entity = {"cui": "C0000004", "name": "", "score": 1.0, "note": None}
    outcome = judge(
        make_case("x", "x", "C0000002", "C0000003"),
        {**entity, "candidates": candidates},
        concepts.get,
    )
    assert outcome["rank"] == 2
    assert not outcome["passed"]


def test_regression_sample_cases_name_concepts_of_the_sample():
    folder = Path(__file__).parents[2] / "assets" / "sample"
    rows = (folder / "MRCONSO.RRF").read_text("utf8").splitlines()
    retired = (folder / "MRCUI.RRF").read_text("utf8").splitlines()
    known = {row.partition("|")[0] for row in [*rows, *retired]} | {"NIL"}
    cases = list(read_cases(folder / "cases.yaml"))
    assert {cui for case in cases for cui in case.expected} <= known


def test_regression_concept_of_a_kb_knows_retired_ids(sample_kb):
    assert load_kb(sample_kb).concept("C9999999").cui == "C0000001"
