"""Links of an old release in a new one: ids that stay, move, are gone or changed."""

import csv
import json
import re
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.formats.format_table import list_formats
from spacy_sapbert.formats.linked_docs import TO_CORRECT
from spacy_sapbert.io.tables.files import read_rows, write_table
from spacy_sapbert.io.tables.spreadsheets import text_of
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.linking.options import LinkOptions
from spacy_sapbert.mapping.run import TermColumns, map_table
from spacy_sapbert.pipeline.link_files import LinkJob, link_files
from spacy_sapbert.verification.updated_files import update_file
from spacy_sapbert.verification.updates import Link, Updater
from spacy_sapbert.verification.verified_tables import PairColumns
from spacy_sapbert.vocabularies.concepts import Concept
from tests.commands import invoke
from tests.rows import read_dicts
from tests.thousand_names import make_concepts

OLD = [
    Concept("C1", ["Heart attack", "Myocardial infarction"], codes={"OMOP": ["1"]}),
    Concept("C2", ["Fever", "Pyrexia"]),
    Concept("C3", ["Kidney stone", "Renal calculus"]),
    Concept("C4", ["Old illness"]),
    Concept("C5", ["Asthma", "Wheezing"]),
    Concept("C6", ["Migraine"]),
]
# C1 and its earlier id became C11; C4 is gone; C5 was split; C6 is as it was.
NEW = [
    Concept(
        "C11",
        ["Heart attack", "Myocardial infarction"],
        codes={"OMOP": ["11"]},
        retired=["C1", "C0", "C00"],
        retired_by={"C1": "MRCUI.RRF, SY", "C0": "replaced by: C0 → C1; by: C1 → C11"},
    ),
    Concept("C2", ["Fever", "Pyrexia"]),
    Concept("C3", ["Kidney stone", "Renal calculus", "Nephrolith"]),
    Concept("C5", ["Asthma"]),
    Concept("C7", ["Wheezing"]),
    Concept("C6", ["Migraine"]),
]


class Releases(NamedTuple):
    folders: tuple[Path, Path]
    old: KnowledgeBase
    new: KnowledgeBase


@pytest.fixture(scope="module")
def releases(make_kb, tmp_path_factory) -> Releases:
    folders = [
        make_kb(tmp_path_factory.mktemp(name), concepts)
        for name, concepts in (("old", OLD), ("new", NEW))
    ]
    return Releases((folders[0], folders[1]), *map(load_kb, folders))


CASES = [
    (Link("Migraine", "C6"), "kept", "C6", None),
    (Link("Heart attack", "C1"), "moved", "C11", None),
    (Link("Heart attack", "C0"), "moved", "C11", None),
    (Link("Old illness", "C4", by_person=True), "review", "C4", None),
    (Link("Fever", "C4"), "review", "C2", "C4"),
    (Link("Wheezing", "C5"), "relinked", "C7", "C5"),
    (Link("Wheezing", "C5", by_person=True), "review", "C5", "C7"),
    (Link("Nephrolith", None), "relinked", "C3", None),
    (Link("", None), "kept", None, None),
]


@pytest.mark.parametrize(("link", "status", "cui", "other"), CASES)
def test_update(releases, link, status, cui, other):
    (update,) = Updater(releases.old, releases.new).update([link])
    assert (update.status, update.cui) == (status, cui)
    if other is not None:
        assert update.other == other
    assert bool(update.why) == (status != "kept")


def test_what_of_the_release_says_so_is_said(releases):
    links = [Link("Heart attack", cui) for cui in ("C1", "C0", "C00")]
    updates = Updater(releases.old, releases.new).update(links)
    assert [update.why for update in updates] == [
        "The new release retired C1 for C11 (MRCUI.RRF, SY).",
        "The new release retired C0 for C11 (replaced by: C0 → C1; by: C1 → C11).",
        "The new release retired C00 for C11.",
    ]


def test_answers_are_those_of_linking_all_again(make_kb, thousand_names_kb, tmp_path):
    """Of 20 concepts one loses a name, is gone, or has a new id or name."""
    concepts = []
    for number, concept in enumerate(make_concepts()):
        if number % 80 == 0:
            concept = Concept(f"NEW{number}", concept.aliases, retired=[concept.cui])
        elif number % 80 == 20 and len(concept.aliases) > 1:
            concept = Concept(concept.cui, concept.aliases[1:])
        elif number % 80 == 40:
            aliases = [*concept.aliases, f"Zebra disease {number}"]
            concept = Concept(concept.cui, aliases)
        elif number % 80 == 60:
            continue
        concepts.append(concept)
    old = load_kb(thousand_names_kb)
    new = load_kb(make_kb(tmp_path, concepts, backend="exact"))
    some = make_concepts()[::4]  # all that change are among them
    texts = [alias for concept in some for alias in concept.aliases]
    found = old.link(texts)
    links = [Link(text, each.cui) for text, each in zip(texts, found, strict=True)]
    updates = Updater(old, new).update(links)
    answers = [linked.cui for linked in new.link(texts)]
    differ = [
        (link, update.cui, answer)
        for link, update, answer in zip(links, updates, answers, strict=True)
        if update.cui != answer and update.status != "review"
    ]
    assert len(differ) <= 0.01 * len(links), differ[:5]


WRITTEN = [  # the others are for people
    name for name in list_formats("write") if name not in ("table", "html", *TO_CORRECT)
]
TEXT = "Heart attack today.\nThen wheezing, fever."
FOUND, MOVED = ["C1", "C5", "C2", "C6"], ["C11", "C7", "C2", "C6"]


@pytest.fixture(scope="module")
def written(releases, tmp_path_factory) -> dict[str, Path]:
    """What `link` writes in each format with the old release, and a DocBin."""
    folder = tmp_path_factory.mktemp("written")
    notes = folder / "notes.csv"
    notes.write_text(f'id,text\n7,"{TEXT}"\n8,Migraine and nothing else\n', "utf8")
    nlp = spacy.blank("en")
    config = {"kb": str(releases.folders[0])}
    nlp.add_pipe("sapbert_mentions", config=config)
    nlp.add_pipe("sapbert_linker", config=config)
    pipeline = folder / "pipeline"
    nlp.to_disk(pipeline)
    outputs = {}
    for name in WRITTEN:
        ending = {"omop": ".csv", "brat": ""}.get(name)
        if ending is None:
            ending = list_formats()[name].suffixes[0]
        outputs[name] = folder / f"{name}{ending}"
        link_files(
            LinkJob((notes,), outputs[name], pipeline=str(pipeline), format=name)
        )
    docs = DocBin(store_user_data=True)
    for doc in (nlp(TEXT), nlp("Migraine and nothing else")):
        docs.add(doc)
    outputs["spacy"] = folder / "docs.spacy"
    docs.to_disk(outputs["spacy"])
    return outputs


def read_cuis(name: str, path: Path) -> list[str]:
    """Return the ids in a linked file, by another way than `update` reads them."""
    if name == "omop":
        cells = [row["term_modifiers"] for row in read_dicts(path)]
        return [cell.partition("cui=")[2].split(",")[0] for cell in cells]
    return [
        "|".join(chain(*mention.parts))
        for document in read_corpus(path)
        for mention in document.mentions
    ]


def list_files(path: Path) -> dict[str, bytes]:
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in files}


# text, old id; status, new id and name, another id and name, why
REPORTED = [
    ["Heart attack", "C1", "moved", "C11", "Heart attack", "", ""]
    + ["The new release retired C1 for C11 (MRCUI.RRF, SY)."],
    ["wheezing", "C5", "relinked", "C7", "Wheezing", "C5", "Asthma"]
    + ["C5 lost this name. The text is linked to C7 now."],
]


@pytest.mark.parametrize("name", [*WRITTEN, "spacy"])
def test_every_format_of_link_is_updated(releases, written, tmp_path, name):
    old, report = written[name], tmp_path / "report.csv"
    moved, again, same = (
        tmp_path / folder / old.name for folder in ("moved", "again", "same")
    )
    for path in (moved, again, same):
        path.parent.mkdir()
    assert read_cuis(name, old) == FOUND
    result = update_file(releases.old, releases.new, old, moved, report=report)
    assert read_cuis(name, moved) == MOVED
    assert result.counts == {"moved": 1, "relinked": 1, "kept": 2}
    rows = [[*row.values()] for row in read_dicts(report)]
    names = [["", ""], ["Heart attack", "Asthma"]]  # some formats have no old ones
    assert [row.pop(3) for row in rows] in names
    places = [row.pop(0).rpartition(":")[2] for row in rows]
    assert places == (["1", "2"] if name == "omop" else ["0", "25"])
    assert rows == REPORTED
    # nothing is lost: the same file without a new release, and with one again
    update_file(releases.old, releases.old, old, same)
    if name in ("csv", "parquet"):
        assert [
            {k: v for k, v in row.items() if k != "update"} for row in read_dicts(same)
        ] == read_dicts(old)
    elif name not in ("brat", "biocjson", "biocxml"):  # their scores are left out
        assert list_files(same) == list_files(old)
    second = update_file(releases.old, releases.new, moved, again)
    assert second.counts == {"kept": 4}
    assert list_files(again) == list_files(moved)


@pytest.mark.parametrize("name", TO_CORRECT)
def test_documents_that_people_correct_are_not_updated(releases, tmp_path, name):
    notes, path = tmp_path / "notes.csv", tmp_path / "linked.json"
    notes.write_text(f'id,text\n7,"{TEXT}"\n', "utf8")
    link_files(LinkJob((notes,), path, kb=str(releases.folders[0]), format=name))
    if name == "doccano":
        path.write_text(f"[{path.read_text('utf8')}]", "utf8")
    with pytest.raises(SapbertError, match=f"E110.*linked.json.*{name}"):
        update_file(releases.old, releases.new, path, tmp_path / "moved.json")


def test_what_is_moved_has_the_facts_of_the_new_concept(releases, written, tmp_path):
    moved = tmp_path / "moved.jsonl"
    update_file(releases.old, releases.new, written["jsonl"], moved)
    first, wheezing, _ = json.loads(moved.read_text("utf8").splitlines()[0])["entities"]
    (candidate, *_), (other, *_) = first.pop("candidates"), wheezing.pop("candidates")
    usual = {"label": "CONCEPT", "score": 1.0, "types": [], "note": None, "tie": None}
    new = {"cui": "C11", "name": "Heart attack", "codes": {"OMOP": ["11"]}}
    place = {"start": 0, "end": 12, "text": "Heart attack"}
    place["probability"] = candidate["probability"]
    assert first == {**usual, **place, **new, "update": "moved"}
    assert candidate == {**candidate, **new}
    relinked = {"cui": "C7", "name": "Wheezing", "codes": {}}
    place = {"start": 25, "end": 33, "text": "wheezing"}
    place["probability"] = other["probability"]
    assert wheezing == {**usual, **place, **relinked, "update": "relinked"}
    assert other == {**other, **relinked}
    update_file(releases.old, releases.new, written["biocjson"], tmp_path / "m.json")
    (document, *_) = json.loads((tmp_path / "m.json").read_text())["documents"]
    infons = document["passages"][0]["annotations"][0]["infons"]
    assert (infons["identifier"], infons["codes"]) == ("C11", '{"OMOP": ["11"]}')
    update_file(releases.old, releases.new, written["omop"], tmp_path / "moved.csv")
    assert read_dicts(tmp_path / "moved.csv")[0]["note_nlp_concept_id"] == "11"


def test_what_is_no_concept_any_more_has_no_id(releases, tmp_path):
    path, moved = tmp_path / "a.pubtator", tmp_path / "b.pubtator"
    path.write_text("1|t|... Fever\n1|a|\n1\t0\t3\t...\tX\tC4\n", "utf8")
    assert update_file(releases.old, releases.new, path, moved).counts == {"review": 1}
    assert read_cuis("pubtator", moved) == [""]
    known = {"cui": "C4", "name": "Old", "types": ["T1"], "codes": {"OMOP": ["4"]}}
    entity = {"start": 0, "end": 3, "text": "...", "label": "X", **known}
    path, moved = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    path.write_text(json.dumps({"text": "... Fever", "entities": [entity]}), "utf8")
    update_file(releases.old, releases.new, path, moved)
    (found,) = json.loads(moved.read_text("utf8"))["entities"]
    nothing = {"cui": None, "name": None, "types": [], "codes": {}}
    assert found == {**found, **nothing, "update": "review"}


@pytest.mark.parametrize("name", ["jsonl", "csv"])
def test_numbers_that_json_lacks_become_null(releases, written, tmp_path, name):
    path, moved = tmp_path / f"a.{name}", tmp_path / f"b.{name}"
    text = written[name].read_text("utf8")
    assert re.search('"score"+: 1.0', text)
    path.write_text(re.sub('("score"+: )1.0', r"\1NaN", text), "utf8")
    update_file(releases.old, releases.new, path, moved)
    assert read_cuis(name, moved) == MOVED
    assert re.search('"score"+: null', moved.read_text("utf8"))


def test_a_short_form_is_what_its_document_defines(releases, tmp_path):
    path, moved = tmp_path / "a.pubtator", tmp_path / "b.pubtator"
    path.write_text("1|t|Then wheezing (WH).\n1|a|\n1\t15\t17\tWH\tX\tC5\n", "utf8")
    update_file(releases.old, releases.new, path, moved)
    assert read_cuis("pubtator", moved) == ["C7"]


def test_ids_that_people_chose_move_only_if_they_were_retired(
    releases, written, tmp_path
):
    moved, report = tmp_path / "moved.pubtator", tmp_path / "report.csv"
    words = [*releases.folders, written["pubtator"], "-o", moved, "--report", report]
    invoke("update", *words, "--by-people", code=0)
    assert read_cuis("pubtator", moved) == ["C11", "C5", "C2", "C6"]
    statuses = [(row["status"], row["other"]) for row in read_dicts(report)]
    assert statuses == [("moved", ""), ("review", "C7")]


@pytest.mark.parametrize(
    ("name", "content", "output", "code"),
    [
        ("a.pubtator", "1|t|Fever\n1|a|\n1\t0\t5\tFever\tX\tC2|C3\n", None, "E117"),
        ("a.pubtator", "1|t|Fever\n1|a|\n", "b.csv", "E110"),
        ("a.csv", "term,code\nFever,C2\n", "b.sssom.tsv", "E110"),
        *(
            (
                "a.jsonl",
                f'{{"text": "Fever", "entities": []}}\n{line}\n',
                None,
                "E117.*:2:",
            )
            for line in (
                "{",
                '{"entities": ["a"]}',
                f'{{"a": {"[" * 300}{"]" * 300}}}{" " * (1 << 20)}',
            )
        ),
    ],
)
def test_what_cannot_be_read_or_written_again_is_an_error(
    releases, tmp_path, name, content, output, code
):
    path, moved = tmp_path / name, tmp_path / (output or f"moved-{name}")
    path.write_text(content, "utf8")
    with pytest.raises(SapbertError, match=code):
        update_file(releases.old, releases.new, path, moved)
    assert not moved.exists()


def test_decisions_in_a_mapped_table_stay(releases, tmp_path):
    table, mapped = tmp_path / "terms.csv", tmp_path / "mapped.csv"
    write_table(table, ["term"], [["Wheezing"], ["Wheezing"], ["Heart attack"]])
    map_table(releases.old, table, mapped, TermColumns("term"), LinkOptions(k=1))
    header, *rows = read_rows(mapped)
    rows[1][[*header].index("match_chosen")] = "C5"
    write_table(mapped, [*map(text_of, header)], rows)
    update_file(releases.old, releases.new, mapped, tmp_path / "moved.csv")
    machine, person, heart = read_dicts(tmp_path / "moved.csv")
    assert (machine["match_id"], machine["update"]) == ("C7", "relinked")
    assert (person["match_chosen"], person["update"]) == ("C5", "review")
    assert (heart["match_id"], heart["match_name"]) == ("C11", "Heart attack")


def test_cells_that_do_not_change_are_written_as_they_were_read(releases, tmp_path):
    path, moved = tmp_path / "codes.csv", tmp_path / "moved.tsv"
    path.write_text("term,code,note\nWheezing,-,=1+1\nMI,C1,' =2\n", "utf8")
    columns = PairColumns("term", "code")
    update_file(releases.old, releases.new, path, moved, columns)
    assert moved.read_text("utf8").splitlines() == [
        "term\tcode\tnote\tupdate",
        "Wheezing\t-\t=1+1\treview",
        "MI\tC11\t' =2\tmoved",
    ]


def test_a_kept_field_that_is_named_like_a_formula(releases, tmp_path):
    notes, linked, moved = (tmp_path / f"{name}.csv" for name in ("a", "b", "c"))
    notes.write_text("id,text,=x\n1,Heart attack,=y\n", "utf8")
    kb = str(releases.folders[0])
    link_files(LinkJob((notes,), linked, kb=kb, format="csv", keep=("=x",)))
    update_file(releases.old, releases.new, linked, moved)
    for path in (linked, moved):
        header, row = csv.reader(path.read_text("utf8").splitlines())
        assert dict(zip(header, row, strict=True))["'=x"] == "'=y"


def test_mappings_are_updated_with_their_metadata(releases, tmp_path):
    path, moved = tmp_path / "a.sssom.tsv", tmp_path / "b.sssom.tsv"
    lines = [
        "#curie_map:",
        "#  concept: https://example.org/",
        "subject_label\tpredicate_id\tobject_id\tobject_label\tmapping_justification",
        "Wheezing\tskos:exactMatch\tconcept:C5\tAsthma\tsemapv:ManualMappingCuration",
        "Wheezing\tskos:exactMatch\tconcept:C5\tAsthma\tsemapv:LexicalMatching",
        "Fever\tskos:exactMatch\tconcept:C2\tFever\tsemapv:LexicalMatching",
        "Wheezing\tskos:relatedMatch\tconcept:C5\tAsthma\tsemapv:LexicalMatching",
    ]
    path.write_text("\n".join(lines) + "\n", "utf8")
    update_file(releases.old, releases.new, path, moved)
    assert moved.read_text("utf8").splitlines() == [
        *lines[:2],
        lines[2] + "\tupdate",
        lines[3] + "\treview",
        lines[4].replace("C5\tAsthma", "C7\tWheezing") + "\trelinked",
        lines[5] + "\t",
        lines[6] + "\treview",  # it does not say that the text means the concept
    ]
    again = tmp_path / "c.sssom.tsv"  # the column is there already
    update_file(releases.old, releases.new, moved, again)
    assert again.read_text("utf8") == moved.read_text("utf8")


def test_ids_of_a_table_that_people_wrote(releases, tmp_path):
    table, moved = tmp_path / "codes.csv", tmp_path / "moved.csv"
    write_table(table, ["term", "code"], [["Wheezing", "C5"], ["MI", "C1"], ["x", ""]])
    with pytest.raises(SapbertError, match="E410"):
        update_file(releases.old, releases.new, table, moved)
    report = tmp_path / "report.csv"
    folders = map(str, releases.folders)
    words = ["--column", "term", "--id", "code", "--report", report]
    result = invoke("update", *folders, table, "-o", moved, *words, code=0)
    assert "linked again" in result.output
    assert [row["code"] for row in read_dicts(moved)] == ["C5", "C11", ""]
    rows = [(row["place"], row["status"], row["other"]) for row in read_dicts(report)]
    assert rows == [("2", "review", "C7"), ("3", "moved", "")]
