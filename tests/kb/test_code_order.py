"""The codes of a concept keep the order of the vocabulary."""

from collections.abc import Callable
from pathlib import Path

from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.vocabularies.concepts import Concept

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
