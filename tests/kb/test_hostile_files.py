"""Folders whose checksums a hostile author made: no code, no crash, no hang."""

import json
import sqlite3
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.database import Database
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.folder.publication import describe_files, go_back
from spacy_sapbert.kb.folder.versions import (
    compute_digest,
    list_versions,
    read_current,
    read_version,
)
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.kb.probe import probe_kb
from spacy_sapbert.kb.store import Store
from spacy_sapbert.linking.text import name_keys
from spacy_sapbert.vocabularies.concepts import Concept
from tests.building import make_calibration

ENDLESS = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
)


def sign(folder: Path, **changes: Any) -> None:
    """Make the checksums and the digest of a folder valid again."""
    version = read_current(folder)
    path = folder / version / "meta.json"
    meta = json.loads(path.read_text("utf8"))
    described = {name: describe_files(folder / name) for name in list_versions(folder)}
    for name, record in meta["files"].items():
        found = described[record.get("version") or version][name]
        record |= {"size": found.size, "sha256": found.sha256}
    for place, value in changes.items():
        *parents, key = place.split("__")
        target = meta
        for parent in parents:
            target = target[parent]
        target[key] = value
    meta["digest"] = compute_digest(meta)
    path.write_text(json.dumps(meta), "utf8")


def run_sql(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.executescript(statement)
    connection.commit()
    connection.close()


def use(folder: Path) -> None:
    """Use everything that reads a knowledge base."""
    kb = load_kb(folder)
    kb.link(["fever", "MI", "xyz"], filter={"types": ["T047"]})
    list(kb.concepts())
    for cui in ("C0000001", "C0000005", "C9999999"):
        kb.concept(cui)
        kb.related(cui)
    kb.cuis("ICD10CM", "I21")
    kb.store.names_of_keys(name_keys("fever", "english"))


@pytest.mark.parametrize(
    "sql",
    [
        f"DROP TABLE retired; CREATE VIEW retired AS {ENDLESS}",
        "CREATE TRIGGER t AFTER INSERT ON types BEGIN DELETE FROM types; END",
        "DROP TABLE types",
    ],
)
def test_load_kb_of_other_tables_is_an_error(own_kb, sql):
    run_sql(own_kb / "v1" / "concepts.db", sql)
    sign(own_kb)
    with pytest.raises(SapbertError, match="E306.*other tables"):
        load_kb(own_kb)


def test_a_damaged_index_of_words_is_an_error_or_finds_other_names(own_kb):
    path = own_kb / "v1" / "concepts.db"
    counts = read_version(own_kb).manifest.counts
    random = Random(0)
    for _ in range(20):
        connection = sqlite3.connect(path)
        blocks = connection.execute("SELECT id, block FROM words_data").fetchall()
        id, block = random.choice([row for row in blocks if row[1]])
        damaged = bytearray(block)
        for _ in range(random.randrange(1, 9)):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        connection.execute(
            "UPDATE words_data SET block = ? WHERE id = ?", (damaged, id)
        )
        connection.commit()
        with suppress(SapbertError):
            store = Store(Database(path), counts)
            for words in (["f"], ["fever"], ["myocardial", "inf"]):
                for at_start in (True, False):
                    store.names_with(words, 10, at_start=at_start)
        connection.execute("UPDATE words_data SET block = ? WHERE id = ?", (block, id))
        connection.commit()
        connection.close()


@pytest.mark.parametrize("name", ["removed.json", "concepts.db"])
def test_use_of_the_version_before_repairs_a_damaged_overlay(own_kb, name):
    before = load_kb(own_kb).link(["fever", "ward 1"])
    kb = add_concepts(load_kb(own_kb), [Concept("L1", ["ward 1"])])
    path = kb.version.path(f"overlay/{name}")
    contents = [path.read_bytes()[: 5000 if name == "concepts.db" else -3]]
    if name == "removed.json":
        contents += [b"[]", b'{"C1": [1]}', b"[" * 100_000]
    for content in contents:
        path.write_bytes(content)
        with pytest.raises(SapbertError, match="E306"):
            load_kb(own_kb)
        sign(own_kb)
        with pytest.raises(SapbertError, match=r"E1|E3"):
            add_concepts(load_kb(own_kb), [Concept("L2", ["ward 2"])])
    go_back(own_kb, "v1")
    kb = load_kb(own_kb)
    assert kb.link(["fever", "ward 1"]) == before
    assert kb.manifest.overlay is None
    assert "L2" in add_concepts(kb, [Concept("L2", ["ward 2"])])


NOTHING = {"size": 0, "sha256": "0" * 64}
OUT_OF_RANGE: list[dict[str, Any]] = [
    {"counts__rows": 0},
    {"counts__rows": 22},
    {"encoder__pooling": "x"},
    {"encoder__max_length": 1 << 40},
    {"encoder__width": 31},
    {"encoder__more": 1},
    {"index__backend": "../x"},
    {"index__backend": "exact"},
    {"index__settings__M": 0},
    {"threshold": 1e300},
    {"threshold": -0.1},
    {"nverlay": None},
    {"overlay": {"concepts": 0, "rows": 0, "removed": 0}},
    {"files__index.hnsw__size": -1},
    {"files__index.hnsw__version": "../x"},
    {"files__encoder/config.json__version": "v1"},
    {"files__more.txt": NOTHING},
    {"files__encoder/pytorch_model.bin": NOTHING},
]
# of a calibration
WRONG: list[dict[str, Any]] = [
    {"threshold": float("nan")},
    {"threshold": 1.1},
    {"correction": {"slope": 1.0, "intercept": float("inf")}},
    {"correction": {"slope": 0.0, "intercept": 1.0}},
    {"files": ["train.tsv"]},
]
CALIBRATION = make_calibration().model_dump()
OUTSIDE = ("../evil", "/evil", "encoder/../evil", "encoder/")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *((change, r"E3\d\d") for change in OUT_OF_RANGE),
        *(({"calibration": CALIBRATION | wrong}, "`calibration") for wrong in WRONG),
        *(({f"files__{n}": NOTHING}, f"`files` has {n}, which no") for n in OUTSIDE),
        ({"format": 1}, "format 1"),
        ({"counts": {}}, "`counts.concepts`: Field required"),
    ],
    ids=str,
)
def test_load_kb_meta_json_out_of_range_is_an_error(own_kb, change, message):
    sign(own_kb, **change)
    with pytest.raises(SapbertError, match=message):
        use(own_kb)


def test_read_manifest_any_flipped_bit_is_an_error_or_white_space(own_kb):
    path = own_kb / "v1" / "meta.json"
    content = path.read_bytes()
    expected = read_version(own_kb).manifest
    accepted = 0
    for place in range(0, len(content), 21):
        damaged = bytearray(content)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        with suppress(SapbertError):
            assert read_version(own_kb).manifest == expected, place
            accepted += 1
    assert accepted < len(content) / 210


def test_probe_kb_with_an_index_of_other_names_is_an_error(
    own_kb, make_kb, few_concepts
):
    # What two builds into one folder made: each file is whole, but rows are exchanged.
    names = [name for concept in few_concepts for name in concept.aliases]
    moved = names[5:] + names[:5]
    others = []
    for concept in few_concepts:
        others.append(Concept(concept.cui, moved[: len(concept.aliases)]))
        moved = moved[len(concept.aliases) :]
    (own_kb.parent / "other").mkdir()
    other = make_kb(own_kb.parent / "other", others)
    for path in (other / "v1").glob("index.*"):
        path.replace(own_kb / "v1" / path.name)
    sign(own_kb)
    with pytest.raises(SapbertError, match=r"E353.*of 2\d do"):
        probe_kb(load_kb(own_kb))


def test_a_schema_that_is_no_utf8_is_an_error(own_kb):
    path = read_version(own_kb).path("concepts.db")
    content = path.read_bytes()
    assert b"TABLE retired" in content
    path.write_bytes(content.replace(b"TABLE retired", b"TABLE\xa0retired"))
    sign(own_kb)
    with pytest.raises(SapbertError, match="E306"):
        load_kb(own_kb)
