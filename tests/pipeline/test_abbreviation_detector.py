"""Short forms and their long forms in Docs."""

import pickle

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span

from spacy_sapbert.linking.schwartz_hearst import find_long_forms
from spacy_sapbert.pipeline.abbreviation_detector import (
    find_short_forms,
    long_form_text,
    set_extensions,
)
from tests.pipelines import NLP

# Short enough an alphabet that definitions come about by chance.
DENSE_TEXT = st.text("abABs1- \n.,;'()[]", max_size=80)
ANY_TEXT = st.text(st.characters(codec="utf8"), max_size=60)
Span.set_extension("test_long", default=None, force=True)


# --- where short forms are ---


@pytest.mark.parametrize(
    ("text", "short"),
    [
        (
            "ataxia-telangiectasia (A-T), hexosaminidase A (Hex A). Hex\nA or A-T",
            ["A-T", "Hex A", "Hex\nA", "A-T"],
        ),
        ("renal cell carcinomas (RCCs), an RCC, two RCCs", ["RCCs", "RCC", "RCCs"]),
        ("renal cell carcinoma (RCC), two RCCs, an RCC", ["RCC", "RCCs", "RCC"]),
        ("Ataxia telangiectasia (AT): at At AT \n\n of AT\t", ["AT"] * 3),
    ],
)
def test_find_short_forms_by_hand(text, short):
    doc = NLP.make_doc(text)
    places = find_short_forms(doc, find_long_forms(doc.text))
    assert [span.text for span, _ in places] == short


def test_find_short_forms_have_long_forms_and_skip_parts_of_tokens():
    doc = NLP.make_doc("ataxia\n  telangiectasia (AT)")
    (place,) = find_short_forms(doc, find_long_forms(doc.text))
    assert (place[0].start_char, place[1]) == (25, "ataxia telangiectasia")
    words = ["ataxia", "telangiectasia", "(AT)", "is", "AT", "or", "AT-gene"]
    doc = Doc(NLP.vocab, words=words)
    places = find_short_forms(doc, find_long_forms(doc.text))
    assert [span.start_char for span, _ in places] == [30]


@given(DENSE_TEXT | ANY_TEXT)
def test_find_short_forms_have_right_offsets(text):
    doc = NLP.make_doc(text)
    long_forms = find_long_forms(text)
    last = 0
    for span, long in find_short_forms(doc, long_forms):
        assert span.start_char >= last
        last = span.end_char
        short = " ".join(text[span.start_char : span.end_char].split())
        near = {short, short + "s", short.removesuffix("s")}
        assert long in {long_forms.get(one) for one in near}


# --- how they are read ---


def test_long_form_text_reads_texts_and_spans():
    doc = NLP.make_doc("AT of ataxia\n  telangiectasia")
    for value in (" ataxia\r\n telangiectasia ", doc[2:5]):
        doc[0:1]._.test_long = value
        assert long_form_text(doc[0:1], "test_long") == "ataxia telangiectasia"
    assert long_form_text(doc[0:1], None) is None


# --- the attribute of Docs ---


def test_doc_abbreviations_are_the_spans_with_a_long_form():
    set_extensions("test_long", "test_list")
    set_extensions("test_long", "test_list")
    set_extensions("test_other", "test_list")
    doc = NLP.make_doc("AT and BT and CT")
    assert doc._.test_list == []
    doc[2:3]._.test_other = "b"
    doc[0:1]._.test_long = "a"
    doc[4:5]._.test_long = ""
    doc.user_data["else"] = doc.user_data["a", "b"] = doc.user_data["._.", 1] = 1
    assert [span.text for span in doc._.test_list] == ["AT", "BT"]
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[2:4])
    assert [span.text for span in doc._.test_list] == ["AT"]


TEXT = "Ataxia telangiectasia (AT) runs in families. AT is rare."
LONG = "Ataxia telangiectasia"


def make_pipeline(**config):
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_abbreviations", config=config)
    return nlp


def test_abbreviations_set_long_forms_and_keep_those_there():
    nlp = make_pipeline()
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "DISEASE", "pattern": "AT"}])
    ruler.add_patterns([{"label": "DISEASE", "pattern": "families"}])
    ents = nlp(TEXT).ents
    assert [long_form_text(ent) for ent in ents] == [LONG, None, LONG]
    doc = nlp.make_doc(TEXT)
    doc.char_span(45, 47)._.long_form = "adenine thymine"
    found = [(e.start_char, e._.long_form) for e in nlp(doc)._.abbreviations]
    assert found == [(23, LONG), (45, "adenine thymine")]


def test_abbreviations_round_trip_on_disk_and_in_pickle(tmp_path):
    nlp = make_pipeline(long_form_attr="meaning", abbreviations_attr="short_forms")
    nlp.to_disk(tmp_path)
    copy = spacy.load(tmp_path)
    assert [span._.meaning for span in copy(TEXT)._.short_forms] == [LONG, LONG]
    data = pickle.dumps(nlp.get_pipe("sapbert_abbreviations"))
    Span.remove_extension("meaning")
    component = pickle.loads(data)
    assert component.attrs == ("meaning", "short_forms")
    assert Span.has_extension("meaning")
