import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from benchmarks.gold_docs import (
    Corpus,
    choose_singles,
    describe_doc,
    parse_config,
    rank_answers,
    read_corpus,
    score_links,
)
from benchmarks.linking import (
    FIGURES,
    check_made,
    describe_first_cuis,
    format_figures,
    isolate,
    main,
    write_entities,
)
from benchmarks.linking_side import ImportTimer, make_docs
from benchmarks.speed import REST, STEPS, describe_equality
from benchmarks.speed import app as speed_app
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.gold_mentions import GoldMention
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts, write_concepts
from spacy_sapbert.vocabularies.jsonl import read_scispacy

app = typer.Typer()
app.command()(main)

PUBTATOR = """1|t|Fever after a heart attack
1|a|Diabetes mellitus, not pre-diabetes, and aspirin.
1\t0\t5\tFever\tDisease\tC0000004
1\t14\t26\theart attack\tDisease\tC0000001
1\t20\t26\tattack\tDisease\tC0000001
1\t27\t44\tDiabetes mellitus\tDisease\tC0000005|C0000003
1\t68\t75\taspirin\tChemical\t-1

2|t|Nothing here
2|a|to be linked.

3|t|Headache
3|a|and fever.
3\t0\t8\tHeadache\tDisease\tC0000007
3\t13\t18\tfever\tDisease\tC0000004
"""


@pytest.fixture
def pubtator_file(tmp_path: Path) -> Path:
    path = tmp_path / "gold.txt"
    path.write_text(PUBTATOR, "utf8")
    return path


def run(command: Any, *arguments: Any) -> Any:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_write_entities_writes_what_scispacy_reads(
    few_concepts: list[Concept], tmp_path: Path
) -> None:
    path = tmp_path / "entities.jsonl"
    write_entities(path, few_concepts)
    first = json.loads(path.read_text("utf8").splitlines()[0])
    assert first == {
        "concept_id": "C0000001",
        "canonical_name": "Myocardial infarction",
        "aliases": ["Heart attack", "MI", "Infarction, Myocardial"],
        "types": ["T047"],
        "definition": "Death of heart muscle for want of blood.",
    }
    for read, concept in zip(read_scispacy(path), few_concepts, strict=True):
        assert (read.cui, read.aliases) == (concept.cui, concept.aliases)
        assert (read.types, read.definition) == (concept.types, concept.definition)


def test_read_corpus_has_the_longest_mentions_as_entities(pubtator_file: Path) -> None:
    corpus = read_corpus(pubtator_file, labels=["Disease"], prefix="UMLS:")
    texts = [[ent.text for ent in doc.ents] for doc in corpus.docs]
    assert texts == [["Fever", "heart attack", "Diabetes mellitus"]] + [
        ["Headache", "fever"]
    ]
    assert corpus.mentions == 6
    assert [gold.parts for gold in corpus.golds[0]] == [
        [["UMLS:C0000004"]],
        [["UMLS:C0000001"]],
        [["UMLS:C0000005"], ["UMLS:C0000003"]],
    ]


@pytest.mark.parametrize(
    ("chosen", "error"),
    [
        ({"labels": ["Gene"]}, "E708"),
        ({"labels": ["Chemical"]}, "E708"),  # without an id
        ({"limit": 2}, "E734"),
    ],
)
def test_read_corpus_without_mentions_to_score_is_an_error(
    pubtator_file: Path, chosen: Any, error: str
) -> None:
    with pytest.raises(SapbertError, match=error):
        read_corpus(pubtator_file, **chosen)


def test_make_docs_restores_described_docs(pubtator_file: Path) -> None:
    docs = read_corpus(pubtator_file).docs
    asked = json.loads(json.dumps([describe_doc(doc, doc.ents) for doc in docs]))
    for made, doc in zip(make_docs(docs[0].vocab, asked), docs, strict=True):
        assert made.text == doc.text
        assert [(e.start, e.end, e.label_) for e in made.ents] == [
            (e.start, e.end, e.label_) for e in doc.ents
        ]


def test_choose_singles_returns_distinct_mentions(pubtator_file: Path) -> None:
    docs = read_corpus(pubtator_file).docs
    singles = choose_singles(docs, 100)
    assert singles == choose_singles(docs, 100)
    made = list(make_docs(docs[0].vocab, singles))
    assert {doc.text.strip() for doc in made} == {
        "Fever",
        "heart attack",
        "Diabetes mellitus",
        "aspirin",
        "Headache",
        "fever",
    }
    assert all([ent.text for ent in doc.ents] == [doc.text.strip()] for doc in made)
    assert len(choose_singles(docs, 2)) == 2


def test_parse_config_nests_sections() -> None:
    assert parse_config(["encoder.@architectures=x.Y.v1", "encoder.n=64", "k=3"]) == {
        "encoder": {"@architectures": "x.Y.v1", "n": 64},
        "k": 3,
    }
    assert parse_config(["fusion=rrf", "threshold=null", 'kb="7"', "a=b=c"]) == {
        "fusion": "rrf",
        "threshold": None,
        "kb": "7",
        "a": "b=c",
    }


@pytest.mark.parametrize("values", [["k"], ["=3"], ["a.=3"], ["a=1", "a.b=1"]])
def test_parse_config_of_another_form_is_an_error(values: list[str]) -> None:
    with pytest.raises(SapbertError, match="E732"):
        parse_config(values)


def test_check_made_of_other_inputs_is_an_error(tmp_path: Path) -> None:
    check_made(tmp_path, {"concepts": "one"})
    check_made(tmp_path, {"concepts": "one"})
    with pytest.raises(SapbertError, match="E733"):
        check_made(tmp_path, {"concepts": "other"})


def test_rank_answers_ties_equal_scores_if_ties_count() -> None:
    found = [("C1", 0.9), ("C2", 0.90000001), ("C3", 0.5)]
    tied = rank_answers(found, {"C3": "C4"}, ties=True)
    assert [(answer.cui, answer.score) for answer in tied] == [
        ("C1", -1),
        ("C2", -1),
        ("C4", -2),
    ]
    ordered = rank_answers(found, {}, ties=False)
    assert [answer.score for answer in ordered] == [-1, -2, -3]


def test_score_links_scores_by_concepts() -> None:
    parts: list[Any] = [[["C1"]], [["C1"]], [["C2"]], [], [["C9"]]]
    golds = [GoldMention(0, "", "the same text", part) for part in parts]
    answers = [
        [("C1", 0.9), ("C2", 0.9)],  # a tie, the first is right
        [("C1", 0.9), ("C2", 0.8)],  # right
        [("C1", 0.9), ("C2", 0.8)],  # wrong, right among five
        [],  # not judged
        [("C1", 0.4)],  # the dictionary has no C9
    ]
    corpus = Corpus([], [golds[:2], golds[2:]], 5)
    live = {"C1": "C1", "C2": "C2"}
    scores = score_links(corpus, [answers[:2], answers[2:]], live.get, {})
    assert scores == {
        "strict": 0.25,
        "answered": 0.5,
        "linked": 0.8,
        "coverage": 0.75,
        "judged": 4,
    }


def test_format_figures_has_the_ratio() -> None:
    theirs, ours = dict.fromkeys(FIGURES, 4.0), dict.fromkeys(FIGURES, 2.0)
    sides = {"scispaCy": {"figures": theirs}, "ours": {"figures": ours}}
    table = {row[0]: row for row in format_figures(sides)}
    assert table[""][-1] == "Ours, times as good as scispaCy"
    assert table["Imports"] == ("Imports", "4.00 s", "2.00 s", "2.00×")
    assert table["Acc@1, first answer"][-1] == "0.50×"
    assert format_figures({"ours": sides["ours"]})[1] == ("Imports", "2.00 s")
    ours["imports"] = 0.0
    assert format_figures(sides)[1][-1] == "–"


def test_describe_first_cuis_counts_other_concepts() -> None:
    before = [[[["C1", 0.9], ["C2", 0.8]], []], [[["C3", 0.7]]]]
    ours = [[[["C1", 0.8]], []], [[["C4", 0.7]]]]
    line = "1 of 3 mentions have another first CUI"
    assert describe_first_cuis(before, ours) == line
    assert describe_first_cuis(ours, ours) == "all 3 mentions have the same first CUI"


def test_import_timer_is_removed_at_the_end() -> None:
    before = __import__
    with ImportTimer() as timer:
        import decimal  # noqa: F401
    assert timer.seconds > 0
    assert __import__ is before


def test_isolate_hides_the_checkout() -> None:
    code = "import benchmarks.linking_side, sys; print(*sys.path, sep='\\n')"
    with isolate() as env:
        done = subprocess.run(
            [sys.executable, "-S", "-c", code],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
    checkout = Path(__file__).parents[2]
    assert checkout not in [Path(place) for place in done.stdout.splitlines()]


def test_linking_measures_another_checkout_in_turns(
    sample_kb: Path, concepts_file: Path, pubtator_file: Path, tmp_path: Path
) -> None:
    out, output = tmp_path / "out", tmp_path / "results.json"
    out.mkdir()
    options = ["--out", out, "--kb", sample_kb, "--label", "Disease"]
    options += ["--before", Path(__file__).parents[2]]
    options += ["--rounds", 1, "--threads", 1, "--config", "k=3", "--output", output]
    done = run(app, pubtator_file, concepts_file, *options)
    assert done.exit_code == 0, done.output
    assert "5 of 6 mentions on token boundaries" in done.output
    data = json.loads(output.read_text("utf8"))
    assert "all 5 mentions have the same first CUI" in done.output
    assert data["sides"]["before"]["figures"]["answered"] == 0.8
    side = data["sides"]["ours"]
    assert [*side["figures"]] == [*FIGURES]
    assert all(value >= 0 for value in side["figures"].values())
    # the composite cannot be right: it has two concepts
    assert side["figures"]["answered"] == 0.8
    assert side["figures"]["linked"] == 1
    assert (side["judged"], side["coverage"]) == (5, 1)
    assert data["settings"]["ours"] == {"k": 3}
    assert str(tmp_path) not in output.read_text("utf8")


def test_linking_measures_scispacy_in_its_environment(
    sample_kb: Path, concepts_file: Path, pubtator_file: Path, tmp_path: Path
) -> None:
    python = os.environ.get("SCISPACY_PYTHON")
    if not python:
        pytest.skip("SCISPACY_PYTHON names no interpreter that has scispaCy")
    out, output = tmp_path / "out", tmp_path / "results.json"
    out.mkdir()
    (out / "kb").symlink_to(sample_kb)
    concepts = tmp_path / "concepts.jsonl"
    # scispaCy's index has only 3-grams of ten or more names
    lines = [Concept(f"X{i}", [f"fever {i}", f"headache {i}"]) for i in range(12)]
    write_concepts(concepts, [*read_concepts(concepts_file), *lines])
    options = ["--out", out, "--encoder", "not used", "--rounds", 1]
    options += ["--scispacy-python", python, "--output", output]
    done = run(app, pubtator_file, concepts, *options)
    assert done.exit_code == 0, done.output
    sides: dict[str, Any] = json.loads(output.read_text("utf8"))["sides"]
    assert [*sides] == ["scispaCy", "ours"]
    assert sides["scispaCy"]["figures"]["linked"] > 0
    assert "scispacy" in sides["scispaCy"]["versions"]


def test_profile_has_every_step(sample_kb: Path, pubtator_file: Path) -> None:
    arguments = ["profile", pubtator_file, "--kb", sample_kb, "--rounds", 1]
    done = run(speed_app, *arguments)
    assert done.exit_code == 0, done.output
    rows = [line.split("  ")[0].strip() for line in done.output.splitlines()]
    shown = [row for row in rows if row in {*STEPS, REST, "all"}]
    assert shown == [*STEPS, REST, "all"]
    assert "2 documents, 6 mentions" in done.output


def test_describe_equality_finds_other_scores_and_concepts() -> None:
    one = [[{"cui": "C1", "score": 0.9}, {"cui": "C2", "score": 0.8}], []]
    other = [[{"cui": "C1", "score": 0.9}, {"cui": "C2", "score": 0.7}], []]
    assert describe_equality(one, one) == "yes"
    assert describe_equality(other, one) == "but for 1 scores, by up to 1e-01"
    assert describe_equality([[], []], one) == "no"
