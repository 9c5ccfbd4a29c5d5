"""Short forms and their long forms in Docs."""

import pickle
from pathlib import Path

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span

from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.linking.schwartz_hearst import find_long_forms
from spacy_sapbert.pipeline.abbreviation_detector import (
    find_short_forms,
    long_form_text,
    mention_text,
    set_extensions,
)
from spacy_sapbert.vocabularies.concepts import Concept
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


@pytest.fixture(scope="module")
def mi_kb(make_kb, tmp_path_factory) -> Path:
    concepts = [
        Concept("C1", ["Acute myocardial infarction", "acute MI"]),
        Concept("C2", ["Acute mitral insufficiency"]),
        Concept("C3", ["Mitral insufficiency", "MI"]),
        Concept("C4", ["Severe myocardial infarction"]),
    ]
    return make_kb(tmp_path_factory.mktemp("mi"), concepts)


@pytest.mark.parametrize(
    ("text", "mention", "linked"),
    [
        ("Mitral insufficiency (MI), now acute MI.", "acute MI", "C2"),
        ("Myocardial infarction (MI), now acute MI.", "acute MI", "C1"),
        ("Myocardial infarction (MI), now severe MI.", "severe MI", "C4"),
        ("Severe   MI after myocardial infarction (MI).", "Severe   MI", "C4"),
        ("Mitral insufficiency (MI).", "MI", "C3"),
    ],
)
def test_long_forms_reach_short_forms_inside_of_mentions(mi_kb, text, mention, linked):
    """What the document defines comes before what the vocabulary says.

    But the vocabulary knows better how a mention is written, if it means the same.
    """
    nlp = make_pipeline()
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "X", "pattern": mention}])
    nlp.add_pipe("sapbert_linker", config={"kb": str(mi_kb), "threshold": 0})
    *_, ent = nlp(text).ents
    assert (ent.text, ent._.cui) == (mention, linked)
    assert ent._.candidates[0]["score"] == 1.0


def test_mention_text_replaces_whole_words_alone(mi_kb):
    kb = load_kb(mi_kb)
    doc = NLP.make_doc("MIs of MI, MIX (MI) and MI")
    for start, end in ((7, 9), (24, 26)):
        doc.char_span(start, end)._.test_long = "minor infarction"
    assert mention_text(doc[:], "test_long", kb) == (
        "MIs of minor infarction, MIX (MI) and minor infarction"
    )
    assert mention_text(doc[:], None, kb) == doc.text
    # where it is defined
    doc = NLP.make_doc("minor\nInfarction (MI)")
    doc[3:4]._.test_long = "minor infarction"
    assert mention_text(doc[:], "test_long", kb) == doc.text
    doc[:]._.test_long = "all"
    assert mention_text(doc[:], "test_long", kb) == "all"
