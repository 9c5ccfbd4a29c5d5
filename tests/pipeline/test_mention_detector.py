import gc
from collections.abc import Callable
from functools import cache
from typing import Any
from weakref import ref

import numpy as np
import pytest
import spacy
from hypothesis import example, given
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup
from spacy.util import filter_spans

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.edits.change import add_concepts, remove_concepts
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.linking.text import list_words, stands_alone
from spacy_sapbert.pipeline import split_tokens
from spacy_sapbert.pipeline.mention_detector import SapbertMentions
from spacy_sapbert.vocabularies.concepts import Concept
from tests.pipelines import NLP

NAMES = [
    "heart",
    "heart attack",
    "acute heart attack",
    "attack of gout",
    "gout",
    "MI",
    "AIDS",
    "Crohn's disease",
    "vitamin B-12",
    "ALL",
    "the",
    "42",
    "IL 2",
    "fever",
    "Sjögren syndrome",
    "fieber 😀",
    "flu",
]


@pytest.fixture(scope="module")
def kb_of(make_kb, tmp_path_factory) -> Callable[..., KnowledgeBase]:
    """Opens a knowledge base of names, all of unknown language."""

    @cache
    def build(*names: str) -> KnowledgeBase:
        folder = tmp_path_factory.mktemp("names")
        return load_kb(make_kb(folder, [Concept("C1", [*names])], backend="exact"))

    return build


@pytest.fixture(scope="module")
def make_pipeline(kb_of) -> Callable[..., Language]:
    def make(names: Any = NAMES, lang: str = "en", **config: Any) -> Language:
        nlp = spacy.blank(lang)
        mentions: Any = nlp.add_pipe("sapbert_mentions", config=config)
        mentions.kb = kb_of(*names)
        return nlp

    return make


@pytest.fixture(scope="module")
def nlp(make_pipeline) -> Language:
    return make_pipeline()


def texts(doc):
    return [ent.text for ent in doc.ents]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("An acute heart attack.", ["acute heart attack"]),
        ("Heart attack, HEART ATTACK", ["Heart attack", "HEART ATTACK"]),
        ("a heart attack of gout", ["heart", "attack of gout"]),
        ("heart\n\nattack", ["heart"]),
        ("MI, mi, AIDS, hearing aids", ["MI", "AIDS"]),
        ("crohn's disease and vitamin b-12", ["crohn's disease", "vitamin b-12"]),
        ("all of the 42", []),
        ("All or ALL", ["ALL"]),
        ("Sjo\u0308gren syndrome", ["Sjo\u0308gren syndrome"]),
        ("👩‍🔬 fever 😀", ["fever"]),
        ("a flu, heart attackers", ["flu", "heart"]),
    ],
)
def test_detector_finds_the_longest_names(nlp, text, expected):
    doc = nlp(text)
    assert texts(doc) == expected
    assert {ent.label_ for ent in doc.ents} <= {"CONCEPT"}


LISTED = {  # how notes write lists → the names that are found, wherever spaCy splits
    "-{}": 1,
    "- {}": 1,
    "•{}": 1,
    "*{}": 1,
    "+{}": 1,
    "->{}": 1,
    "(-){}": 1,
    "#{}": 1,
    "1.{}": 1,
    "1.) {}": 1,
    "1){}": 1,
    "1-{}": 1,
    "with 2-{}": 1,
    "anti-{}-like": 1,
    "1{}\n 12{}": 2,
    "dx\n 12-{}\n": 1,
    "{};{}": 2,
    "{}|{}": 2,
    "{},{}": 2,
    "{}+{}": 2,
    "{}.{}.{}": 3,
    "{}_{}": 2,
    "{}(resolved)": 1,
    "{}>1d": 1,
    "{}=yes": 1,
    "{}:3d": 1,
    "Dx:{};{}": 2,
    "<b>{}</b>": 1,
    "<li>{}<li>{}": 2,
    "{}&nbsp;and": 1,
    "&quot;{}&quot;": 1,
    "&lt;p&gt;{}&lt;/p&gt;": 1,
}
JOINED = (
    "covid{0} {0}like {0}2 2{0} {0}-3 {0}'d www.{0}.org x@{0}.org http://en.org/{0}"
)


@pytest.mark.parametrize("lang", ["en", "de", "fr", "xx"])
@pytest.mark.parametrize("name", ["fever", "heart attack", "FEVER", "vitamin b-12"])
def test_detector_finds_names_in_lists_whatever_tokens_they_are(
    make_pipeline, name, lang
):
    nlp = make_pipeline(lang=lang)
    for frame, count in LISTED.items():
        doc = nlp(frame.format(*[name] * count))
        assert texts(doc) == [name] * count, frame
        assert doc.text == frame.format(*[name] * count)


@pytest.mark.parametrize("text", ["a " + part for part in JOINED.split()])
def test_detector_finds_no_name_that_is_a_part_of_a_word_or_an_address(nlp, text):
    assert texts(nlp(text.format("fever"))) == []


def test_detector_reads_entities_of_html_in_a_name(nlp):
    text = "Crohn&#39;s disease &amp; Sj&ouml;gren&nbsp;syndrome, heart&#xA0;attack &x;"
    assert texts(nlp(text)) == [
        "Crohn&#39;s disease",
        "Sj&ouml;gren&nbsp;syndrome",
        "heart&#xA0;attack",
    ]


def test_detector_splits_no_token_for_a_name_that_it_does_not_mark(make_pipeline):
    nlp = make_pipeline()
    doc = nlp.make_doc("fever;gout and flu")
    doc.ents = [Span(doc, 0, 1, "OLD")]
    assert texts(nlp(doc)) == ["fever;gout", "flu"]
    assert len(doc) == 3
    doc = nlp("gout_heart_attack")
    assert [token.text for token in doc] == ["gout", "_", "heart_attack"]


def test_detector_keeps_annotations_of_a_doc_whose_tokens_it_splits(make_pipeline):
    words = ["He", "has", "fever;gout", "now", ".", "Her", "gout", "hurts;flu"]
    doc = Doc(
        make_pipeline().vocab,
        words=words,
        tags=["PRP", "VB", "NN", "RB", ".", "PRP", "NN", "VB"],
        pos=["PRON", "VERB", "NOUN", "ADV", "PUNCT", "PRON", "NOUN", "VERB"],
        morphs=["Number=Sing"] * 8,
        lemmas=words,
        heads=[1, 1, 1, 1, 1, 6, 7, 7],
        deps=["nsubj", "ROOT", "obj", "advmod", "punct", "det", "nsubj", "ROOT"],
        ents=["O", "O", "B-OLD", "O", "O", "O", "B-OLD", "O"],
    )
    doc.tensor = np.arange(16, dtype="float32").reshape(8, 2)
    old = [Span(doc, 6, 7, "A", kb_id="C9"), Span(doc, 2, 3, "B")]
    doc.spans["old"] = SpanGroup(doc, spans=old, attrs={"score": [1, 2]})

    doc = make_pipeline(spans_key="new")(doc)
    assert [s.text for s in doc.spans["new"]] == ["fever", "gout", "gout", "flu"]
    split = ["He", "has", "fever", ";", "gout", "now", ".", "Her", "gout", "hurts;"]
    assert [token.text for token in doc] == [*split, "flu"]
    assert [(ent.text, ent.label_) for ent in doc.ents] == [
        ("fever;gout", "OLD"),
        ("gout", "OLD"),
    ]
    group = doc.spans["old"]
    spans = [(span.text, span.start, span.label_, span.kb_id_) for span in group]
    assert spans == [("gout", 8, "A", "C9"), ("fever;gout", 2, "B", "")]
    assert group.attrs == {"score": [1, 2]}
    assert [t.tag_ for t in doc][2:6] == ["NN", "NN", "NN", "RB"]
    assert [t.pos_ for t in doc][9:] == ["VERB"] * 2
    assert [t.lemma_ for t in doc] == [t.text for t in doc]
    assert {str(t.morph) for t in doc} == {"Number=Sing"}
    assert doc.tensor[:, 0].tolist() == [0, 2, 0, 0, 0, 6, 8, 10, 12, 0, 0]
    assert [t.head.i for t in doc] == [1, 1, 1, 2, 2, 1, 1, 8, 9, 9, 9]
    assert [t.is_sent_start for t in doc] == [n in (0, 7) for n in range(11)]
    assert [s.text for s in doc.sents] == [
        "He has fever;gout now .",
        "Her gout hurts;flu",
    ]


@pytest.mark.parametrize("start", [True, False, None])
def test_detector_keeps_starts_of_sentences_where_it_splits_a_token(nlp, start):
    doc = Doc(nlp.vocab, words=["A", "fever;gout", "Then", "flu"])
    for token in [*doc][1:]:
        token.is_sent_start = start
    assert len(nlp(doc)) == 6
    parts = None if start is None else False
    starts = [token.is_sent_start for token in doc]
    assert starts == [True, start, parts, parts, start, start]


def test_detector_splits_no_more_tokens_than_takes_seconds(nlp, monkeypatch):
    monkeypatch.setattr(split_tokens, "MOST_STEPS", 4 * 2)
    doc = nlp.make_doc("-fever -gout -flu fever")
    with pytest.warns(UserWarning, match=r"^\[W561\].* 1 tokens .* Divide it"):
        assert texts(nlp(doc)) == ["fever", "gout", "fever"]


def test_detector_leaves_what_is_taken_and_what_is_inside_of_another():
    places = [(0, 3), (0, 9), (5, 9), (10, 12), (11, 20), (30, 31)]
    found = split_tokens.select_outer(places, [(2, 4), (30, 40)])
    assert [*found] == [(5, 9), (10, 12), (11, 20)]


def test_detector_says_how_many_names_it_cannot_mark(nlp):
    Doc.set_extension("trf_data", default=None, force=True)
    try:
        doc = nlp.make_doc("fever;gout and flu")
        doc._.trf_data = object()
        with pytest.warns(UserWarning, match=r"^\[W561\].* 1 tokens .* transformer"):
            doc = nlp(doc)
    finally:
        Doc.remove_extension("trf_data")
    assert texts(doc) == ["flu"]
    assert len(doc) == 3


def test_detector_has_settings_for_label_and_length(make_pipeline):
    doc = make_pipeline(label="X", max_tokens=1, min_length=5)("heart attack, gout, MI")
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("heart", "X"), ("MI", "X")]


@pytest.mark.parametrize("text", ["non small cell cancer", "non-small cell cancer"])
def test_detector_finds_no_name_behind_non(make_pipeline, text):
    assert texts(make_pipeline(["small cell cancer"])(text)) == []
    assert texts(make_pipeline(["nonsmall cell cancer"])(text)) == [text]


def test_detector_leaves_out_common_words_of_the_language(make_pipeline):
    names = ["History", "Negative", "Complaints", "history of gout", "Beta-blocker"]
    text = "History: negative. Complaint: beta-blocker, history of gout."
    found = ["beta-blocker", "history of gout"]
    assert texts(make_pipeline(names)(text)) == found
    assert "negative" in SapbertMentions(spacy.blank("en")).stop_names
    every = ["History", "negative", "Complaint", *found]
    assert texts(make_pipeline(names, "de")(text)) == every
    assert texts(make_pipeline(names, stop_names=[])(text)) == every
    own = make_pipeline(names, stop_names=["HISTORY", "Beta-blocker"])
    assert texts(own(text)) == ["negative", "Complaint", "history of gout"]
    own.get_pipe("sapbert_mentions").stop_names = ["Beta-blocker"]
    assert texts(own(text))[0] == "History"
    assert own.config["components"]["sapbert_mentions"]["stop_names"] == [
        "Beta-blocker"
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He had ALL; all, All and NO went.", ["ALL"]),
        ("relapsed ALL, PLAN", ["ALL", "PLAN"]),
        ("PLAN: NO fever\n", ["fever"]),
        ("ALL PATIENTS, OBSERVED: ALL\nALL", ["ALL"]),
    ],
)
def test_an_abbreviation_in_capitals_is_not_a_stop_word(make_pipeline, text, expected):
    names = ["fever", "All", "ALL", "PLAN", "NO"]
    assert texts(make_pipeline(names)(text)) == expected
    listed = make_pipeline(names, stop_names=["ALL", "PLAN", "NO"])
    assert set(texts(listed(text))) <= {"fever"}


def test_detector_finds_names_inside_words_without_blanks(make_pipeline):
    nlp = make_pipeline(["糖尿病", "急性心肌梗死", "心肌", "MRI", "MR", "ไข้"], "xx")
    for text, expected in {
        "他有糖尿病史": ["糖尿病"],
        "急性 心肌梗死，肌心": ["急性 心肌梗死"],
        "MRI检查, MRT检查": ["MRI"],
        "มีไข้สูง": ["ไข้"],
    }.items():
        doc = Doc(NLP.vocab, words=[*text], spaces=[False] * len(text))
        assert texts(nlp(doc)) == expected


def test_detector_marks_short_forms_by_their_long_forms(make_pipeline):
    names = ["heart attack", "MI", "fever", "HISTORY"]
    nlp = make_pipeline(names, short_forms=True)
    for text, expected in {
        "Heart attack (HA). HA, HAs": ["Heart attack", "HA", "HA", "HAs"],
        "Mild irritation (MI), fever. MI": ["fever"],
        "History (HIS). HIS": [],
    }.items():
        assert texts(nlp(text)) == expected
    assert texts(make_pipeline(names)("Mild irritation (MI). MI")) == ["MI", "MI"]


def make_doc_with_entity():
    doc = NLP.make_doc("a heart attack and fever")
    doc.ents = [Span(doc, 1, 2, label="ORGAN", kb_id="C1")]
    return doc


def test_detector_keeps_or_overwrites_entities_or_writes_a_span_group(make_pipeline):
    doc = make_pipeline()(make_doc_with_entity())
    assert [(e.text, e.label_, e.kb_id_) for e in doc.ents] == [
        ("heart", "ORGAN", "C1"),
        ("fever", "CONCEPT", ""),
    ]
    doc = make_doc_with_entity()
    doc.ents = [*doc.ents, Span(doc, 0, 1, label="A")]
    overwrite = make_pipeline(overwrite=True)
    assert texts(overwrite(doc)) == ["a", "heart attack", "fever"]
    doc = make_doc_with_entity()
    for _ in range(2):
        make_pipeline(spans_key="sc")(doc)
        assert [span.text for span in doc.spans["sc"]] == ["heart attack", "fever"]
    assert texts(doc) == ["heart"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_detector_keeps_the_attributes_of_a_span_group(make_pipeline, overwrite):
    doc = NLP.make_doc("a heart attack and gout")
    old = [Span(doc, 4, 5, "X"), Span(doc, 0, 2, "Y"), Span(doc, 3, 4, "Z")]
    attrs = {"scores": np.array([0.1, 0.2, 0.3]), "own": [1, 2, 3], "source": "me"}
    doc.spans["sc"] = SpanGroup(doc, name="sc", spans=old, attrs=attrs)
    make_pipeline(spans_key="sc", overwrite=overwrite)(doc)
    group = doc.spans["sc"]
    labels = [span.label_ for span in group]
    own = dict(zip(labels, group.attrs["own"], strict=True))
    scores = [*group.attrs["scores"]]
    assert group.attrs["source"] == "me"
    if overwrite:
        assert labels == ["Z", "CONCEPT", "CONCEPT"]
        assert own == {"Z": 3, "CONCEPT": None}
        assert scores[0] == 0.3
        assert np.isnan(scores[1:]).all()
    else:
        assert own == {"X": 1, "Y": 2, "Z": 3}
        assert scores == [0.1, 0.2, 0.3]
    copied = Doc(doc.vocab).from_bytes(doc.to_bytes()).spans["sc"]
    assert len(copied.attrs["scores"]) == len(copied.attrs["own"]) == len(group)


PARTS = st.sampled_from([*NAMES, " ", "\n\n"]) | st.text(
    st.characters(codec="utf8"), max_size=3
)


@given(text=st.lists(PARTS, max_size=30).map("".join))
@example(text="heart\x1battack")  # one token of spaCy
@example(text="heartS")  # a plural
def test_detector_of_any_text_returns_distinct_spans_without_stop_words(nlp, text):
    names = [list_words(name, "english") for name in NAMES]
    doc = nlp(text)
    assert doc.text == text
    assert filter_spans(doc.ents) == list(doc.ents)
    for ent in doc.ents:
        assert list_words(ent.text, "english") in names
        words = [token for token in ent if any(map(str.isalpha, token.text))]
        assert ent.text == "ALL" or not all(token.is_stop for token in words)
    places = set(nlp.get_pipe("sapbert_mentions").find_places(nlp.make_doc(text)))
    assert {(ent.start_char, ent.end_char) for ent in doc.ents} <= places
    # All characters as tokens: the same names, wherever tokens could start or end.
    apart = Doc(nlp.vocab, words=[*text], spaces=[False] * len(text))
    alone = {p for p in places if stands_alone(text, *p)}
    assert "&" in text or alone <= {
        *nlp.get_pipe("sapbert_mentions").find_places(apart)
    }


# --- where the knowledge base comes from ---


def make_lending_pipeline(kb):
    nlp = spacy.blank("en")
    mentions = nlp.add_pipe("sapbert_mentions")
    nlp.add_pipe("sapbert_linker").kb = kb
    return nlp, mentions


def test_detector_uses_the_kb_of_the_linker(kb_of, monkeypatch):
    first, other = kb_of(*NAMES), kb_of("fever")
    nlp, mentions = make_lending_pipeline(first)
    assert mentions.kb is first
    assert mentions.opened is None
    nlp.get_pipe("sapbert_linker").kb = other
    assert mentions.kb is other
    with nlp.select_pipes(disable=["sapbert_linker"]):
        assert texts(nlp("heart attack, fever")) == ["fever"]
    second, _ = make_lending_pipeline(first)
    mentions.initialize(nlp=second)
    assert mentions.kb is first
    pipeline = ref(nlp)
    del nlp
    gc.collect()
    assert pipeline() is None  # no reference to a pipeline outlives it
    monkeypatch.setattr("spacy_sapbert.kb.folder.versions.installed_kbs", dict)
    alone = spacy.blank("en")
    alone.add_pipe("sapbert_mentions")
    with pytest.raises(SapbertError, match="E310") as caught:
        alone("SENTINELTEXT of a patient")
    assert "SENTINELTEXT" not in str(caught.value)


def make_linking_pipeline(folder, **config):
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_mentions", config=config)
    nlp.add_pipe("sapbert_linker", config={"kb": str(folder)})
    return nlp


def links(doc):
    return [(ent.text, ent.kb_id_) for ent in doc.ents]


# --- with a real knowledge base ---


@pytest.mark.parametrize("named", [False, True])
def test_detector_saved_pipeline_has_one_kb_and_can_be_moved(
    sample_kb, tmp_path, named
):
    config = {"kb": str(sample_kb)} if named else {}
    nlp = make_linking_pipeline(sample_kb, **config)
    expected = links(nlp("heart attack and fever"))
    assert len(expected) == 2
    nlp.to_disk(tmp_path / "one")
    (tmp_path / "one").rename(tmp_path / "two")
    assert len(list(tmp_path.rglob("meta.json"))) == 2  # the pipeline's and the kb's
    moved = spacy.load(tmp_path / "two")
    assert links(moved("heart attack and fever")) == expected
    folder = tmp_path / "two" / "sapbert_linker" / "kb"
    assert moved.get_pipe("sapbert_mentions").kb.folder == folder
    with moved.select_pipes(disable=["sapbert_linker"]):
        assert texts(moved("heart attack and fever")) == ["heart attack", "fever"]


def test_detector_finds_names_of_the_version_that_is_used(own_kb):
    nlp = make_linking_pipeline(own_kb)
    linker = nlp.get_pipe("sapbert_linker")
    text = "fever and ward chill"
    assert texts(nlp(text)) == ["fever"]
    (cui,) = (ent.kb_id_ for ent in nlp(text).ents)
    add_concepts(linker.kb, [Concept("X1", ["Ward chill"])])
    assert texts(nlp(text)) == ["fever"]
    linker.reload()
    assert "name_index" in vars(linker.kb.parts)  # read before the version is used
    assert texts(nlp(text)) == ["fever", "ward chill"]
    remove_concepts(linker.kb, [cui])
    linker.reload()
    assert texts(nlp(text)) == ["ward chill"]


def test_detector_before_a_linker_is_initialized_with_its_kb(sample_kb):
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_mentions")
    nlp.add_pipe("sapbert_linker")
    sections = nlp.config["initialize"]["components"]
    sections["sapbert_linker"] = {"kb": str(sample_kb)}
    nlp.initialize()
    assert len(links(nlp("heart attack and fever"))) == 2
    alone = spacy.blank("en")
    alone.add_pipe("sapbert_mentions")
    alone.config["initialize"]["components"]["sapbert_mentions"] = {
        "kb": str(sample_kb)
    }
    alone.initialize()
    assert texts(alone("heart attack and fever")) == ["heart attack", "fever"]


def test_a_ruler_before_the_linker_says_what_the_detector_lacks(monkeypatch):
    """`add_patterns` runs the components before it on the patterns."""
    monkeypatch.setattr("spacy_sapbert.kb.folder.versions.installed_kbs", dict)
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_mentions")
    ruler = nlp.add_pipe("entity_ruler")
    with pytest.raises(SapbertError, match=r"E310.*sapbert_mentions.*`kb`.*linker"):
        ruler.add_patterns([{"label": "X", "pattern": "fever"}])
