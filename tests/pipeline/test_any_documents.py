"""Any Doc is linked, whatever its text, its spans and the settings."""

import gc
import itertools
import json
import logging
import random
import socket
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb import search
from spacy_sapbert.kb.edits.change import add_concepts, remove_concepts
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.kb.parts import embed_in_parts
from spacy_sapbert.linking.filters import expand_types
from spacy_sapbert.linking.link import NIL_NOTES
from spacy_sapbert.linking.options import EVIDENCE
from spacy_sapbert.vocabularies.concepts import Concept
from tests.pipelines import mark_words

ATTRS = ("cui", "candidates", "link_note")
GROUPS = {"a": ("a_cui", "a_candidates", "a_note"), "b": ("b_cui", "b_found", "b_note")}
STRANGE = [
    " ",
    "\n\t ",
    "...",
    "—",
    "😀",
    "👩‍⚕️ fever",
    "חום fever",
    "\u200f\u202efever\u202c",
    "e\u0301a\u0308",
    "fe\u00advér\u200b",
    "heart\0attack",
    "\0",
    "x" * 10_000,
    "fever " * 1_700,
    "頭痛",
    "Heart  Attack",
]


@pytest.fixture(scope="module")
def folder(few_concepts, make_kb, letters_order, tmp_path_factory) -> Path:
    """With ties, languages, sources and 3-grams; some concepts added, one removed."""
    concepts = [
        *few_concepts,
        Concept("C0000009", ["Cold", "chill"], types=["T184"], languages={"ENG": [0]}),
        Concept("D1", ["Common cold", "cold"], types=["T047"], sources={"MSH": [0, 1]}),
        Concept("D2", ["COLD"], parents=["C0000003"], sources={"ICD": [0]}),
    ]
    folder = tmp_path_factory.mktemp("any")
    folder = make_kb(folder, concepts, learned=letters_order)
    more = Concept("L1", ["Ward fever", "WF"], types=["T184"], languages={"FIN": [0]})
    remove_concepts(add_concepts(load_kb(folder), [more]), ["C0000005"])
    return folder


@pytest.fixture(scope="module")
def nlp(folder) -> Language:
    """Three linkers: of the entities, and of two groups of spans."""
    nlp = spacy.blank("en")
    config: dict[str, Any] = {"kb": str(folder)}
    nlp.add_pipe("sapbert_abbreviations")
    nlp.add_pipe("sapbert_linker", config=config)
    for key, (cui, candidates, note) in GROUPS.items():
        attrs = {"cui_attr": cui, "candidates_attr": candidates, "note_attr": note}
        nlp.add_pipe(
            "sapbert_linker",
            name=key,
            config={"kb": str(folder), "spans_key": key, "k": 3, **attrs},
        )
        nlp.get_pipe(key).kb = nlp.get_pipe("sapbert_linker").kb
    # No cache, so that each mention is searched again.
    nlp.get_pipe("sapbert_linker").kb.searcher.results.size = 0
    return nlp


def ids(*values: str, least: int = 0) -> Any:
    return st.lists(st.sampled_from(values), min_size=least, max_size=2)


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "k": st.integers(1, 15),
        "threshold": st.none() | st.sampled_from([0, 0.5, 0.9, 1]),
        "least_cosine": st.none() | st.sampled_from([-1, 0, 0.5, 0.9, 1]),
        "filter": st.fixed_dictionaries(
            {},
            optional={
                "types": ids("T047", "T184", "DISO", "CHEM"),
                "sources": ids("MSH", "ICD"),
                "languages": ids("ENG", "FIN"),
                "allow": ids("D1", "C9999999", "L1", "X").filter(
                    lambda has: {*has} != {"X"}
                ),
                "deny": ids("D1", "C9999999", "L1", "X"),
            },
        ),
        "label_types": st.dictionaries(
            st.sampled_from(["X", "Y", "NOBODY"]),
            ids("T047", "T061", "DISO", least=1),
            max_size=2,
        ),
        "label_types_use": st.sampled_from(["filter", "evidence"]),
        "tie_evidence": st.permutations(EVIDENCE),
        "source_rank": ids("ICD", "MSH"),
        "ambiguous": st.sampled_from(["link", "nil"]),
    },
)
NAMES = ["MI", "cold", "heart attack", "fevers", "WF", "aspirin", "appendix"]
WORDS = (
    st.sampled_from(NAMES)
    | st.sampled_from(STRANGE)
    | st.text(min_size=1, max_size=8).filter(
        # spaCy refuses half characters
        lambda text: (
            text.isprintable() or text.encode("utf8", "ignore").decode() == text
        )
    )
)
PLACES = st.tuples(
    st.integers(0, 7), st.sampled_from([1, 1, 2, 4]), st.sampled_from("XY ")
)
RECIPES = st.fixed_dictionaries(
    {
        "words": st.lists(WORDS, min_size=4, max_size=8),
        "ents": st.lists(PLACES, min_size=3, max_size=6),
        "a": st.none() | st.lists(PLACES, min_size=2, max_size=4),
        "b": st.lists(PLACES, max_size=3),
        "kb_id": st.sampled_from(["", "Q1", "NIL"]),
    }
)
NOTHING = {"words": [], "ents": [], "a": [], "b": None, "kb_id": ""}
NO_ENTITIES = {**NOTHING, "words": ["fever"], "b": [(0, 1, "X"), (0, 1, "X")]}
ANY = st.integers(0, 9).flatmap(
    lambda n: st.just([NOTHING, NO_ENTITIES][n]) if n < 2 else RECIPES
)


def make_doc(nlp: Language, recipe: dict[str, Any]) -> Doc:
    words = recipe["words"]
    doc = Doc(nlp.vocab, words=words, spaces=[len(word) % 2 > 0 for word in words])

    def spans(places: Sequence[Any]) -> list[Span]:
        found = []
        for place, size, label in places if len(doc) else ():
            start = place % len(doc)
            end = min(start + size, len(doc))
            found.append(Span(doc, start, end, label, kb_id=recipe["kb_id"]))
        return found

    ents = []
    for span in spans(recipe["ents"]):
        # spaCy refuses entities that overlap, or begin or end with a blank
        free = all(span.end <= e.start or e.end <= span.start for e in ents)
        blank = any(token.is_space for token in (span[0], span[-1]))
        if free and not blank:
            ents.append(span)
    doc.ents = ents
    for key in GROUPS:
        if recipe[key] is not None:
            doc.spans[key] = spans(recipe[key])
    return doc


def described(doc: Doc) -> Any:
    """Everything that the linkers wrote into a Doc."""
    ents = [[ent.kb_id_, *(ent._.get(attr) for attr in ATTRS)] for ent in doc.ents]
    groups = {key: doc.spans[key].attrs for key in GROUPS if key in doc.spans}
    return json.loads(json.dumps([ents, groups]))


def check_span(
    cui: str | None, candidates: list[Any], note: str | None, options: Any
) -> None:
    assert json.loads(json.dumps(candidates)) == candidates
    assert [c["rank"] for c in candidates] == list(range(1, len(candidates) + 1))
    assert len(candidates) <= options.get("k", 10)
    assert len({c["cui"] for c in candidates}) == len(candidates)
    assert note in (None, "truncated", *NIL_NOTES)
    assert (cui is None) == (note in NIL_NOTES)
    wanted = options.get("filter", {})
    types = expand_types(wanted.get("types", ()))
    for candidate in candidates:
        assert -1 <= candidate["score"] <= 1
        assert candidate["tie"] in (None, "id", *EVIDENCE)
        if candidate["rank"] == 1:
            assert 0 <= candidate["probability"] <= 1
        else:
            assert candidate["probability"] is None
        assert candidate["cui"] not in (*wanted.get("deny", ()), "C0000005")
        assert not types or not types.isdisjoint(candidate["types"])
    if cui is not None:
        assert cui == candidates[0]["cui"]
        least = options.get("threshold")
        assert candidates[0]["probability"] >= (0.5 if least is None else least)
        least = options.get("least_cosine")
        assert candidates[0]["score"] >= (-1 if least is None else least)
        if options.get("ambiguous") == "nil":
            assert candidates[0]["tie"] != "id"


def check_doc(doc: Doc, options: Any) -> None:
    for ent in doc.ents:
        cui = ent._.cui
        check_span(cui, ent._.candidates, ent._.link_note, options)
        assert ent.kb_id_ == (cui or "NIL")
    for key, attrs in GROUPS.items():
        if key not in doc.spans:
            continue
        group = doc.spans[key]
        # an empty group stays as it was
        lists = [group.attrs.get(attr, []) for attr in attrs]
        assert [len(values) for values in lists] == [len(group)] * 3
        for span, cui, candidates, note in zip(group, *lists, strict=True):
            check_span(cui, candidates, note, {"k": 3})
            assert cui in [None, *(c["cui"] for c in span._.get(attrs[1]))]


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(recipe=ANY, options=OPTIONS)
def test_linker_links_any_doc_with_any_settings(nlp, recipe, options):
    own = {"sapbert_linker": options}
    doc = nlp(make_doc(nlp, recipe), component_cfg=own)
    check_doc(doc, options)
    # A Doc that was linked before is linked as one that was not.
    before = described(doc)
    assert described(nlp(doc, component_cfg=own)) == before
    # Nothing is lost on the way to other processes and files.
    assert described(Doc(nlp.vocab).from_bytes(doc.to_bytes())) == before
    for keep in (True, False):
        packed = DocBin(store_user_data=keep, docs=[doc]).to_bytes()
        (restored,) = DocBin().from_bytes(packed).get_docs(nlp.vocab)
        if keep:
            assert described(restored) == before
        assert [e.kb_id_ for e in restored.ents] == [e.kb_id_ for e in doc.ents]
        assert described(nlp(restored, component_cfg=own)) == before


def alike(one: Any, other: Any) -> bool:
    """Whether two results differ in nothing but the noise of float32.

    It may move a score over the half of its last digit: .96805 is .968 or .9681.
    """
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 1.01e-4
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other)


@settings(
    deadline=None,
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(recipes=st.lists(ANY, max_size=6), options=OPTIONS)
def test_linker_links_the_same_for_any_batch_size(nlp, recipes, options):
    own = {"sapbert_linker": options}
    expected = [
        described(nlp(make_doc(nlp, recipe), component_cfg=own)) for recipe in recipes
    ]
    linker: Any = nlp.get_pipe("sapbert_linker")
    for docs_at_once, mentions_at_once in ((1, 256), (64, 256), (64, 2)):
        stream = ((make_doc(nlp, recipe), n) for n, recipe in enumerate(recipes))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(linker, "batch_size", mentions_at_once)
            pairs = list(
                nlp.pipe(
                    stream, as_tuples=True, batch_size=docs_at_once, component_cfg=own
                )
            )
        assert [context for _, context in pairs] == list(range(len(recipes)))
        assert alike([described(doc) for doc, _ in pairs], expected)


def test_linker_accepts_any_long_form(nlp):
    values = ["  heart\n attack ", " ", "...", 7, ["MI"], None]
    doc = mark_words(*["MI"] * len(values))
    for ent, value in zip(doc.ents, values, strict=True):
        ent._.long_form = value
    found = [[c["alias"] for c in ent._.candidates[:1]] for ent in nlp(doc).ents]
    assert found == [["Heart attack"], ["MI"], [], ["MI"], ["MI"], ["MI"]]


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0])
def test_linker_has_no_concept_for_a_vector_of_nan(nlp, bad, monkeypatch):
    def embed(parts: Any, texts: Any, **how: Any) -> Any:
        for numbers, embedded in embed_in_parts(parts, texts, **how):
            embedded.vectors[[texts[number] == "zq" for number in numbers]] = bad
            yield numbers, embedded

    monkeypatch.setattr(search, "embed_in_parts", embed)
    doc = mark_words("fever", "MI", "zq")
    for options in ({}, {"filter": {"types": ["T047", "T184"]}}):
        own = {"sapbert_linker": options}
        linked = nlp(doc, component_cfg=own, disable=list(GROUPS))
        assert [ent._.link_note for ent in linked.ents] == [
            None,
            "ambiguous",
            "no_vector",
        ]
        assert linked.ents[2]._.candidates == []
        assert linked.ents[2].kb_id_ == "NIL"


def test_linker_threads_with_other_settings_do_not_mix(nlp):
    each: list[Any] = [
        {},
        {"k": 1},
        {"filter": {"types": ["T047"]}},
        {"tie_evidence": ["coherence"], "ambiguous": "nil"},
        {"label_types": {"X": ["T184"]}},
    ]
    recipe = {
        "words": ["cold", "MI", "fevers", "...", "hart attack"],
        "ents": [(place, 1, "X") for place in range(5)],
        **{key: [(0, 2, "Y"), (0, 2, "X"), (1, 3, "")] for key in GROUPS},
        "kb_id": "",
    }
    disabled = list(GROUPS)

    def link(options: Any) -> Any:
        own = {"sapbert_linker": options}
        doc = make_doc(nlp, recipe)
        return described(nlp(doc, component_cfg=own, disable=disabled))

    expected = [link(options) for options in each]
    assert len({json.dumps(one) for one in expected}) == len(each)
    with ThreadPoolExecutor(len(each)) as threads:
        found = threads.map(lambda options: [link(options) for _ in range(5)], each)
        assert list(found) == [[one] * 5 for one in expected]


SENTINEL = "Zzpatient"


def test_linker_prints_no_text_and_opens_no_socket(folder, capfd, caplog, monkeypatch):
    def refuse(*arguments: Any) -> None:
        raise AssertionError("no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_abbreviations")
    nlp.add_pipe("sapbert_linker", config={"kb": str(folder)})
    words = [SENTINEL, SENTINEL + "\0😀", SENTINEL * 200, "...", "頭痛"]
    failing: list[Any] = [
        {"filter": {"types": ["T998"]}},
        {"filter": {"languages": ["zz"]}},
        {"k": 0},
        {"kk": 1},
        {"label_types": {SENTINEL: ["T998"]}},
    ]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for options in ({}, {"threshold": 1}, *failing):
            try:
                nlp(mark_words(*words), component_cfg={"sapbert_linker": options})
            except SapbertError as error:
                said.append(str(error))
    said += [str(warning.message) for warning in caught]
    said += [record.getMessage() for record in caplog.records]
    said += capfd.readouterr()
    assert len(said) > 4
    assert SENTINEL not in "".join(said)


MOST_GROWTH = 30 << 20  # bytes over 100,000 Docs; one has thousands
STATUS = Path("/proc/self/status")


@pytest.mark.slow
@pytest.mark.skipif(not STATUS.is_file(), reason="only Linux says what is used")
def test_pipe_memory_is_constant_over_a_long_stream(sample_kb):
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_abbreviations")
    nlp.add_pipe("sapbert_mentions")
    config = {"kb": str(sample_kb), "k": 3, "filter": {"deny": ["C0000008"]}}
    nlp.add_pipe("sapbert_linker", config=config)
    words = [
        "heart",
        "attack",
        "fever",
        "MI",
        "DM",
        "aspirin",
        "ASA",
        "headache",
        "Cardiac",
        "disease",
        "no",
    ]
    chance = random.Random(0)
    texts = itertools.cycle([" ".join(chance.choices(words, k=8)) for _ in range(500)])

    def run(count):
        for _ in nlp.pipe(itertools.islice(texts, count), batch_size=50):
            pass
        gc.collect()
        return int(STATUS.read_text().partition("VmRSS:")[2].split()[0]) << 10

    before = run(5_000)
    assert run(100_000) - before < MOST_GROWTH
