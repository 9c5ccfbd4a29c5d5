import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.linking.name_variants import (
    MAX_WORDS,
    SPELLINGS,
    Names,
    choose_variant,
    list_text_variants,
    list_variants,
)
from spacy_sapbert.linking.surface_forms import name_form


@pytest.mark.parametrize(
    ("mention", "name"),
    [
        ("heart attacks", "heart attack"),
        ("epilepsies", "epilepsy"),
        ("metastases", "metastasis"),
        ("lung cancer", "cancer, lung"),
        ("cancer, lung", "lung cancer"),
        ("cancers, lung", "lung cancer"),
        ("lung cancers", "cancer, lung"),
        ("type 2 diabetes mellitus", "diabetes mellitus, type 2"),
        ("diabetes mellitus, type 2", "type 2 diabetes mellitus"),
        ("acute myeloid leukemia", "leukemia, myeloid, acute"),
        ("leukemia, myeloid, acute", "acute myeloid leukemia"),
        ("haematuria", "hematuria"),
        ("hematuria", "haematuria"),
        ("ischaemia", "ischemia"),
        ("leucaemia", "leukemia"),
        ("oesophageal tumours", "esophageal tumor"),
        ("oesophageal tumour", "tumor, esophageal"),
        ("oedema", "edema"),
        ("dyspnoea", "dyspnea"),
        ("diarrhoea", "diarrhea"),
        ("behavioural disorder", "behavioral disorder"),
        ("sulphasalazine", "sulfasalazine"),
        ("sacro-iliitis", "sacroiliitis"),
        ("beta-carotene", "beta carotene"),
        ("Crohn's disease", "Crohn disease"),
        ("Duchenne/Becker dystrophy", "Duchenne Becker dystrophy"),
    ],
)
def test_list_variants_has_the_name(mention: str, name: str) -> None:
    assert name_form(name) in list_variants(name_form(mention))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("heart attacks", "heart attack"),
        ("Crohn\u2019s diseases", "Crohn disease"),
        ("Coats' disease", "Coats disease"),
        ("Duchenne/Becker dystrophy", "Duchenne Becker dystrophy"),
        ("sacro-iliitis", "sacroiliitis"),
        ("beta-blocker", "beta blocker"),
        ("beta blockers", "beta-blocker"),
        ("haemolytic-uraemic syndrome", "hemolytic uremic syndrome"),
        ("lung cancers", "cancer, lung"),
    ],
)
def test_list_text_variants_has_the_name(text: str, name: str) -> None:
    assert name_form(name) in list_text_variants(name_form(text), "en")


@pytest.mark.parametrize("text", ["attack, heart", "edema", "MI", "A-T", "", "1/2"])
def test_list_text_variants_leaves_lists_and_short_forms(text: str) -> None:
    assert list_text_variants(name_form(text), "en") == []


@pytest.mark.parametrize("mention", ["MI", "hem", "a-t", "", "?", "1-2"])
def test_list_variants_of_a_short_form_is_empty(mention: str) -> None:
    assert list_variants(name_form(mention)) == []


@pytest.mark.parametrize(
    ("mention", "name"),
    [("alcohol", "alcohols"), ("virus", "viru"), ("lung cancer", "cancer lung")],
)
def test_list_variants_has_no_other_forms(mention: str, name: str) -> None:
    assert name not in list_variants(mention)


@pytest.mark.parametrize(("british", "american"), SPELLINGS)
def test_list_variants_change_each_spelling_in_both_ways(
    british: str, american: str
) -> None:
    one, other = f"x{british}xxx", f"x{american}xxx"
    assert other in list_variants(one)
    assert one in list_variants(other)


@given(st.text(max_size=200).map(name_form))
def test_list_variants_are_few_distinct_and_not_the_form(form: str) -> None:
    variants = list_variants(form)
    assert len(variants) == len({*variants}) <= 2000
    assert form not in variants


def test_list_variants_of_a_long_form_is_empty() -> None:
    words = ["leukaemias"] * MAX_WORDS
    assert list_variants(" ".join(words))
    assert list_variants(" ".join([*words, "of"])) == []


def test_choose_variant_takes_the_first_name_if_all_share_a_concept() -> None:
    names = {"b": Names({7, 5}, {1, 2}), "c": Names({3}, {2})}
    assert choose_variant(["a", "b", "c"], names) == 5
    assert choose_variant(["c", "b"], names) == 3


def test_choose_variant_of_different_concepts_is_none() -> None:
    names = {"b": Names({5}, {1}), "c": Names({3}, {2})}
    assert choose_variant(["b", "c"], names) is None
    assert choose_variant(["a"], names) is None
