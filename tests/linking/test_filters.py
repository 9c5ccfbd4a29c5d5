"""Filters: what they name, and the notes of mentions whose concept they remove."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.linking.filters import GROUPS, Filter, expand_types, make_filter
from spacy_sapbert.vocabularies.concepts import Concept

TYPES = ["T047", "T184", "T121", "T061"]
WORDS = ["heart", "fever", "pain", "acute", "diabetes", "attack"]


def make_concepts() -> list[Concept]:
    """Sixty concepts; each name has a language and a source or two, by its number."""
    concepts = []
    for number in range(60):
        word, other = WORDS[number % 6], WORDS[number // 6 % 6]
        aliases = [f"{word} {number}", f"{other} {word} {number}", word]
        concepts.append(
            Concept(
                f"C{number:07}",
                aliases,
                types=[TYPES[number % 4]],
                languages={"ENG": [0, 2], "FIN": [1]},
                sources={"MSH": [0], "SNOMEDCT_US": [1, 2]}
                if number % 2
                else {"MSH": [0, 1, 2]},
                retired=[f"R{number}"],
            )
        )
    return concepts


@pytest.fixture(scope="module", params=["hnsw", "exact", "faiss"])
def kb(
    request: Any, make_kb: Callable[..., Path], tmp_path_factory: Any
) -> KnowledgeBase:
    folder = tmp_path_factory.mktemp("filtered")
    return load_kb(
        make_kb(folder, make_concepts(), backend=request.param, order="none")
    )


def test_filter_with_few_concepts_finds_all_of_them(kb: KnowledgeBase) -> None:
    filter: Any = {"allow": ["C0000059"]}
    for mention, note in (("the fevr", None), ("fever", "filtered")):
        found = kb.link([mention], k=10, filter=filter)[0]
        assert [candidate["cui"] for candidate in found.candidates] == ["C0000059"]
        assert found.note == note


def test_filter_that_removes_the_concept_sets_the_note(
    kb: KnowledgeBase,
) -> None:
    wanted = {"types": ["T184"], "languages": ["FIN"]}
    linked = kb.link(["heart 0", "qqq", "pain heart 6"], threshold=0.999, filter=wanted)
    # A name of a T047; nothing; and nothing again, with another number.
    assert [one.note for one in linked][:2] == ["filtered", "below_threshold"]
    assert linked[0].candidates
    nothing = kb.link(["heart 0"], filter={"deny": [f"C{n:07}" for n in range(60)]})[0]
    assert nothing == ([], "filtered", None)


def test_label_types_filter_candidates_by_label(kb: KnowledgeBase) -> None:
    types = {"DISEASE": ["T047"], "DRUG": ["CHEM"]}
    labels = ["DISEASE", "DRUG", "OTHER"]
    linked = kb.link(["fever"] * 3, labels=labels, label_types=types, k=60)
    found = [{t for c in one.candidates for t in c["types"]} for one in linked]
    assert found == [{"T047"}, {"T121"}, {*TYPES}]
    # Inside of a filter, nothing is left of what both do not allow.
    both = kb.link(
        ["fever"], labels=["DRUG"], label_types=types, filter={"types": ["T047"]}
    )
    assert both == [([], "filtered", None)]


def test_label_types_as_evidence_order_ties_only(kb: KnowledgeBase) -> None:
    free = kb.link(["fever"], k=3)[0].candidates
    assert (free[0]["types"], free[0]["tie"]) == (["T184"], "id")
    found = kb.link(
        ["fever"],
        labels=["PROCEDURE"],
        label_types={"PROCEDURE": ["PROC"]},
        label_types_use="evidence",
        k=60,
    )[0].candidates
    # Ten concepts are called that; the five that are procedures come first.
    assert [c["types"] for c in found[:10]] == [["T061"]] * 5 + [["T184"]] * 5
    assert [c["tie"] for c in found[:6]] == ["id"] * 4 + ["label", "id"]
    assert {t for c in found for t in c["types"]} == {*TYPES}


def test_semantic_groups_equal_those_of_umls() -> None:
    types = [kind for kinds in GROUPS.values() for kind in kinds.split(" ")]
    assert len(types) == len({*types})
    assert len(GROUPS) == 15
    assert expand_types(["GEOG", "X"]) == {"GEOG", "T083", "X"}


def test_filter_types_may_have_blanks_or_names_of_groups(
    make_kb: Callable[..., Path], tmp_path: Path
) -> None:
    concepts = [
        Concept("X1", ["heart"], types=["GENE"]),
        Concept("X2", ["fever"], types=["Disease or Syndrome"]),
        Concept("X3", ["pain"], types=["Disease"]),
    ]
    kb = load_kb(make_kb(tmp_path, concepts))
    for types, cui in ((["GENE"], "X1"), (["Disease or Syndrome"], "X2")):
        found = kb.link(["heart"], filter={"types": types})[0].candidates
        assert [candidate["cui"] for candidate in found] == [cui]


def test_filter_untyped_allows_concepts_without_types(sample_kb: Path) -> None:
    kb = load_kb(sample_kb)

    def found(*types: str, **settings: Any) -> set:
        wanted = {"filter": {"types": [*types]}} if types else {}
        return {
            candidate["cui"]
            for candidate in kb.link(["head"], k=8, **wanted, **settings)[0].candidates
        }

    assert found("untyped") == {"C0000007"}
    assert found("T061", "untyped") == {"C0000007", "C0000008"}
    labels: Any = {"labels": ["X"], "label_types": {"X": ["T061", "untyped"]}}
    assert found(**labels) == {"C0000007", "C0000008"}
    assert found("T061", **labels) == {"C0000008"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"tuis": ["T047"]}, r"E333.*'filter.tuis'"),
        ({"types": "T047"}, r"E331.*`filter.types` to be a list"),
        ({"types": [47]}, "E331"),
        ({"deny": [""]}, "E331"),
        (["T047"], r"E333.*list"),
        ("T047", r"E333.*str"),
    ],
)
def test_make_filter_invalid_value_is_an_error(data: Any, message: str) -> None:
    with pytest.raises(SapbertError, match=message):
        make_filter(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"types": ["T48"]}, r"most similar: T184.*, but got 'T48'"),
        ({"types": ["GEOG"]}, r"got 'GEOG'"),
        (
            {"sources": ["SNOMED"]},
            r"most similar: SNOMEDCT_US\), .* Correct `filter.sources`",
        ),
        ({"languages": ["en"]}, r"most similar: ENG"),
    ],
)
def test_filter_unknown_value_is_an_error_with_suggestions(
    kb: KnowledgeBase, data: dict, message: str
) -> None:
    with pytest.raises(SapbertError, match=message):
        kb.link(["fever"], filter=data)


def test_make_filter_returns_equal_filters_for_equal_values() -> None:
    one = make_filter({"types": ["T2", "T1", "T2"]})
    assert one == make_filter({"types": ("T1", "T2")}) == make_filter(one)
    by_hand: Any = Filter(types=["T2", "T1"])  # type: ignore[arg-type]
    assert make_filter(by_hand) == one
    assert not make_filter(None)
    assert not make_filter({"types": []})


def test_search_rows_equals_a_plain_search(kb: KnowledgeBase) -> None:
    from spacy_sapbert.kb.indexes.exact import search_rows

    rows = np.arange(0, kb.rows, 3)
    vectors = kb.vectors(np.array([1, 2, 3]))
    found, scores = search_rows(kb.vectors, rows, vectors, 5)
    cosines = vectors @ kb.vectors(rows).T
    expected = np.argsort(-cosines, axis=1, kind="stable")[:, :5]
    np.testing.assert_allclose(scores, -np.sort(-cosines, axis=1)[:, :5], atol=1e-6)
    np.testing.assert_array_equal(found[:, 0], rows[expected[:, 0]])


def test_ids_that_the_kb_has_not_are_told(kb: KnowledgeBase) -> None:
    with pytest.raises(SapbertError, match="E470.*none of the 2") as caught:
        kb.link(["fever"], filter={"allow": ["X2", "X1"]})
    assert "X1" not in str(caught.value)  # the ids may be a file of anything
    with pytest.warns(UserWarning, match=r"W555.*allow.*none of 1 of the 3, e.g. X1"):
        kb.link(["fever"], filter={"allow": ["C0000001", "R7", "X1"]})
    with pytest.raises(SapbertError, match="E331.*deny"):  # it is not Unicode
        kb.link(["fever"], filter={"deny": ["\ud800"]})
