import hashlib
import json
import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import spacy
import srsly
from spacy import displacy
from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from thinc.api import Config

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.extending import LINKER_CONFIG, SapbertLinker
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.folder.versions import compute_digest, read_version
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.linking.link import Linked
from spacy_sapbert.pipeline.linker_config import DEFAULTS
from spacy_sapbert.pipeline.running import complete_pipeline
from spacy_sapbert.pipeline.scorer import score_links
from spacy_sapbert.vocabularies.concepts import Concept
from tests.commands import invoke
from tests.pipelines import NLP, make_nlp, mark_words

WORDS = ["He", "had", "a", "heart", "attack", "and", "MI", "..."]


@pytest.fixture(scope="module")
def nlp(sample_kb) -> Language:
    return make_nlp(sample_kb, k=3)


def make_doc(nlp: Language) -> Doc:
    doc = Doc(nlp.vocab, words=WORDS)
    doc.ents = [Span(doc, 3, 5, "X"), Span(doc, 6, 7, "X"), Span(doc, 7, 8, "X")]
    return doc


def results(doc: Doc) -> list[Any]:
    return [
        (ent.text, ent.kb_id_, ent._.cui, ent._.link_note, ent._.candidates)
        for ent in doc.ents
    ]


def test_linker_sets_cui_candidates_and_kb_id_together(nlp):
    found = results(nlp(make_doc(nlp)))
    assert [entry[:4] for entry in found] == [
        ("heart attack", "C0000001", "C0000001", None),
        # of two concepts that are called so; both stay candidates
        ("MI", "NIL", None, "ambiguous"),
        ("...", "NIL", None, "empty"),
    ]
    assert [c["cui"] for c in found[1][4]][:2] == ["C0000001", "C0000002"]
    assert [len(entry[4]) for entry in found] == [3, 3, 0]
    own = {"sapbert_linker": {"threshold": 0}}
    doc = nlp(mark_words("x " * 5_000), component_cfg=own)
    assert doc.ents[0]._.link_note == "truncated"


def test_options_are_fitted_to_a_language_again_if_they_change(own_kb):
    linker = make_nlp(own_kb).get_pipe("sapbert_linker")
    fitted = linker.fit(linker.options, "en")
    assert fitted.filter.document_language == "en"
    assert linker.fit(linker.options, "en") is fitted  # not checked again
    of_call = linker.options.replace(k=2)  # a call with its own options
    assert linker.fit(of_call, "en") == of_call.replace(filter=fitted.filter)
    assert linker.fit(linker.options, "en") == fitted
    linker.filter = {"deny": ["C0000001"]}
    assert linker.fit(linker.options, "en").filter.deny == ("C0000001",)
    assert linker.fit(linker.options, "de").filter.document_language == "de"


def test_linker_keeps_the_candidates_of_what_is_not_linked(sample_kb):
    """With the probability of the first, so that others can decide differently."""
    nlp = make_nlp(sample_kb, k=3)
    free = nlp(mark_words("fever", "fevr"))
    for options, notes in (
        ({"threshold": 1}, ["below_threshold"] * 2),
        ({"threshold": 0, "least_cosine": 1}, [None, "below_threshold"]),
    ):
        own = {"sapbert_linker": options}
        doc = nlp(mark_words("fever", "fevr"), component_cfg=own)
        assert [ent._.link_note for ent in doc.ents] == notes
        assert [ent.kb_id_ == "NIL" for ent in doc.ents] == [
            n is not None for n in notes
        ]
        assert [ent._.cui is None for ent in doc.ents] == [n is not None for n in notes]
        kept = [ent._.candidates for ent in doc.ents]
        assert kept == [ent._.candidates for ent in free.ents]
        assert [len(candidates) for candidates in kept] == [3, 3]
        assert all(0 < candidates[0]["probability"] < 1 for candidates in kept)


def test_linker_saved_and_moved_links_the_same(nlp, own_kb, tmp_path):
    own = make_nlp(own_kb, k=3)
    own.to_disk(tmp_path / "saved")
    (tmp_path / "saved").rename(tmp_path / "moved")
    own_kb.rename(own_kb.with_name("gone"))
    loaded = spacy.load(tmp_path / "moved")
    expected = results(nlp(make_doc(nlp)))
    assert results(loaded(make_doc(loaded))) == expected
    loaded.to_disk(tmp_path / "moved")  # over itself
    again = spacy.load(tmp_path / "moved")
    for other in (again, make_nlp(None, k=3).from_bytes(nlp.to_bytes())):
        assert results(other(make_doc(other))) == expected


def test_linker_from_damaged_bytes_is_an_error(nlp):
    other = spacy.blank("en")
    linker = other.add_pipe("sapbert_linker")
    data = bytearray(nlp.get_pipe("sapbert_linker").to_bytes())
    place = data.index(b"SQLite format 3") + 2000
    data[place] ^= 1
    with pytest.raises(SapbertError, match="concepts.db"):
        linker.from_bytes(bytes(data))


@pytest.mark.parametrize("name", ["/evil", "x//../evil", "C:/evil", "x\\evil"])
def test_linker_from_bytes_with_a_file_outside_is_an_error(nlp, tmp_path, name):
    linker = nlp.get_pipe("sapbert_linker")
    content = srsly.msgpack_loads(linker.to_bytes())
    files = content["kb"]
    outside = name.replace("evil", f"{str(tmp_path)[1:]}/evil")
    meta = json.loads(files["meta.json"])
    meta["files"][outside] = {"size": 1, "sha256": hashlib.sha256(b"x").hexdigest()}
    meta["digest"] = compute_digest(meta)
    files["meta.json"], files[outside] = json.dumps(meta).encode(), b"x"
    other = spacy.blank("en").add_pipe("sapbert_linker")
    with pytest.raises(SapbertError, match="E304.*no knowledge base has"):
        other.from_bytes(srsly.msgpack_dumps(content))
    assert not list(tmp_path.rglob("evil"))


@pytest.mark.parametrize("reload_seconds", [None, 0])
def test_linker_pickled_finds_later_versions(own_kb, reload_seconds):
    config = {"kb": str(own_kb), "reload_seconds": reload_seconds}
    linker: Any = spacy.blank("en").add_pipe("sapbert_linker", config=config)
    linker.kb.link(["fever"])
    copies = [pickle.loads(pickle.dumps(linker)) for _ in range(2)]
    assert copies[0].kb.manifest == linker.kb.manifest
    add_concepts(load_kb(own_kb), [Concept("L1", ["ward one"])])
    if reload_seconds is None:
        assert copies[0].reload()
    doc = mark_words("ward one")
    assert copies[0](doc).ents[0]._.cui == "L1"
    if reload_seconds is not None:  # the version is gone, and a later one is as good
        assert copies[1](doc).ents[0]._.cui == "L1"
    again = pickle.loads(pickle.dumps(copies[0]))
    assert again.kb.manifest == copies[0].kb.manifest


def test_linker_of_spans_at_one_place_with_different_links_warns(sample_kb):
    types = {"A": ["T047"], "B": ["T184"]}
    nlp = make_nlp(sample_kb, spans_key="sc", label_types=types)
    doc = Doc(nlp.vocab, words=WORDS)
    doc.spans["sc"] = [Span(doc, 3, 5, "A"), Span(doc, 3, 5, "B")]
    with pytest.warns(UserWarning, match="W559.*'sc'"):
        nlp(doc)
    group = doc.spans["sc"]
    assert [span.kb_id_ for span in group] == ["C0000001", "NIL"]
    assert group.attrs["cui"] == ["C0000001", None]
    assert {span._.cui for span in group} == {None}  # of the last one


def test_linker_sets_the_kb_id_of_the_spans_of_a_group(sample_kb):
    nlp = make_nlp(sample_kb, spans_key="sc", filter={"types": ["T047"]})
    doc = Doc(nlp.vocab, words=WORDS)
    spans = [Span(doc, 3, 5, "A", span_id="x"), Span(doc, 3, 5, "B"), Span(doc, 2, 3)]
    doc.spans["sc"] = SpanGroup(doc, name="sc", spans=spans, attrs={"own": 1})
    group = doc.spans["sc"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # W556, of documents without the group
        nlp(doc)
    cuis = doc.spans["sc"].attrs["cui"]
    assert [span.kb_id_ for span in group] == [cui or "NIL" for cui in cuis]
    assert group[0].kb_id_ == "C0000001"
    assert [(span.label_, span.id_) for span in group][:2] == [("A", "x"), ("B", "")]
    assert group.attrs["own"] == 1
    assert group[0]._.cui == "C0000001"
    without = Doc(nlp.vocab, words=WORDS)
    with pytest.warns(UserWarning, match=r"W556.*'sc'.*spans_key.*sapbert_linker"):
        assert "sc" not in nlp(without).spans


def test_linker_warns_if_entities_are_found_behind_it(nlp):
    patterns = [{"label": "X", "pattern": "fever"}]
    nlp.add_pipe("entity_ruler").add_patterns(patterns)
    with pytest.warns(UserWarning, match="W556.*entity_ruler.*before='sapbert_linker'"):
        assert nlp("fever").ents[0]._.cui is None
    nlp.add_pipe("entity_ruler", "first", first=True).add_patterns(patterns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what is found behind it may be for others
        nlp("cough")


def test_displacy_links_to_the_pages_of_concepts(nlp):
    linker = nlp.get_pipe("sapbert_linker")
    doc = mark_words("fever", "頭痛")
    options = {"kb_url_template": linker.kb_url_template}
    shown = displacy.render(nlp(doc), style="ent", options=options, jupyter=False)
    cui = doc.ents[0].kb_id_
    assert re.findall(r'href="(.+?)">(.+?)<', shown) == [
        (f"https://uts.nlm.nih.gov/uts/umls/concept/{cui}", cui),
        ("#", "NIL"),
    ]


def test_linker_score_end_to_end_counts_missed_and_spurious_entities(nlp):
    words = ["MI", "or", "fever", "and", "MI", "in", "MI", "MI", "MI"]
    # right, spurious, missed, wrong id, no gold id or several, NIL on both sides
    ours = {0: "C1", 2: "C4", 6: "C1", 7: "C1", 8: "NIL"}
    theirs = {0: "C1", 4: "C1", 6: "C2", 7: "", 8: "NIL"}
    predicted, gold = (mark_words(*words, ids=ids) for ids in (ours, theirs))
    scores = score_links([Example(predicted, gold)])
    assert scores["nel_e2e_p"] == pytest.approx(1 / 3)
    assert scores["nel_e2e_r"] == pytest.approx(1 / 3)
    assert scores["nel_e2e_f"] == pytest.approx(1 / 3)
    # of the entities that both have
    assert scores["nel_micro_p"] == pytest.approx(1 / 2)
    assert scores["nel_micro_r"] == pytest.approx(1 / 2)
    gold = make_doc(nlp)
    gold[3].ent_kb_id_ = gold[4].ent_kb_id_ = "C0000001"
    gold[6].ent_kb_id_ = "C0000002"
    # one link, which is right, of two mentions
    found = nlp.evaluate([Example(make_doc(nlp), gold)])
    assert found["nel_micro_f"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("ours", ["C1", "NIL"])
def test_entities_without_a_gold_id_count_in_no_score(ours):
    words = ["MI", "and", "fever"]
    right = {0: "C1"}
    with_unknown = (right | {2: ours}, right | {2: ""})
    scores = [
        score_links([Example(*(mark_words(*words, ids=ids) for ids in docs))])
        for docs in ((right, right), with_unknown)
    ]
    assert scores[0] == scores[1]
    assert scores[1]["nel_micro_f"] == scores[1]["nel_e2e_f"] == 1.0


def test_training_does_not_choose_its_best_model_by_the_links(sample_kb):
    nlp = spacy.blank("en")
    nlp.add_pipe("ner")
    nlp.add_pipe("sapbert_linker", config={"kb": str(sample_kb)})
    weights = nlp.config["training"]["score_weights"]
    assert {name for name, weight in weights.items() if weight} == {"ents_f"}
    assert "nel_micro_f" in weights  # listed, so that a config can weigh it


def test_linker_needs_a_kb_only_to_link(monkeypatch, tmp_path):
    monkeypatch.setattr("spacy_sapbert.kb.folder.versions.installed_kbs", dict)
    nlp = spacy.blank("en")
    linker = nlp.add_pipe("sapbert_linker")
    nlp("no entities, no knowledge base needed")
    with pytest.raises(SapbertError, match="E310.*found none"):
        nlp.initialize()
    nlp.to_disk(tmp_path / "saved")  # what one installs later is used
    with pytest.raises(SapbertError, match="E310.*found none"):
        spacy.load(tmp_path / "saved")(make_doc(nlp))
    linker.source = str(tmp_path / "missing")
    with pytest.raises(SapbertError, match="missing"):
        nlp(make_doc(nlp))
    with pytest.raises(SapbertError, match="missing"):
        nlp.to_disk(tmp_path / "other")


def test_linker_open_loads_all_that_links(sample_kb):
    nlp = make_nlp(sample_kb)
    linker: Any = nlp.get_pipe("sapbert_linker")
    assert repr(linker) == f"<SapbertLinker sapbert_linker: {sample_kb}>"
    linker.open()
    assert repr(linker) == f"<SapbertLinker sapbert_linker: {linker.kb}>"
    parts = linker.kb.parts
    assert {"encoder", "index"} <= {*vars(parts)}
    assert "name_index" not in vars(parts)
    nlp.add_pipe("sapbert_mentions").open()
    assert "name_index" in vars(parts)
    linker.filter = {"types": ["T999"]}
    with pytest.raises(SapbertError, match="E332"):
        linker.open()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"k": 0}, "`k` to be from 1"),
        ({"encoder": {"precision": "int8"}}, "precision"),
        ({"label_types": {"a:b": []}}, "E331"),
        ({"cui_attr": "candidates"}, "E331.*candidates` is named twice"),
    ],
)
def test_linker_invalid_setting_is_an_error_with_its_name(config, message):
    with pytest.raises(ValueError, match=message):
        NLP.add_pipe("sapbert_linker", config=config)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"label_types": {"OTHER": ["T999"]}}, "E332.*label_types.*T999"),
        (
            {"label_types": {"OTHER": ["T999"]}, "label_types_use": "evidence"},
            "E332.*label_types.*T999",
        ),
        ({"filter": {"types": ["T999"]}}, "E332.*filter.types.*T999"),
        ({"filter": {"allow": ["C77"]}}, "E470.*filter.allow"),
        ({"source_rank": ["LOCAL"]}, "E332.*source_rank.*LOCAL"),
        ({"codes": ["LOCAL"]}, "E332.*codes.*LOCAL"),
    ],
)
def test_what_the_kb_has_not_is_an_error_of_the_first_text(
    sample_kb, settings, message
):
    """Whatever the text: the label or the evidence may come much later."""
    nlp = make_nlp(sample_kb, **settings)
    for _ in range(2):
        with pytest.raises(SapbertError, match=message):
            nlp(mark_words("..."))
    usual = make_nlp(sample_kb)
    usual(mark_words("..."))
    with pytest.raises(SapbertError, match=message):
        usual(mark_words("..."), component_cfg={"sapbert_linker": settings})


@pytest.mark.parametrize(
    ("lang", "known", "warned"),
    [
        ("fi", ["ENG", "SPA"], True),
        ("en", ["SPA"], True),
        ("es", ["ENG", "SPA"], False),
        ("en", ["ENG", "SPA"], False),
        ("xx", ["SPA"], False),
        ("fi", [], False),
    ],
)
def test_a_language_without_names_is_a_warning_once(
    make_kb, tmp_path, lang, known, warned
):
    languages = dict.fromkeys(known, [0])
    folder = make_kb(tmp_path, [Concept("C1", ["fever"], languages=languages)])
    nlp = spacy.blank(lang)
    nlp.add_pipe("sapbert_mentions", config={"kb": str(folder)})
    nlp.add_pipe("sapbert_linker", config={"kb": str(folder)})
    nlp.get_pipe("sapbert_mentions").kb = nlp.get_pipe("sapbert_linker").kb
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            assert nlp("fever").ents[0]._.cui == "C1"
    found = [str(w.message) for w in caught if "[W562]" in str(w.message)]
    assert len(found) == warned
    assert all(f"{lang!r}" in text and ", ".join(known) in text for text in found)


OTHER_SETTINGS = {
    "k": 3,
    "threshold": 0.25,
    "least_cosine": -0.5,
    "candidate_threshold": 0.25,
    "ambiguous": "nil",
    "tie_evidence": ["source", "label"],
    "source_rank": ["SNOMED CT", "A"],
    "codes": ["SNOMED CT", "A"],
    "label_types_use": "evidence",
    "label_types": {"DISEASE": ["T047"], "Ä.b 1": ["CHEM"]},
    "filter": {"types": ["DISO", "T121"], "deny": ["C1"], "languages": ["ENG"]},
    "batch_size": 7,
    "spans_key": "sc",
    "cui_attr": "other_cui",
    "candidates_attr": "other_candidates",
    "note_attr": "other_note",
    "codes_attr": "other_codes",
    "long_form_attr": None,
    "reload_seconds": 60.0,
    "encoder": {"names_per_pass": 3},
}


def described(linker: Any) -> list[Any]:
    state = {**linker.__dict__}
    for name in ("nlp", "opened", "saved", "source", "scorer", "checked"):
        state.pop(name, None)
    return [state]


def test_linker_settings_round_trip_in_config_and_pipeline(make_kb, tmp_path):
    names: dict[str, Any] = {"languages": {"ENG": [0]}, "sources": {"A": [0]}}
    concept = Concept("C1", ["fever"], types=["T047", "T121"], **names)
    concept.sources["SNOMED CT"] = [0]
    concept.codes.update({"A": ["1"], "SNOMED CT": ["2"]})
    own_kb = make_kb(tmp_path / "kb", [concept])
    assert {*OTHER_SETTINGS, "factory", "kb", "kb_digest", "scorer"} == {*DEFAULTS}
    nlp = spacy.blank("en")
    own = {"kb": str(own_kb), "kb_digest": read_version(own_kb).manifest.digest}
    linker = nlp.add_pipe("sapbert_linker", config={**OTHER_SETTINGS, **own})
    read = Config().from_str(nlp.config.to_str())
    again = spacy.util.load_model_from_config(read)
    nlp.to_disk(tmp_path / "saved")
    for other in (again, spacy.load(tmp_path / "saved")):
        assert described(other.get_pipe("sapbert_linker")) == described(linker)
        kb = {"kb": other.get_pipe("sapbert_linker").source}
        expected = {**nlp.config["components"]["sapbert_linker"], **kb}
        assert other.config["components"]["sapbert_linker"] == expected


def test_linker_uses_the_error_handler(nlp):
    linker = nlp.get_pipe("sapbert_linker")
    failed: list[str] = []
    other = pickle.loads(pickle.dumps(linker))
    other.source, other.opened = "nowhere", None
    other.set_error_handler(lambda name, pipe, docs, error: failed.append(name))
    assert list(other.pipe(iter([make_doc(nlp)]))) == []
    assert failed == ["sapbert_linker"]


@Language.factory("test_linker_first_only", default_config=LINKER_CONFIG)
class FirstOnly(SapbertLinker):
    """Links the first span of each Doc, as the linker that it is made from does."""

    def predict(self, docs: Any, **settings: Any) -> Any:
        nothing = Linked([], "not_first", None)
        links = super().predict(docs, **settings)
        return [[*of_doc[:1], *[nothing] * len(of_doc[1:])] for of_doc in links]


def test_linker_subclass_that_overrides_predict_works(own_kb, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("test_linker_first_only", config={"kb": str(own_kb), "k": 3})
    assert isinstance(complete_pipeline(nlp, detection=False), FirstOnly)
    expected = [
        ("heart attack", "C0000001", None),
        ("MI", "NIL", "not_first"),
        ("...", "NIL", "not_first"),
    ]
    nlp.to_disk(tmp_path / "saved")
    for other in (nlp, spacy.load(tmp_path / "saved")):
        docs = [other(make_doc(other)), *other.pipe([make_doc(other)])]
        for doc in docs:
            assert [(e.text, e.kb_id_, e._.link_note) for e in doc.ents] == expected


@pytest.fixture(scope="module")
def codes_kb(make_kb, tmp_path_factory) -> Path:
    codes = {"ICD10CM": ["R50.9", "R50"], "SNOMEDCT": ["386"], "MSH": ["D005334"]}
    concepts = [Concept("C1", ["Fever"], codes=codes), Concept("C2", ["Headache"])]
    return make_kb(tmp_path_factory.mktemp("codes"), concepts)


def test_codes_are_limited_to_vocabularies_in_their_order(codes_kb):
    nlp = make_nlp(codes_kb, codes=["SNOMEDCT_US", "ICD10CM"])
    nlp.initialize()
    fever, headache, _ = nlp(mark_words("fever", "headache", "...")).ents
    assert [*fever._.codes.items()] == [
        ("SNOMEDCT_US", ["386"]),
        ("ICD10CM", ["R50.9", "R50"]),
    ]
    assert fever._.candidates[0]["codes"] == fever._.codes
    assert headache._.codes == {}
    nlp = make_nlp(codes_kb, codes=["MSH"], spans_key="sc", codes_attr="mesh_codes")
    doc = Doc(nlp.vocab, words=["fever"])
    doc.spans["sc"] = [Span(doc, 0, 1, "X")]
    group = nlp(doc).spans["sc"]
    assert group[0]._.mesh_codes == {"MSH": ["D005334"]}
    assert group.attrs["mesh_codes"] == [{"MSH": ["D005334"]}]
    own = {"sapbert_linker": {"codes": ["MESH"]}}
    group = nlp(doc, component_cfg=own).spans["sc"]
    assert group[0]._.mesh_codes == {"MESH": ["D005334"]}


def test_codes_that_the_kb_has_not_are_an_error_of_each_way_to_link(codes_kb, tmp_path):
    nlp = make_nlp(codes_kb, codes=["RXNORM"])
    with pytest.raises(SapbertError, match="E332.*codes.*ICD10CM, MSH.*RXNORM"):
        nlp(mark_words("fever", "headache", "..."))
    note = tmp_path / "note.txt"
    note.write_text("Fever.", "utf8")
    found = invoke("link", codes_kb, note, "--format", "omop", code=1)
    assert "[E471]" in found.output
    assert "got ICD10CM, MSH, SNOMEDCT" in found.output
