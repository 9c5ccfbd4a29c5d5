"""SSSOM: only what was decided is a mapping, and it says who decided."""

import csv
from datetime import date
from pathlib import Path

import pytest

from spacy_sapbert import load_kb
from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.knowledge_base import KnowledgeBase
from spacy_sapbert.linking.candidates import Candidate
from spacy_sapbert.linking.options import LinkOptions
from spacy_sapbert.mapping import sssom
from spacy_sapbert.mapping.lookup import (
    EXACT,
    LINKED,
    NONE,
    REVIEW,
    Found,
    Query,
    map_queries,
)
from spacy_sapbert.serve.columns import (
    MappedTable,
    MappedTerm,
    apply_choice,
    write_mapped,
)
from spacy_sapbert.vocabularies.concepts import Concept

TODAY = date(2026, 1, 2)


def candidate(cui: str, score: float = 1.0) -> Candidate:
    return Candidate(
        cui=cui,
        name="Myocardial infarction",
        alias="heart attack",
        score=score,
        rank=1,
        types=[],
        codes={},
        tie=None,
        probability=0.3,
    )


def found(status: str, cui: str | None = "C0027051", score: float = 1.0) -> Found:
    note = None if cui else "below_threshold"
    candidates = [] if status == NONE else [candidate(cui or "C0027051", score)]
    return Found("heart attack", status, cui, note, candidates, "sure")


def read_rows(data: bytes) -> tuple[list[str], list[dict[str, str]]]:
    lines = data.decode().splitlines()
    head = [line for line in lines if line.startswith("#")]
    return head, [*csv.DictReader(lines[len(head) :], delimiter="\t")]


@pytest.mark.parametrize(
    ("id", "curie", "namespace"),
    [
        ("C0027051", "UMLS:C0027051", "https://uts.nlm.nih.gov/uts/umls/concept/"),
        (
            "MONDO:0005148",
            "MONDO:0005148",
            "http://purl.obolibrary.org/obo/MONDO_",
        ),
        ("ICD10CM:E11.9", "ICD10CM:E11.9", "https://identifiers.org/icd10cm:"),
        ("my id", "concept:my%20id", sssom.OWN_ADDRESS),
    ],
)
def test_ids_become_curies_with_a_namespace(id, curie, namespace):
    assert sssom.make_curie(id) == curie
    assert sssom.find_namespace(curie.partition(":")[0]) == namespace
    assert f'#  {curie.partition(":")[0]}: "{namespace}"' in sssom.list_head(
        [curie], "digest"
    )


def map_terms(sample_kb: Path, reviewer: str) -> bytes:
    """A table of the page: two links, a choice, a rejection, one not decided."""
    results = [
        found(EXACT, "C0000001"),
        found(LINKED, "C0000001", 0.9),
        found(REVIEW, None),
        found(REVIEW, None),
        found(REVIEW, None),
        found(LINKED, "C0000001", 0.9),
    ]
    chosen = ["", "", "C0000004", "NIL", "", "C0000001"]
    terms = [f"term {number}" for number in range(6)]
    return write_table(load_kb(sample_kb), terms, results, chosen, reviewer)


def write_table(
    kb: KnowledgeBase,
    terms: list[str],
    results: list[Found],
    chosen: list[str],
    reviewer: str = "",
) -> bytes:
    table = MappedTable(
        header=["term"],
        rows=[[term] for term in terms],
        terms=terms,
        mapped={
            term: MappedTerm(found=found, chosen=cui)
            for term, found, cui in zip(terms, results, chosen, strict=True)
        },
        kb="digest",
    )
    return write_mapped(kb, "sssom.tsv", table, reviewer=reviewer)


def test_rows_say_who_decided(sample_kb):
    _, rows = read_rows(map_terms(sample_kb, "Anna"))
    shown = [
        (
            row["subject_label"],
            row["predicate_id"],
            row["object_id"],
            row["mapping_justification"].removeprefix("semapv:"),
            row["similarity_score"],
            row["reviewer_label"],
            row["mapping_tool"],
        )
        for row in rows
    ]
    exact, close, tool = "skos:exactMatch", "skos:closeMatch", "spacy-sapbert"
    infarct, person = "UMLS:C0000001", "ManualMappingCuration"
    similar = "SemanticSimilarityThresholdMatching"
    assert shown == [
        ("term 0", exact, infarct, "LexicalMatching", "1.0", "", tool),
        ("term 1", close, infarct, similar, "0.9", "", tool),
        ("term 2", exact, "UMLS:C0000004", person, "", "Anna", ""),
        ("term 3", exact, "sssom:NoTermFound", person, "", "Anna", ""),
        ("term 5", exact, infarct, person, "0.9", "Anna", ""),
    ]
    assert all(row["mapping_date"] for row in rows)
    # what the machine thinks is no confidence of the person
    assert [row["confidence"] for row in rows] == ["0.3", "0.3", "", "", ""]


def test_a_code_that_is_only_related_is_no_exact_match(own_kb):
    related = {"broader": {"ICD10": ["R50"]}}
    fever = Concept("L0000001", ["Ward fever"], related_codes=related)
    kb = add_concepts(load_kb(own_kb), [fever])
    options = LinkOptions(threshold=-1)
    (result,) = map_queries(kb, [Query("ward fever")], options)
    data = write_table(kb, ["x"], [result], [""])
    _, (row,) = read_rows(data)
    assert (row["predicate_id"], row["object_id"]) == (
        "skos:exactMatch",
        "concept:L0000001",
    )
    assert b"R50" not in data


def test_the_label_of_a_subject_is_read_as_a_text(sample_kb, tmp_path):
    chosen = apply_choice(load_kb(sample_kb), found(REVIEW, None), "C0000004")
    cells = sssom.list_cells("hot", chosen, TODAY, "Ben", subject="LOCAL:7")
    path = tmp_path / "mapped.sssom.tsv"
    with path.open("wb") as file:
        sssom.write_sssom(file, [cells], "digest")
    (document,) = read_corpus(path, "sssom")
    (mention,) = document.mentions
    assert mention.mention == "hot"
    assert mention.parts == [["UMLS:C0000004", "C0000004"]]
