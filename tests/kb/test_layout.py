"""The parts of a knowledge base: what meta.json names is what is in the folder."""

from importlib import import_module
from pathlib import Path

import pytest

from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.folder.layout import PARTS, Part, may_be_in_kb
from spacy_sapbert.kb.folder.publication import describe_files
from spacy_sapbert.kb.folder.versions import read_version
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.vocabularies.concepts import Concept


@pytest.mark.parametrize("part", PARTS, ids=[part.name for part in PARTS])
def test_reader_of_a_part_is_there(part: Part) -> None:
    module, _, name = part.reader.rpartition(".")
    assert hasattr(import_module(f"spacy_sapbert.{module}"), name)


def test_each_file_of_a_version_is_in_one_part(cold_kb: Path, own_kb: Path) -> None:
    add_concepts(load_kb(own_kb), [Concept("L1", ["ward one"])])
    for folder in (cold_kb, own_kb):
        manifest = read_version(folder).manifest
        for name in manifest.files:
            assert [part.may_have(name) for part in PARTS].count(True) == 1, name
            assert may_be_in_kb(f"v1/{name}")
        needed = {name for part in PARTS for name in part.files(manifest)}
        assert needed <= manifest.files.keys()
        assert describe_files(folder / "v1").keys() <= manifest.files.keys()


@pytest.mark.parametrize(
    "name",
    [
        *("notes.txt", "v1/notes.txt", "v0/meta.json", "v1/overlay/notes.txt"),
        *("v1/encoder/pytorch_model.bin", "v1/ngrams/grams.txt", "v1/concepts.jsonl"),
    ],
)
def test_other_files_are_not_of_a_knowledge_base(name: str) -> None:
    assert not may_be_in_kb(name)
