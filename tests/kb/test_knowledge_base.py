"""Opening, mapping and linking; vectors of texts, and the cache of results."""

import copy
import os
import pickle
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.encoder.encoder import Encoder
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.edits.change import remove_concepts
from spacy_sapbert.kb.folder.records import Recall
from spacy_sapbert.kb.folder.versions import find_kb
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.kb.parts import embed_in_parts
from spacy_sapbert.kb.probe import choose_rows, drop_letter, measure_recall, probe_kb
from spacy_sapbert.kb.scispacy_names import KNOWLEDGE_BASE, LINKER
from spacy_sapbert.vocabularies.concepts import Concept


def test_link_finds_every_name_of_the_kb(sample_kb, few_concepts, encoded):
    kb = load_kb(sample_kb)
    for concept in few_concepts:
        for alias in concept.aliases:
            candidates, note, _ = kb.link([alias])[0]
            if alias == "頭痛":
                assert (candidates, note) == ([], "empty")
                continue
            best = [c["cui"] for c in candidates if c["score"] == 1]
            assert concept.cui in best
    encoded.clear()  # Texts that have the tokens of a name are not encoded.
    (linked,) = kb.link(["mi"], k=8)
    assert sum(encoded) == 0
    first = linked.candidates[0]
    assert 0 < first["probability"] <= 1
    assert first == {
        "cui": "C0000001",
        "name": "Myocardial infarction",
        "alias": "MI",
        "score": 1.0,
        "rank": 1,
        "types": ["T047"],
        "codes": {"ICD10CM": ["I21"]},
        "tie": "id",
        "probability": first["probability"],
    }
    assert kb.link(["", " ", "?!", "頭"]) == [([], "empty", None)] * 4


def test_names_are_found_before_the_encoder_is_waited_for(sample_kb, monkeypatch):
    taken: list[Any] = []
    encode = Encoder.encode_passes

    @contextmanager
    def watch(encoder: Encoder, token_ids: Any) -> Any:
        with encode(encoder, token_ids) as passes:
            yield (taken.append(names) or (names, found) for names, found in passes)

    monkeypatch.setattr(Encoder, "encode_passes", watch)
    texts, parts = ["fever", "no name", "MI"], load_kb(sample_kb).parts
    found = embed_in_parts(parts, texts, needed={"no name"})
    assert next(found)[0] == [0, 2]
    assert not taken
    assert [numbers for numbers, _ in found] == [[1]]


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def flip_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def garble(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[64:576] = os.urandom(512)
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [truncate, flip_bit, garble, Path.unlink])
def test_load_kb_damaged_file_is_an_error(own_kb, damage):
    for path in (p for p in (own_kb / "v1").rglob("*") if p.is_file()):
        content = path.read_bytes()
        damage(path)
        with pytest.raises(SapbertError, match=r"\[E30[346]\]"):
            load_kb(own_kb)
        path.write_bytes(content)
    unknown = own_kb / "v1" / "encoder" / "adapter_config.json"
    unknown.write_text("{}", "utf8")
    with pytest.raises(SapbertError, match="was not there then"):
        load_kb(own_kb)
    unknown.unlink()
    load_kb(own_kb)
    (own_kb / "v1" / "concepts.db").unlink()
    os.mkfifo(own_kb / "v1" / "concepts.db")
    with pytest.raises(SapbertError, match="E306.*not a plain file"):
        load_kb(own_kb)
    for name in ("v1/meta.json", "CURRENT"):
        (own_kb / name).unlink()
        os.mkfifo(own_kb / name)
        with pytest.raises(SapbertError, match=f"E304.*{name}.*not a plain file"):
            load_kb(own_kb)


def test_load_kb_missing_folder_is_an_error(tmp_path, monkeypatch):
    with pytest.raises(SapbertError, match="'nowhere', but found neither"):
        find_kb("nowhere")
    with pytest.raises(SapbertError, match=r"no CURRENT.*kb build"):
        load_kb(tmp_path)
    monkeypatch.setattr(
        "spacy_sapbert.kb.folder.versions.installed_kbs", lambda: {"a": 1, "b": 2}
    )
    with pytest.raises(SapbertError, match="found a, b"):
        find_kb()


def test_names_of_many_concepts_are_found_as_by_exact_search(make_kb, tmp_path):
    """They are one row; as many equal vectors, they would crowd out others."""
    colours = ["red", "green", "blue", "black", "white", "brown", "grey"]
    shared = [f"{one} {two}" for one in colours for two in ("fever", "ache", "rash")]
    concepts = [
        Concept(f"C{n:03}", [f"disease {n}", *shared[n % 3 :: 3]]) for n in range(300)
    ]
    found: list[np.ndarray] = []
    for backend in ("hnsw", "exact"):
        (tmp_path / backend).mkdir()
        kb = load_kb(
            make_kb(tmp_path / backend, concepts, backend=backend, order="none")
        )
        assert kb.rows == 300 + len(shared)
        vectors = kb.embed([f"{name} of the ward" for name in shared]).vectors
        found.append(kb.search(vectors, 20)[1])
    assert np.mean(found[0] >= found[1][:, -1:] - 1e-4) > 0.98
    ranked = kb.link([f"{shared[0]} x"], k=150, threshold=0)[0].candidates
    assert len(ranked) == 150


def test_rows_and_names_that_are_probed(sample_kb, make_kb, tmp_path):
    names = {"heart attack": "heart attck", "ab cd": "a cd", "x": "", "a bcde": "a bce"}
    assert {name: drop_letter(name) for name in names} == names
    kb = load_kb(sample_kb)
    assert choose_rows(kb, 5).tolist() == [0, 5, 10, 15, 20]
    assert choose_rows(kb, 99).tolist() == [*range(21)]
    assert probe_kb(kb) == (1.0, 1.0)
    assert measure_recall(kb) == Recall(queries=21, at_1=1.0, at_10=1.0)
    few = [Concept("C1", [*"abcdefghi", "頭"]), Concept("C2", ["x"])]
    kb = load_kb(make_kb(tmp_path, few))
    assert kb.manifest.recall is None
    kb = remove_concepts(kb, ["C1"])  # most of the rows
    assert [kb.entries([row])[row][0].cui for row in choose_rows(kb, 99)] == ["C2"]
    assert probe_kb(kb) == (1.0, 1.0)
    assert probe_kb(remove_concepts(kb, ["C2"])) == (1.0, 1.0)


def test_kb_is_a_mapping_of_concepts(sample_kb):
    kb = load_kb(sample_kb)
    assert len(kb) == kb.manifest.counts.concepts == len(list(kb))
    assert [*kb.keys()] == [concept.cui for concept in kb.values()]
    assert kb.get("C0000001").canonical_name == "Myocardial infarction"
    assert kb.get("nothing") is None
    assert "\ud800" not in kb  # which is not UTF-8
    assert "C9999999" in kb  # retired
    assert "C9999999" not in set(kb)
    with pytest.raises(KeyError, match="E336") as caught:
        kb["nothing"]
    assert isinstance(caught.value, SapbertError)
    assert kb.cui_to_entity["C0000001"].cui == "C0000001"
    assert kb != load_kb(sample_kb)
    others = [kb.other_prefix(cui) for cui in ("MESH:C0000001", "C0000001", "X1")]
    assert others == ["C0000001", None, None]


def test_kb_link_accepts_lists_and_arrays_and_no_other_texts(sample_kb):
    kb, texts, labels = load_kb(sample_kb), ["fever", "MI"], ["X", "Y"]
    found = kb.link(texts, labels=np.array(labels), documents=np.arange(2))
    assert found == kb.link(tuple(texts), labels=labels, documents=[0, 1])
    assert kb.link(np.array(texts)) == kb.link(texts)
    assert kb.link([], labels=np.array([]), documents=np.array([])) == []
    wrong: Any
    for wrong, some, got in (
        ("heart attack", None, "a str"),
        (["MI", None], None, "a NoneType"),
        (texts, ["X"], "2 mentions and 1 labels"),
    ):
        with pytest.raises(SapbertError, match=f"E359.*{got}"):
            kb.link(wrong, labels=some)


def test_embed_encodes_equal_tokens_once_and_says_what_it_cannot_read(
    sample_kb, encoded
):
    kb = load_kb(sample_kb)
    vectors = kb.embed(["a chill", "A  CHILL", "chills", "fever"]).vectors
    assert encoded == [2]
    assert np.array_equal(vectors[0], vectors[1])
    assert not np.allclose(vectors[0], vectors[2])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(4), abs=1e-5)
    embedded = kb.embed(["fever", "頭痛", "", "fever " * 30, "x y " * 1500])
    assert embedded.readable.tolist() == [True, False, False, True, True]
    assert embedded.usable.tolist() == [True, False, False, True, True]
    assert embedded.truncated.tolist() == [False, False, False, True, True]
    assert not embedded.vectors[1:3].any()
    embedded.vectors[0], embedded.vectors[3] = np.nan, 0  # not usable either
    assert embedded.usable.tolist() == [False, False, False, False, True]
    assert kb.embed([]).vectors.shape == (0, 32)


MENTIONS = ["heart atack", "Fever", "mi", "febril", "pain of the heart", "?", "fever"]


def test_link_of_the_cache_is_a_new_one_that_its_caller_may_change(sample_kb):
    settings: Any = {"threshold": 0.99, "filter": {"types": ["T047"]}}
    fresh = [load_kb(sample_kb).link([m], **settings)[0] for m in MENTIONS]
    kb = load_kb(sample_kb)
    for _ in range(2):
        links = [kb.link([m], **settings)[0] for m in MENTIONS]
        assert links == fresh
        candidate = links[0].candidates[0]
        candidate["codes"].setdefault("ICD10CM", []).append("changed")
        candidate["types"].append("changed")
    assert kb.searcher.results.values
    kb.clear_cache()
    assert not kb.searcher.results.values


def test_notebooks_show_a_concept_and_a_link_as_html(sample_kb):
    concept = Concept("C<1>", ["A & B", "n"], types=["T047"], definition="x > y")
    expected = "<b>C&lt;1&gt; A &amp; B</b><br>n<br>T047<br>x &gt; y"
    assert concept._repr_html_() == expected
    linked, nothing = load_kb(sample_kb).link(["fever", ""])
    assert linked._repr_html_().count("<tr>") == 1 + len(linked.candidates)
    assert nothing._repr_html_().startswith("<b>NIL (empty)</b>")


@pytest.mark.parametrize(("name", "instead"), KNOWLEDGE_BASE.items())
def test_an_attribute_of_scispacy_says_what_is_there_instead(sample_kb, name, instead):
    kb = load_kb(sample_kb)
    with pytest.raises(AttributeError, match=rf"^\[E333\].*{name}") as caught:
        getattr(kb, name)
    assert f"Use {instead}" in str(caught.value)
    assert not hasattr(kb, name)


def test_a_wrong_attribute_is_the_usual_error(sample_kb):
    kb = load_kb(sample_kb)
    with pytest.raises(AttributeError, match="'KnowledgeBase' object has no.*'lnk'"):
        kb.lnk  # noqa: B018
    assert len(pickle.loads(pickle.dumps(kb))) == len(copy.copy(kb)) == len(kb)


def test_attributes_of_scispacy_are_those_of_the_page():
    page = Path(__file__).parents[2] / "docs" / "migration.md"
    table = page.read_text("utf8").partition("## QuickUMLS")[0]
    assert [n for n in LINKER | KNOWLEDGE_BASE if n not in table] == []
