"""Concepts added and removed without rebuilding, and what differs afterwards."""

import json
import warnings
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import srsly

from spacy_sapbert.cli.kb.description import describe_manifest
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.reading import RECORD_BYTES
from spacy_sapbert.kb.edits import diff
from spacy_sapbert.kb.edits.change import add_concepts, remove_concepts
from spacy_sapbert.kb.edits.diff import compare_kbs
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.store import Store
from spacy_sapbert.linking.filters import Filter
from spacy_sapbert.linking.text import name_keys
from spacy_sapbert.serve.lookup import find_names
from spacy_sapbert.vocabularies.compare import Difference, describe_difference
from spacy_sapbert.vocabularies.concepts import Concept
from tests.commands import invoke

NEW = Concept(
    "L0000001",
    ["Ward fever", "WF"],
    types=["T184"],
    codes={"LOCAL": ["7"]},
    parents=["C0000004"],
    languages={"ENG": [0, 1]},
    sources={"LOCAL": [0]},
    related_codes={"broader": {"ICD10": ["R50", "A00"]}, "narrower": {"ICD10": ["Z1"]}},
)


EDITS = [*srsly.read_jsonl(Path(__file__).parent / "edits.jsonl")]
MENTIONS = ["mi", "diabetes", "pyrexia", "hot", "fever", "stemi", "heart attack", "wf"]
FULL_TEXT = "SCAN main.words"  # its index, and its settings, which are a few rows


def names_of(kb: KnowledgeBase, text: str) -> list[str]:
    """The names that have the key of a text."""
    names = kb.store.names_of_keys(name_keys(text, "english"))
    return [name.alias for some in names.values() for name in some]


def first(kb: KnowledgeBase, mention: str) -> list[object]:
    candidate = kb.link([mention])[0].candidates[0]
    return [candidate[key] for key in ("cui", "name", "alias")]


def describe(kb: KnowledgeBase) -> dict[str, Any]:
    """All concepts without empty fields, and what some mentions find by name."""
    concepts = {c.cui: {k: v for k, v in asdict(c).items() if v} for c in kb.values()}
    named = {mention: sorted(names_of(kb, mention)) for mention in MENTIONS}
    links = {mention: first(kb, mention) for mention in MENTIONS if named[mention]}
    trees = {"children": kb.children("C0000003"), "I21": kb.cuis("ICD10CM", "I21")}
    parts = (concepts, named, links, trees)
    return {
        f"{n} {key}": value
        for n, part in enumerate(parts)
        for key, value in part.items()
    }


def test_edits_one_after_the_other(own_kb):
    """What each changes: concepts, names, links and look-ups; None = it is gone."""
    kb = load_kb(own_kb)
    before, made = describe(kb), []
    for (how, *given), _ in EDITS:
        if how == "add":
            kb = add_concepts(kb, [Concept(**concept) for concept in given[0]])
        else:
            kb = remove_concepts(kb, given[0], alias=given[1])
        after = describe(kb)
        assert after == describe(load_kb(own_kb))
        keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        made.append([[how, *given], {key: after.get(key) for key in keys}])
        before = after
    assert made == EDITS
    assert ("Concepts changed or added since", "5") in describe_manifest(kb.manifest)
    assert kb.concept("OLD") == kb["C0000002"]


def test_changes_that_change_nothing_publish_no_version(own_kb, tmp_path):
    (tmp_path / "empty.jsonl").write_text("\n", "utf8")
    done = invoke("kb", "add", own_kb, tmp_path / "empty.jsonl", code=1)
    assert "[E106]" in done.output
    kb = load_kb(own_kb)
    assert add_concepts(kb, []) is kb
    hot = Concept("C0000004", ["hot"])
    kb = add_concepts(kb, [hot])
    assert add_concepts(kb, [hot]) is kb
    assert remove_concepts(kb, []) is kb
    assert {path.name for path in own_kb.glob("v*")} == {"v1", "v2"}
    invoke("kb", "add", own_kb, "--cui", "C0000004", "--alias", "hot", code=0)
    assert {path.name for path in own_kb.glob("v*")} == {"v1", "v2"}


@pytest.mark.parametrize(
    "concept",
    [
        Concept("L1", ["ward 1", " \t"]),
        Concept("L1", []),
        Concept(" ", ["ward 1"]),
        Concept("L1", ["頭痛"]),
        Concept("L1", ["ward 1"], languages={"ENG": [3]}),
        Concept("L1", ["ward 1"], definition="x" * (RECORD_BYTES + 1)),
    ],
    ids=["blank", "none", "blank id", "script", "at", "large"],
)
def test_add_concepts_that_could_not_be_read_again_is_an_error(own_kb, concept):
    before = load_kb(own_kb).manifest
    with pytest.raises(SapbertError, match="E117|E3.*L1"):
        add_concepts(load_kb(own_kb), [concept])
    assert load_kb(own_kb).manifest == before
    kb = add_concepts(load_kb(own_kb), [Concept("L2", ["ward 2"])])
    assert "L2" in remove_concepts(kb, ["C0000005"])


@pytest.fixture
def edited_kb(own_kb) -> KnowledgeBase:
    """The sample with concepts changed, added and removed."""
    languages, sources = {"SPA": [1]}, {"LOCAL": [0, 1], "OTHER": [1]}
    added = [
        NEW,
        Concept("C0000001", ["STEMI"], sources={"OTHER": [0]}),
        Concept("C0000007", ["sore head"]),
        Concept("L1", ["ab", "hache"], ["T121"], {"LOCAL": ["8", "7"]}, ["C0000004"],
                retired=["OLD"], retired_by={"OLD": "merged"}, languages=languages,
                sources=sources),
    ]  # fmt: skip
    return remove_concepts(add_concepts(load_kb(own_kb), added), ["C0000002"])


# Methods of the store, their arguments, and what they return. Those from `WHOLE` on
# read all concepts or names.
STORE = [*srsly.read_jsonl(Path(__file__).parent / "store.jsonl")]
FILTERS = [*srsly.read_jsonl(Path(__file__).parent / "filters.jsonl")]
WHOLE = [name for name, *_ in STORE].index("count_concepts")


def call(store: Store, name: str, values: list[Any]) -> Any:
    """What a method of the store returns, as JSON; the last value may have options."""
    options = values[-1] if values and isinstance(values[-1], dict) else {}
    got = getattr(store, name)
    if callable(got):
        got = got(*values[: len(values) - bool(options)], **options)
    if isinstance(got, set):
        got = sorted(got)
    elif isinstance(got, Iterator):
        got = [asdict(one) if isinstance(one, Concept) else one for one in got]
    return json.loads(json.dumps(got))


def test_store_of_an_edited_kb_by_hand(edited_kb):
    store = edited_kb.store
    assert [[*asked, call(store, *asked)] for *asked, _ in STORE] == STORE
    assert store.known_cuis(["L1", "\ud800"]) == {"L1"}
    found = store.entries(range(5000))  # more than one statement may have
    assert sorted(found) == [*range(4), *range(5, 27)]  # but "Mitral insufficiency"
    with pytest.raises(SapbertError, match="E306.*readonly"):
        store.query("DELETE FROM main.concepts")


def test_filters_of_an_edited_kb_by_hand(edited_kb):
    """What each leaves: concepts and names, or what it says."""
    kb, entries = edited_kb, edited_kb.entries(range(edited_kb.rows))
    numbers = kb.store.numbers_of_cuis(kb)
    found: list[list[Any]] = []
    for given, *_ in FILTERS:
        with warnings.catch_warnings(action="always", record=True) as caught:
            try:
                left = kb.resolve_filter(Filter(**given))
            except SapbertError as error:
                found.append([given, str(error)])
                continue
        cuis = [cui for cui, number in numbers.items() if left.concepts[number]]
        names = {
            entry.alias
            for row in np.flatnonzero(left.rows).tolist()
            for entry in entries[row]
            if left.matches(entry)
        }
        found.append([given, cuis, sorted(names), *(str(w.message) for w in caught)])
    assert found == FILTERS


def test_no_look_up_in_an_edited_kb_reads_a_whole_table(edited_kb):
    kb, store = edited_kb, edited_kb.store
    statements: list[str] = []
    connection = store.database.connection
    connection.set_trace_callback(statements.append)
    for name, values, _ in STORE[:WHOLE]:
        call(store, name, values)
    for look_up in (
        lambda: store.concept("C0000001"),
        lambda: store.names_of_keys(name_keys("fever", "english")),
        lambda: store.rows_of_keys([b"0"]),
        lambda: find_names(kb, "fev", 3),
    ):
        look_up()
    connection.set_trace_callback(None)
    assert len(statements) >= len(STORE)
    for sql in statements:
        if sql.startswith("--"):  # of SQLite itself
            continue
        plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()
        steps = [detail for *_, detail in plan]
        scans = [step for step in steps if step.startswith("SCAN main.")]
        assert all(step.startswith(FULL_TEXT) for step in scans), sql


def test_remove_concepts_names_the_cause(own_kb):
    kb = load_kb(own_kb)
    with pytest.raises(SapbertError, match="no 'C7777777'"):
        remove_concepts(kb, ["C7777777"])
    with pytest.raises(SapbertError, match=rf"E336.*{kb['C0000001'].aliases[0]}"):
        remove_concepts(kb, ["C0000001"], alias="nothing")
    more = Concept("C0000004", ["fifth", "sixth"])
    kb = add_concepts(kb, [more, Concept("L1", ["Ward fever"])])
    with pytest.raises(SapbertError, match=r"'febrile', 'fifth'\. Correct"):
        remove_concepts(kb, ["C0000004"], alias="nothing")
    with pytest.raises(SapbertError, match="E336.*and another one"):
        remove_concepts(kb, ["L1"], alias="Ward fever")


EXPECTED = [
    Difference(
        *("renamed", "C0000001", ["Myocardial infarction"], ["Heart attack"]),
        "Heart attack",
    ),
    Difference(
        *("moved", "C0000001", ["C0000003"], ["C0000008", "C0000009"], "Heart attack")
    ),
    Difference(
        *("codes", "C0000001", ["ICD10CM:I21"], ["ICD10CM:I21.9"], "Heart attack")
    ),
    Difference(
        *("retired", "C0000002", ["Mitral insufficiency"], ["C0000001"]),
        "Mitral insufficiency",
    ),
    Difference("names", "C0000004", ["febrile"], ["feverish"], "Fever"),
    Difference("removed", "C0000007", ["Headache"], [], "Headache"),
    Difference("added", "C0000009", [], ["Sore throat"], "Sore throat"),
]


@pytest.fixture(scope="module")
def changed_kb(few_concepts, make_kb, tmp_path_factory) -> Path:
    """The sample of another release."""
    by_cui = {concept.cui: concept for concept in few_concepts}
    first, fever = by_cui["C0000001"], by_cui["C0000004"]
    by_cui["C0000001"] = replace(
        first,
        aliases=["Heart attack", "Myocardial infarction", *first.aliases[2:]],
        parents=["C0000008", "C0000009"],
        codes={"ICD10CM": ["I21.9"]},
        retired=["C9999999", "C0000002"],
    )
    by_cui["C0000004"] = replace(fever, aliases=[*fever.aliases[:-1], "feverish"])
    del by_cui["C0000002"], by_cui["C0000007"]
    by_cui["C0000009"] = Concept("C0000009", ["Sore throat"])
    folder = tmp_path_factory.mktemp("changed")
    return make_kb(folder, [*reversed(by_cui.values())], backend="exact")


@pytest.mark.parametrize("page", [1, 5000])
def test_compare_kbs_yields_all_differences(page, sample_kb, changed_kb, monkeypatch):
    monkeypatch.setattr(diff, "PAGE", page)
    old, new = load_kb(sample_kb), load_kb(changed_kb)
    assert list(compare_kbs(old, new)) == EXPECTED
    back = [one.change for one in compare_kbs(new, old)]
    assert back == ["renamed", "moved", "codes", "added", "names", "added", "removed"]
    assert not list(compare_kbs(new, new))


def test_kb_diff_writes_json_lines(sample_kb, changed_kb, tmp_path):
    output = tmp_path / "changes.jsonl"
    words = ["kb", "diff", str(sample_kb), str(changed_kb)]
    printed = invoke(*words, code=0).output
    assert "moved C0000001 Heart attack: -C0000003 +C0000008, C0000009" in printed
    invoke(*words, "--output", output, code=0)
    assert [Difference(**line) for line in srsly.read_jsonl(output)] == EXPECTED
    many = Difference("names", "X:1", [], [*"abcde"], "Fever")
    assert describe_difference(many) == "names X:1 Fever: +a, b, c and 2 more"
