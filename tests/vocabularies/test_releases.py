"""Releases and licences of sources, and real releases."""

from spacy_sapbert.vocabularies.releases import (
    SourceRelease,
    read_releases,
    releases_path,
)
from tests.commands import invoke
from tests.vocabularies.test_examples import FOLDER


def test_releases_are_beside_the_concepts_and_only_count_for_them(tmp_path):
    output = tmp_path / "concepts.jsonl"
    words = ["concepts", str(FOLDER / "obo" / "hp.obo"), "-o", str(output), "--quiet"]
    invoke(*words, code=0)
    known = read_releases(output)
    licence = "https://hpo.jax.org/license"
    assert known == {"HP": SourceRelease(release="2026-06-23", licence=licence)}
    output.write_text(output.read_text("utf8").replace("fever", "Fever"), "utf8")
    assert read_releases(output) == {}
    releases_path(output).write_text("{", "utf8")
    assert read_releases(output) == {}
    (tmp_path / "x.jsonl").write_text('{"cui": "X:1", "name": "Fever"}\n', "utf8")
    words[1] = str(tmp_path / "x.jsonl")
    invoke(*words, "--force", code=0)
    assert not releases_path(output).exists()
