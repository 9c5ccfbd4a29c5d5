"""Options that change after the component was made, and what a saved pipeline uses."""

import errno
import gc
import json
import pickle
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.folder import versions
from spacy_sapbert.kb.folder.publication import draft_version, save_copy
from spacy_sapbert.kb.folder.versions import read_version
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.vocabularies.concepts import Concept
from tests.pipelines import make_nlp, mark_words

NEW = Concept("L1", ["ward one"])
KB = "components.sapbert_linker.kb"


def test_components_are_not_saved_in_a_version_of_a_knowledge_base(own_kb):
    nlp = make_nlp(own_kb)
    nlp.add_pipe("sapbert_mentions", before="sapbert_linker")
    folder = own_kb / "v1" / "pipeline"
    for name in nlp.pipe_names:
        with pytest.raises(SapbertError, match="E003"):
            nlp.get_pipe(name).to_disk(folder / name, exclude=["kb"])  # type: ignore[attr-defined]
    with pytest.raises(SapbertError, match="E003"):
        nlp.to_disk(folder)
    assert not [*folder.rglob("settings.json")]
    load_kb(own_kb)


def link(nlp: Language, *words: str) -> list[str | None]:
    return [ent._.cui for ent in nlp(mark_words(*words)).ents]


@pytest.fixture
def other_kb(own_kb, tmp_path) -> Path:
    """The same knowledge base with one more concept."""
    other = tmp_path / "other"
    shutil.copytree(own_kb, other)
    add_concepts(load_kb(other), [Concept("L2", ["Fever"])])
    return other


def test_linker_options_are_properties(sample_kb):
    nlp = make_nlp(sample_kb)
    linker: Any = nlp.get_pipe("sapbert_linker")
    assert (linker.k, linker.threshold) == (10, None)
    linker.k, linker.filter = 1, {"deny": ["C0000001"]}
    assert link(nlp, "MI") == ["C0000002"]
    for name, value in (("k", 0), ("filter", {"typo": []})):
        with pytest.raises(SapbertError):
            setattr(linker, name, value)
    with pytest.raises(SapbertError, match="E333.*'threshold'.*'treshold'"):
        linker.treshold = 0.8  # it would be a new attribute, and change nothing
    linker.note_of_mine = "any other attribute"


@pytest.mark.parametrize("how", ["disk", "bytes"])
def test_linker_loaded_into_a_pipeline_of_other_settings_is_the_saved_one(
    own_kb, other_kb, tmp_path, how
):
    """As spaCy does it; what was not set when it was saved is restored too."""
    nlp = make_nlp(own_kb, cui_attr="own_cui")
    Span.remove_extension("own_cui")  # as in another process
    linker: Any = nlp.get_pipe("sapbert_linker")
    linker.k, linker.filter = 5, {"deny": ["C0000001"]}
    linker.batch_size, linker.long_form_attr = 7, "own_long_form"
    others = {"k": 3, "threshold": 0.9, "label_types": {"X": ["T047"]}}
    other = make_nlp(other_kb, **others, kb_digest=load_kb(other_kb).manifest.digest)
    copy: Any = other.get_pipe("sapbert_linker")
    if how == "bytes":
        other.from_bytes(nlp.to_bytes())
    else:
        nlp.to_disk(tmp_path / "saved")
        other.from_disk(tmp_path / "saved")
    assert copy.options == linker.options
    assert copy.opened.pin is None
    assert (copy.batch_size, copy.long_form_attr) == (7, "own_long_form")
    for loaded in (nlp, other):
        found = [ent._.own_cui for ent in loaded(mark_words("Fever", "MI")).ents]
        assert found == ["C0000004", "C0000002"]
    assert "L2" not in copy.kb


def test_linker_kb_of_the_config_wins_over_the_saved_one(own_kb, other_kb, tmp_path):
    saved = tmp_path / "saved"
    make_nlp(own_kb).to_disk(saved)
    assert link(spacy.load(saved), "Fever") == ["C0000004"]
    given = spacy.load(saved, config={KB: str(other_kb), KB + "_digest": None})
    assert given.get_pipe("sapbert_linker").kb.folder == other_kb
    config = (saved / "config.cfg").read_text("utf8")
    (saved / "config.cfg").write_text(config.replace(str(own_kb), str(other_kb)))
    assert spacy.load(saved).get_pipe("sapbert_linker").kb.folder == other_kb


@pytest.mark.parametrize("component", ["sapbert_linker", "sapbert_mentions"])
def test_component_with_damaged_settings_or_a_wrong_kb_is_an_error(
    own_kb, tmp_path, component
):
    saved = tmp_path / "saved"
    nlp = make_nlp(own_kb)
    nlp.add_pipe("sapbert_mentions")
    nlp.to_disk(saved)
    for content in ("{", '{"label": "X"}'):
        (saved / component / "settings.json").write_text(content)
        with pytest.raises(SapbertError, match="E553.*settings.json"):
            spacy.load(saved)
    (tmp_path / "empty").mkdir()
    nlp.to_disk(tmp_path / "bare", exclude=[component])
    for kb, code in (("nowhere", "E310"), ("empty", "E303")):
        config = {"kb": str(tmp_path / kb)}
        with pytest.raises(SapbertError, match=code):
            spacy.blank("en").add_pipe(component, config=config)
        with pytest.raises(SapbertError, match=code):
            spacy.load(tmp_path / "bare", config={"components": {component: config}})


def test_relative_kb_is_found_after_the_working_directory_has_changed(
    own_kb, tmp_path, monkeypatch
):
    monkeypatch.chdir(own_kb.parent)
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_mentions", config={"kb": own_kb.name})
    nlp.add_pipe("sapbert_linker", config={"kb": own_kb.name})
    monkeypatch.chdir(tmp_path)
    assert nlp("fever").ents[0]._.cui == "C0000004"
    nlp.to_disk(tmp_path / "saved")
    loaded = spacy.load(tmp_path / "saved")
    assert loaded.get_pipe("sapbert_linker").kb.folder.is_relative_to(tmp_path)
    assert loaded("fever").ents[0]._.cui == "C0000004"


def test_linker_pinned_and_edited_is_loaded_as_it_was_saved(own_kb, tmp_path):
    old = read_version(own_kb).manifest.digest
    nlp = make_nlp(own_kb, kb_digest=old)
    linker: Any = nlp.get_pipe("sapbert_linker")
    linker.kb = add_concepts(linker.kb, [NEW])
    nlp.to_disk(tmp_path / "saved")
    loaded = spacy.load(tmp_path / "saved")
    assert link(loaded, "ward one") == ["L1"]
    loaded.to_disk(tmp_path / "again")
    assert link(spacy.load(tmp_path / "again"), "ward one") == ["L1"]
    digest = "components.sapbert_linker.kb_digest"
    with pytest.raises(SapbertError, match="E351"):
        link(spacy.load(tmp_path / "saved", config={digest: "0" * 64}), "ward one")
    free = spacy.load(tmp_path / "saved", config={digest: None})
    assert link(free, "ward one") == ["L1"]
    received = make_nlp(own_kb, kb_digest=old).from_bytes(nlp.to_bytes())
    assert link(received, "ward one") == ["L1"]


def test_linker_from_bytes_that_is_pickled_outlives_the_process(own_kb):
    nlp = make_nlp(None).from_bytes(make_nlp(own_kb).to_bytes())
    linker: Any = nlp.get_pipe("sapbert_linker")
    linker.kb = add_concepts(linker.kb, [NEW])
    data = pickle.dumps(linker)
    folder = linker.kb.folder
    del nlp, linker
    gc.collect()
    assert not folder.exists()  # as if the process had ended
    copy = pickle.loads(data)
    assert copy.kb.link(["ward one"])[0].cui == "L1"
    copy.kb = add_concepts(copy.kb, [Concept("L9", ["ward nine"])])
    again = pickle.loads(pickle.dumps(copy))
    assert again.kb.link(["ward nine"])[0].cui == "L9"
    assert again.opened.source == again.kb.folder != copy.kb.folder


@pytest.mark.parametrize("name", ["wards", None])
def test_linker_saves_an_installed_kb_by_name(own_kb, tmp_path, monkeypatch, name):
    point = SimpleNamespace(name="wards", load=lambda: own_kb)
    monkeypatch.setattr(versions, "entry_points", lambda group: [point])
    nlp = make_nlp(name)
    expected = link(nlp, "MI", "Fever")
    nlp.to_disk(tmp_path / "saved")
    assert not list((tmp_path / "saved").rglob("concepts.db"))
    saved = tmp_path / "saved" / "sapbert_linker" / "settings.json"
    data = json.loads(saved.read_text())
    assert [data["config"]["kb"], data["settings"]["kb"]] == [name, "wards"]
    assert link(spacy.load(tmp_path / "saved"), "MI", "Fever") == expected
    assert len(nlp.to_bytes()) < 100_000
    monkeypatch.setattr(versions, "entry_points", lambda group: [])
    with pytest.raises(SapbertError, match="E310.*wards"):
        link(spacy.load(tmp_path / "saved"), "MI")


def test_linker_taken_from_another_pipeline_keeps_its_kb(own_kb, other_kb, tmp_path):
    source = make_nlp(own_kb)
    source.get_pipe("sapbert_linker").kb = other_kb
    source.to_disk(tmp_path / "source")
    source = spacy.load(tmp_path / "source")
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_linker", source=source)
    del source
    assert link(nlp, "Fever") == [None]  # two of its concepts are called so
    assert "L2" in nlp.get_pipe("sapbert_linker").kb
    nlp.to_disk(tmp_path / "taken")
    assert "L2" in spacy.load(tmp_path / "taken").get_pipe("sapbert_linker").kb


def test_linker_reload_opens_a_new_version_and_keeps_it_if_a_later_one_is_damaged(
    own_kb,
):
    nlp = make_nlp(own_kb)
    linker: Any = nlp.get_pipe("sapbert_linker")
    before = link(nlp, "ward one")
    assert not linker.reload()
    add_concepts(load_kb(own_kb), [NEW])
    assert link(nlp, "ward one") == before != ["L1"]
    assert linker.reload()
    assert link(nlp, "ward one") == ["L1"]
    pinned: Any = make_nlp(own_kb, kb_digest=linker.kb.manifest.digest)
    opened = pinned.get_pipe("sapbert_linker").kb
    linker.opened.reload_seconds = 0
    add_concepts(load_kb(own_kb), [Concept("L3", ["three"])])
    assert link(nlp, "three") == ["L3"]
    with pytest.raises(SapbertError, match="E351"):
        pinned.get_pipe("sapbert_linker").reload()
    assert pinned.get_pipe("sapbert_linker").kb is opened
    (own_kb / "v3" / "meta.json").write_text("{}")
    with pytest.warns(UserWarning, match="W554.*E304"):
        assert link(nlp, "three") == ["L3"]


def damage_index(folder: Path) -> None:
    """Publish a version whose index has the digest in meta.json, but no content."""
    version = read_version(folder)
    kept = version.keep(overlay=True)
    del kept["index.hnsw"]
    with draft_version(folder) as draft:
        (draft.path / "index.hnsw").write_bytes(b"no index")
        draft.describe(version.manifest, kept)
        draft.publish()


@pytest.mark.parametrize("missing", ["index", "room", "export"])
def test_linker_reload_that_fails_keeps_what_is_open(
    other_encoder_kb, sample_kb, exported_kb, missing, tmp_path, monkeypatch
):
    first = {"index": sample_kb, "export": exported_kb}.get(missing, other_encoder_kb)
    folder = Path(shutil.copytree(first, tmp_path / "kb"))
    config: dict[str, Any] = {}
    if missing == "export":
        engine = "spacy-sapbert.OnnxEncoder.v1"
        config = {"encoder": {"@architectures": engine}}
    nlp = make_nlp(folder, **config)
    before = link(nlp, "feverish", "MI")
    if missing == "index":
        damage_index(folder)
    else:
        save_copy(load_kb(sample_kb).version, folder)  # which has no export
    if missing == "room":
        refusal = OSError(errno.ENOMEM, "Cannot allocate memory")
        monkeypatch.setattr(np, "memmap", Mock(side_effect=refusal))
    linker: Any = nlp.get_pipe("sapbert_linker")
    opened = linker.kb
    with pytest.raises((SapbertError, OSError)):
        linker.reload()
    assert linker.kb is opened
    linker.opened.reload_seconds = 0
    linker.kb.clear_cache()
    with pytest.warns(UserWarning, match="W554"):
        assert link(nlp, "feverish", "MI") == before


def test_analyze_pipes_has_all_attributes_and_two_linkers_are_a_warning(sample_kb):
    nlp = make_nlp(sample_kb)
    assigned = nlp.analyze_pipes()["attrs"]
    assert assigned["span._.link_note"]["assigns"] == ["sapbert_linker"]
    second = {"kb": str(sample_kb), "note_attr": "second_note"}
    with pytest.warns(UserWarning, match="W553.*both write candidates, codes, cui"):
        nlp.add_pipe("sapbert_linker", name="second", config=second)


@pytest.fixture(scope="module")
def two_languages(make_kb, tmp_path_factory) -> Path:
    """ "ih" is Spanish for heart failure, and of no known language for a clinic."""
    concepts = [
        Concept("C1", ["heart failure", "ih"], languages={"ENG": [0], "SPA": [1]}),
        Concept("C2", ["intensive care"], languages={"ENG": [0]}),
        Concept("C3", ["clinic x"]),
    ]
    return make_kb(tmp_path_factory.mktemp("languages"), concepts)


@pytest.mark.parametrize(
    ("lang", "filter", "expected"),
    [
        ("en", {}, {"heart failure", "intensive care", "clinic x"}),
        ("en", {"languages": ["SPA"]}, {"ih"}),
    ],
)
def test_linker_uses_names_in_the_language_of_the_document(
    two_languages, lang, filter, expected
):
    nlp = spacy.blank(lang)
    nlp.add_pipe("sapbert_linker", config={"kb": str(two_languages), "filter": filter})
    doc = Doc(nlp.vocab, words=["ih", "clinic"])
    doc.ents = [Span(doc, 0, 1, "X")]
    assert {c["alias"] for c in nlp(doc).ents[0]._.candidates} == expected
    # In a batch, each document has a language of its own.
    other = Doc(spacy.blank("de" if lang == "xx" else "xx").vocab, words=["ih"])
    other.ents = [Span(other, 0, 1, "X")]
    *_, last = nlp.get_pipe("sapbert_linker").pipe([other, doc])
    assert {c["alias"] for c in last.ents[0]._.candidates} == expected


def test_mentions_finds_names_in_the_language_of_the_document(two_languages):
    # Plurals of English names are found in any document.
    for lang, expected in {"en": [], "es": ["IH"]}.items():
        nlp = spacy.blank(lang)
        config = {"kb": str(two_languages), "min_length": 2}
        nlp.add_pipe("sapbert_mentions", config=config)
        found = [ent.text for ent in nlp("IH, heart failures").ents]
        assert found == [*expected, "heart failures"]
