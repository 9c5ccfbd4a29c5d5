import gzip
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept
from spacy_sapbert.vocabularies.registry import guess_format, read_vocabulary
from tests.vocabularies import whole

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


read = partial(whole.read, format="scispacy")


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
def test_read_scispacy_invalid_line_is_an_error_or_counted(
    tmp_path: Path, line: Any
) -> None:
    path = write(tmp_path, PAIN, line)
    with pytest.raises(SapbertError, match=r"E117.*umls\.jsonl:2: ") as error:
        read(path)
    assert "fever" not in str(error.value)
    concepts, report = read(path, on_error="skip")
    assert concepts == [Concept("1", ["pain"])]
    assert report.dropped["bad lines"] == 1


@pytest.mark.parametrize("name", ["kb.jsonl", "kb.jsonl.gz"])
def test_read_scispacy_is_detected_by_its_first_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    content = f"\n{json.dumps(FEVER)}\n{json.dumps(PAIN)}\n".encode()
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    assert guess_format(path) == "scispacy"
    assert len(list(read_vocabulary(path))) == 2
