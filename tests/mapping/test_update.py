"""Links of an old release in a new one: ids that stay, move, are gone or changed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.excel import text_of
from spacy_sapbert.kb.edits.diff import compare_kbs
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.verification.update import Link, Updater
from spacy_sapbert.linking.options import LinkOptions
from spacy_sapbert.mapping.run import TermColumns, map_table
from spacy_sapbert.mapping.tables import read_rows, write_table
from spacy_sapbert.mapping.update import update_file
from spacy_sapbert.pipeline.link_files import LinkJob, link_files
from spacy_sapbert.vocabularies.concepts import Concept
from tests.commands import invoke
from tests.thousand_names import make_concepts

OLD = [
    Concept("C1", ["Heart attack", "Myocardial infarction"]),
    Concept("C2", ["Fever", "Pyrexia"]),
    Concept("C3", ["Kidney stone", "Renal calculus"]),
    Concept("C4", ["Old illness"]),
    Concept("C5", ["Asthma", "Wheezing"]),
    Concept("C6", ["Migraine"]),
]
# C1 and its earlier id became C11; C4 is gone; C5 was split; C6 is as it was.
NEW = [
    Concept("C11", ["Heart attack", "Myocardial infarction"], retired=["C1", "C0"]),
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
def releases(make_kb: Callable[..., Path], tmp_path_factory: Any) -> Releases:
    folders = [
        make_kb(tmp_path_factory.mktemp(name), concepts)
        for name, concepts in (("old", OLD), ("new", NEW))
    ]
    return Releases((folders[0], folders[1]), *map(load_kb, folders))


CASES = [
    (Link("Migraine", "C6"), "kept", "C6", None),
    (Link("Heart attack", "C1"), "moved", "C11", None),
    (Link("Heart attack", "C0"), "moved", "C11", None),
    (Link("Heart attack", "C1", by_person=True), "moved", "C11", None),
    (Link("Old illness", "C4", by_person=True), "review", "C4", None),
    (Link("Fever", "C4"), "review", "C2", "C4"),
    (Link("Wheezing", "C5"), "relinked", "C7", "C5"),
    (Link("Wheezing", "C5", by_person=True), "review", "C5", "C7"),
    (Link("Asthma", "C5"), "kept", "C5", None),
    (Link("Nephrolith", None), "relinked", "C3", None),
    (Link("", None), "kept", None, None),
    (Link("Fever", "never known", by_person=True), "review", "never known", "C2"),
]


@pytest.mark.parametrize(("link", "status", "cui", "other"), CASES)
def test_update(
    releases: Releases, link: Link, status: str, cui: str | None, other: str | None
) -> None:
    (update,) = releases.new.update([link], old=releases.old)
    assert (update.status, update.cui) == (status, cui)
    if other is not None:
        assert update.other == other
    assert bool(update.why) == (status != "kept")


def test_a_lost_name_is_said(releases: Releases) -> None:
    (update,) = releases.new.update([Link("Wheezing", "C5")], old=releases.old)
    assert update.why == "C5 lost this name. The text is linked to C7 now."


def test_only_what_can_change_is_linked_again(
    releases: Releases, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    link = KnowledgeBase.link

    def count(kb: KnowledgeBase, texts: Any, **options: Any) -> Any:
        asked.extend(texts)
        return link(kb, texts, **options)

    monkeypatch.setattr(KnowledgeBase, "link", count)
    links = [Link("Migraine", "C6"), Link("Pyrexia", "C2"), Link("Wheezing", "C5")]
    releases.new.update(links * 100, old=releases.old)
    assert asked == ["Wheezing"]


def test_answers_are_those_of_linking_all_again(
    make_kb: Callable[..., Path], thousand_names_kb: Path, tmp_path: Path
) -> None:
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
    old, new = (
        load_kb(thousand_names_kb),
        load_kb(make_kb(tmp_path, concepts, backend="exact")),
    )
    texts = [alias for concept in make_concepts() for alias in concept.aliases]
    links = [
        Link(text, linked.cui)
        for text, linked in zip(texts, old.link(texts), strict=True)
    ]
    updater = Updater(old, new, compare_kbs(old, new))
    updates = updater.update(links)
    answers = [linked.cui for linked in new.link(texts)]
    differ = [
        (link, update.cui, answer)
        for link, update, answer in zip(links, updates, answers, strict=True)
        if update.cui != answer and update.status != "review"
    ]
    assert len(differ) <= 0.01 * len(links), differ[:5]
    again = updater.update(
        [Link(u.text, d.cui) for u, d in zip(links, updates, strict=True)]
    )
    assert [u.cui for u in again] == [u.cui for u in updates]


def read_dicts(path: Path) -> list[dict[str, str]]:
    header, *rows = ([*map(text_of, row)] for row in read_rows(path))
    return [dict(zip(header, row, strict=True)) for row in rows]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_what_link_writes_is_updated(
    releases: Releases, tmp_path: Path, ending: str
) -> None:
    note = tmp_path / "note.txt"
    note.write_text("Heart attack, then wheezing and fever.", "utf8")
    linked, moved = tmp_path / f"linked.{ending}", tmp_path / f"moved.{ending}"
    link_files(LinkJob((note,), linked, kb=str(releases.folders[0]), mentions="names"))
    result = update_file(releases.old, releases.new, linked, moved)
    assert result.counts == {"moved": 1, "relinked": 1, "kept": 1}
    if ending == "jsonl":
        entities = json.loads(moved.read_text("utf8"))["entities"]
    else:
        entities = read_dicts(moved)
    found = [(e["cui"], e.get("update") or "") for e in entities]
    assert found == [("C11", "moved"), ("C7", "relinked"), ("C2", "")]
    assert [row[4] for row in result.rows] == ["moved", "relinked"]
    again = tmp_path / f"again.{ending}"
    second = update_file(releases.old, releases.new, moved, again)
    assert second.counts == {"kept": 3}
    assert again.read_bytes() == moved.read_bytes()


def test_decisions_in_a_mapped_table_stay(releases: Releases, tmp_path: Path) -> None:
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


def test_mappings_are_updated_with_their_metadata(
    releases: Releases, tmp_path: Path
) -> None:
    path, moved = tmp_path / "a.sssom.tsv", tmp_path / "b.sssom.tsv"
    lines = [
        "#curie_map:",
        "#  concept: https://example.org/",
        "subject_label\tpredicate_id\tobject_id\tobject_label\tmapping_justification",
        "Wheezing\tskos:exactMatch\tconcept:C5\tAsthma\tsemapv:ManualMappingCuration",
        "Wheezing\tskos:exactMatch\tconcept:C5\tAsthma\tsemapv:LexicalMatching",
        "Fever\tskos:exactMatch\tconcept:C2\tFever\tsemapv:LexicalMatching",
    ]
    path.write_text("\n".join(lines) + "\n", "utf8")
    update_file(releases.old, releases.new, path, moved)
    assert moved.read_text("utf8").splitlines() == [
        *lines[:2],
        lines[2] + "\tupdate",
        lines[3] + "\treview",
        lines[4].replace("C5\tAsthma", "C7\tWheezing") + "\trelinked",
        lines[5] + "\t",
    ]


def test_ids_of_a_table_that_people_wrote(releases: Releases, tmp_path: Path) -> None:
    table, moved = tmp_path / "codes.csv", tmp_path / "moved.csv"
    write_table(table, ["term", "code"], [["Wheezing", "C5"], ["MI", "C1"], ["x", ""]])
    with pytest.raises(SapbertError, match="E410"):
        update_file(releases.old, releases.new, table, moved)
    report = tmp_path / "report.csv"
    folders = map(str, releases.folders)
    words = ["--text", "term", "--id", "code", "--report", report]
    result = invoke("update", *folders, table, "-o", moved, *words, code=0)
    assert "linked again" in result.output
    assert [row["code"] for row in read_dicts(moved)] == ["C5", "C11", ""]
    rows = [(row["place"], row["status"], row["other"]) for row in read_dicts(report)]
    assert rows == [("2", "review", "C7"), ("3", "moved", "")]


@pytest.mark.parametrize("line", ["{", '{"entities": 1}', '{"entities": ["a"]}', "[]"])
def test_bad_documents_are_errors(
    releases: Releases, tmp_path: Path, line: str
) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"text": "Fever", "entities": []}\n' + line + "\n", "utf8")
    with pytest.raises(SapbertError, match="E117.*:2:"):
        update_file(releases.old, releases.new, path, tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()
