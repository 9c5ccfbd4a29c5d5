import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.cli.kb.description import describe_manifest
from spacy_sapbert.encoder.encoder import Encoder
from spacy_sapbert.encoder.huggingface import (
    EncoderSettings,
    load_encoder,
    save_encoder,
)
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.building.build import build_kb
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.folder.versions import find_kb
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.vocabularies.concepts import Concept
from tests.building import build_small_kb
from tests.commands import invoke

FILES = ["meta.json", "concepts.db", "index.hnsw", "encoder/model.safetensors"]


def test_knowledge_base_has_counts_and_settings(sample_kb: Path) -> None:
    manifest = load_kb(sample_kb).manifest
    # FEVER and Fever are one row, both MI are one row, and 頭痛 cannot be read.
    counts = {"concepts": 8, "aliases": 24, "rows": 21, "unreadable": 1}
    assert manifest.counts.model_dump() == counts
    assert manifest.encoder.pooling == "mean"
    assert ("Concepts", "8") in describe_manifest(manifest)


def test_link_finds_every_name_of_the_kb(
    sample_kb: Path, few_concepts: list[Concept]
) -> None:
    kb = load_kb(sample_kb)
    for concept in few_concepts:
        for alias in concept.aliases:
            candidates, note, _ = kb.link([alias])[0]
            if alias == "頭痛":
                assert (candidates, note) == ([], "empty")
                continue
            best = [c["cui"] for c in candidates if c["score"] == 1]
            assert concept.cui in best


def test_link_returns_distinct_concepts_in_order(sample_kb: Path) -> None:
    candidates, note, cui = load_kb(sample_kb).link(["MI"], k=8)[0]
    assert (note, cui) == (None, "C0000001")
    assert len({candidate["cui"] for candidate in candidates}) == 8
    assert [each["cui"] for each in candidates[:2]] == ["C0000001", "C0000002"]
    assert candidates[0] == {
        "cui": "C0000001",
        "name": "Myocardial infarction",
        "alias": "MI",
        "score": 1.0,
        "rank": 1,
        "types": ["T047"],
        "codes": {"ICD10CM": ["I21"]},
        "tie": "id",
        "probability": None,
    }
    scores = [candidate["score"] for candidate in candidates]
    assert scores == sorted(scores, reverse=True)


def test_link_equals_exact_search_over_plain_vectors(
    sample_kb: Path, few_concepts: list[Concept], tiny_encoder: Path
) -> None:
    encoder = Encoder.open(tiny_encoder)
    mention = encoder.embed(["febrile headache"])[0]
    best = {}
    for concept in few_concepts:
        vectors = encoder.embed([a for a in concept.aliases if a != "頭痛"])
        best[concept.cui] = float((vectors @ mention).max())
    candidates = load_kb(sample_kb).link(["febrile headache"], k=8)[0].candidates
    assert {c["cui"]: c["score"] for c in candidates} == pytest.approx(best, abs=6e-5)


def test_link_does_not_depend_on_vectors_from_the_index(
    sample_kb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mentions = ["MI", "Pyrexia", "heart atack"]
    with_it = load_kb(sample_kb).link(mentions)
    kb = load_kb(sample_kb)
    monkeypatch.setattr(kb.store, "rows_of_keys", lambda keys: {})
    assert kb.link(mentions) == with_it


def test_link_encodes_no_name_of_the_kb(sample_kb: Path, encoded: list[int]) -> None:
    load_kb(sample_kb).link(["fever", "FEVER", "mi"])
    assert sum(encoded) == 0


def test_link_notes_why_there_is_no_concept(sample_kb: Path) -> None:
    linked = load_kb(sample_kb).link(["", " ", "?!", "頭"])
    assert linked == [([], "empty", None)] * 4


def test_load_kb_from_another_folder_links_the_same_in_a_new_process(
    sample_kb: Path, tmp_path: Path, new_process: Any
) -> None:
    moved = Path(shutil.copytree(sample_kb, tmp_path / "with a blank and é" / "kb"))
    code = (
        "import socket, sys, json\n"
        "def refuse(*args, **kwargs): raise OSError('no network')\n"
        "socket.socket.connect = refuse\n"
        "from spacy_sapbert import load_kb\n"
        "print(json.dumps(load_kb(sys.argv[1]).link(['heart atack', 'MI'])))\n"
    )
    outputs = [new_process.python(code, folder).stdout for folder in (sample_kb, moved)]
    assert outputs[0] == outputs[1]
    expected = load_kb(sample_kb).link(["heart atack", "MI"])
    assert json.loads(outputs[0]) == json.loads(json.dumps(expected))


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


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", [truncate, flip_bit, garble, Path.unlink])
def test_load_kb_damaged_file_is_an_error(
    own_kb: Path, name: str, damage: Callable[[Path], None]
) -> None:
    damage(own_kb / "v1" / name)
    with pytest.raises(SapbertError, match=r"\[E30[346]\]"):
        load_kb(own_kb)


def test_load_kb_index_of_another_kb_is_an_error(
    own_kb: Path, make_kb: Callable[..., Path], tmp_path: Path
) -> None:
    other = make_kb(tmp_path, [Concept("C1", ["a", "b"])])
    shutil.copy(other / "v1" / "index.hnsw", own_kb / "v1" / "index.hnsw")
    with pytest.raises(SapbertError, match=r"index.hnsw .*bytes and not"):
        load_kb(own_kb)


def test_load_kb_other_encoder_is_an_error(own_kb: Path) -> None:
    import torch

    tokenizer, model = load_encoder(str(own_kb / "v1" / "encoder"))
    with torch.no_grad():
        next(model.parameters()).add_(1)
    save_encoder(own_kb / "v1" / "encoder", tokenizer, model, EncoderSettings("mean"))
    with pytest.raises(SapbertError, match=r"model.safetensors .* sha256"):
        load_kb(own_kb)


def test_load_kb_unknown_file_in_the_encoder_is_an_error(own_kb: Path) -> None:
    (own_kb / "v1" / "encoder" / "adapter_config.json").write_text("{}", "utf8")
    with pytest.raises(SapbertError, match="was not there then"):
        load_kb(own_kb)


def test_load_kb_missing_folder_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spacy_sapbert.kb.folder.versions.installed_kbs", dict)
    with pytest.raises(SapbertError, match="E310.*found none"):
        find_kb()
    with pytest.raises(SapbertError, match="'nowhere', but found neither"):
        find_kb("nowhere")
    with pytest.raises(SapbertError, match=r"no CURRENT.*kb build"):
        load_kb(tmp_path)
    monkeypatch.setattr(
        "spacy_sapbert.kb.folder.versions.installed_kbs", lambda: {"a": 1, "b": 2}
    )
    with pytest.raises(SapbertError, match="found a, b"):
        find_kb()


def test_names_of_many_concepts_are_found_as_by_exact_search(
    make_kb: Callable[..., Path], tmp_path: Path
) -> None:
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
    ranked = kb.link([f"{shared[0]} x"], k=150, threshold=-1)[0].candidates
    assert len(ranked) == 150


def test_build_kb_twice_writes_the_same_bytes(
    concepts_file: Path, tiny_encoder: Path, sample_kb: Path, tmp_path: Path
) -> None:
    build = {"backend": "hnsw", "threads": 1, "engine": "torch"}
    build_kb(concepts_file, tmp_path / "kb", str(tiny_encoder), **build)
    for path in sorted(sample_kb.rglob("[!.]*")):
        if path.is_file():
            again = tmp_path / "kb" / path.relative_to(sample_kb)
            assert path.read_bytes() == again.read_bytes(), path.name


def test_build_kb_without_readable_names_is_an_error(
    make_kb: Callable[..., Path], tmp_path: Path
) -> None:
    with pytest.raises(SapbertError, match="1 concepts"):
        make_kb(tmp_path, [Concept("C1", ["頭痛"])])
    assert not (tmp_path / "kb").exists()


def test_build_kb_without_concepts_is_an_error(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    with pytest.raises(SapbertError, match="found none"):
        build_small_kb(tmp_path / "no.jsonl", tmp_path / "kb", tiny_encoder)


def test_kb_is_a_mapping_of_concepts(sample_kb: Path) -> None:
    kb = load_kb(sample_kb)
    assert len(kb) == kb.manifest.counts.concepts == len(list(kb))
    assert [*kb.keys()] == [concept.cui for concept in kb.values()]
    assert kb.get("C0000001").canonical_name == "Myocardial infarction"
    assert kb.get("nothing") is None
    assert "C9999999" in kb  # retired
    assert "C9999999" not in set(kb)
    with pytest.raises(KeyError, match="E336") as caught:
        kb["nothing"]
    assert isinstance(caught.value, SapbertError)
    assert kb.cui_to_entity["C0000001"].cui == "C0000001"
    assert kb != load_kb(sample_kb)


def test_kb_filter_for_definitions(sample_kb: Path) -> None:
    (linked,) = load_kb(sample_kb).link(["MI"], filter={"defined": True})
    assert {c["cui"] for c in linked.candidates} == {"C0000001"}
    with pytest.raises(SapbertError, match="E331.*filter.defined"):
        load_kb(sample_kb).link(["MI"], filter={"defined": "yes"})


@pytest.mark.parametrize(
    ("mentions", "labels", "got"),
    [
        ("heart attack", None, "a str"),
        (["MI", None], None, "a NoneType"),
        ([float("nan")], None, "a float"),
        (["MI", "fever"], ["X"], "2 mentions and 1 labels"),
    ],
)
def test_kb_link_of_no_list_of_texts_is_an_error(
    sample_kb: Path, mentions: Any, labels: Any, got: str
) -> None:
    with pytest.raises(SapbertError, match=f"E359.*{got}"):
        load_kb(sample_kb).link(mentions, labels=labels)


def test_kb_link_accepts_an_array_of_texts(sample_kb: Path) -> None:
    kb = load_kb(sample_kb)
    assert kb.link(np.array(["MI", "fever"])) == kb.link(("MI", "fever"))


def test_kb_link_accepts_arrays_of_labels_and_documents(sample_kb: Path) -> None:
    kb, texts, labels = load_kb(sample_kb), ["fever", "MI"], ["X", "Y"]
    found = kb.link(texts, labels=np.array(labels), documents=np.arange(2))
    assert found == kb.link(texts, labels=labels, documents=[0, 1])
    assert kb.link([], labels=np.array([]), documents=np.array([])) == []


def test_kb_has_no_id_that_is_not_utf8(sample_kb: Path) -> None:
    kb = load_kb(sample_kb)
    assert "\ud800" not in kb
    assert kb.get("\ud800") is None
    for command in (["remove", str(sample_kb)], ["related", str(sample_kb)]):
        found = invoke("kb", *command, "\udcff", code=1)
        assert re.search(r"\[E\d+\] Expected", found.output), found.output


CODED = [
    Concept("C1", ["Fever"], codes={"B": ["2", "10", "1"], "A": ["z", "a"]}),
    Concept("C2", ["Pain"], codes={"B": ["9", "3"]}),
]


def test_codes_keep_their_order_in_a_knowledge_base_and_its_overlay(
    make_kb: Callable[..., Path], tmp_path: Path
) -> None:
    kb = load_kb(make_kb(tmp_path, CODED))
    assert kb["C1"].codes == CODED[0].codes
    assert [*kb["C1"].codes] == ["A", "B"]
    assert [one.codes for one in kb.link(["fever"], codes=["B"])] == [
        {"B": ["2", "10", "1"]}
    ]
    changed = add_concepts(kb, [Concept("C1", ["Pyrexia"], codes={"B": ["0", "1"]})])
    assert changed.codes("C1", "B") == ["2", "10", "1", "0"]
    assert changed.codes("C2", "B") == ["9", "3"]
    assert [each.codes for each in load_kb(kb.folder).concepts()][-1] == {
        "A": ["z", "a"],
        "B": ["2", "10", "1", "0"],
    }
