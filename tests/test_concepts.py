import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, List

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sapbert.concepts import (
    Concept,
    concept_from_json,
    concept_to_json,
    read_concepts,
    write_concepts,
)
from spacy_sapbert.errors import SapbertError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
SAID = TEXT.filter(str.strip)
TEXTS = st.lists(SAID, max_size=3, unique=True)
CONCEPTS = st.builds(
    Concept,
    cui=SAID,
    aliases=st.lists(SAID, min_size=1, max_size=3, unique=True),
    types=TEXTS,
    codes=st.dictionaries(SAID, st.lists(SAID, min_size=1, max_size=2), max_size=2),
    parents=TEXTS,
    definition=st.none() | SAID,
    retired=TEXTS,
)


def write(path: Path, *lines: str) -> Path:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf8"))
    return path


def fields_of(concepts: List[Concept]) -> List[dict]:
    return [asdict(concept) for concept in concepts]


def test_name_is_the_first_alias() -> None:
    assert Concept("C1", ["Fever", "Pyrexia"]).name == "Fever"


def test_json_leaves_empty_fields_out() -> None:
    concept = Concept("C1", ["Fever"], types=["T184"])
    expected = {"cui": "C1", "name": "Fever", "aliases": ["Fever"], "types": ["T184"]}
    assert concept_to_json(concept) == expected
    assert list(concept_to_json(concept)) == list(expected)


@settings(deadline=None, max_examples=60)
@given(concepts=st.lists(CONCEPTS, max_size=4), packed=st.booleans())
def test_file_gives_back_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, concepts: List[Concept], packed: bool
) -> None:
    folder = tmp_path_factory.mktemp("concepts")
    path = folder / ("concepts.jsonl.gz" if packed else "concepts.jsonl")
    assert write_concepts(path, concepts) == len(concepts)
    assert fields_of(list(read_concepts(path))) == fields_of(concepts)


def test_name_or_aliases_may_stand_alone(tmp_path: Path) -> None:
    path = write(
        tmp_path / "c.jsonl",
        '{"cui": "C1", "name": "Fever"}',
        "",
        '{"cui": "C2", "aliases": ["Pain", "Ache", "Pain"]}',
        '{"cui": "C3", "name": "Ache", "aliases": ["Pain", "Ache"]}',
    )
    aliases = [concept.aliases for concept in read_concepts(path)]
    assert aliases == [["Fever"], ["Pain", "Ache"], ["Ache", "Pain"]]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[]", "`cui` and `name` or `aliases`"),
        ("{", "valid JSON"),
        ("[" * 100_000, "valid JSON"),
        ("1" * 5_000, "valid JSON"),
        ('{"cui": "C1", "name": "half \\ud83d"}', "valid JSON"),
        ('{"name": "Fever"}', "a text as `cui`"),
        ('{"cui": 1, "name": "Fever"}', "a text as `cui`"),
        ('{"cui": " ", "name": "Fever"}', "a text as `cui`"),
        ('{"cui": "C1"}', "at least one name"),
        ('{"cui": "C1", "aliases": []}', "at least one name"),
        ('{"cui": "C1", "aliases": ["Fever", " "]}', "at least one name"),
        ('{"cui": "C1", "aliases": "Fever"}', "a list of texts as `aliases`"),
        ('{"cui": "C1", "name": "Fever", "types": [1]}', "a list of texts as `types`"),
        ('{"cui": "C1", "name": 1}', "a text as `name`"),
        ('{"cui": "C1", "name": "Fever", "codes": {"MSH": "D1"}}', "by source"),
        ('{"cui": "C1", "name": "Fever", "tui": "T184"}', "no fields but"),
    ],
)
def test_bad_line_is_an_error_with_file_and_line(
    tmp_path: Path, line: str, expected: str
) -> None:
    path = write(tmp_path / "c.jsonl", '{"cui": "C0", "name": "Pain"}', line)
    with pytest.raises(SapbertError) as caught:
        list(read_concepts(path))
    assert f"{path}:2: Expected" in str(caught.value)
    assert expected in str(caught.value)


def test_errors_do_not_say_what_a_name_says(tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl", '{"cui": "C0", "name": "Sentinel", "types": 1}')
    with pytest.raises(SapbertError) as caught:
        list(read_concepts(path))
    assert "Sentinel" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["cui", "name", "aliases", "codes", "types", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(data=JSON)
def test_any_json_gives_a_concept_or_an_error_of_ours(data: Any) -> None:
    try:
        concept = concept_from_json(data, Path("x"), 1)
    except SapbertError:
        return
    assert concept.aliases
    json.dumps(concept_to_json(concept))
