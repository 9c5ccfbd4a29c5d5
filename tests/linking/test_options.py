"""Options and filters: what is possible, and what is equal."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.linking.filters import Filter, make_filter
from spacy_sapbert.linking.options import LinkOptions, change_options


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 0}, "`k` to be from 1 to 1000"),
        ({"k": True}, "`k` to be from 1"),
        ({"threshold": float("nan")}, "`threshold` to be from -1"),
        ({"threshold": 2}, "`threshold` to be from -1 to 1 or null, but got 2"),
        ({"tie_evidence": {"label", "source"}}, "`tie_evidence` to be a list"),
        ({"tie_evidence": ["prefered"]}, r"`tie_evidence`.*'prefered'"),
        ({"ambiguous": None}, "`ambiguous`"),
        ({"codes": [["MSH"]]}, "`codes` to be a list"),
        ({"label_types": ["T047"]}, "`label_types` to be lists of texts by label"),
        (
            {"label_types": {"Y": ["T047"], "X": []}},
            r"`label_types.X` to be a list of one or more texts",
        ),
        ({"filter": {"defined": 1}}, "filter.defined"),
    ],
)
def test_option_that_is_not_possible_is_an_error(settings, message):
    with pytest.raises(SapbertError, match=message):
        change_options(LinkOptions(), settings)
    with pytest.raises(SapbertError, match=message):
        LinkOptions(**settings)


def test_options_of_lists_and_of_numpy_equal_those_of_tuples():
    plain = LinkOptions(
        k=3,
        threshold=0.5,
        codes=("MSH", "ICD"),
        label_types={"X": ("T047", "T184")},
        filter=Filter(types=("T047", "T184"), deny=("C1",)),
    )
    lists: Any = {
        "k": 3,
        "threshold": 0.5,
        "codes": ["MSH", "ICD", "MSH"],
        "label_types": {"X": ["T184", "T047"]},
        "filter": Filter(types=["T184", "T047"], deny={"C1"}),  # type: ignore[arg-type]
    }
    arrays: Any = {
        "k": np.int64(3),
        "threshold": np.float32(0.5),
        "codes": np.array(["MSH", "ICD"]),
        "label_types": {"X": np.array(["T184", "T047"])},
        "filter": {"types": np.array(["T184", "T047"]), "deny": ["C1"]},
    }
    for other in (LinkOptions(**lists), LinkOptions(**arrays)):
        assert other == plain
        assert hash(other.filter) == hash(plain.filter)
        assert pickle.loads(pickle.dumps(other.filter)) == other.filter
        assert other.to_config() == plain.to_config()
    assert change_options(LinkOptions(), plain.to_config()) == plain
    assert not make_filter(None)
    assert not make_filter({"types": []})


@pytest.mark.parametrize("given", [{}, {"X": ["T047"]}])
def test_options_do_not_change_with_the_label_types_they_were_made_of(given):
    expected = {label: tuple(types) for label, types in given.items()}
    options = LinkOptions(label_types=given)
    given["Y"] = ["T184"]
    assert options.label_types == expected
    with pytest.raises(TypeError):
        options.label_types["Y"] = ("T184",)  # type: ignore[index]
    for copied in (pickle.loads(pickle.dumps(options)), copy.deepcopy(options)):
        assert copied == options
        with pytest.raises(TypeError):
            copied.label_types["Y"] = ("T184",)


def test_filter_untyped_allows_concepts_without_types(sample_kb):
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
    defined = kb.link(["MI"], filter={"defined": True})[0].candidates
    assert [candidate["cui"] for candidate in defined] == ["C0000001"]


def test_label_types_filter_candidates_by_label(sample_kb):
    kb, types = load_kb(sample_kb), {"DISEASE": ["T047"], "DRUG": ["CHEM"]}
    labels = ["DISEASE", "DRUG", "OTHER"]
    linked = kb.link(["fever"] * 3, labels=labels, label_types=types, k=60)
    found = [{t for c in one.candidates for t in c["types"]} for one in linked]
    assert found == [{"T047"}, {"T121"}, {"T047", "T061", "T121", "T184"}]
    # Inside of a filter, nothing is left of what both do not allow.
    settings: Any = {"label_types": types, "filter": {"types": ["T047"]}}
    both = kb.link(["fever"], labels=["DRUG"], **settings)
    assert both == [([], "filtered", None)]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"types": ["T48"]}, r"most similar: T184.*, but got 'T48'"),
        (
            {"sources": ["GLOBES"]},
            r"most similar: GLOBE\), .* Correct `filter.sources`",
        ),
        ({"deny": ["\ud800"]}, "E331.*deny"),  # it is not Unicode
        ({"tuis": ["T047"]}, r"E333.*'filter.tuis'"),
        ({"types": "T047"}, r"E331.*`filter.types` to be a list"),
        ({"deny": [""]}, "E331"),
        (["T047"], r"E333.*list"),
    ],
)
def test_filter_that_is_not_possible_is_an_error(thousand_names_kb, data, message):
    with pytest.raises(SapbertError, match=message):
        load_kb(thousand_names_kb).link(["fever"], filter=data)


def test_ids_that_the_kb_has_not_are_told(sample_kb):
    kb = load_kb(sample_kb)
    with pytest.raises(SapbertError, match="E470.*none of the 2") as caught:
        kb.link(["fever"], filter={"allow": ["X2", "X1"]})
    assert "X1" not in str(caught.value)  # the ids may be a file of anything
    with pytest.warns(UserWarning, match=r"W555.*allow.*none of 1 of the 3, e.g. X1"):
        kb.link(["fever"], filter={"allow": ["C0000001", "C9999999", "X1"]})
