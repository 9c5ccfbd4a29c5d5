from pathlib import Path

import numpy as np

from benchmarks.large_vocabulary import (
    MixedVectors,
    frequent_words,
    generate_concepts,
    write_vocabulary,
)
from spacy_sapbert.vocabularies.concepts import Concept
from spacy_sapbert.vocabularies.registry import read_vocabulary


def test_generate_concepts_has_names_of_one_concept_and_one_word(
    few_concepts: list[Concept],
) -> None:
    words = frequent_words(few_concepts)
    assert "heart" in words
    made = list(generate_concepts(few_concepts, words, 200, seed=1))
    names = [alias for concept in made for alias in concept.aliases]
    assert len(names) == 200
    assert len({*names}) > 190  # two real concepts share a name
    assert made == list(generate_concepts(few_concepts, words, 200, seed=1))
    real = {alias for concept in few_concepts for alias in concept.aliases}
    for concept in made:
        parts = [alias.rpartition(" ") for alias in concept.aliases]
        assert {name for name, _, _ in parts} <= real
        assert len({word for _, _, word in parts}) == 1


def test_write_vocabulary_is_read_as_rrf(concepts_file: Path, tmp_path: Path) -> None:
    write_vocabulary([concepts_file], out=tmp_path / "rrf", names=120, seed=0)
    read = list(read_vocabulary(tmp_path / "rrf", cui_pattern=r"\S+"))
    assert sum(len(concept.aliases) for concept in read) == 120
    assert {"C0000001", "G0000000"} <= {concept.cui for concept in read}


def test_mixed_vectors_are_sums_of_those_of_name_and_word() -> None:
    vectors = np.eye(3, 4, dtype=np.float32)
    names = [(1, 5, 6, 2), (1, 7, 2)]  # with the ids of begin and end
    known = {np.array(ids, dtype="<i4").tobytes(): row for row, ids in enumerate(names)}
    mixed, missing = MixedVectors(known, vectors).mix(
        [(1, 5, 6, 2), (1, 5, 6, 7, 2), (1, 9, 2)]
    )
    assert missing.tolist() == [False, False, True]
    np.testing.assert_allclose(mixed[0], vectors[0])
    np.testing.assert_allclose(mixed[1], np.array([2, 1, 0, 0]) / np.sqrt(5), atol=1e-6)
