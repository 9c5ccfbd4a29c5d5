"""Options that change after the component was made, and what a saved pipeline uses."""

import errno
import gc
import pickle
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import spacy
import spacy.cli
import typer
from spacy.language import Language
from spacy.tokens import Doc, Span
from thinc.api import Config

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.folder import versions
from spacy_sapbert.kb.folder.publication import draft_version, save_copy
from spacy_sapbert.kb.folder.versions import read_version
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.kb.scispacy_names import LINKER
from spacy_sapbert.vocabularies.concepts import Concept
from tests.pipelines import make_nlp, mark_words

NEW = Concept("L1", ["ward one"])
KB = "components.sapbert_linker.kb"


def test_pipeline_is_not_saved_in_a_version_of_a_knowledge_base(own_kb):
    nlp = make_nlp(own_kb)
    nlp.add_pipe("sapbert_mentions", before="sapbert_linker")
    with pytest.raises(SapbertError, match="E003"):
        nlp.to_disk(own_kb / "v1" / "pipeline")
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
    with pytest.raises(SapbertError, match="E333.*'cui_attr'.*'cui_atr'"):
        linker.cui_atr = "own_cui"
    linker.note_of_mine = "any other attribute"


def settings(nlp: Language, name: str = "sapbert_linker") -> Any:
    return nlp.config["components"][name]


def test_what_is_set_stands_in_the_config_and_what_the_config_has_runs(
    own_kb, tmp_path
):
    """A value of `spacy.load` was ignored if another one had been set before."""
    nlp = make_nlp(own_kb)
    linker: Any = nlp.get_pipe("sapbert_linker")
    linker.k, linker.threshold, linker.batch_size = 3, 0.9, 7
    linker.filter, linker.note_attr = {"deny": ["C0000001"]}, "own_note"
    linker.reload_seconds = 5.0
    expected = {
        "k": 3,
        "threshold": 0.9,
        "batch_size": 7,
        "note_attr": "own_note",
        "reload_seconds": 5.0,
    }
    assert expected.items() <= settings(nlp).items()
    assert settings(nlp)["filter"]["deny"] == ["C0000001"]
    nlp.to_disk(tmp_path / "saved")
    for given, k in ((None, 3), (5, 5), (3, 3)):
        config = {} if given is None else {"components.sapbert_linker.k": given}
        loaded = spacy.load(tmp_path / "saved", config=config)
        assert settings(loaded) == {**settings(nlp), "k": k, "kb": None}
        got: Any = loaded.get_pipe("sapbert_linker")
        assert (got.k, got.threshold, got.note_attr) == (k, 0.9, "own_note")
        assert [len(ent._.candidates) for ent in loaded(mark_words("MI")).ents] == [k]
    name = "components.sapbert_linker.threshold"
    loaded = spacy.load(tmp_path / "saved", config={name: None})
    assert loaded.get_pipe("sapbert_linker").threshold is None
    config = Config().from_str(loaded.config.to_str())
    config["components"]["sapbert_linker"]["kb"] = str(own_kb)
    made = spacy.util.load_model_from_config(config)
    assert made.get_pipe("sapbert_linker").threshold is None


def test_setting_of_a_component_that_was_renamed_or_shared_is_saved(own_kb, tmp_path):
    source = make_nlp(own_kb)
    source.rename_pipe("sapbert_linker", "links")
    linker: Any = source.get_pipe("links")
    linker.k = 2
    assert settings(source, "links")["k"] == 2
    nlp = spacy.blank("en")
    nlp.add_pipe("links", source=source, name="taken")
    linker.k = 1  # two pipelines have it
    nlp.to_disk(tmp_path / "taken")
    loaded = spacy.load(tmp_path / "taken")
    assert loaded.get_pipe("taken").k == settings(loaded, "taken")["k"] == 1
    copy: Any = pickle.loads(pickle.dumps(source))
    copy.get_pipe("links").k = 4
    assert (settings(copy, "links")["k"], settings(source, "links")["k"]) == (4, 1)


def test_loaded_component_has_its_config_and_the_saved_kb(own_kb, other_kb, tmp_path):
    """As spaCy's components have: from_disk and from_bytes bring no config."""
    nlp = make_nlp(other_kb, k=5)
    nlp.to_disk(tmp_path / "saved")
    receiver = make_nlp(None, k=2)
    from_bytes = receiver.from_bytes(nlp.to_bytes())
    assert "L2" in from_bytes.get_pipe("sapbert_linker").kb
    from_disk = make_nlp(None, k=2).from_disk(tmp_path / "saved")
    assert "L2" in from_disk.get_pipe("sapbert_linker").kb
    for loaded in (from_bytes, from_disk):
        assert loaded.get_pipe("sapbert_linker").k == settings(loaded)["k"] == 2
        assert settings(loaded)["kb"] is None
    replaced = make_nlp(own_kb).from_bytes(nlp.to_bytes())
    assert settings(replaced)["kb"] is None  # of the builder, and no longer used
    assert "L2" in replaced.get_pipe("sapbert_linker").kb


def test_saved_pipeline_has_no_path_of_its_builder(own_kb, tmp_path):
    nlp = make_nlp(own_kb)
    nlp.add_pipe("sapbert_mentions", config={"kb": str(own_kb)})
    nlp.config["initialize"]["components"]["sapbert_linker"] = {"kb": str(own_kb)}
    assert settings(nlp)["kb"] == str(own_kb)
    nlp.to_disk(tmp_path / "saved")
    for path in (tmp_path / "saved").rglob("*"):
        assert path.is_dir() or str(own_kb).encode() not in path.read_bytes()
    shutil.move(own_kb, tmp_path / "moved")
    loaded = spacy.load(tmp_path / "saved")
    linker: Any = loaded.get_pipe("sapbert_linker")
    assert loaded.get_pipe("sapbert_mentions").kb is linker.kb
    loaded.initialize()
    assert link(loaded, "Fever") == ["C0000004"]


def test_linker_kb_of_the_config_wins_over_the_saved_one(own_kb, other_kb, tmp_path):
    saved = tmp_path / "saved"
    make_nlp(own_kb).to_disk(saved)
    assert link(spacy.load(saved), "Fever") == ["C0000004"]
    given = spacy.load(saved, config={KB: str(other_kb)})
    assert given.get_pipe("sapbert_linker").kb.folder == other_kb
    config = (saved / "config.cfg").read_text("utf8")
    changed = config.replace("kb = null", f'kb = "{other_kb}"')
    (saved / "config.cfg").write_text(changed)
    assert spacy.load(saved).get_pipe("sapbert_linker").kb.folder == other_kb


def test_initialize_takes_the_kb_of_its_section(own_kb, other_kb, tmp_path):
    """As `spacy train` and `spacy assemble` do."""
    nlp = make_nlp(None)
    nlp.config["initialize"]["components"]["sapbert_linker"] = {"kb": str(own_kb)}
    nlp.initialize()
    assert link(nlp, "Fever") == ["C0000004"]
    assert settings(nlp)["kb"] == str(own_kb)
    config = tmp_path / "config.cfg"
    nlp.config["components"]["sapbert_linker"]["kb"] = None
    nlp.config.to_disk(config)
    text = config.read_text("utf8").replace(f'kb = "{own_kb}"', f'kb = "{other_kb}"', 1)
    config.write_text(text.replace(f'kb = "{own_kb}"', f'kb = "{other_kb}"'))
    (tmp_path / "made").mkdir()
    command = typer.main.get_command(spacy.cli.app)
    made = ["assemble", str(config), str(tmp_path / "made")]
    command(made, standalone_mode=False)
    assert "L2" in spacy.load(tmp_path / "made").get_pipe("sapbert_linker").kb
    with pytest.raises(SapbertError, match="E310"):
        make_nlp(None).get_pipe("sapbert_linker").initialize(kb="nowhere")


@pytest.mark.parametrize("component", ["sapbert_linker", "sapbert_mentions"])
def test_component_with_a_wrong_kb_is_an_error(own_kb, tmp_path, component):
    nlp = make_nlp(own_kb)
    nlp.add_pipe("sapbert_mentions")
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
    with pytest.raises(SapbertError, match="E351"):
        make_nlp(own_kb, kb_digest=old).from_bytes(nlp.to_bytes())
    received = make_nlp(None, kb_digest=settings(nlp)["kb_digest"])
    assert link(received.from_bytes(nlp.to_bytes()), "ward one") == ["L1"]


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
    assert again.saved == again.kb.folder != copy.kb.folder


@pytest.mark.parametrize("name", ["wards", None])
def test_linker_saves_an_installed_kb_by_name(own_kb, tmp_path, monkeypatch, name):
    point = SimpleNamespace(name="wards", load=lambda: own_kb)
    monkeypatch.setattr(versions, "entry_points", lambda group: [point])
    nlp = make_nlp(name)
    expected = link(nlp, "MI", "Fever")
    nlp.to_disk(tmp_path / "saved")
    assert not list((tmp_path / "saved").rglob("concepts.db"))
    saved = Config().from_disk(tmp_path / "saved" / "config.cfg")
    assert saved["components"]["sapbert_linker"]["kb"] == "wards"
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
    linker.reload_seconds = 0
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
    linker.reload_seconds = 0
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


@pytest.mark.parametrize(("name", "instead"), LINKER.items())
def test_an_attribute_of_scispacys_linker_says_what_is_there_instead(
    sample_kb, name, instead
):
    linker: Any = make_nlp(sample_kb).get_pipe("sapbert_linker")
    for use in (getattr, lambda owner, name: setattr(owner, name, True)):
        with pytest.raises(AttributeError, match=rf"^\[E333\].*{name}") as caught:
            use(linker, name)
        assert f"Use {instead}" in str(caught.value)
    with pytest.raises(AttributeError, match="no attribute 'lnk'"):
        linker.lnk  # noqa: B018
    pickle.loads(pickle.dumps(linker))
