"""Options and filters: what is possible, and what is equal."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.linking.filters import Filter, make_filter
from spacy_sapbert.linking.options import SEARCH_OPTIONS, LinkOptions, change_options


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kk": 1}, r"E333.*'kk'"),
        ({"k": 0}, "`k` to be from 1 to 1000"),
        ({"k": "5"}, "`k` to be from 1"),
        ({"k": None}, "`k` to be from 1"),
        ({"k": 2.0}, "`k` to be from 1"),
        ({"threshold": float("nan")}, "`threshold` to be from -1"),
        ({"tie_evidence": {"label", "source"}}, "`tie_evidence` to be a list"),
        ({"threshold": 2}, "`threshold` to be from -1 to 1 or null, but got 2"),
        ({"ambiguous": None}, "`ambiguous`"),
        ({"label_types_use": "both"}, "`label_types_use`"),
        ({"tie_evidence": ["prefered"]}, r"`tie_evidence`.*'prefered'"),
        ({"tie_evidence": "preferred"}, r"`tie_evidence` to be a list"),
        ({"source_rank": [1]}, "`source_rank` to be a list"),
        ({"label_types": ["T047"]}, "`label_types` to be lists of texts by label"),
        ({"label_types": 3}, "`label_types` to be lists of texts by label"),
        ({"label_types": {"X": "T047"}}, r"`label_types.X` to be a list"),
        (
            {"label_types": {"Y": ["T047"], "X": []}},
            r"`label_types.X` to be a list of one or more texts",
        ),
    ],
)
def test_options_invalid_value_is_an_error(settings: dict, message: str) -> None:
    with pytest.raises(SapbertError, match=message):
        change_options(LinkOptions(), settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"threshold": 2},
        {"k": True},
        {"codes": "MSH"},
        {"codes": [["MSH"]]},
        {"threshold": "0.5"},
        {"filter": {"defined": 1}},
    ],
)
def test_options_made_by_hand_are_checked(settings: dict[str, Any]) -> None:
    with pytest.raises(SapbertError, match="Expected"):
        LinkOptions(**settings)


def test_filter_made_by_hand_is_checked() -> None:
    with pytest.raises(SapbertError, match="E331"):
        Filter(types="T184")  # type: ignore[arg-type]


def test_options_of_lists_and_of_numpy_equal_those_of_tuples() -> None:
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
        assert other.to_config() == plain.to_config()
    assert change_options(LinkOptions(), plain.to_config()) == plain


@pytest.mark.parametrize("given", [{}, {"X": ["T047"]}])
def test_options_do_not_change_with_the_label_types_they_were_made_of(
    given: dict[str, Any],
) -> None:
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


def test_search_key_has_the_options_that_change_the_search() -> None:
    assert SEARCH_OPTIONS == ["k", "threshold"]
    base = LinkOptions()
    assert LinkOptions(ambiguous="nil").search_key() == base.search_key()
    for other in ({"k": 3}, {"threshold": 0.1}):
        assert LinkOptions(**other).search_key() != base.search_key()  # type: ignore[arg-type]


def test_filter_is_equal_to_itself_from_a_pickle() -> None:
    filter = Filter(types=("T047",))
    hash(filter)
    other = pickle.loads(pickle.dumps(filter))
    assert other == filter
    assert hash(other) == hash(filter)


def test_filters_with_many_ids_share_them() -> None:
    ids = [f"C{number:07}" for number in range(100_000)]
    first, second = make_filter({"allow": ids}), make_filter({"allow": [*ids[::-1]]})
    assert second.allow is first.allow
    assert second.replace(document_language="en").allow is first.allow
    assert hash(first) == hash(second)
