"""The codes of a concept keep the order of the vocabulary."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.folder.versions import compute_digest, describe_files
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.kb.schema import INDICES, RANK, SCHEMA
from spacy_sapbert.vocabularies.concepts import Concept

CODED = [
    Concept("C1", ["Fever"], codes={"B": ["2", "10", "1"], "A": ["z", "a"]}),
    Concept("C2", ["Pain"], codes={"B": ["9", "3"]}),
]


def make_format_2(kb: Path) -> None:
    """Make a folder as it was before codes had an order."""
    connection = sqlite3.connect(kb / "concepts.db")
    rows = connection.execute("SELECT concept, source, code FROM codes").fetchall()
    connection.execute("DROP TABLE codes")
    tables = SCHEMA.replace(RANK, "").split(";\n")
    connection.execute(next(each for each in tables if "TABLE codes" in each))
    connection.executemany("INSERT INTO codes VALUES (?, ?, ?)", rows)
    index = next(each for each in INDICES.splitlines() if "ON codes" in each)
    connection.execute(index)
    connection.execute("DROP INDEX retired_by_concept")  # is of a later version too
    connection.commit()
    connection.close()
    meta = json.loads((kb / "meta.json").read_text("utf8"))
    meta["format"] = 2
    meta["files"]["concepts.db"] = describe_files(kb)["concepts.db"].model_dump()
    meta["digest"] = compute_digest(meta)
    (kb / "meta.json").write_text(json.dumps(meta), "utf8")


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


def test_knowledge_base_of_format_2_opens_with_sorted_codes(
    make_kb: Callable[..., Path], tmp_path: Path
) -> None:
    folder = make_kb(tmp_path, CODED)
    make_format_2(folder)
    kb = load_kb(folder)
    assert kb.manifest.format == 2
    assert kb["C1"].codes == {"A": ["a", "z"], "B": ["1", "10", "2"]}
    assert kb.cuis("B", "3") == ["C2"]
    changed = add_concepts(kb, [Concept("C3", ["Ache"], codes={"B": ["8", "7"]})])
    assert changed.codes("C3", "B") == ["8", "7"]
    assert changed.codes("C2", "B") == ["3", "9"]
    assert load_kb(folder).manifest.format == 2
