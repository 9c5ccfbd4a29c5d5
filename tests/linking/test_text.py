"""What a name is: ways to write one, and texts that are other names."""

import unicodedata
from collections.abc import Callable
from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spacy_sapbert.linking.difference import compare, is_written, split_words
from spacy_sapbert.linking.languages import choose_languages, language_code
from spacy_sapbert.linking.name_index import NameIndex
from spacy_sapbert.linking.text import (
    ASCII_PIECES,
    JOINABLE,
    PIECES,
    PREFIX_WORDS,
    Rules,
    choose_pieces,
    fold_letters,
    has_length,
    is_abbreviation,
    is_acronym,
    is_joinable,
    list_words,
    name_form,
    name_keys,
    read_mention,
    rules_of,
    singular_abbreviation,
    split_pieces,
)

TEXTS = st.text(st.characters(codec=None), max_size=60)  # lone surrogates too
RULES: list[Rules] = ["english", "german", "romance", "other"]


def words(text: str, rules: Rules = "english") -> list[str]:
    return [piece.word for piece in split_pieces(text, rules)]


NUMERALS = (
    "I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX "
    "XXI XXII XXIII XXIV XXV XXVI XXVII XXVIII XXIX XXX"
)
ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth "
    "twentieth twenty-first twenty-second twenty-third twenty-fourth twenty-fifth "
    "twenty-sixth twenty-seventh twenty-eighth twenty-ninth thirtieth"
)
CARDINALS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty twenty-one twenty-two "
    "twenty-three twenty-four twenty-five twenty-six twenty-seven twenty-eight "
    "twenty-nine thirty"
)
ENDINGS = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd"}


WORDS_BY_HAND: dict[Rules, dict[str, str]] = {
    "english": {
        "twenty ten twenty-tenth": "20 10 20 10",
        "XXXIX xxxx": "39 xxxx",
        "stage IB ib lung IB": "stage 1 b ib lung ib",
        "chromosome 10, X trisomy": "chromosome 10 x trisomy",
        "IV line type IV iv": "iv line type 4 iv",
        "X-ray factor X trisomy X": "x ray factor 10 trisomy x",
        "alpha V, factor V": "alpha v factor 5",
        "0.050 5,000 2,4 .5 11p15.5": "0.05 5000 2 4 0.5 11 p 15.5",
        "4' 4'-hydroxy 5' UTR 'type 2'": "4 4' hydroxy 5' utr type 2",
        "<5 >= 5 5% 5 percent a->b": "< 5 \u2265 5 5 % 5 % a b",
        "T- and B-cell, HER2- (-)-x": "t and b cell her 2 negative negative x",
        "non papillary tumor": "nonpapillary tumor",
        "non- HL": "nonhl",
        "non, papillary": "non papillary",
        "non II": "non 2",
        "gas ribs": "gas rib",
        "haem foeti": "haem feti",
        "ties flies": "tie fly",
        "brae algae": "brae alga",
        "basis tmesis": "basis tmese",
        "rouses viruses": "rouse virus",
    },
    "german": {"non papillary": "non papillary", "Venen": "vene"},
    "romance": {"ares artes": "ares art", "bateaux": "bateau", "matriz": "matric"},
}


@pytest.mark.parametrize("rules", WORDS_BY_HAND)
def test_words_by_hand(rules):
    expected = WORDS_BY_HAND[rules]
    assert {text: " ".join(words(text, rules)) for text in expected} == expected


def test_pieces_have_their_places_and_articles_are_no_words():
    assert split_pieces("type IIb, Crohn's non x", "english") == [
        ("type", 0, 4),
        ("2", 5, 7),
        ("b", 7, 8),
        ("crohn", 10, 15),
        ("non", 18, 21),
        ("x", 22, 23),
    ]
    assert list_words("a dose", "english") == ["dose"]
    assert list_words("A a dose, vitamin a", "english") == ["a", "dose", "vitamin", "a"]
    assert list_words("a dose", "other") == ["a", "dose"]
    assert list_words("type \u0130a", "english") == ["type", "ia"]


@pytest.mark.parametrize("number", range(1, 31))
def test_numerals_are_equal_however_they_are_written(number):
    roman, ordinal, cardinal = (
        listed.split()[number - 1] for listed in (NUMERALS, ORDINALS, CARDINALS)
    )
    digits = str(number)
    written = [
        *(digits, roman, roman.lower(), f"{number}{ENDINGS.get(number, 'th')}"),
        *(ordinal, cardinal, ordinal.title()),
    ]
    for numeral in written:
        assert words(f"type {numeral} disease") == ["type", digits, "disease"]


@pytest.mark.parametrize(
    ("rules", "text", "other"),
    [
        ("german", "Ödeme", "Odem"),
        ("german", "Oedem", "Ödem"),
        ("german", "chronischer Schmerz", "chronische Schmerzen"),
        ("romance", "vomitos", "vómito"),
        ("romance", "artères coronaires", "artère coronaire"),
        ("romance", "infecciones", "infección"),
        ("romance", "anormaux", "anormal"),
        ("romance", "L’insuffisance rénale", "insuffisance rénale"),
        ("other", "легкое", "лёгкое"),
    ],
)
def test_ways_to_write_a_name_in_its_language(rules, text, other):
    assert words(text, rules) == words(other, rules)


def test_rules_of_a_language_touch_only_its_names():
    assert words("Herzinfarkte") != words("Herzinfarkt")
    assert words("tumour", "german") != words("tumor", "german")
    assert words("eighth", "romance") == ["eighth"]
    assert rules_of(["GER"]) == rules_of(["de"]) == "german"
    assert rules_of(["SPA", "ENG"]) == rules_of([]) == "english"
    assert rules_of(["JPN"]) == "other"


@pytest.mark.parametrize(
    ("mention", "expected"),
    [
        ("Heart attack.", "Heart attack"),
        ("“Heart attack”", "Heart attack"),
        ("- (heart attack)", "- (heart attack)"),
        ("(HER2) positive", "(HER2) positive"),
        ("Vitamin B6 (substance)", "Vitamin B6"),
        ("...", "..."),
        ("(disorder)", "(disorder)"),
        ("(ab))", "(ab))"),
        ('""ab"', '""ab"'),
        ("half \ud800 pair", "half ? pair"),
    ],
)
def test_read_mention_by_hand(mention, expected):
    assert read_mention(mention) == expected


def test_forms_by_hand():
    assert name_form("Crohn’s disease, type II") == "crohn disease type 2"
    assert name_form("") == name_form(" …") == ""
    assert fold_letters("ÉTAT  d’Œdème") == "etat d'oedeme"


@given(TEXTS, st.sampled_from(RULES))
def test_pieces_of_any_text_are_in_order(text, rules):
    last = 0
    for word, start, end in split_pieces(text, rules):
        assert word
        word.encode("utf8")
        assert last <= start < end <= len(text)
        last = end


PARTS = [
    "a",
    "Z",
    "I",
    "-",
    "(",
    ")",
    " ",
    ",",
    ".",
    "/",
    "'",
    "5",
    "+",
    "twenty",
    "One",
]


@given(
    st.text(st.characters(codec="ascii"), max_size=60)
    | st.lists(st.sampled_from(PARTS), max_size=12).map("".join),
    st.booleans(),
)
@example("0-\x1f", False)
def test_ascii_is_split_as_any_text(text, joined):
    split = [
        [match.span() for match in pattern.finditer(text)]
        for pattern in (
            PIECES[joined],
            ASCII_PIECES[joined],
            choose_pieces(text, joined=joined),
        )
    ]
    assert split[0] == split[1] == split[2]


@given(TEXTS)
def test_any_text_has_keys_and_words(text):
    composed, decomposed = (unicodedata.normalize(f, text) for f in ("NFC", "NFD"))
    assert words(composed) == words(decomposed)
    read = read_mention(text)
    assert read_mention(read) == read
    assert len(name_keys(text, "english")) <= 2


def test_is_abbreviation_needs_capitals():
    accepted = ["MI", "AIDS", "RA", "mRNA", "pH", "HbA1c", "A B"]
    others = ["Pain", "mi", "COVID", "E. coli", "Ca", "A", "", "42"]
    assert [name for name in [*accepted, *others] if is_abbreviation(name)] == accepted
    assert [*map(is_acronym, ("SAIDSS", "SAIDSSS"))] == [True, False]
    # A plural has two characters or more before its "s".
    assert [*map(singular_abbreviation, ("MIs", "Ms"))] == ["MI", "Ms"]
    assert words("recurrent UTIs and MIs") == words("recurrent UTI and MI")
    assert words("arthritis, IVs, UTIS") != words("arthriti, IV, UTI")


@pytest.mark.parametrize(("mention", "length"), [("ab", 2), ("型", 3), ("型a", 4)])
def test_a_character_without_blanks_counts_as_three(mention, length):
    assert has_length(mention, length)
    assert not has_length(mention, length + 1)


@pytest.mark.parametrize(
    ("lang", "known", "expected"),
    [
        ("en", ["ENG", "SPA", "FRE"], ("ENG",)),
        ("es", ["ENG", "SPA", "FRE"], ("ENG", "SPA")),
        ("es", ["en", "es", "fr"], ("en", "es")),
        ("xx", ["ENG", "SPA"], ()),
        ("", ["ENG", "SPA"], ()),
        ("es", ["ENG", "SPA"], ()),
        ("en", ["SPA"], ()),  # nothing would be left
    ],
)
def test_choose_languages(lang, known, expected):
    assert choose_languages(lang, known) == expected


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("en-US", "ENG"),
        ("de_DE", "GER"),
        (" es ", "SPA"),
        ("Spanish", "SPA"),
        ("xx", "XX"),
        ("", ""),
    ],
)
def test_language_code_is_that_of_umls(language, code):
    assert language_code(language) == code


def find(names: list[str], text: str, max_tokens: int = 8) -> list[str]:
    index = NameIndex.from_keys(k for name in names for k in name_keys(name, "english"))
    windows = index.find_windows(text, ["english"], max_tokens)
    places = dict.fromkeys((start, end) for start, end, _ in windows)
    return [text[start:end] for start, end in places]


@pytest.mark.parametrize(
    ("names", "text", "expected"),
    [
        (["heart-attack"], "(a heart-attack)", ["heart-attack"]),
        (["4.5", "12", "x", "y1"], "4.5 12 x y1", ["4.5", "y1"]),
        (
            ["heart attack", "attack right", "right away"],
            "heart\nattack\n \nright away",
            ["heart\nattack", "right away"],
        ),
        (["patient"], "the patient's fever", ["patient"]),
        (["heart"], "a\ud800b, heart", ["heart"]),
        (["heart"], "", []),
        (["-", "'s"], "- 's a-b", []),
    ],
)
def test_windows_by_hand(names, text, expected):
    assert find(names, text) == expected


def test_windows_have_a_maximal_length():
    names = ["red", "red two", "two blue", "red two blue"]
    assert find(names, "red two blue", 2) == ["red", "red two", "two blue"]


WORDS = st.sampled_from(
    ["acute", "small", "non", "cell", "lung", "cancers", "cancer", "tumour", "tumor"]
    + ["haemo", "hemo", "metastases", "crohn", "s", "of", "2", "-", "/", "'", ","]
    + ["o", "estrogen", "ses", "ies", "rays", "\n\n", "型", "糖", "VIII", "eight"]
)
PARTS = st.lists(st.tuples(WORDS, st.sampled_from([" ", " ", ""])), max_size=12)
JOINED = PARTS.map(lambda parts: "".join(word + blank for word, blank in parts))


# A name, and what makes another way to write it
WAYS: dict[str, Callable[[str], str]] = {
    "lung cancer": lambda text: text.replace("lung", "Lung"),
    "lung tumor": lambda text: " ".join(reversed(text.split(" "))).replace(" ", ", "),
    "small-cell cancer": lambda text: text.replace("-", " "),
    "non-small cancer": lambda text: text.replace("-", ""),
    "crohn's cancer": lambda text: text.replace("'s", ""),
    "acute tumour": lambda text: text.replace("tumour", "tumor"),
    "haemo cell": lambda text: text.replace("haemo", "hemo"),
    "lung cancers": lambda text: text.replace("cancers", "cancer"),
    "cell VIII": lambda text: text.replace("VIII", "8"),
    "cancer of lung": lambda text: text.replace(" of ", "  of\n"),
}


def alike(text: str, other: str) -> bool:
    return compare(split_words(text), split_words(other)).same


@given(TEXTS | JOINED, st.sampled_from([*PREFIX_WORDS]), TEXTS | JOINED)
def test_a_text_is_seen_to_be_joinable(before, prefix, after):
    for text in (
        before,
        before + prefix + after,
        f"{before} {prefix.upper()}\t{after}",
    ):
        assert is_joinable(text) is bool(JOINABLE.search(text))


@given(JOINED)
def test_names_that_are_alike_share_a_key(text):
    for name, write in WAYS.items():
        other = write(name)
        assert other != name
        assert alike(name, other), other
        for one in (name, text, f"{text} {name}"):
            other = write(one)
            if alike(one, other) and words(one):
                keys = name_keys(one, "english")
                assert not {*keys}.isdisjoint(name_keys(other, "english"))


@given(JOINED, st.lists(JOINED, max_size=6))
def test_windows_include_all_parts_that_are_names(text, names):
    names += [text, text.replace("-", " "), text.replace("-", ""), text.lower()[:-1]]
    names += [text.replace("'s", ""), text.replace("tumour", "tumor")]
    found = {*find(names, text, 100)}
    pieces = split_pieces(text, "english")
    for first, last in combinations(range(len(pieces) + 1), 2):
        start, end = pieces[first].start, pieces[last - 1].end
        part = text[start:end]
        is_long = end - start > 1 and any(map(str.isalpha, part))
        if is_long and "\n\n" not in part and not part.isdigit():
            words = [piece.word for piece in pieces[first:last]]
            written = any(is_written(part, name, "english") for name in names)
            if written and not all(map(str.isdigit, words)):
                assert part in found


@given(st.text(max_size=60), st.integers(1, 9))
def test_windows_of_any_text_are_parts_of_it(text, most):
    index = NameIndex.from_keys(name_keys(text, "english"))
    for start, end, _ in index.find_windows(text, ["english", "other"], most):
        assert 0 <= start < end - 1 < len(text)
