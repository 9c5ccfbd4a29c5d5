from pathlib import Path

import pytest
import spacy
from spacy.language import Language

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.regression import (
    compare_outcome,
    make_doc,
    read_context,
    run_cases,
)
from spacy_sapbert.evaluation.regression_cases import Case
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.pipeline.running import complete_pipeline
from tests.pipelines import make_nlp

PATH = Path("cases.yaml")


@Language.component("test_record_entities", assigns=["doc.sents"])
def record_entities(doc):
    SEEN.append((doc.text, [(ent.text, ent.label_) for ent in doc.ents]))
    return doc


SEEN: list = []


def make_case(text, mention, *expected, label=None, line=1):
    return Case(PATH, line, text, text.index(mention), mention, expected, label, None)


def make_linker(kb, **config):
    nlp = make_nlp(kb, **config)
    return nlp, complete_pipeline(nlp, detection=False)


def test_run_cases_returns_what_was_found_instead(sample_kb):
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
    assert [outcome.line for outcome in outcomes if not outcome.passed] == [
        *(2, 5, 6, 9)
    ]
    wrong = outcomes[1]
    assert (wrong.cui, wrong.name, wrong.score) == ("C0000004", "Fever", 1.0)
    assert wrong.rank > 1
    assert wrong.remarks == [f"the expected is rank {wrong.rank}"]
    assert wrong.candidates[wrong.rank - 1]["cui"] == "C0000001"
    assert outcomes[5].remarks == ["the expected is no candidate"]
    assert outcomes[5].link_note
    assert outcomes[7].remarks == ["C9999999 is C0000001 now"]
    assert outcomes[8].remarks == ["C7777777 is unknown"]


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
def test_make_doc_has_the_mention_as_the_entity(text, mention, key):
    doc = make_doc(spacy.blank("en"), make_case(text, mention, "C1"), spans_key=key)
    (span,) = doc.ents if key is None else doc.spans[key]
    assert doc.text == text
    assert (span.text, span.start_char) == (mention, text.index(mention))
    assert span.label_ == "CONCEPT"


def test_run_cases_runs_the_pipeline_on_the_context(sample_kb):
    nlp, linker = make_linker(sample_kb)
    nlp.add_pipe("test_record_entities", before="sapbert_linker")
    nlp.add_pipe("entity_ruler", first=True).add_patterns(
        [{"label": "OTHER", "pattern": "no"}]
    )
    SEEN.clear()
    case = make_case("no fever", "fever", "C0000004", label="SIGN")
    (outcome,) = run_cases(nlp, linker, [case])
    assert outcome.passed
    assert SEEN == [("no fever", [("fever", "SIGN")])]


def test_run_cases_uses_the_span_group_of_the_linker(sample_kb):
    nlp, linker = make_linker(sample_kb, spans_key="sc", cui_attr="other_cui")
    (outcome,) = run_cases(nlp, linker, [make_case("a fever", "fever", "C0000004")])
    assert outcome.passed


def test_run_cases_uses_the_threshold_of_the_linker(sample_kb):
    nlp, linker = make_linker(sample_kb, threshold=1.0)
    cases = [make_case("feverx", "feverx", "NIL"), make_case("fever", "fever", "NIL")]
    outcomes = list(run_cases(nlp, linker, cases))
    assert [outcome.passed for outcome in outcomes] == [True, False]


def test_make_doc_refuses_a_context_that_is_too_long():
    nlp = spacy.blank("en")
    nlp.max_length = 4
    with pytest.raises(SapbertError, match="E506.*cases.yaml:3: "):
        make_doc(nlp, make_case("fever", "fever", "C1", line=3), spans_key=None)


def test_compare_outcome_returns_the_first_expected_rank(sample_kb):
    candidates = [{"cui": f"C000000{number}"} for number in (4, 3, 2)]
    entity = {"cui": "C0000004", "name": "", "score": 1.0, "note": None}
    outcome = compare_outcome(
        make_case("x", "x", "C0000002", "C0000003"),
        {**entity, "candidates": candidates},
        load_kb(sample_kb),
    )
    assert outcome.rank == 2
    assert not outcome.passed


@pytest.fixture
def pipeline(sample_kb):
    def make(*components, **config):
        nlp = spacy.blank("en")
        for name in components:
            nlp.add_pipe(name)
        if "entity_ruler" in components:
            ruler, texts = nlp.get_pipe("entity_ruler"), ("fever", "MI", "no fever")
            ruler.add_patterns([{"label": "SIGN", "pattern": text} for text in texts])
        config = {"kb": str(sample_kb), **config}
        return nlp, nlp.add_pipe("sapbert_linker", config=config)

    return make


def test_read_context_of_a_mention_alone(pipeline):
    context = read_context(*pipeline(), make_case("MI", "MI"))
    assert (context.text, context.label, context.others) == ("MI", "", [])
    context = read_context(*pipeline(), make_case("MI", "MI", label="SIGN"))
    assert context.label == "SIGN"


def test_read_context_uses_long_forms_of_components_only(pipeline):
    case = make_case("A heart attack (HA). Since the HAs", "HA")
    without = read_context(*pipeline(), case)
    assert (without.text, without.defined) == ("HA", "heart attack")
    context = read_context(*pipeline("sapbert_abbreviations"), case)
    assert (context.text, context.long_form) == ("heart attack", "heart attack")
    # Behind the linker it is too late.
    nlp, linker = pipeline()
    nlp.add_pipe("sapbert_abbreviations")
    assert read_context(nlp, linker, case).long_form is None


@pytest.mark.parametrize("key", [None, "all"])
def test_read_context_detects_the_other_mentions(pipeline, key):
    nlp, linker = pipeline("entity_ruler", spans_key=key)
    if key is not None:

        @Language.component("test_ents_to_spans", assigns=["doc.spans"])
        def copy(doc):
            doc.spans["all"] = list(doc.ents)
            return doc

        nlp.add_pipe("test_ents_to_spans", after="entity_ruler")
    text = "MI and no fever, then fever"
    context = read_context(nlp, linker, make_case(text, "MI"))
    assert context.label == "SIGN"
    assert context.others == [("no fever", "SIGN"), ("fever", "SIGN")]
    # What overlaps with the mention is not another one.
    context = read_context(nlp, linker, make_case(text, "fever"))
    assert context.label == ""
    assert context.others == [("MI", "SIGN"), ("fever", "SIGN")]


def test_read_context_of_a_mention_within_a_token(pipeline):
    context = read_context(*pipeline("entity_ruler"), make_case("antifever", "fever"))
    assert (context.text, context.label) == ("fever", "SIGN")


def test_read_context_names_a_component_that_fails(pipeline):
    @Language.component("test_fails")
    def fail(doc):
        raise ValueError(doc.text)

    with pytest.raises(SapbertError, match="E513.*test_fails") as caught:
        read_context(*pipeline("test_fails"), make_case("secret MI", "MI"))
    assert "secret" not in str(caught.value)
