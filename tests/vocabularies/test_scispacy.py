import gzip
import json
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from spacy_sapbert.vocabularies.jsonl import read_scispacy
from spacy_sapbert.vocabularies.registry import guess_format, read_vocabulary
from spacy_sapbert.vocabularies.report import Report

FEVER = {
    "concept_id": "C0015967",
    "aliases": ["Pyrexia", "fever"],
    "types": ["T184"],
    "definition": "A body temperature above normal.",
    "canonical_name": "Fever",
}
PAIN = {"concept_id": "1", "canonical_name": "pain", "aliases": ["pain"]}


def write(folder: Path, *lines: Any) -> Path:
    """A file; a line that is no text is written as JSON."""
    path = folder / "umls.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_bytes("".join(f"{text}\n" for text in texts).encode())
    return path


def read(path: Path, **options: Any) -> tuple[list[Concept], Report]:
    report = Report()
    return list(read_scispacy(path, report=report, **options)), report


def fail(path: Path, **options: Any) -> str:
    with pytest.raises(SapbertError) as caught:
        read(path, **options)
    return str(caught.value)


def test_read_scispacy_canonical_name_leads_the_aliases(tmp_path: Path) -> None:
    concepts, report = read(write(tmp_path, FEVER, PAIN))
    assert concepts == [
        Concept("1", ["pain"]),
        Concept(
            "C0015967",
            ["Fever", "Pyrexia", "fever"],
            types=["T184"],
            definition="A body temperature above normal.",
        ),
    ]
    assert report.counts["concepts with a definition"] == 1
    assert (report.format, report.names, report.concepts) == ("scispacy", 4, 2)


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"aliases": [], "definition": None, "types": []}, ["Fever"]),
        ({"aliases": None, "definition": "", "types": None}, ["Fever"]),
        ({"canonical_name": None}, ["Pyrexia", "fever"]),
        ({"canonical_name": "fever"}, ["fever", "Pyrexia"]),
    ],
)
def test_read_scispacy_fields_may_be_empty(
    tmp_path: Path, fields: Any, names: list[str]
) -> None:
    ((concept,), _) = read(write(tmp_path, {**FEVER, **fields}))
    assert concept.aliases == names
    assert concept.definition in (None, FEVER["definition"])


def test_read_scispacy_lines_of_the_same_id_are_merged(tmp_path: Path) -> None:
    other = {**PAIN, "concept_id": "C0015967", "types": ["T033"]}
    ((concept,), _) = read(write(tmp_path, FEVER, other))
    assert concept.aliases == ["Fever", "Pyrexia", "fever", "pain"]
    assert concept.types == ["T184", "T033"]


def test_read_scispacy_names_are_cleaned_and_dropped_ones_counted(
    tmp_path: Path,
) -> None:
    entity = {**PAIN, "aliases": [" pain ", "--", "c\u2028d"]}
    concepts, report = read(write(tmp_path, entity, ""))
    assert concepts == [Concept("1", ["pain", "c d"])]
    assert report.to_json()["dropped"] == {
        "blank lines": 1,
        "names without a letter or digit": 1,
        "repeated names": 1,
    }


BAD_LINES = [
    "fever",
    '{"concept_id": "1"',
    "[" * 100_000,
    [],
    {"canonical_name": "fever", "aliases": []},
    {"concept_id": "2", "aliases": []},
    {"concept_id": " ", "canonical_name": "fever"},
    {"concept_id": 2, "canonical_name": "fever"},
    {**FEVER, "canonical_name": 7},
    {**FEVER, "aliases": "fever"},
    {**FEVER, "aliases": [["fever"]]},
    {**FEVER, "types": {"T184": 1}},
    {**FEVER, "definition": ["fever"]},
    {**FEVER, "name": "fever"},
    {**FEVER, "canonical_name": "half a character: \ud800"},
]
PLACES = range(len(BAD_LINES))


@pytest.mark.parametrize("line", BAD_LINES, ids=PLACES)
def test_read_scispacy_invalid_line_is_an_error_with_file_and_line(
    tmp_path: Path, line: Any
) -> None:
    path = write(tmp_path, PAIN, line)
    error = fail(path)
    assert error.startswith(f"[E117] {path}:2: ")
    assert "fever" not in error


@pytest.mark.parametrize("line", BAD_LINES, ids=PLACES)
def test_read_scispacy_invalid_line_is_counted_when_skipped(
    tmp_path: Path, line: Any
) -> None:
    concepts, report = read(write(tmp_path, PAIN, line), on_error="skip")
    assert concepts == [Concept("1", ["pain"])]
    assert report.dropped["bad lines"] == 1


def test_read_scispacy_no_concept_left_is_an_error(tmp_path: Path) -> None:
    entity = {"concept_id": "1", "canonical_name": "--", "aliases": []}
    assert "1 names without a letter or digit" in fail(write(tmp_path, entity))


def test_read_scispacy_compressed_file_is_read_when_the_format_is_named(
    tmp_path: Path,
) -> None:
    path = tmp_path / "umls.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(PAIN).encode()))
    assert guess_format(path) == "jsonl"
    assert list(read_vocabulary(path, "scispacy")) == [Concept("1", ["pain"])]


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner)
    ),
    max_leaves=4,
)
LINES = st.one_of(
    st.text(),
    VALUES,
    st.dictionaries(st.sampled_from(list(FEVER)), VALUES),
    st.text().map(json.dumps),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(LINES, max_size=4), st.sampled_from(["fail", "skip"]))
def test_read_scispacy_any_line_gives_concepts_or_a_sapbert_error(
    lines: list[Any], on_error: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), PAIN, *lines)
        with suppress(SapbertError):
            concepts, _ = read(path, on_error=on_error)
            assert "1" in [concept.cui for concept in concepts]
            write_concepts(Path(folder) / "again.jsonl", concepts)
