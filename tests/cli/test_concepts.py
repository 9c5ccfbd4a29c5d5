import json
import re
from functools import partial
from pathlib import Path

import pytest

from spacy_sapbert.cli.options import gather_filter, read_ids
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts
from tests.commands import invoke

SAMPLE = Path(__file__).parents[2] / "assets" / "sample"
OBO = """[Term]
id: X:1
name: fever
synonym: "pyrexia" EXACT []
synonym: "heat" RELATED []
xref: UMLS:C0015967

[Term]
id: X:2
name: X-ray burn
is_a: X:1
"""


run_concepts = partial(invoke, "concepts")


@pytest.fixture
def obo(tmp_path) -> Path:
    path = tmp_path / "small.obo"
    path.write_text(OBO, "utf8")
    return path


def test_concepts_writes_concepts_and_prints_a_table(tmp_path):
    output = tmp_path / "concepts.jsonl"
    result = run_concepts(SAMPLE, "--output", output, code=0)
    cuis = [concept.cui for concept in read_concepts(output)]
    assert cuis == sorted({*cuis})
    for line in (f"Wrote {len(cuis)} concepts", "dropped: suppressed rows"):
        assert line in result.output
    run_concepts(
        *(SAMPLE, "-o", output, "--languages", "SPA, FRE", "--sources", "SAMPLE"),
        *("--types", "T047", "--term-types", "PT", "--trade-names", "--suppressed"),
        *("--source-rank", "SAMPLE", "--exclude-term-types", "SY", "--force"),
        *("--cui-pattern", r"C\d+", "--on-error", "skip"),
        code=0,
    )
    concepts = list(read_concepts(output))
    assert concepts
    assert all("T047" in concept.types for concept in concepts)
    names = {name for concept in concepts for name in concept.aliases}
    assert "Asma" in names
    assert "Asthma" not in names


def test_concepts_counts_what_it_says(tmp_path):
    table = tmp_path / "codes.csv"
    table.write_text("id;name;synonyms\nA;Fever;pyrexia|heat\nB;Cough;-\n", "utf8")
    result = run_concepts(table, "--output", tmp_path / "c.jsonl", code=0)
    counts = re.findall(r"^(\S.*?)  +(\d+) *$", result.output, re.MULTILINE)
    assert counts == [
        ("read: codes.csv", "2"),
        ("dropped: names without a letter or digit", "1"),
        ("kept: names", "4"),
        ("concepts", "2"),
    ]


def test_concepts_passes_options_to_an_ontology_reader(tmp_path, obo):
    output = tmp_path / "concepts.jsonl"
    options = ("--ids", "xref", "--scopes", "EXACT,RELATED", "--type", "T184")
    run_concepts(obo, "-o", output, *options, code=0)
    (concept,) = read_concepts(output)
    names = ["fever", "pyrexia", "heat"]
    sources = {"X": [0, 1, 2]}
    expected = Concept("C0015967", names, ["T184"], {"X": ["1"]}, sources=sources)
    assert concept == expected


def test_concepts_leaves_out_options_that_a_format_lacks_if_asked(tmp_path, obo):
    output = tmp_path / "concepts.jsonl"
    options = ("--languages", "ENG", "--trade-names", "--type", "T184")
    result = run_concepts(obo, "-o", output, *options, code=1)
    assert "[E113]" in result.output
    where_known = ("--where-known", "languages=ENG,trade-names")
    result = run_concepts(obo, "-o", output, *options, *where_known, code=0)
    assert "trade-names" not in result.output
    assert [concept.types for concept in read_concepts(output)] == [["T184"]] * 2
    # others than these were given by somebody who expects that they have an effect
    for other in (("--languages", "SPA"), ("--suppressed",)):
        words = ("-o", output, "--force", *options, *other, *where_known)
        result = run_concepts(obo, *words, code=1)
        assert f"[E113] Expected options of the format obo, but got `{other[0]}`" in (
            " ".join(result.output.split())
        )


def test_concepts_adds_names_and_retired_ids(tmp_path, obo):
    output, report = tmp_path / "concepts.jsonl", tmp_path / "report.json"
    own = tmp_path / "own.jsonl"
    own.write_text('{"cui": "C0015967", "name": "Febris"}\n', "utf8")
    retired = tmp_path / "retired.tsv"
    retired.write_text("C0000009\tUMLS:C0015967\nC0000008\tC0000007\n", "utf8")
    files = ("--xrefs", obo, "--retired", retired)
    result = run_concepts(own, *files, "--output", output, "--report", report, code=0)
    (concept,) = read_concepts(output)
    assert concept.aliases == ["Febris", "fever", "pyrexia"]
    assert concept.sources == {"X": [1, 2]}
    assert concept.retired == ["C0000009"]
    inputs = json.loads(report.read_text("utf8"))["inputs"]
    assert [each["format"] for each in inputs] == ["jsonl", "obo", "retired ids"]
    assert inputs[1]["counts"]["names added"] == 2
    assert inputs[2]["counts"] == {"retired ids added": 1}
    assert inputs[2]["dropped"] == {"retired ids that lead to no concept": 1}
    assert "names added" in result.output


def test_concepts_names_unknown_parents_and_circles(tmp_path):
    path, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    report = tmp_path / "report.json"
    parents = {"A": ["B"], "B": ["C"], "C": ["A", "Z1"], "D": ["A"], "E": ["D", "Z2"]}
    rows = (
        {"cui": c, "aliases": [f"name {c}"], "parents": p} for c, p in parents.items()
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf8")
    words = ["concepts", str(path), "-o", str(output), "--report", str(report)]
    result = invoke(*words, code=0)
    problems = [
        "2 ids of parents that are no concepts, e.g. Z1 of C, Z2 of E.",
        "3 concepts in circles of parents, e.g. A under B, B under C.",
    ]
    assert json.loads(report.read_text("utf8"))["hierarchy"] == problems
    assert all(problem in result.output for problem in problems)


def test_ids_of_a_filter_are_one_a_line(tmp_path):
    path = tmp_path / "ids.txt"
    path.write_text("# why\n\nC1\tFever, high\r\n MONDO:5 \nC1\n\t\n")
    assert read_ids(path) == ["C1", "MONDO:5"]
    path.write_text("C1\nFever, high\n")
    with pytest.raises(SapbertError, match="E117.*ids.txt:2"):
        read_ids(path)
    path.write_text("# none\n")
    with pytest.raises(SapbertError, match="E106"):
        gather_filter(allow=path)
    assert gather_filter(deny=path) == {}
