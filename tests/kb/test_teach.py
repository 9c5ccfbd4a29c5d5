"""A knowledge base that learns from annotated documents."""

import csv
import json
import pickle
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_sapbert import add_concepts, load_kb, remove_concepts, teach
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.gold import GoldDocument
from spacy_sapbert.io.reading import file_digest
from spacy_sapbert.kb.adjust import change_kb, write_calibration
from spacy_sapbert.kb.folder.publication import go_back, remove_versions
from spacy_sapbert.kb.folder.versions import list_history, list_versions, read_version
from spacy_sapbert.kb.knowledge_base import KnowledgeBase
from spacy_sapbert.kb.search import VOCABULARY_NAME
from spacy_sapbert.kb.teaching.documents import AnnotationCounts, resolve_documents
from spacy_sapbert.kb.teaching.examples import (
    FOLDS,
    TaughtExample,
    first_answer,
    make_examples,
)
from spacy_sapbert.kb.teaching.teach import evaluate, teach_documents
from spacy_sapbert.linking.candidates import Entry
from spacy_sapbert.linking.chance import OF_FIRST, OF_TAUGHT, ORDERED, load_chance
from spacy_sapbert.linking.features import (
    EXCLUDED,
    MISSPELLED,
    REAL,
    FoundName,
    pool_concepts,
)
from spacy_sapbert.linking.ranker import OF_TREES, Ranker, Weights
from spacy_sapbert.linking.text import name_form
from spacy_sapbert.vocabularies.concepts import Concept
from tests.building import annotated_document, annotated_mention, make_calibration
from tests.commands import invoke
from tests.thousand_names import make_concepts

from .test_answers import make_documents

pytestmark = pytest.mark.usefixtures("few_trees")


def make_document(*mentions: tuple[str, str], source: str = "made up") -> Any:
    """A document whose mentions have one id each, or none."""
    found = [annotated_mention(text, [[cui]] if cui else []) for text, cui in mentions]
    return annotated_document(source, " ".join(text for text, _ in mentions), found)


def test_teach_mention_with_the_same_name_is_ordered_by_counts(own_kb):
    kb = load_kb(own_kb)
    assert kb.link(["MI"])[0].candidates[0]["cui"] == "C0000001"
    meant = [make_document(("MI", "C0000002"), ("fever", "C0000004")) for _ in range(3)]
    meant[1] = make_document(("mi", "C0000002"), ("xz of q", "C0000005"))
    meant[2] = make_document(("MI", "C0000001"), ("fever", "C0000004"))
    kb, report = teach_documents(kb, meant, force=True)
    assert kb.ranker is None  # too few mentions to learn from
    first = kb.link(["MI"])[0].candidates[0]
    assert (first["cui"], first["tie"]) == ("C0000002", "annotated")
    assert kb.link(["MI"], tie_evidence=[])[0].candidates[0]["cui"] == "C0000001"
    assert kb.link(["XZ of Q"])[0].candidates[0]["cui"] == "C0000005"
    assert load_kb(own_kb).link(["MI"])[0].cui == "C0000002"
    assert report.counts.mentions == 6


def test_teach_keeps_edits_and_edits_keep_what_was_taught(own_kb):
    ward = Concept("L1", ["Ward fever"], sources={"LOCAL": [0]})
    kb = remove_concepts(
        add_concepts(load_kb(own_kb), [ward]), ["C0000005"], alias="DM"
    )
    document = make_document(
        *(("sugar illness", "C0000005"), ("hot ward", "L1"), ("q", "L1")),
        *(("Ward fever", "L1"), ("Fever", "C0000004"), ("fevers", "C0000004")),
    )
    kb, _ = teach_documents(kb, [document], force=True)
    kb = add_concepts(kb, [Concept("L2", ["Other"])])
    assert kb.link(["sugar illness"])[0].cui == "C0000005"
    assert {linked.cui for linked in kb.link(["hot ward", "q"])} == {"L1"}
    assert "DM" not in kb["C0000005"].aliases
    # A name without a source that was annotated is still one of the vocabulary.
    fever = {"annotated": [0, 4], "vocabulary": [0]}
    assert (kb["C0000004"].aliases[4:], kb["C0000004"].sources) == (["fevers"], fever)
    assert kb["L1"].sources == {"LOCAL": [0], "annotated": [0, 1, 2]}
    kb = remove_concepts(kb, ["C0000005"], alias="sugar illness")
    assert "sugar illness" not in kb["C0000005"].aliases
    assert kb["L2"].aliases == ["Other"]


def read_counts(kb: KnowledgeBase, mentions: list[str]) -> list[dict[str, int]]:
    """How often each mention was annotated with each concept."""
    forms = [name_form(mention) for mention in mentions]
    known = kb.store.annotated(forms)
    return [{**known.get(form, {})} for form in forms]


def test_teach_command_reads_links_and_lists_contradictions(own_kb, tmp_path):
    rows = [("funny turn", "C0000004")] * 3 + [("funny turn", "C0000005")]
    rows += [("fever", "C0000005")] * 9 + [("fever", "C0000004")]
    rows += [("rash", "C0000004")] * 8 + [("sugar, high", "C0000005")]
    rows += [("'=ward", ""), ("x", "C7777777")]
    path = tmp_path / "reviewed.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "cui", "name"])
        writer.writerows([number, *row, "x"] for number, row in enumerate(rows))
    lost, differing = tmp_path / "lost.csv", tmp_path / "differing.csv"
    tables = ("--lost", lost, "--contradictions", differing)
    result = invoke("teach", own_kb, path, "--force", "--json", *tables, code=0)
    counts = json.loads(result.output)["counts"]
    assert (counts["documents"], counts["without_concept"]) == (25, 1)
    assert counts["unknown"] == {"C7777777": 1}
    with differing.open(newline="") as file:
        table = [*csv.DictReader(file)]
    assert [(r["mention"], r["concept"], r["mentions"]) for r in table] == [
        ("fever", "C0000005", "9"),
        ("fever", "C0000004", "1"),
        ("funny turn", "C0000004", "3"),
        ("funny turn", "C0000005", "1"),
    ]
    with lost.open(newline="") as file:
        (row,) = [row for row in csv.DictReader(file) if row["mention"] == "fever"]
    found = row["concept"], row["first_now"], row["mentions"]
    assert found == ("C0000004", "C0000005", "1")
    # "fever" is decided all the same: what is wrong is so in documents left out
    options = ("--anew", "--force", "--output", tmp_path / "again")
    shown = invoke("teach", own_kb, path, *options, code=0).output
    assert re.search(r"\d mentions? right before, wrong now where not taught ", shown)
    last = list_history(own_kb)[-1]
    assert last.taught == 24
    assert 0 < last.right < 1
    kb = load_kb(own_kb)
    assert kb.link(["Sugar, high"])[0].cui == "C0000005"
    assert read_counts(kb, ["=ward"]) == [{"": 1}]
    info = invoke("kb", "info", own_kb).output
    assert "reviewed.csv: 24 documents, 24 mentions" in info
    invoke("kb", "use", own_kb, list_versions(own_kb)[-2], code=0)
    assert load_kb(own_kb).manifest.taught is None


def learned_files(kb: KnowledgeBase) -> dict[str, str]:
    """The sha256 of each file of the overlay."""
    files = kb.manifest.files.items()
    return {name: file.sha256 for name, file in files if name.startswith("overlay/")}


def test_teach_again_or_in_parts_is_teaching_once(thousand_names_kb, tmp_path):
    kb, documents = load_kb(thousand_names_kb), [*make_documents()]
    once, _ = teach_documents(kb, documents, output=tmp_path / "once", force=True)
    for part in (documents[15:], documents[:15], documents):
        kb, report = teach_documents(kb, part, output=tmp_path / "kb", force=True)
    assert learned_files(kb) == learned_files(once)
    assert (report.counts.repeated, report.counts.replaced) == (30, 0)
    assert kb.manifest.taught == once.manifest.taught
    # Each teaching is a version that can be used again.
    assert len(list_versions(kb.folder)) == 3
    # None is chosen, so that it is the same on each machine.
    assert (kb.manifest.threshold, report.threshold) == (0.5, 0.5)
    figures = report.thresholds
    assert [at.threshold for at in figures] == [0.3, 0.5, 0.8]
    assert kb.manifest.taught.thresholds == kb.manifest.thresholds == figures
    info = " ".join(invoke("kb", "info", kb.folder, code=0).output.split())
    for at in figures:
        assert f"precision {at.precision:.3f}, recall {at.recall:.3f} of links" in info


def test_teaching_keeps_a_threshold_and_a_calibration_unless_an_order_is_learned(
    own_kb, thousand_names_kb, tmp_path
):
    """What was calibrated were other probabilities."""
    calibration = make_calibration()
    write_calibration(read_version(own_kb), calibration)
    documents = [make_document(("hot", "C0000004"))]
    kb, report = teach_documents(load_kb(own_kb), documents)
    assert kb.manifest.calibration == calibration
    assert (kb.manifest.threshold, report.threshold) == (0.75, 0.75)
    folder = Path(shutil.copytree(thousand_names_kb, tmp_path / "names"))
    for by_hand, expected in ((None, 0.5), (0.6, 0.6)):
        write_calibration(read_version(folder), calibration)
        if by_hand is not None:
            change_kb(folder, threshold=by_hand)
        kb, report = teach_documents(load_kb(folder), make_documents(), force=True)
        assert kb.manifest.has_ranker
        assert (kb.manifest.threshold, report.threshold) == (expected, expected)
        assert kb.manifest.calibration is None


def list_states(folder: Path) -> dict[Path, tuple[str, int]]:
    """The sha256 and the permissions of every file of a folder, but the lock."""
    return {
        path: (file_digest(path), path.stat().st_mode)
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def test_teach_into_a_folder_links_files_that_no_change_of_either_writes(
    own_kb, tmp_path
):
    private = own_kb / "v1" / "encoder" / "vocab.txt"
    private.chmod(0o600)
    documents = [make_document(("hot", "C0000004"))]
    before = list_states(own_kb)
    new, _ = teach_documents(
        load_kb(own_kb), documents, output=tmp_path / "new", force=True
    )
    assert list_states(own_kb) == before
    linked = {p.name for p in (new.folder / "v1").rglob("*") if p.stat().st_nlink == 2}
    assert {"concepts.db", "index.hnsw", "model.safetensors"} <= linked
    # It would get the permissions that other users may have.
    assert private.name not in linked
    states = list_states(new.folder)
    # Each command that changes a knowledge base publishes a version.
    kb = add_concepts(load_kb(own_kb), [Concept("L1", ["ward 1"])])
    kb, _ = teach_documents(kb, [make_document(("sugar", "C0000005"))], force=True)
    write_calibration(kb.version, make_calibration())
    change_kb(own_kb, index={"ef": 77}, threshold=0.5)
    go_back(own_kb, list_versions(own_kb)[-2])
    remove_versions(own_kb)
    shutil.rmtree(own_kb)
    assert list_states(new.folder) == states
    assert load_kb(new.folder).link(["hot"])[0].cui == "C0000004"


def test_teach_a_corrected_document_replaces_what_it_taught_before(own_kb):
    def write(cui: str, source: str) -> list[GoldDocument]:
        texts = (f"note {number} has a funny turn" for number in range(30))
        mention = annotated_mention("funny turn", [[cui]])
        return [annotated_document(source, text, [mention]) for text in texts]

    once, _ = teach_documents(
        load_kb(own_kb), write("C0000004", "b"), output=own_kb.with_name("once")
    )
    kb, _ = teach_documents(load_kb(own_kb), write("C0000005", "a"), force=True)
    kb, report = teach_documents(kb, write("C0000004", "b"), force=True)
    assert (report.counts.repeated, report.counts.replaced) == (0, 30)
    assert read_counts(kb, ["funny turn"]) == [{"C0000004": 30}]
    assert (
        kb["C0000005"].aliases == load_kb(own_kb.with_name("once"))["C0000005"].aliases
    )
    assert learned_files(kb) == learned_files(once)
    kb = remove_concepts(kb, ["C0000004"])
    assert read_counts(kb, ["funny turn"]) == [{}]


def test_teach_two_annotators_of_a_note_both_count_and_are_not_unseen(own_kb, tmp_path):
    notes = {f"n{n} is like nothing else": f"C000000{1 + n % 8}" for n in range(40)}
    anna = [make_document((text, cui)) for text, cui in notes.items()]
    ben = [
        document._replace(mentions=[*document.mentions, annotated_mention("else", [])])
        for document in anna
    ]
    _, one = teach_documents(load_kb(own_kb), anna, output=tmp_path / "a", force=True)
    kb, two = teach_documents(
        load_kb(own_kb), [*anna, *ben], output=tmp_path / "b", force=True
    )
    # No other note says anything about these mentions.
    assert (two.before, two.names) == (one.before, one.names)
    assert two.names.seen is None
    assert two.examples == 80
    assert read_counts(kb, ["n1 is like nothing else"]) == [{"C0000002": 2}]


def test_teach_counts_what_it_cannot_learn(own_kb):
    document = annotated_document(
        "a",
        "",
        [
            annotated_mention("fever", [["C0000004"]]),
            annotated_mention("fever", [["C0000005"]]),  # another annotator
            annotated_mention("ward", []),
            annotated_mention("bed", [[]]),
            annotated_mention("both", [["C0000004"], ["C0000005"]]),
            annotated_mention("old id", [["C9999999"]]),
            annotated_mention("unknown", [["C7777777"]]),
            annotated_mention("--", [["C0000004"]]),
        ],
    )
    kb, report = teach_documents(load_kb(own_kb), [document], force=True)
    assert report.counts == AnnotationCounts(
        documents=4,  # each term of a table is one
        mentions=8,
        composites=1,
        without_concept=2,
        without_text=1,
        unknown=Counter(["C7777777"]),
    )
    assert read_counts(kb, ["fever", "ward", "old id"]) == [
        {"C0000004": 1, "C0000005": 1},
        {"": 1},
        {"C0000001": 1},  # a retired id
    ]
    cuis = ["C0000004", "C0000001", "C0000002"]
    assert kb.store.annotated_concepts(cuis) == {"C0000004": 1, "C0000001": 1}


def test_teach_ids_of_another_vocabulary_are_an_error(own_kb):
    before = list_states(own_kb)
    with pytest.raises(SapbertError, match=r"E362.*'MESH:1'"):
        teach_documents(load_kb(own_kb), [make_document(("fever", "MESH:1"))])
    with pytest.raises(SapbertError, match="E362") as caught:  # a text as an id
        teach_documents(load_kb(own_kb), [make_document(("C1", "Jane Roe"))])
    assert "Jane" not in str(caught.value)
    with pytest.raises(SapbertError, match="E362.*got none"):
        teach_documents(load_kb(own_kb), [])
    assert list_states(own_kb) == before


def test_teach_docs_uses_long_forms_and_nil(own_kb):
    nlp = spacy.blank("en")
    doc = nlp("Acute heart pain (AHP) came back. AHP and ward.")
    doc.ents = [
        Span(doc, 9, 10, label="D", kb_id="C0000001"),
        Span(doc, 11, 12, label="D", kb_id="NIL"),
        Span(doc, 0, 1, label="D"),
    ]
    assert [entity.text for entity in doc.ents] == ["Acute", "AHP", "ward"]
    kb, report = teach(load_kb(own_kb), [doc], force=True)
    counts = read_counts(kb, ["acute heart pain", "ahp", "acute"])
    assert counts == [{"C0000001": 1}, {}, {}]
    assert report.counts.mentions == 2
    assert report.counts.without_concept == 1


def test_initialize_with_linked_examples_teaches_a_copy_if_it_is_asked_for(
    make_kb, tmp_path
):
    from spacy.training import Example

    concepts = make_concepts(["ENG"])[:60]
    kb = make_kb(tmp_path, concepts, backend="exact", order="none")
    nlp = spacy.blank("en")
    examples = []
    for document in make_documents():
        mentions = document.mentions[:6]  # the last one has no concept
        doc = Doc(nlp.vocab, [mention.mention for mention in mentions])
        doc.ents = [
            Span(doc, n, n + 1, label="D", kb_id=mention.parts[0][0])
            for n, mention in enumerate(mentions)
        ]
        examples.append(Example(nlp.make_doc(doc.text), doc))
    linker: Any = nlp.add_pipe("sapbert_linker", config={"kb": str(kb)})
    nlp.initialize(lambda: examples)
    assert linker.kb.manifest.taught is None
    nlp.config["initialize"]["components"]["sapbert_linker"] = {"teach": True}
    bare = nlp.make_doc("no entity here")
    nlp.initialize(lambda: [Example(bare, bare)])
    assert linker.kb.manifest.taught is None
    nlp.initialize(lambda: examples)
    assert linker.kb.manifest.taught is not None
    assert pickle.loads(pickle.dumps(linker)).kb.folder != linker.kb.folder
    assert load_kb(kb).manifest.taught is None
    nlp.to_disk(tmp_path / "pipeline")
    other: Any = spacy.load(tmp_path / "pipeline").get_pipe("sapbert_linker")
    assert other.kb.ranker == linker.kb.ranker


def test_words_of_names_of_the_own_fold_are_not_those_of_a_concept(sample_kb, tmp_path):
    # Each of these words is in one document, so that no other fold has it.
    documents = [
        make_document(("feverish hotness", "C0000004")),
        make_document(("acute fever gehts", "C0000004")),
        make_document(("pain of the brow", "C0000007")),
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


def test_first_answer_by_hand():
    entries = [Entry(0, "B", "b", "b", 1), Entry(1, "A", "a", "x", 0)]
    entries.append(Entry(2, "C", "c", "c", 1))
    named = zip((0.9, 0.9, 0.8), entries, strict=True)
    found = [FoundName(cosine, 0, entry) for cosine, entry in named]
    pool = pool_concepts(found, lambda _: VOCABULARY_NAME)
    cosines = np.array([near.cosine for near in pool.near.values()])
    zeros = dict.fromkeys((EXCLUDED, MISSPELLED), np.zeros(3))
    features = {"cosine": cosines, **zeros, REAL: np.ones(3)}
    lowest = Ranker(known=Weights(mean={}, scale={}, weight={}, temperature=-1.0))
    for prior, counts, is_named, expected in (
        (Ranker(), {}, False, "B"),  # a preferred name
        (Ranker(), {"A": 1, "C": 9}, False, "A"),
        (lowest, {}, True, "B"),
        (lowest, {"A": 1}, False, "C"),
    ):
        first = first_answer(prior, pool, features, counts, named=is_named)
        assert first == expected
    nothing = pool_concepts([], lambda _: VOCABULARY_NAME)
    assert first_answer(lowest, nothing, features, {}, named=False) is None


def test_an_order_that_brings_no_more_right_answers_is_not_adopted():
    def make_example(number: int, *, named: bool) -> TaughtExample:
        """The right candidate is the first or second one, by its letters."""
        first = number % 2
        return TaughtExample(
            0 if first else 1,
            {**rest, "characters": np.array([0.9, 0.1] if first else [0.1, 0.9])},
            is_name=False,
            text="x",
            fold=number % FOLDS,
            cuis=["A", "B"],
            first="A",
            plain=False,
            named=named,
            seen=False,
            nil=False,
        )

    order = Weights(
        mean={"characters": 0.5},
        scale={"characters": 0.25},
        weight={"characters": 9.0},
        temperature=1.0,
    )
    prior = Ranker(known=order, unknown=order)
    names = (*OF_TREES, *OF_FIRST, *OF_TAUGHT[2:], EXCLUDED, REAL)
    rest = dict.fromkeys(names, np.zeros(2))
    chance = load_chance(ORDERED)
    for wrong in (0, 1):
        examples = [make_example(n, named=n >= wrong) for n in range(60)]
        learned, report = evaluate(examples, prior, chance, AnnotationCounts(), [])
        assert report.names.all == round(1 - wrong / 60, 4)
        assert (learned is not None, report.after is not None) == (bool(wrong),) * 2
        assert report.after is None or report.after.all == 1


def test_nearly_all_ids_must_be_known():
    known, unknown = (annotated_mention("x", [[cui]]) for cui in ("C1", "C2"))
    for many, usable in ((19, True), (20, False)):
        document = annotated_document("a", "x", [known, *[unknown] * many])
        find = {"C1": "C1"}.get
        if usable:
            _, counts = resolve_documents([document], find, [], add=False)
            assert counts == AnnotationCounts(1, 20, unknown=Counter({"C2": 19}))
            # A document that comes twice, and one without any mention
            twice = [document, document, document._replace(mentions=[], text="y")]
            _, counts = resolve_documents(twice, find, [], add=False)
            assert (counts.documents, counts.repeated) == (3, 1)
        else:
            with pytest.raises(SapbertError, match="E362.*20 ids, for example 'C2'"):
                resolve_documents([document], find, [], add=False)
