"""Short forms whose long form is hidden, and how answers are counted."""

from experiments.context.evaluate_context import CONTEXT, FREQUENT, NAMES, describe
from experiments.context.short_forms import (
    Document,
    Mention,
    find_meanings,
    hide_names,
    make_short_form,
)

HEART, MITRAL, FEVER = "C1", "C2", "C3"
NAMES_OF = {
    "myocardial infarction": HEART,
    "mitral insufficiency": MITRAL,
    "fever": FEVER,
}


def annotate(text, **ids):
    """Make a document; underscores stand for the blanks of a mention."""
    mentions = [
        Mention(text.index(word), text.index(word) + len(word), id)
        for word, id in ((key.replace("_", " "), id) for key, id in ids.items())
    ]
    return Document(text, mentions)


ONE = annotate(
    "A heart attack, a myocardial infarction (MCI), and fever.",
    heart_attack=HEART,
    myocardial_infarction=HEART,
    MCI=HEART,
    fever=FEVER,
)
OTHER = annotate("mitral insufficiency", mitral_insufficiency=MITRAL)


def test_short_form_has_the_first_letters_of_words():
    assert make_short_form("disease of the heart") == "DH"
    assert make_short_form("fever") is None
    assert make_short_form("a b c d e f g h") is None


def test_short_forms_of_several_concepts_replace_all_mentions_of_theirs():
    meanings = find_meanings([ONE, OTHER, ONE, OTHER], NAMES_OF)
    assert meanings == {"MI": {HEART, MITRAL}}
    hidden, short_forms = hide_names(ONE, meanings, NAMES_OF)
    assert hidden.text == "A MI, a MI (MI), and fever."
    assert short_forms == {HEART: "MI"}
    found = [(hidden.text[m.start : m.end], m.cui) for m in hidden.mentions]
    assert found == [("MI", HEART)] * 3 + [("fever", FEVER)]


def test_short_forms_of_one_concept_or_few_documents_hide_nothing():
    assert find_meanings([ONE, ONE], NAMES_OF) == {}
    assert find_meanings([ONE, OTHER], NAMES_OF) == {}


def test_short_form_means_one_concept_in_a_document():
    both = Document(
        f"{ONE.text} {OTHER.text}",
        [*ONE.mentions, Mention(len(ONE.text) + 1, len(ONE.text) + 21, MITRAL)],
    )
    meanings = {"MI": {HEART, MITRAL}}
    _, short_forms = hide_names(both, meanings, NAMES_OF)
    assert len(short_forms) == 1


def test_answers_are_compared_mention_by_mention():
    wrong = dict.fromkeys((NAMES, "names alone, no threshold", FREQUENT), False)
    rights = [{CONTEXT: True, **wrong}] * 6 + [{CONTEXT: False, **wrong, NAMES: True}]
    result = describe(rights)
    assert result["mentions"] == 7
    assert result[CONTEXT] == {"right": round(6 / 7, 4)}
    assert result[NAMES] == {
        "right": round(1 / 7, 4),
        "better": 6,
        "worse": 1,
        "p": 0.12,
    }
    assert result[FREQUENT]["p"] == 0.031
