"""Annotated documents are split, and what a pipeline finds in them is counted."""

from pathlib import Path
from typing import Any

import pytest
import spacy
from evaluate_pipeline import (
    FOUND,
    LINKED,
    PLACED,
    Counts,
    count_mentions,
    describe_counts,
    evaluate_docs,
)
from spacy.tokens import Doc, Span
from split_documents import app as split_app
from split_documents import choose_parts, read_docs

from spacy_sapbert.errors import SapbertError
from tests.commands import invoke

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "assets" / "sample" / "annotated.txt"


def test_split_keeps_equal_texts_together_and_does_not_depend_on_the_order():
    texts = [f"text {number % 40}" for number in range(80)]
    parts = choose_parts(texts, dev=0.1, held_out=0.2, seed=3)
    assert parts == choose_parts(texts[::-1], dev=0.1, held_out=0.2, seed=3)
    numbers = {part: list(parts.values()).count(part) for part in parts.values()}
    assert numbers == {"train": 28, "dev": 4, "held_out": 8}
    assert parts != choose_parts(texts, dev=0.1, held_out=0.2, seed=4)


def test_split_leaves_documents_of_training_out_of_held_out_ones(tmp_path):
    words = [str(SAMPLE), str(tmp_path / "out")]
    more = tmp_path / "more.txt"
    more.write_text(
        SAMPLE.read_text("utf8")
        + "new|t|Fever.\nnew|a|None.\nnew\t0\t5\tFever\tFinding\tC0015967\n\n",
        "utf8",
    )
    invoke(*words, "--held-out-documents", more, app=split_app, code=0)
    (doc,) = read_docs(tmp_path / "out" / "held_out.spacy")
    assert [(e.text, e.label_, e.kb_id_) for e in doc.ents] == [
        ("Fever", "Finding", "C0015967")
    ]
    with pytest.raises(SapbertError, match="E003"):
        split_app(words)
    invoke(*words, "--most", "5", "--force", app=split_app, code=0)
    assert len(read_docs(tmp_path / "out" / "train.spacy")) == 5
    with pytest.raises(SapbertError, match="E106"):
        split_app([*words, "--dev", "0", "--force"])
    with pytest.raises(SapbertError, match="E150"):
        read_docs(more.rename(tmp_path / "other.spacy"))


def make_doc(nlp: Any, *entities: tuple[int, str, str]) -> Doc:
    doc = nlp.make_doc("fever cough asthma pain")
    doc.ents = [
        Span(doc, start, start + 1, label=label, kb_id=cui)
        for start, label, cui in entities
    ]
    return doc


def test_counts_of_mentions_by_hand():
    nlp = spacy.blank("en")
    gold = make_doc(nlp, (0, "A", "C1"), (1, "B", "C2"), (2, "A", ""), (3, "A", "NIL"))
    ours = make_doc(nlp, (0, "A", "C1"), (1, "A", "C2"), (2, "A", "C3"))
    counts = count_mentions(ours, gold)
    assert counts[FOUND] == Counts(right=2, predicted=3, gold=4)
    assert counts[PLACED] == Counts(3, 3, 4)
    assert counts[f"{FOUND}: A"] == Counts(2, 3, 3)
    assert counts[f"{FOUND}: B"] == Counts(0, 0, 1)
    # no id is known of the others
    assert counts[LINKED] == Counts(2, 2, 2)


def test_scores_and_intervals_by_hand():
    scores = describe_counts([Counts(1, 2, 4)] * 10)
    assert scores["precision"] == {"value": 0.5, "interval": [0.5, 0.5]}
    assert scores["recall"] == {"value": 0.25, "interval": [0.25, 0.25]}
    assert scores["f"]["value"] == pytest.approx(2 / 6, abs=1e-4)
    scores = describe_counts([Counts(1, 1, 1)] * 5 + [Counts(0, 1, 1)] * 5)
    low, high = scores["f"]["interval"]
    assert 0.1 <= low < 0.5 < high <= 0.9


def test_evaluation_gives_the_pipeline_no_annotation():
    nlp = spacy.blank("en")
    seen: list[Doc] = []

    @spacy.Language.component("spy")
    def spy(doc: Doc) -> Doc:
        seen.append(doc.copy())
        return doc

    nlp.add_pipe("spy")
    evaluate_docs(nlp, [make_doc(nlp, (0, "A", "C1"))], quiet=True)
    assert [doc.ents for doc in seen] == [()]
