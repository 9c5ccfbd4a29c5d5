import json
from functools import partial
from pathlib import Path
from typing import Any

from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from tests.vocabularies import whole


def write(folder: Path, *lines: Any) -> Path:
    """A file; a line that is no text is written as JSON."""
    path = folder / "concepts.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_bytes("".join(f"{text}\n" for text in texts).encode())
    return path


read = partial(whole.read, format="jsonl")


def test_read_jsonl_name_or_aliases_may_be_the_only_field(tmp_path: Path) -> None:
    lines = [{"cui": "2", "aliases": ["b", "c"]}, {"cui": "1", "name": "a"}]
    assert read(write(tmp_path, *lines))[0] == [
        Concept("1", ["a"]),
        Concept("2", ["b", "c"]),
    ]


def test_read_jsonl_lines_of_the_same_id_are_merged(tmp_path: Path) -> None:
    lines = [{"cui": "1", "name": "a", "types": ["T1"]}, {"cui": "2", "name": "x"}]
    lines += [{"cui": "1", "name": "b", "types": ["T2"], "definition": "d"}]
    expected = Concept("1", ["a", "b"], types=["T1", "T2"], definition="d")
    assert read(write(tmp_path, *lines))[0][0] == expected


def test_read_jsonl_names_are_cleaned_and_dropped_ones_counted(tmp_path: Path) -> None:
    names = [" a  b ", "a b", "--", "c\u2028d"]
    concepts, report = read(write(tmp_path, {"cui": "1", "aliases": names}, ""))
    assert concepts == [Concept("1", ["a b", "c d"])]
    assert report.to_json()["dropped"] == {
        "blank lines": 1,
        "names without a letter or digit": 1,
        "repeated names": 1,
    }


def test_read_jsonl_languages_and_sources_stay_with_the_cleaned_names(
    tmp_path: Path,
) -> None:
    names = ["--", " a  b ", "c", "a b", "d"]
    places = {"languages": {"ENG": [1, 2], "FIN": [3]}, "sources": {"S": [0]}}
    lines: list[Any] = [{"cui": "1", "aliases": names, **places}]
    lines += [{"cui": "1", "aliases": ["e", "c"], "languages": {"FIN": [0, 1]}}]
    (concept,), _ = read(write(tmp_path, *lines))
    assert concept.aliases == ["a b", "c", "d", "e"]
    assert concept.languages == {"ENG": [0, 1], "FIN": [0, 1, 3]}
    assert concept.sources == {}


def test_read_jsonl_reads_what_write_concepts_wrote(
    few_concepts: list[Concept], concepts_file: Path, tmp_path: Path
) -> None:
    concepts, _ = read(concepts_file)
    assert concepts == few_concepts
    assert write_concepts(tmp_path / "again.jsonl", concepts) == len(few_concepts)
    assert (tmp_path / "again.jsonl").read_bytes() == concepts_file.read_bytes()
