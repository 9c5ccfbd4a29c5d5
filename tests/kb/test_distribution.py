"""Names of licensed vocabularies do not leave in a wheel unasked."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.reading import file_digest
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.folder.records import Vocabulary
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.kb.packages import (
    check_distribution,
    current_vocabularies,
    describe_vocabulary,
    package_kb,
)
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from spacy_sapbert.vocabularies.releases import releases_path
from tests.building import build_small_kb
from tests.commands import invoke

CONCEPTS = [
    Concept("C1", ["Fever", "Pyrexia"], sources={"MSH": [0, 1], "SNOMEDCT_US": [1]}),
    Concept("C2", ["Ache"], sources={"WARD": [0]}),
]
MSH = Vocabulary(source="MSH", names=2, release="2026", licence="own words")


@pytest.fixture(scope="module")
def kb_folder(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("licensed")
    concepts = folder / "concepts.jsonl"
    write_concepts(concepts, CONCEPTS)
    known = {"release": "2026", "licence": "own words"}
    data = {
        "concepts_sha256": file_digest(concepts),
        "sources": {"MSH": known, "ABSENT": known},
    }
    releases_path(concepts).write_text(json.dumps(data), "utf8")
    build_small_kb(concepts, folder / "kb", tiny_encoder, backend="exact")
    return folder / "kb"


def test_build_keeps_sources_releases_and_licences(kb_folder: Path) -> None:
    found = load_kb(kb_folder).manifest.vocabularies
    assert found is not None
    assert found[0] == MSH
    assert [each.source for each in found] == ["MSH", "SNOMEDCT_US", "WARD"]
    assert [each.names for each in found] == [2, 1, 1]
    assert found[1].licence == "SNOMED CT Affiliate License"
    assert describe_vocabulary(found[2]) == "WARD (1 names; licence unknown)"
    assert "MSH 2026 (2 names; own words)" in invoke("kb", "info", kb_folder).output


def test_package_of_licensed_names_is_an_error_that_names_the_option(
    kb_folder: Path, tmp_path: Path
) -> None:
    words = ["kb", "package", str(kb_folder), str(tmp_path), "--name", "x"]
    result = invoke(*words, code=1)
    output = " ".join(result.output.split())
    assert "E424" in output
    assert "--may-distribute SNOMEDCT_US`" in output
    assert "WARD" not in output
    assert not list(tmp_path.iterdir())
    with pytest.raises(SapbertError, match="--may-distribute WARD,SNOMEDCT_US`"):
        package_kb(kb_folder, tmp_path, name="x", version="1", may_distribute=["WARD"])


@pytest.mark.usefixtures("new_process")
def test_package_with_the_right_is_a_wheel(kb_folder: Path, tmp_path: Path) -> None:
    words = ["kb", "package", str(kb_folder), str(tmp_path), "--name", "x"]
    result = invoke(*words, "--may-distribute", "SNOMEDCT_US", code=0)
    assert "WARD" in result.output  # its licence is unknown
    assert [path.suffix for path in tmp_path.iterdir()] == [".whl"]


def test_check_distribution_knows_categories_of_the_umls_and_edits(
    make_kb: Callable[..., Path], tmp_path: Path
) -> None:
    free = Vocabulary(source="A", names=1, licence="UMLS restriction category 0")
    check_distribution([free, MSH], [])
    limited = Vocabulary(source="A", names=1, licence="UMLS restriction category 3")
    with pytest.raises(SapbertError, match="category 3"):
        check_distribution([MSH, limited], [])
    check_distribution([limited], ["A"])
    with pytest.raises(SapbertError, match="no part of the Metathesaurus"):
        check_distribution([Vocabulary(source="UMLS", names=0)], [])
    kb = load_kb(make_kb(tmp_path, CONCEPTS[1:]))
    check_distribution(current_vocabularies(kb), [])
    added = add_concepts(kb, [Concept("C3", ["Cough"], sources={"MDR": [0]})])
    with pytest.raises(SapbertError, match="MedDRA"):
        check_distribution(current_vocabularies(added), [])
