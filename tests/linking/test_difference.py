"""How a mention and a name differ, by hand."""

import gzip
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spacy_sapbert.linking.difference import (
    EFFECTS,
    Difference,
    Kind,
    compare,
    compare_texts,
    find_disease,
    find_head,
    is_written,
    split_words,
)
from spacy_sapbert.linking.dose_forms import OF_FORMS, read_form
from spacy_sapbert.linking.opposites import list_opposites
from spacy_sapbert.linking.text import (
    PREFIX_WORDS,
    fold_english,
    is_joinable,
    list_words,
    name_keys,
    read_mention,
)

TEXTS = st.text(st.characters(codec=None), max_size=60)  # lone surrogates too


def kinds(mention: str, name: str) -> set[Kind]:
    return {change.kind for change in compare_texts(mention, name).changes}


def test_every_kind_has_an_effect():
    assert EFFECTS.keys() == {*Kind}


SAME = [
    # case, accents, typed signs, forms of Unicode
    ("HEART ATTACK", "heart attack"),
    ("Ménière’s disease", "Meniere's disease"),
    ("Crohn\u00b4s disease", "Crohn's disease"),
    ("beta\u2212blocker", "β-blocker"),
    ("hyper\u00adtension", "hypertension"),
    ("\ufb01brosis", "fibrosis"),
    ("\uff28\uff29\uff36", "HIV"),
    ("Heart attack.", '"Heart attack"'),
    ("Heart attack (disorder)", "heart attack"),
    # possessive, plurals of English and Latin
    ("Crohn's disease", "Crohn disease"),
    ("metastases", "metastasis"),
    ("pulmonary emboli", "pulmonary embolus"),
    ("renal calculi", "renal calculus"),
    ("diverticula", "diverticulum"),
    ("melanocytic naevi", "melanocytic nevus"),
    ("thrombi", "thrombus"),
    ("teeth", "tooth"),
    ("children", "child"),
    ("varices", "varix"),
    ("vertebrae", "vertebra"),
    ("carcinomata", "carcinoma"),
    # British
    ("haemorrhages", "hemorrhage"),
    ("goitre", "goiter"),
    ("disk herniation", "disc herniation"),
    ("Valsalva manoeuvre", "Valsalva maneuver"),
    ("sulphasalazine", "sulfasalazine"),
    # hyphens, blanks and line breaks
    ("sacro-iliitis", "sacroiliitis"),
    ("pre eclampsia", "preeclampsia"),
    ("pre-eclampsia", "pre eclampsia"),
    ("non-insulin-dependent diabetes", "noninsulin-dependent diabetes"),
    ("TUBER-\nCULOSIS", "tuberculosis"),
    ("hyper-\n  tension", "hypertension"),
    ("myocardial\ninfarction", "myocardial infarction"),
    ("Hb A1c", "HbA1c"),
    ("vitamin B-12", "vitamin B12"),
    ("A-T", "AT"),
    # numerals, Greek, signs
    ("type IIb", "type 2b"),
    ("factor X", "factor 10"),
    ("complex IV", "complex 4"),
    ("mucopolysaccharidosis I", "mucopolysaccharidosis 1"),
    ("xeroderma pigmentosum V", "xeroderma pigmentosum 5"),
    ("Myopathy, myofibrillar, IV", "myofibrillar myopathy 4"),
    ("5,000 units", "5000 units"),
    ("digoxin 0.50 mg", "digoxin 0.5 mg"),
    ("digoxin 500 mcg", "digoxin 0.5 mg"),
    ("HER2+ tumor", "HER2 positive tumour"),
    ("TNFα", "TNF-alpha"),
    ("5 percent", "5 %"),
    ("BMI \u2265 30", "BMI >= 30"),
    # the order with commas
    ("diabetes mellitus, type 2", "type II diabetes mellitus"),
    ("Carcinoma, Squamous Cell, Lung", "lung squamous cell carcinoma"),
    ("cancer, lung", "lung cancer"),
]


@pytest.mark.parametrize(("text", "other"), SAME)
def test_ways_to_write_one_name(text, other):
    assert compare_texts(text, other).same
    assert compare_texts(other, text).same
    keys = [{*name_keys(read_mention(each), "english")} for each in (text, other)]
    if "mcg" not in text:  # in other units, texts have other keys
        assert not keys[0].isdisjoint(keys[1])


EXCLUDED = [
    # numbers, decimals, units, forms
    ("digoxin 0.05 mg tablet", "digoxin 0.5 mg tablet", Kind.QUANTITY),
    ("heparin 5,000 units", "heparin 5 units", Kind.QUANTITY),
    ("metoprolol 50 mg", "metoprolol 50 mcg", Kind.QUANTITY),
    ("metoprolol 50 mg ER tablet", "metoprolol 50 mg injection", Kind.QUANTITY),
    ("type 1 diabetes", "type 11 diabetes", Kind.NUMBER),
    ("trisomy 11", "trisomy 1", Kind.NUMBER),
    ("1,4-butanediol", "14-butanediol", Kind.NUMBER),
    ("Bcl-X protein", "Bcl-10 protein", Kind.NUMBER),
    ("trisomy X", "trisomy 10", Kind.NUMBER),
    ("integrin alpha V", "integrin alpha 5", Kind.NUMBER),
    ("X-ray", "10 ray", Kind.NUMBER),
    # primes, letters, Greek
    ("4'-hydroxychalcone", "4-hydroxychalcone", Kind.NUMBER),
    ("3\u2032-fucosyllactose", "3-fucosyllactose", Kind.NUMBER),
    ("hepatitis B", "hepatitis C", Kind.LETTER),
    ("X-linked ichthyosis", "Y-linked ichthyosis", Kind.LETTER),
    ("alpha thalassemia", "beta thalassemia", Kind.LETTER),
    # signs
    ("birth weight <2500 g", "birth weight >2500 g", Kind.QUANTITY),
    ("HER2+ breast cancer", "HER2- breast cancer", Kind.SIGN),
    ("(+)-catechin", "(-)-catechin", Kind.SIGN),
    # order
    ("rod-cone dystrophy", "cone-rod dystrophy", Kind.SWAPPED),
    ("RNA-directed DNA polymerase", "DNA-directed RNA polymerase", Kind.SWAPPED),
    ("ALT/AST ratio", "AST/ALT ratio", Kind.SWAPPED),
    ("left to right shunt", "right to left shunt", Kind.SWAPPED),
    (
        "mother Rh positive, infant Rh negative",
        "mother Rh negative, infant Rh positive",
        Kind.SWAPPED,
    ),
    (
        "weakness of right arm, left leg",
        "weakness of left arm, right leg",
        Kind.SWAPPED,
    ),
    (
        "interleukin 1 receptor type 2",
        "interleukin 2 receptor type 1",
        Kind.SWAPPED,
    ),
    # case
    ("cold", "COLD", Kind.COMMON),
    ("all", "ALL", Kind.COMMON),
    ("Cat", "CAT", Kind.COMMON),
    ("Brca1", "BRCA1", Kind.SYMBOL),
    # negation and opposites
    ("pain without fever", "pain with fever", Kind.NEGATION),
    ("hypokalemia", "hyperkalemia", Kind.OPPOSITE),
    ("left arm", "right arm", Kind.OPPOSITE),
    ("renal function", "renal dysfunction", Kind.OPPOSITE),
    ("gastritis", "arthritis", Kind.STEM),
    ("hypercalcemia", "hyperkalemia", Kind.STEM),
    ("hepatotoxicity", "phototoxicity", Kind.STEM),
    ("polyarthritis", "arthritis", Kind.STEM),
    ("left and right arm", "right arm", Kind.OPPOSITE),
    ("non-ST-elevation infarction", "ST-elevation infarction", Kind.OPPOSITE),
    ("absence of seizures", "absence seizures", Kind.NEGATION),
    ("absence of seizures", "Generalized (absence) seizure", Kind.NEGATION),
    ("saturation 90 %", "saturation 90 mmHg", Kind.QUANTITY),
    ("pT2b N0", "pT2a N0", Kind.LETTER),
    ("cytochrome c' oxidase", "cytochrome c oxidase", Kind.LETTER),
    ("base excess -5", "base excess +5", Kind.SIGN),
    ("Kell antigen K", "Kell antigen k", Kind.LETTER),
    ("hypervolemia", "hypovolemic", Kind.OPPOSITE),
    ("Clark level IV", "Clark level II", Kind.NUMBER),
    ("base excess -2.5", "base excess +2.5", Kind.SIGN),
    # abbreviations
    ("FSH", "FSHD", Kind.LETTER),
    ("HCV", "HCVS", Kind.LETTER),
    ("mRNA", "tRNA", Kind.LETTER),
    ("IgA", "IgG", Kind.LETTER),
    ("hsCRP", "HSCR", Kind.LETTER),
    ("npcRNA", "NCRNA", Kind.LETTER),
]


@pytest.mark.parametrize(("mention", "name", "kind"), EXCLUDED)
def test_what_the_reader_of_a_mention_would_not_accept(mention, name, kind):
    difference = compare_texts(mention, name)
    assert kind in {change.kind for change in difference.excluding}
    assert not difference.same
    if kind is not Kind.COMMON:  # "COLD" may be a loud "cold"
        assert compare_texts(name, mention).excluding


@pytest.mark.parametrize(
    ("mention", "name", "word"),
    [
        ("creatinine", "Increased creatinine", "increased"),
        ("calcitriol", "High serum calcitriol", "high"),
        ("zygomaticus muscle", "Abnormality of zygomaticus muscle", "abnormality"),
        ("G6PD", "G6PD deficiency", "deficiency"),
        ("placenta", "Disease, Placenta", "disease"),
        ("nervous system", "cancer of the nervous system", "cancer"),
        ("hip", "hip joint", None),
        ("psychiatric", "psychiatric disorder", None),
        ("deficient G6PD", "G6PD deficiency", None),
        ("hypercholesterolemia", "increased cholesterol", None),
        ("increased creatinine", "creatinine", None),
        ("high creatinine", "high serum creatinine", None),
        ("African swine fever virus", "African swine fever", "virus"),
        ("hepatitis C antibodies", "Hepatitis C", "antibody"),
        ("colon cancer screening", "cancer of the colon", "screening"),
        ("BRCA1 gene", "BRCA1", None),  # the name may be that of the gene
        ("insulin therapy", "insulin", None),
        ("hepatitis virus", "hepatitis virus infection", None),
        ("hepatitis flare", "hepatitis", None),
    ],
)
def test_a_thing_is_not_what_is_wrong_with_it(mention, name, word):
    change = find_disease(split_words(mention), split_words(name))
    assert (change and (change.mention or change.name)) == word


EVIDENCE = [
    ("viral pneumonia", "bacterial pneumonia", {Kind.REPLACED}),
    ("type 2 diabetes", "diabetes", {Kind.ADDED}),
    ("blood group O", "blood group AB", {Kind.REPLACED}),
    ("diabetes", "type 2 diabetes", {Kind.MISSING}),
    ("cancer lung", "lung cancer", {Kind.ORDER}),
    ("acute severe asthma", "severe acute asthma", {Kind.ORDER}),
    ("nausea and vomiting", "vomiting and nausea", {Kind.ORDER}),
    ("heart infarct", "heart infarction", {Kind.REPLACED}),
    ("aid", "AIDS", {Kind.ABBREVIATION}),
    ("mrnas", "mRNA", {Kind.ABBREVIATION}),
    ("AVMS", "AVMs", None),
    ("mRNAs", "mRNA", None),
    ("lncRNAs", "lncRNA", None),
    ("miRNAs", "miRNA", None),
    ("ED", "ED1", {Kind.MISSING}),
    ("PACs", "PAC", None),
    ("metoprolol 50 mg", "metoprolol", {Kind.LITTLE}),
    ("cancer of lung", "cancer lung", {Kind.LITTLE}),
    ("acute acute pain", "acute pain", {Kind.LITTLE}),
    ("afebrile", "febrile", {Kind.PREFIX}),
    ("typical ache", "atypical ache", {Kind.PREFIX}),
    ("CMTX 1", "1 CMTX", {Kind.ORDER}),
    ("decreased glucose tolerance", "glucose intolerance", None),
    ("impaired renal function", "renal dysfunction", None),
]


@pytest.mark.parametrize(("mention", "name", "expected"), EVIDENCE)
def test_what_is_evidence(mention, name, expected):
    difference = compare_texts(mention, name)
    assert not difference.excluding
    if expected is not None:
        assert {change.kind for change in difference.changes} == expected


def test_the_closest_text_is_written_as_the_name():
    for text, closeness in (("Cold", 2), ("cold", 1), ("colds", 0)):
        assert compare_texts(text, "Cold").closeness == closeness


def test_changes_are_printed_with_both_texts():
    (change,) = compare_texts("type 1 diabetes", "type 2 diabetes").changes
    assert str(change) == "1 ≠ 2 (number)"
    (change,) = compare_texts("acute pain", "pain").changes
    assert str(change) == "acute ≠ – (a word that only the mention has)"


@pytest.mark.parametrize(
    ("text", "alias", "expected"),
    [
        ("pain, chest", "chest pain", False),
        ("chest pain", "pain, chest", True),
        ("heart. Attack", "heart attack", False),
        ("St. Vitus dance", "St Vitus dance", True),
        ("pre. cell", "pre cell", True),
        ("stem. cell", "stem cell", False),
        ("attack heart", "heart attack", False),
    ],
)
def test_signs_of_a_text_separate(text, alias, expected):
    assert is_written(text, alias, "english") is expected


@given(TEXTS)
def test_any_text_is_its_own_name(text):
    words = split_words(text)
    assert compare(words, words) == Difference(())


@given(TEXTS, TEXTS)
def test_any_two_texts_can_be_compared(text, other):
    difference = compare(split_words(text), split_words(other))
    assert not (difference.same and difference.excluding)


def test_find_head_by_hand():
    heads = {
        "cancer of lung": "cancer",
        "lung cancer type 2": "cancer",
        "b cell 2": "cell",
        "of lung": "lung",
        "7 b": "",
        "no of pain": "no",
    }
    assert {text: find_head(text.split()) for text in heads} == heads


def test_split_words_by_hand():
    words = split_words("cancers, Lung a, type 2 2 β")
    assert words.content == {"cancer", "lung", "2", "beta"}
    assert words.exact == {"2": 2, "beta": 1}
    assert split_words("cancer, lung").head == "cancer"
    assert split_words("tolan A xy").exact == {"a": 1}
    assert split_words("of the").content == {"of", "the"}
    # A strength is compared as such.
    words = split_words("digoxin 0.5 mg")
    assert (words.content, words.exact) == ({"digoxin"}, Counter())
    assert words.measured


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("hypokalemia", "hyperkalemia"),
        ("neutropenia", "neutrocytosis"),
        ("unstable", "stable"),
        ("nephrotoxic", "hepatotoxic"),
        ("left", "right"),
        ("acidosis", "alkalosis"),
    ],
)
def test_opposites_exclude_each_other(word, other):
    word, other = fold_english(word), fold_english(other)
    assert other in list_opposites(word)
    assert word in list_opposites(other)


def test_changes_have_an_order_that_python_does_not_choose():
    words = ["anterior", "distal", "left", "lower", "medial"]
    others = "posterior proximal right upper lateral nerve"
    mention = f"{' '.join(reversed(words))} {others}"
    changes = compare_texts(mention, others).changes
    assert [c.mention for c in changes if c.kind is Kind.OPPOSITE] == words
    negation = compare_texts("without never not pain", "pain of it").changes[0]
    assert negation.mention == "never not without"


@pytest.mark.slow
def test_opposites_are_rarely_two_names_of_one_concept(data_file):
    # A pair counts for its first word, in alphabetical order.
    names: dict[tuple[str, ...], set[str]] = {}
    with gzip.open(data_file("open-rrf/MRCONSO.RRF.gz"), "rt") as lines:
        for fields in (line.split("|") for line in lines):
            if fields[1] == "ENG":
                words = tuple(sorted(list_words(fields[14], "english")))
                names.setdefault(words, set()).add(fields[0])
    same, apart = Counter(), Counter()
    for words, cuis in names.items():
        for place, word in enumerate(words):
            for other in list_opposites(word):
                if word < other:
                    changed = (*words[:place], other, *words[place + 1 :])
                    theirs = names.get(tuple(sorted(changed)), set())
                    same[word, other] += bool(cuis & theirs)
                    apart[word, other] += bool(theirs - cuis)
    assert apart.total() > 2 * same.total()
    assert [p for p, n in same.items() if n > 5 and n > apart[p]] == []


SOME = [
    *OF_FORMS,
    *PREFIX_WORDS,
    "non",
    "ache",
    " ",
    " ",
    "-",
    ", ",
    "'s",
    "S",
    "IV",
    "é",
]


@given(st.lists(st.sampled_from(SOME), max_size=9).map("".join))
@example("transdermal_systempatches")
def test_forms_and_prefixes_are_known_by_folded_words(text):
    words = split_words(text)
    assert words.measured is any(read_form(text))
    assert words.joinable is is_joinable(text)
