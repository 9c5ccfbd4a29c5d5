"""SSSOM: only what was decided is a mapping, and it says who decided."""

import csv
from datetime import date

import pytest

from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.linking.candidates import Candidate
from spacy_sapbert.mapping import sssom
from spacy_sapbert.mapping.lookup import EXACT, LINKED, REVIEW, Found
from spacy_sapbert.serve.columns import (
    MappedTable,
    MappedTerm,
    apply_choice,
    write_mapped,
)

TODAY = date(2026, 1, 2)


def found(status: str, cui: str | None = "C0027051", score: float = 1.0) -> Found:
    candidate = Candidate(
        cui=cui or "C0027051",
        name="Myocardial infarction",
        alias="heart attack",
        score=score,
        rank=1,
        types=[],
        codes={},
        tie=None,
        probability=0.3,
    )
    note = None if cui else "below_threshold"
    return Found("heart attack", status, cui, note, [candidate], "sure")


@pytest.mark.parametrize(
    ("id", "curie", "namespace"),
    [
        ("C0027051", "UMLS:C0027051", "https://uts.nlm.nih.gov/uts/umls/concept/"),
        ("MONDO:5148", "MONDO:5148", "http://purl.obolibrary.org/obo/MONDO_"),
        ("ICD10CM:E11.9", "ICD10CM:E11.9", "https://identifiers.org/icd10cm:"),
        ("my id", "concept:my%20id", sssom.OWN_ADDRESS),
        ("no (1):x", "concept:no%20(1):x", sssom.OWN_ADDRESS),
    ],
)
def test_ids_become_curies_with_a_namespace(id, curie, namespace):
    prefix = curie.partition(":")[0]
    assert sssom.make_curie(id) == curie
    assert f'#  {prefix}: "{namespace}"' in sssom.list_head([curie], "digest")


def test_rows_say_who_decided(kb):
    """A table of the page: two links, a choice, a rejection, one not decided."""
    table: list[tuple[Found, str]] = [
        (found(EXACT, "C0000001"), ""),
        (found(LINKED, "C0000001", 0.9), ""),
        (found(REVIEW, None), "C0000004"),
        (found(REVIEW, None), "NIL"),
        (found(REVIEW, None), ""),
        (found(LINKED, "C0000001", 0.9), "C0000001"),
    ]
    terms = [f"term {number}" for number in range(len(table))]
    mapped = {
        term: MappedTerm(found=result, chosen=chosen)
        for term, (result, chosen) in zip(terms, table, strict=True)
    }
    rows = [[term] for term in terms]
    sent = MappedTable(header=["t"], rows=rows, terms=terms, mapped=mapped, kb="digest")
    lines = write_mapped(kb, "sssom.tsv", sent, reviewer="Anna").decode().splitlines()
    shown = [*csv.DictReader((x for x in lines if x[0] != "#"), delimiter="\t")]
    columns = ("subject_label", "predicate_id", "object_id", "mapping_justification")
    columns += ("similarity_score", "reviewer_label", "mapping_tool", "confidence")
    exact, close, tool = "skos:exactMatch", "skos:closeMatch", "spacy-sapbert"
    infarct, person = "UMLS:C0000001", "semapv:ManualMappingCuration"
    name = "semapv:LexicalMatching"
    similar = "semapv:SemanticSimilarityThresholdMatching"
    # what the machine thinks is no confidence of the person
    assert [tuple(row[name] for name in columns) for row in shown] == [
        ("term 0", exact, infarct, name, "1.0", "", tool, "0.3"),
        ("term 1", close, infarct, similar, "0.9", "", tool, "0.3"),
        ("term 2", exact, "UMLS:C0000004", person, "", "Anna", "", ""),
        ("term 3", exact, "sssom:NoTermFound", person, "", "Anna", "", ""),
        ("term 5", exact, infarct, person, "0.9", "Anna", "", ""),
    ]
    assert all(row["mapping_date"] for row in shown)


def test_the_label_of_a_subject_is_read_as_a_text(kb, tmp_path):
    chosen = apply_choice(kb, found(REVIEW, None), "C0000004")
    cells = sssom.list_cells("hot", chosen, TODAY, "Ben", subject="LOCAL:7")
    path = tmp_path / "mapped.sssom.tsv"
    with path.open("wb") as file:
        sssom.write_sssom(file, [cells], "digest")
    (document,) = read_corpus(path, "sssom")
    (mention,) = document.mentions
    assert mention.mention == "hot"
    assert mention.parts == [["UMLS:C0000004", "C0000004"]]
