"""What a knowledge base of 1,000 names answers today, in `answers.json`.

A line has a question and its answer, of which a reader judges whether the concept is
the one that the text means, or NIL. Answers of other options are there where they
differ. If a change of answers is meant,
delete the file, run this test, remove what `pytest --disturb` changes, and read what
git shows.
"""

import random
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert import add_concepts, load_kb, remove_concepts
from spacy_sapbert.kb.knowledge_base import KnowledgeBase
from spacy_sapbert.kb.teaching.teach import teach_documents
from spacy_sapbert.linking.filters import Filter
from spacy_sapbert.linking.options import DEFAULT_OPTIONS
from spacy_sapbert.mapping.lookup import Query, map_queries
from spacy_sapbert.verification.updates import Updater
from spacy_sapbert.verification.verdicts import Verifier
from spacy_sapbert.vocabularies.concepts import Concept
from tests.building import annotated_document, annotated_mention
from tests.golden import Case, check_golden
from tests.thousand_names import LACKING, list_mentions, make_concepts

FILE = Path(__file__).parent / "answers.json"
USUAL = "English"
OPTIONS: dict[str, dict[str, Any]] = {
    USUAL: {"filter": Filter(document_language="en")},
    "any": {},
    "all": {"threshold": 0, "candidate_threshold": 0.8},
    "types": {"filter": {"types": ["T184", "T191"]}},
    "sources": {"filter": {"sources": ["GLOBE"]}, "source_rank": ["GLOBE", "ATLAS"]},
    "ties": {"ambiguous": "nil", "tie_evidence": ["source"], "source_rank": ["GLOBE"]},
}


def list_pairs(mentions: list[str]) -> Iterator[tuple[str, str]]:
    """Yield mentions with ids: of the same family, of another, and of none."""
    chance = random.Random(5)
    cuis = [concept.cui for concept in make_concepts(["ENG"])]
    for mention in mentions:
        yield mention, chance.choice(cuis)
    for mention, family in LACKING.items():
        yield mention, next(cui for cui in cuis if cui.startswith(family))
    for concept in chance.sample(make_concepts(["ENG"]), 10):
        yield concept.aliases[-1], concept.cui
    yield from (("Velmor syndrome", "VEL1"), ("ear pain", "T184"), ("brain tumor", ""))


def make_documents() -> Iterator[Any]:
    """Yield annotated documents that write some concepts backwards."""
    chance = random.Random(7)
    concepts = make_concepts(["ENG"])[:60]
    for number in range(30):
        names = [(c.aliases[0], c.cui) for c in chance.sample(concepts, 6)]
        mentions = [
            annotated_mention(name[::-1] if place % 2 else name, [[cui]])
            for place, (name, cui) in enumerate(names)
        ] + [annotated_mention(f"ward {number}", [])]
        yield annotated_document("made up", f"note {number}", mentions)


def describe(cui: str | None, note: str | None) -> str:
    """Return the concept of a link, or NIL, with its note."""
    return f"{cui or 'NIL'}, {note}" if note else cui or "NIL"


def ask(kb: KnowledgeBase, later: KnowledgeBase, taught: Path) -> Iterator[Case]:
    """Yield what is asked with the answers."""
    mentions = list_mentions(3, 30, 8, 8)
    answers: dict[str, list[str]] = {text: [] for text in mentions}
    for name, options in OPTIONS.items():
        for text, link in zip(mentions, kb.link(mentions, **options), strict=True):
            answer = describe(link.cui, link.note)
            if [answer] != answers[text][:1]:
                answers[text].append(f"{name}: {answer}" if answers[text] else answer)
    yield from (["link", text, "; ".join(found)] for text, found in answers.items())
    pairs = [*list_pairs(mentions)]
    texts, ids = map(list, zip(*pairs, strict=True))
    verdicts = Verifier(kb).verify(texts, ids, contexts=["ear pain (EP)"] * len(texts))
    for pair, verdict in zip(pairs, verdicts, strict=True):
        yield ["verify", *pair, f"{verdict.verdict}: {verdict.why}"]
    links = [(text, link.cui) for text, link in zip(texts, kb.link(texts), strict=True)]
    given = dict.fromkeys([*links, *pairs])
    kept = 0
    for pair, update in zip(given, Updater(kb, later).update([*given]), strict=True):
        kept += update.status == "kept"
        if update.status != "kept":
            yield ["update", *pair, f"{update.status}, {update.cui}: {update.why}"]
    yield ["update", "links that are kept", kept]
    terms = [Query(f"{number}. {text}") for number, text in enumerate(mentions[::4])]
    terms.append(Query("ear pain", ("T047",)))
    for term, found in zip(terms, map_queries(kb, terms, DEFAULT_OPTIONS), strict=True):
        answer = f"{found.read_as}: {found.status}, {describe(found.cui, found.note)}"
        yield ["map", term.term, *term.types, answer]
    _, report = teach_documents(kb, [*make_documents()], output=taught, force=True)
    assert report.before.all < report.after.all  # of documents it has not seen
    yield ["teach", asdict(report.counts)]
    asked = ["niap traeh", "ward 31", *mentions[::3]]
    for text, link in zip(asked, load_kb(taught).link(asked), strict=True):
        yield ["taught", text, describe(link.cui, link.note)]


@pytest.mark.usefixtures("few_trees")
def test_answers_are_those_of_the_last_version(thousand_names_kb, tmp_path):
    kb = load_kb(thousand_names_kb)
    shutil.copytree(thousand_names_kb, tmp_path / "later")
    added = [Concept("N1", ["zinc hypoemia", "hypozincemia"]), Concept("N2", ["EP"])]
    later = add_concepts(load_kb(tmp_path / "later"), added)
    later = remove_concepts(later, ["CAN-lung", "TUM-skin"])
    check_golden(FILE, ask(kb, later, tmp_path / "taught"))


def test_a_concept_that_is_lacking_is_never_another_one_of_its_family(
    thousand_names_kb,
):
    """Another numeral, letter or side, or the opposite, even if all are linked."""
    kb = load_kb(thousand_names_kb)
    for options in (OPTIONS[USUAL], {"threshold": 0}):
        links = kb.link([*LACKING], **options)
        for linked, (mention, family) in zip(links, LACKING.items(), strict=True):
            assert linked.cui is None or not linked.cui.startswith(family), mention
