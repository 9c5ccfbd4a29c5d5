"""ssslm's protocol, run by ssslm itself."""

import pytest
import spacy

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.knowledge_base import load_kb

ssslm = pytest.importorskip("ssslm", reason="the extra `ssslm` is not installed")

from ssslm.ner import SpacyGrounder  # noqa: E402

from spacy_sapbert.extending import SapbertMatcher  # noqa: E402


def test_ssslm_grounds_with_a_knowledge_base(sample_kb):
    kb = load_kb(sample_kb)
    matcher = SapbertMatcher(sample_kb, prefix="umls")
    assert isinstance(matcher, ssslm.Matcher)
    assert matcher.not_empty()
    (match,) = matcher.get_matches("heart attacks")
    (linked,) = kb.link(["heart attacks"])
    assert match.curie == "umls:C0000001"
    assert match.name == "Myocardial infarction"
    assert match.score == linked.candidates[0]["probability"]
    assert matcher.get_best_match("xyz") is None
    assert matcher.get_matches("fever", filter={"types": ["T047"]}) == []
    assert matcher.get_best_match("MI", threshold=0) is not None

    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_mentions", config={"kb": str(sample_kb)})
    grounder = ssslm.make_grounder(SpacyGrounder(matcher, nlp))
    (found,) = grounder.annotate("No fever.")
    assert (found.substr, found.start, found.curie) == ("fever", 3, "umls:C0000004")


def test_matcher_needs_a_prefix_and_values_of_the_kb(sample_kb, make_kb, tmp_path):
    with pytest.raises(SapbertError, match=r"E331.*C0000001.*prefix"):
        SapbertMatcher(sample_kb)
    with pytest.raises(SapbertError, match=r"E332.*T999"):
        SapbertMatcher(sample_kb, prefix="umls", filter={"types": ["T999"]})
    from spacy_sapbert.vocabularies.concepts import Concept

    kb = load_kb(make_kb(tmp_path, [Concept("MESH:D005334", ["Fever"])]))
    best = SapbertMatcher(kb).get_best_match("fever", strict=True)
    assert (best.prefix, best.identifier) == ("MESH", "D005334")
