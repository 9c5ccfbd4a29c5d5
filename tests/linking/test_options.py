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
        ({"threshold": float("nan")}, "`threshold` to be a probability, from 0 to 1"),
        ({"threshold": -1}, "from 0 to 1, but got -1.*`least_cosine`"),
        ({"least_cosine": -2}, "`least_cosine` to be from -1 to 1 or null, but got -2"),
        ({"threshold": 2}, "from 0 to 1, but got 2.*`least_cosine`"),
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
        "k": np.int64(3),
        "threshold": np.float32(0.5),
        "codes": ["MSH", "ICD", "MSH"],
        "label_types": {"X": np.array(["T184", "T047"])},
        "filter": Filter(types=["T184", "T047"], deny={"C1"}),  # type: ignore[arg-type]
    }
    types = {"types": np.array(["T184", "T047"]), "deny": ["C1"]}
    for other in (LinkOptions(**lists), LinkOptions(**{**lists, "filter": types})):
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


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"deny": ["\ud800"]}, "E331.*deny"),  # it is not Unicode
        ({"tuis": ["T047"]}, r"E333.*'filter.tuis'"),
        ({"types": "T047"}, r"E331.*`filter.types` to be a list"),
        ({"deny": [""]}, "E331"),
        (["T047"], r"E333.*list"),
    ],
)
def test_filter_that_is_not_possible_is_an_error(sample_kb, data, message):
    with pytest.raises(SapbertError, match=message):
        load_kb(sample_kb).link(["fever"], filter=data)
