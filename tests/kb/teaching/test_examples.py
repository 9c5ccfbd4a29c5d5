"""Features of an annotated mention do not know what its own fold says of it."""

from pathlib import Path
from typing import Any

from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.kb.teaching.documents import resolve_documents
from spacy_sapbert.kb.teaching.examples import make_examples
from spacy_sapbert.kb.teaching.teach import teach_documents
from spacy_sapbert.linking.ranker import Ranker
from tests.building import annotated_document, annotated_mention


def make_document(text: str, cui: str) -> Any:
    return annotated_document("made up", text, [annotated_mention(text, [[cui]])])


def test_words_of_names_of_the_own_fold_are_not_those_of_a_concept(
    sample_kb: Path, tmp_path: Path
) -> None:
    # Each of these words is in one document, so that no other fold has it.
    documents = [
        make_document("feverish hotness", "C0000004"),
        make_document("acute fever gehts", "C0000004"),
        make_document("pain of the brow", "C0000007"),
    ]
    kb = load_kb(sample_kb)
    taught, _ = teach_documents(kb, documents, output=tmp_path / "kb", force=True)
    resolved, _ = resolve_documents(documents, lambda cui: cui, [], add=False)
    examples = make_examples(taught, resolved, before=kb, prior=Ranker(), most=99)
    covered = {
        example.text: round(float(example.features["covered"][example.right]), 2)
        for example in examples
        if example.right is not None
    }
    # "Fever" is a name of the vocabulary, and "head pain" is one.
    assert covered["feverish hotness"] < 0.5
    assert 0 < covered["acute fever gehts"] < 0.6
    assert 0 < covered["pain of the brow"] < 0.6
