import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.pipeline.abbreviation_detector import (
    find_short_forms,
    long_form_text,
    set_extensions,
)
from spacy_sapbert.pipeline.schwartz_hearst import find_long_forms
from tests.pipelines import NLP

DEFINITION = "Ataxia telangiectasia (AT) is rare. "
# Short enough an alphabet that definitions come about by chance.
DENSE_TEXT = st.text("abABs1- \n.,;'()[]", max_size=80)
ANY_TEXT = st.text(st.characters(codec="utf8"), max_size=60)
Span.set_extension("test_long", default=None, force=True)


def found(text, words=None):
    doc = NLP.make_doc(text) if words is None else Doc(NLP.vocab, words=words)
    places = find_short_forms(doc, find_long_forms(doc.text))
    return [(span.start_char, span.text, long) for span, long in places]


# --- where short forms are ---


def test_find_short_forms_before_and_after_the_definition():
    assert found("AT, ataxia telangiectasia (AT), at last AT.") == [
        (start, "AT", "ataxia telangiectasia") for start in (0, 27, 40)
    ]


def test_find_short_forms_of_several_tokens():
    text = "ataxia-telangiectasia (A-T), hexosaminidase A (Hex A). Hex\nA or A-T"
    assert [short for _, short, _ in found(text)] == ["A-T", "Hex A", "Hex\nA", "A-T"]


def test_find_short_forms_longest_first():
    text = "The 5-HT transporter (5-HTT) takes up 5-hydroxytryptamine (5-HT)."
    assert [short for _, short, _ in found(text)] == ["5-HT", "5-HTT", "5-HT"]


@pytest.mark.parametrize(
    "text",
    [
        "renal cell carcinomas (RCCs), an RCC, two RCCs",
        "renal cell carcinoma (RCC), two RCCs, an RCC",
    ],
)
def test_find_short_forms_with_and_without_s(text):
    assert len(found(text)) == 3


def test_find_short_forms_have_two_characters_without_s():
    assert [short for _, short, _ in found("arsenic (As), A to Z, As")] == ["As"] * 2


def test_find_short_forms_respects_case():
    assert [start for start, _, _ in found(DEFINITION + "at At AT")] == [23, 42]


def test_find_short_forms_skips_parts_of_tokens():
    words = ["ataxia", "telangiectasia", "(AT)", "is", "AT", "or", "AT-gene"]
    assert [start for start, _, _ in found("", words=words)] == [30]


def test_find_short_forms_end_without_white_space():
    doc = NLP.make_doc(DEFINITION + "AT \n\n of AT\t")
    spans = [span for span, _ in find_short_forms(doc, find_long_forms(doc.text))]
    assert [span.text for span in spans] == ["AT"] * 3


def test_find_short_forms_long_forms_have_single_blanks():
    assert found("ataxia\n  telangiectasia (AT)") == [
        (25, "AT", "ataxia telangiectasia")
    ]


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


@given(ANY_TEXT, st.lists(st.text(max_size=3), max_size=9))
def test_find_short_forms_works_for_any_tokens(text, words):
    doc = Doc(NLP.vocab, words=[word for word in words if word])
    for span, _ in find_short_forms(doc, {"AT": "ataxia", "Hex A": "hexosaminidase"}):
        assert " ".join(span.text.split()).rstrip("s") in ("AT", "Hex A")


# --- how they are read ---


def span_with(value):
    doc = NLP.make_doc("AT of ataxia\n  telangiectasia")
    span = doc[0:1]
    span._.test_long = doc[2:5] if value is Span else value
    return span


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("ataxia telangiectasia", "ataxia telangiectasia"),
        (" ataxia\r\n telangiectasia ", "ataxia telangiectasia"),
        (Span, "ataxia telangiectasia"),
        ("", None),
        (" \n", None),
        (None, None),
        (7, None),
    ],
)
def test_long_form_text_reads_texts_and_spans(value, expected):
    assert long_form_text(span_with(value), "test_long") == expected


@pytest.mark.parametrize("attr", [None, "", "test_not_registered"])
def test_long_form_text_without_the_attribute_is_none(attr):
    assert long_form_text(span_with("ataxia"), attr) is None


def test_long_form_text_reads_a_getter():
    Span.set_extension("test_got", getter=str, force=True)
    assert long_form_text(span_with(None), "test_got") == "AT"


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


@pytest.mark.parametrize("how", [{"default": []}, {"getter": len}])
def test_set_extension_of_another_component_is_an_error(how):
    Doc.set_extension("test_taken", force=True, **how)
    with pytest.raises(SapbertError, match="E331.*test_taken.*abbreviations_attr"):
        set_extensions("test_long", "test_taken")
