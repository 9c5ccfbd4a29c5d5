import pickle

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin, Span

from spacy_sapbert.pipeline.abbreviation_detector import (
    SapbertAbbreviations,
    long_form_text,
)
from spacy_sapbert.pipeline.schwartz_hearst import find_long_forms

TEXT = "Ataxia telangiectasia (AT) runs in families. AT is rare."
LONG = "Ataxia telangiectasia"


def make_pipeline(**config):
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_abbreviations", config=config)
    return nlp


NLP = make_pipeline()


def long_forms(doc):
    return [
        (span.start_char, span.text, span._.long_form) for span in doc._.abbreviations
    ]


FOUND = [(23, "AT", LONG), (45, "AT", LONG)]


def test_abbreviations_have_long_forms():
    assert long_forms(NLP(TEXT)) == FOUND


@pytest.mark.parametrize("text", ["", " ", "No definition of AT.", "(AT)", "\0"])
def test_abbreviations_without_definitions_are_empty(text):
    doc = NLP(text)
    assert doc._.abbreviations == []
    assert not doc.user_data


@pytest.mark.parametrize("place", ["first", "last"])
def test_abbreviations_set_the_long_form_of_entities(place):
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "DISEASE", "pattern": "AT"}])
    ruler.add_patterns([{"label": "DISEASE", "pattern": "families"}])
    nlp.add_pipe("sapbert_abbreviations", **{place: True})
    ents = nlp(TEXT).ents
    assert [long_form_text(ent) for ent in ents] == [LONG, None, LONG]
    assert [span.text for span in nlp(TEXT)._.abbreviations] == ["AT", "AT"]


def test_abbreviations_keep_existing_long_forms():
    doc = NLP.make_doc(TEXT)
    doc.char_span(45, 47)._.long_form = "adenine thymine"
    assert long_forms(NLP(doc)) == [FOUND[0], (45, "AT", "adenine thymine")]


def test_abbreviations_run_twice_change_nothing():
    doc = NLP(TEXT)
    before = dict(doc.user_data)
    assert NLP(doc).user_data == before


def test_abbreviations_have_settings_for_attributes():
    nlp = make_pipeline(long_form_attr="meaning", abbreviations_attr="short_forms")
    doc = nlp(TEXT)
    assert [span._.meaning for span in doc._.short_forms] == [LONG, LONG]
    assert doc[4:5]._.long_form is None


def test_abbreviations_unknown_setting_is_an_error():
    with pytest.raises(ValueError, match="unexpected argument: 'attr'"):
        make_pipeline(attr="x")


# --- saving ---


def test_abbreviations_round_trip_in_bytes_doc_bin_and_pickle():
    doc = NLP(TEXT)
    assert long_forms(Doc(NLP.vocab).from_bytes(doc.to_bytes())) == FOUND
    data = DocBin(docs=[doc], store_user_data=True).to_bytes()
    (copy,) = DocBin().from_bytes(data).get_docs(NLP.vocab)
    assert long_forms(copy) == FOUND
    assert long_forms(pickle.loads(pickle.dumps(doc))) == FOUND


def test_abbreviations_are_kept_in_joined_and_sliced_docs():
    doc = Doc.from_docs([NLP.make_doc("One."), NLP(TEXT)])
    assert long_forms(doc) == [(start + 5, *rest) for start, *rest in FOUND]
    part = doc.char_span(50, 61)
    assert long_forms(part.as_doc(copy_user_data=True)) == [(0, "AT", LONG)]


def test_abbreviations_pipeline_round_trips_on_disk(tmp_path):
    nlp = make_pipeline(long_form_attr="meaning", abbreviations_attr="short_forms")
    nlp.to_disk(tmp_path)
    copy = spacy.load(tmp_path)
    assert [span._.meaning for span in copy(TEXT)._.short_forms] == [LONG, LONG]


def test_abbreviations_component_round_trips_in_pickle():
    component = SapbertAbbreviations(
        name="a", long_form_attr="meaning", abbreviations_attr="short_forms"
    )
    Span.remove_extension("meaning")
    copy = pickle.loads(pickle.dumps(component))
    assert (copy.name, copy.attrs) == ("a", ("meaning", "short_forms"))
    assert Span.has_extension("meaning")


# --- streams ---


def test_abbreviations_pipe_equals_call():
    lines = [TEXT, "", "no definition", "Crohn disease (CD)"] * 5
    expected = [long_forms(NLP(line)) for line in lines]
    assert [long_forms(doc) for doc in NLP.pipe(lines, batch_size=3)] == expected


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_abbreviations_with_two_processes_equal_one(method, monkeypatch, new_process):
    monkeypatch.setattr("spacy.language.mp", new_process.context(method))
    docs = NLP.pipe([TEXT, "", TEXT], n_process=2, batch_size=1)
    assert [long_forms(doc) for doc in docs] == [FOUND, [], FOUND]


@given(st.text("abAB1- \n.,()[]", max_size=80) | st.text(max_size=60))
def test_abbreviations_of_any_text_have_right_offsets(text):
    doc = NLP(text)
    for span in doc._.abbreviations:
        assert doc.text[span.start_char : span.end_char] == span.text
        assert span._.long_form in find_long_forms(text).values()


def test_abbreviations_factory_lists_what_it_assigns():
    meta = NLP.get_pipe_meta("sapbert_abbreviations")
    assert meta.assigns == ["doc._.abbreviations", "span._.long_form"]
    assert list(meta.requires) == []
