from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.tokens import Span

from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.linking.filters import Filter
from spacy_sapbert.vocabularies.concepts import Concept

CONCEPTS = [
    Concept("C1", ["Lung Neoplasms", "Cancer, Lung"], languages={"ENG": [0, 1]}),
    Concept("C2", ["Hematuria"]),
    Concept("C3", ["Tumor"], languages={"SPA": [0]}),
    Concept("C4", ["AIDS", "Colours"]),
    Concept("C5", ["Yellow fever"]),
    Concept("C6", ["Fevers, Yellow"]),
    Concept("C7", ["Lung cancer"], languages={"GER": [0]}),
]


@pytest.fixture(scope="module")
def kb(
    make_kb: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> KnowledgeBase:
    return load_kb(make_kb(tmp_path_factory.mktemp("variants"), CONCEPTS))


@pytest.mark.parametrize(
    ("mention", "cui", "alias"),
    [
        ("lung cancers", "C1", "Cancer, Lung"),
        ("haematuria", "C2", "Hematuria"),
        ("Haematuria", "C2", "Hematuria"),
    ],
)
def test_link_finds_the_name_that_is_a_variant(
    kb: KnowledgeBase, mention: str, cui: str, alias: str
) -> None:
    (linked,) = kb.link([mention])
    assert linked.cui == cui
    assert linked.candidates[0]["alias"] == alias
    assert linked.candidates[0]["score"] == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("lang", ["", "xx", "en", "EN"])
def test_link_finds_variants_in_english_or_unknown_documents(
    kb: KnowledgeBase, lang: str
) -> None:
    (linked,) = kb.link(["haematuria"], filter=Filter(document_language=lang))
    assert linked.candidates[0]["score"] == pytest.approx(1, abs=1e-5)


def test_link_finds_no_variants_in_other_documents(kb: KnowledgeBase) -> None:
    (linked,) = kb.link(["haematuria"], filter=Filter(document_language="es"))
    assert linked.candidates[0]["score"] < 0.9999


def exact(kb: KnowledgeBase, text: str) -> bool:
    """Whether a text gets the vector of a row by a variant."""
    one, other = kb.embed([text]).vectors, kb.embed([text], variants=True).vectors
    return not np.allclose(one, other, atol=1e-6)


def test_embed_uses_variants_only_if_asked(kb: KnowledgeBase) -> None:
    texts = ["haematuria", "hematuria", "no name"]
    plain, found = kb.embed(texts).vectors, kb.embed(texts, variants=True).vectors
    assert np.allclose(found[0], found[1])
    assert not np.allclose(plain[0], plain[1])
    assert np.allclose(plain[1:], found[1:], atol=1e-6)


def test_embed_texts_with_equal_token_ids_have_variants_of_their_own(
    kb: KnowledgeBase,
) -> None:
    """The encoder has no accents, the rules of English have."""
    texts = ["haematuria", "hæmatúria", "haematúria"]
    alone = [kb.embed([text], variants=True).vectors[0] for text in texts]
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        found = kb.embed([texts[place] for place in order], variants=True).vectors
        for vector, place in zip(found, order, strict=True):
            assert np.allclose(vector, alone[place], atol=1e-6)
    assert not np.allclose(alone[0], alone[2], atol=1e-4)


@pytest.mark.parametrize("languages", [["SPA"], ["SPA", "ENG"]])
def test_link_finds_english_variants_only_among_names_in_english(
    kb: KnowledgeBase, languages: list[str]
) -> None:
    (linked,) = kb.link(["lung cancers"], filter={"languages": languages})
    english = "ENG" in languages
    (query,) = kb.embed(["lung cancers"], variants=english).vectors
    (name,) = kb.embed(["Cancer, Lung" if english else "Tumor"]).vectors
    score = linked.candidates[0]["score"]
    assert score == pytest.approx(float(query @ name), abs=1e-4)


def test_linker_finds_no_english_variants_in_documents_of_other_languages(
    make_kb: Callable[..., Path], tmp_path: Path
) -> None:
    """Also if the knowledge base has no names in a third language to leave out."""
    folder = make_kb(tmp_path, CONCEPTS[:2])
    for lang, english in (("en", True), ("de", False)):
        nlp = spacy.blank(lang)
        linker = nlp.add_pipe("sapbert_linker", config={"kb": str(folder)})
        doc = nlp.make_doc("haematuria")
        doc.ents = [Span(doc, 0, 1, "X")]
        (ent,) = linker(doc).ents
        assert (ent._.candidates[0]["score"] > 0.9999) == english


def test_embed_variants_of_names_in_other_languages_do_not_count(
    kb: KnowledgeBase,
) -> None:
    assert not exact(kb, "tumour")  # Spanish
    assert exact(kb, "lung cancers")  # "Cancer, Lung", though German has "Lung cancer"


def test_embed_variants_that_are_abbreviations_do_not_count(kb: KnowledgeBase) -> None:
    assert not exact(kb, "aidss")


def test_embed_variants_of_different_concepts_do_not_count(kb: KnowledgeBase) -> None:
    assert not exact(kb, "yellow fevers")  # "Yellow fever" or "Fevers, Yellow"
    assert not exact(kb, "color")  # a plural is not a variant of a singular


def test_embed_variants_are_found_in_an_overlay(
    make_kb: Callable[..., Path], tmp_path: Path
) -> None:
    kb = load_kb(make_kb(tmp_path, CONCEPTS))
    kb = add_concepts(kb, [Concept("X1", ["Oesophageal ulcer"])])
    (linked,) = kb.link(["esophageal ulcers"])
    assert linked.cui == "X1"


def test_add_concepts_embeds_a_name_that_is_a_variant_of_another(
    make_kb: Callable[..., Path], tmp_path: Path
) -> None:
    kb = add_concepts(
        load_kb(make_kb(tmp_path, CONCEPTS)), [Concept("X1", ["haematuria"])]
    )
    british, american = kb.link(["haematuria", "hematuria"])
    assert (british.cui, american.cui) == ("X1", "C2")
    assert not np.allclose(*kb.embed(["haematuria", "hematuria"]).vectors)
