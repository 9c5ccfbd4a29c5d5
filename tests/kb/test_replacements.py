"""What names say about words, held against numbers computed by hand."""

from random import Random

import numpy as np
import pytest

from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.replacements import (
    FILES,
    LeftOut,
    Replacements,
    learn_replacements,
    leave_out,
)
from spacy_sapbert.kb.words import WordsOfNames, is_replaceable
from spacy_sapbert.linking.text import hash_word, hash_words, list_words
from spacy_sapbert.vocabularies.concepts import Concept

NAMES = [
    ("C0", ["renal pain", "kidney pain", "pain of kidney"]),
    ("C1", ["renal failure", "failure, kidney", "acute kidney failure"]),
    ("C2", ["hepatic failure", "liver failure", "hepatic failure, unspecified"]),
    ("C3", ["liver cyst", "hepatic cyst"]),
    ("C4", ["renal cyst", "cyst"]),
    ("C5", ["acute pain", "pain", "pain, unspecified"]),
    ("C6", ["fever", "pyrexia"]),
    ("C7", ["no fever", "without fever", "fever type 1", "fever type 2"]),
    ("C9", ["spastic cyst", "ataxic cyst", "flaccid cyst", "atonic cyst"]),
    ("C10", ["rash", "transient rash", "permanent rash"]),
    ("C8", ["one two alpha beta gamma delta renal", "a b c d e f kidney"]),
]
CONCEPTS = [Concept(cui, names) for cui, names in NAMES]


def learn(names: list[tuple[str, list[str]]]) -> Replacements:
    """Learn from names of concepts, without a knowledge base."""
    folded = [
        (number, words)
        for number, (_, some) in enumerate(names)
        for name in some
        if len(words := list_words(name, "english")) <= 6
    ]
    every = sorted({word for _, words in folded for word in words}, key=hash_word)
    places = {word: place for place, word in enumerate(every)}
    hashes = np.array([*map(hash_word, every)], dtype=np.uint64)
    read = WordsOfNames(
        np.array([is_replaceable(word) for word in every], dtype=bool),
        np.array([places[w] for _, words in folded for w in words], dtype=np.int32),
        np.array([len(words) for _, words in folded], dtype=np.int32),
        np.array([number for number, _ in folded], dtype=np.int32),
    )
    return Replacements({"hashes": hashes, **learn_replacements(hashes, read)})


def replaces(
    learned: Replacements, word: str, other: str, left_out: LeftOut | None = None
) -> tuple[int, int]:
    """Also of both the other way round, and beside other words."""
    counts = learned.replaces(hash_word(word), [hash_word(other)], left_out)
    others = [*map(hash_word, ("xyzzy", word, other))]
    turned = learned.replaces(hash_word(other), [*map(hash_word, [word])], left_out)
    assert turned.tolist() == counts.tolist()
    many = learned.replaces(hash_word(word), others, left_out)
    assert many.tolist() == [[0, 0], [0, 0], *counts.tolist()]
    return tuple(counts[0].tolist())


def adds(
    learned: Replacements, word: str, left_out: LeftOut | None = None
) -> tuple[int, int]:
    counts = learned.adds([hash_word("xyzzy"), hash_word(word)], left_out)
    assert counts[0].tolist() == [0, 0]
    return tuple(counts[1].tolist())


def read_arrays(kb: KnowledgeBase) -> dict[str, np.ndarray]:
    files = {name: kb.version.path(f"words/{name}.npy") for name in [*FILES, "hashes"]}
    return {name: np.load(path) for name, path in files.items()}


@pytest.fixture(scope="module")
def kb(make_kb, tmp_path_factory) -> KnowledgeBase:
    return load_kb(make_kb(tmp_path_factory.mktemp("replacements"), CONCEPTS))


@pytest.fixture(scope="module", params=["names", "kb"])
def learned(request, kb) -> Replacements:
    """From names, and from the files of a knowledge base."""
    if request.param == "names":
        return learn(NAMES)
    arrays = read_arrays(kb)
    assert all(arrays[name].dtype == kind for name, kind in FILES.items())
    return Replacements(arrays)


@pytest.mark.parametrize(
    ("word", "other", "expected"),
    [
        # C0 and C1; "failure" and "cyst" tell them apart from the liver.
        ("renal", "kidney", (2, 0)),
        ("hepatic", "liver", (2, 0)),
        ("renal", "hepatic", (0, 2)),
        ("kidney", "liver", (0, 1)),
        ("kidney", "acute", (0, 1)),  # pain
        ("fever", "pyrexia", (1, 0)),  # names of one word
        ("fever", "cyst", (0, 0)),
        ("spastic", "ataxic", (0, 0)),  # kinds of C9
        ("spastic", "liver", (0, 1)),
        ("transient", "permanent", (0, 0)),  # kinds of C10
        # Numerals, letters and negations are not replaced.
        ("1", "2", (0, 0)),
        ("no", "without", (0, 0)),
    ],
)
def test_words_stand_for_each_other_by_hand(learned, word, other, expected):
    assert replaces(learned, word, other) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("unspecified", (2, 0)),
        ("acute", (2, 0)),  # C1 and C5
        ("renal", (1, 1)),  # C4 is a cyst, and C0 is not the pain of C5
        ("hepatic", (0, 1)),
        ("no", (0, 0)),
    ],
)
def test_words_add_something_by_hand(learned, word, expected):
    assert adds(learned, word) == expected


def test_other_orders_of_names_give_equal_bytes():
    turned = [(cui, [*reversed(names)]) for cui, names in NAMES]
    one, other = learn(NAMES), learn(turned)
    for name in ("pairs", "supports", "starts", "contexts", "owners", "added"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()


def test_nothing_is_learned_from_nothing():
    learned = learn([])
    assert replaces(learned, "renal", "kidney") == (0, 0)
    assert adds(learned, "acute") == (0, 0)


@pytest.mark.parametrize("at_once", [1, 10, 4_000_000])
def test_words_sorted_in_parts_say_the_same(monkeypatch, at_once):
    monkeypatch.setattr("spacy_sapbert.kb.replacements.AT_ONCE", at_once)
    assert replaces(learn(NAMES), "renal", "hepatic") == (0, 2)
    assert adds(learn(NAMES), "unspecified") == (2, 0)


def count_by_hand(names, word, other):
    """The same as `Replacements.replaces`, slowly."""
    supporting, together = set(), set()
    having = {word: set(), other: set()}
    for cui, some in names:
        folded = [sorted(list_words(name, "english")) for name in some]
        places = {}
        for words in folded:
            for w in {w for w in words if is_replaceable(w)}:
                rest = [*words]
                rest.remove(w)
                places.setdefault(tuple(rest), set()).add(w)
        for rest, words in places.items():
            for w in {word, other} & words:
                having[w].add(rest)
            if {word, other} <= words:
                together.add(rest)
                if len(words) <= 3 and [*rest] not in folded:
                    supporting.add(cui)
    against = (having[word] & having[other]) - together - {()}
    return len(supporting), len(against)


def make_names(random: Random) -> list[tuple[str, list[str]]]:
    words = ["renal", "kidney", "hepatic", "pain", "cyst", "acute", "1", "2", "no"]
    return [
        (
            f"C{n}",
            [" ".join(random.choices(words, k=random.randint(1, 3))) for _ in range(9)],
        )
        for n in range(30)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_random_names_are_counted_as_slowly(seed):
    names = make_names(Random(seed))
    learned = learn(names)
    for word, other in (("renal", "kidney"), ("pain", "cyst"), ("acute", "hepatic")):
        expected = count_by_hand(names, word, other)
        assert max(expected) > 0
        assert replaces(learned, word, other) == expected


@pytest.mark.parametrize(
    ("cui", "left"),
    [(cui, name) for cui, names in NAMES[:10] for name in names],
)
def test_left_out_names_say_nothing(kb, cui, left):
    kept = [name for name in dict(NAMES)[cui] if name != left]
    fewer = learn([(c, kept if c == cui else names) for c, names in NAMES])
    every = learn(NAMES)
    (number,) = kb.store.numbers_of_cuis([cui]).values()
    folded = [[list_words(n, "english") for n in x] for x in ([left], kept)]
    left_out = leave_out(kb.store, number, *folded)
    words = {w for _, names in NAMES for n in names for w in list_words(n, "english")}
    (key,) = {hash_words(words) for words in folded[0]}
    for word in words:
        # The caller knows a name of another concept that is this one and the word.
        beside = [key] * any(
            hash_words([word, *folded[0][0]]) == hash_words(list_words(name, "english"))
            for other, names in NAMES
            for name in names
            if other != cui
        )
        counts = every.adds([hash_word(word)], left_out, beside)
        assert tuple(counts[0].tolist()) == adds(fewer, word), word
        for other in words - {word}:
            expected = replaces(fewer, word, other)
            assert replaces(every, word, other, left_out) == expected, (word, other)


def test_a_concept_left_out_says_nothing(kb):
    (number,) = kb.store.numbers_of_cuis(["C0"]).values()
    folded = [list_words(name, "english") for name in dict(NAMES)["C0"]]
    left_out = leave_out(kb.store, number, folded, [])
    assert replaces(learn(NAMES), "renal", "kidney", left_out) == (1, 0)


def test_names_in_other_languages_and_long_names_say_nothing(make_kb, tmp_path):
    concepts = [
        Concept("X", ["dolor renal", "dolor lumbar"], languages={"SPA": [0, 1]}),
        Concept(
            "Y", [f"one of seven long words here {w}" for w in ("renal", "lumbar")]
        ),
    ]
    kb = load_kb(make_kb(tmp_path, concepts))
    arrays = read_arrays(kb)
    assert arrays["pairs"].tolist() == []
    assert replaces(Replacements(arrays), "renal", "lumbar") == (0, 0)
