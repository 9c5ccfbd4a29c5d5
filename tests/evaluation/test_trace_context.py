"""What a pipeline makes of a mention before it is linked."""

from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.regression_cases import Case
from spacy_sapbert.evaluation.trace_context import read_context


def case(text: str, mention: str, label: str | None = None) -> Case:
    start = text.index(mention)
    return Case(Path("x"), 1, text, start, mention, (), label, None)


def pipeline(*components: str, **config: Any) -> Any:
    nlp = spacy.blank("en")
    for name in components:
        nlp.add_pipe(name)
    if "entity_ruler" in components:
        ruler: Any = nlp.get_pipe("entity_ruler")
        ruler.add_patterns(
            [{"label": "SIGN", "pattern": text} for text in ("fever", "MI", "no fever")]
        )
    return nlp, nlp.add_pipe("sapbert_linker", config={"kb": "none", **config})


def test_a_mention_alone_is_looked_up_as_it_is() -> None:
    question = read_context(*pipeline(), case("MI", "MI"))
    assert (question.text, question.label, question.others) == ("MI", "", [])
    assert read_context(*pipeline(), case("MI", "MI", "SIGN")).label == "SIGN"


def test_the_long_form_counts_only_where_a_component_sets_it() -> None:
    asked = case("A heart attack (HA). Since the HAs", "HA")
    without = read_context(*pipeline(), asked)
    assert (without.text, without.defined) == ("HA", "heart attack")
    question = read_context(*pipeline("sapbert_abbreviations"), asked)
    assert (question.text, question.long_form) == ("heart attack", "heart attack")
    # Behind the linker it is too late.
    nlp, linker = pipeline()
    nlp.add_pipe("sapbert_abbreviations")
    assert read_context(nlp, linker, asked).long_form is None


@pytest.mark.parametrize("key", [None, "all"])
def test_what_the_pipeline_detects_is_the_rest_of_the_document(
    key: str | None,
) -> None:
    nlp, linker = pipeline("entity_ruler", spans_key=key)
    if key is not None:

        @Language.component("test_ents_to_spans")
        def copy(doc: Doc) -> Doc:
            doc.spans["all"] = list(doc.ents)
            return doc

        nlp.add_pipe("test_ents_to_spans", after="entity_ruler")
    text = "MI and no fever, then fever"
    question = read_context(nlp, linker, case(text, "MI"))
    assert question.label == "SIGN"
    assert question.others == [("no fever", "SIGN"), ("fever", "SIGN")]
    # What overlaps with the mention is not another one.
    question = read_context(nlp, linker, case(text, "fever"))
    assert question.label == ""
    assert question.others == [("MI", "SIGN"), ("fever", "SIGN")]


def test_a_mention_within_a_token_is_looked_up() -> None:
    question = read_context(*pipeline("entity_ruler"), case("antifever", "fever"))
    assert (question.text, question.label) == ("fever", "SIGN")


def test_a_component_that_fails_is_named_without_the_text() -> None:
    @Language.component("test_fails")
    def fail(doc: Doc) -> Doc:
        raise ValueError(doc.text)

    with pytest.raises(SapbertError, match="E513.*test_fails") as caught:
        read_context(*pipeline("test_fails"), case("secret MI", "MI"))
    assert "secret" not in str(caught.value)
