import json
from dataclasses import asdict
from operator import eq
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import (
    RELATIONS,
    Concept,
    change_names,
    check_concept,
    clean_name,
    concept_to_json,
    read_concepts,
    write_concepts,
)
from spacy_sapbert.vocabularies.reader_table import read_vocabulary
from tests.vocabularies.whole import read

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
SAID = TEXT.filter(str.strip)


@st.composite
def make_concepts(draw: st.DrawFn, text: st.SearchStrategy[str] = SAID) -> Concept:
    texts = st.lists(text, max_size=3, unique=True)
    aliases = draw(st.lists(text, min_size=1, max_size=4, unique=True))
    place = st.sampled_from(range(len(aliases)))
    places = st.dictionaries(
        text, st.lists(place, min_size=1, unique=True).map(sorted), max_size=3
    )
    some = texts.filter(bool)
    others = st.dictionaries(text.map("other {}".format), some, min_size=1, max_size=2)
    retired = draw(texts)
    return Concept(
        cui=draw(text),
        aliases=aliases,
        types=draw(texts),
        codes=draw(st.dictionaries(text, some, max_size=2)),
        parents=draw(texts),
        definition=draw(st.none() | text),
        retired=retired,
        languages=draw(places),
        sources=draw(places),
        related_codes={draw(st.sampled_from(RELATIONS)): draw(others)},
        retired_by=dict.fromkeys(retired[:1], "a table"),
    )


def write(path: Path, *lines: str) -> Path:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf8"))
    return path


def fields_of(concepts: list[Concept]) -> list[dict]:
    return [asdict(concept) for concept in concepts]


@given(concepts=st.lists(make_concepts(), max_size=4), packed=st.booleans())
def test_read_concepts_reads_what_write_concepts_wrote(
    tmp_path_factory, concepts, packed
):
    folder = tmp_path_factory.mktemp("concepts")
    path = folder / ("concepts.jsonl.gz" if packed else "concepts.jsonl")
    assert write_concepts(path, concepts) == len(concepts)
    assert fields_of(list(read_concepts(path))) == fields_of(concepts)


@pytest.mark.slow
def test_read_concepts_reads_a_million_names_and_a_name_of_a_megabyte(tmp_path):
    places = list(range(1_000_000))
    many = Concept(
        "C1",
        [f"acute pain, type {n}" for n in places],
        languages={"ENG": places},
        sources={"MSH": places},
    )
    long = Concept("C2", ["fever " * 200_000 + "ü"])
    path = tmp_path / "concepts.jsonl.gz"
    assert write_concepts(path, [many, long]) == 2
    # compared without a report of the difference, which would be that of a million
    assert all(map(eq, read_concepts(path), [many, long]))
    assert sum(1 for _ in read_vocabulary(path)) == 2


BAD_CONCEPTS = [
    Concept("", ["Fever"]),
    Concept("C1", []),
    Concept("C1", ["Fever", " "]),
    Concept("C1", ["half \ud83d"]),
    Concept("C1", ["Fever"], languages={"ENG": [1]}),
    Concept("C1", ["Fever", "Pain"], sources={"MSH": [1, 0]}),
]


@pytest.mark.parametrize("concept", BAD_CONCEPTS, ids=range(len(BAD_CONCEPTS)))
def test_write_concepts_refuses_what_read_concepts_would(tmp_path, concept):
    path = write(tmp_path / "c.jsonl", "old")
    with pytest.raises(SapbertError, match="E117") as caught:
        write_concepts(path, [Concept("C0", ["Pain"]), concept])
    assert "Fever" not in str(caught.value)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old\n"]


@given(text=st.text() | st.text("a \t\n\u2028\x85\xa0\u3000\u200b"))
def test_clean_name_is_as_if_words_were_split(text):
    assert clean_name(text) == " ".join(text.split())


def test_concept_shows_ten_names_in_a_notebook():
    shown = Concept("C1", [*"abcdefghijk"])._repr_html_()
    assert shown == "<b>C1 a</b><br>b; c; d; e; f; g; h; i; j and 1 more"


def test_change_names_keeps_languages_and_sources():
    concept = Concept("X:1", [*"abcd"], sources={"S": [1], "T": [1, 3]})
    concept.languages = {"ENG": [0, 1], "GER": [2], "SPA": [3]}
    change_names(concept, ["x", "", "x", "y"])
    changed = Concept("X:1", ["x", "y"], sources={"T": [1]})
    changed.languages = {"ENG": [0], "GER": [0], "SPA": [1]}
    assert concept == changed


PLACES = ["0", "[]", "[1]", "[-1]", "[0, 0]", "[true]"]
BAD_PLACES = ["[0]", "null", *(f'{{"ENG": {places}}}' for places in PLACES)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[]", "`cui` and `name` or `aliases`"),
        ("[" * 100_000, "valid JSON"),
        ("1" * 5_000, "valid JSON"),
        ('{"cui": "C1", "name": "half \\ud83d"}', "valid JSON"),
        ('{"name": "Fever"}', "a text as `cui`"),
        ('{"cui": 1, "name": "Fever"}', "a text as `cui`"),
        ('{"cui": "C1"}', "at least one name"),
        ('{"cui": "C1", "aliases": ["Fever", " "]}', "at least one name"),
        ('{"cui": "C1", "aliases": "Fever"}', "a list of texts as `aliases`"),
        ('{"cui": "C1", "name": "Fever", "types": [1]}', "a list of texts as `types`"),
        ('{"cui": "C1", "name": "Fever", "codes": {"MSH": "D1"}}', "by source"),
        ('{"cui": "C1", "name": "Fever", "tui": "T184"}', "no fields but"),
        *(
            (
                f'{{"cui": "C1", "name": "Fever", "{key}": {value}}}',
                f"ascending places in `aliases`, from 0, as `{key}`",
            )
            for key in ("languages", "sources")
            for value in BAD_PLACES
        ),
    ],
)
def test_read_concepts_invalid_line_is_an_error_or_counted(tmp_path, line, expected):
    path = write(tmp_path / "c.jsonl", '{"cui": "C0", "name": "Pain"}', line)
    with pytest.raises(SapbertError) as caught:
        list(read_concepts(path))
    assert f"{path}:2: Expected" in str(caught.value)
    assert expected in str(caught.value)
    assert "Fever" not in str(caught.value)
    (concept,), report = read(path, "jsonl", on_error="skip")
    assert concept.cui == "C0"
    assert sum(report.dropped.values()) == 1


def test_source_that_marks_taught_names_is_an_error_in_a_vocabulary(tmp_path):
    concept = Concept("C1", ["fever"], sources={"annotated": [0]})
    with pytest.raises(SapbertError, match="E117.*other than `annotated`"):
        check_concept(concept)
    path = write(tmp_path / "c.jsonl", json.dumps(concept_to_json(concept)))
    with pytest.raises(SapbertError, match="E117.*c.jsonl:1.*`annotated`"):
        list(read_concepts(path))
