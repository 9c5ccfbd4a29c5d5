import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from spacy.tokens import Doc, Span

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.entities import describe_docs
from spacy_sapbert.formats.omop import COLUMNS, write_docs
from spacy_sapbert.formats.parts import STATE_FILE
from spacy_sapbert.vocabularies.concepts import Concept
from tests.commands import invoke
from tests.pipelines import NLP

CODES = {"MSH": ["D001241"], "OMOP": ["1112807", "5"]}
CANDIDATE = {"cui": "C1", "name": "Aspirin", "score": 0.5, "codes": CODES}


@pytest.fixture
def doc() -> Doc:
    doc = NLP("Took\naspirin " + "now " * 100)
    doc.ents = [Span(doc, 2, 3, label="DRUG"), Span(doc, 90, 102, label="X")]
    doc.ents[0]._.cui, doc.ents[0]._.candidates = "C1", [CANDIDATE]
    return doc


def write(docs: Any, **options: Any) -> list[dict[str, str]]:
    file = io.BytesIO()
    write_docs(describe_docs(docs), file, **options)
    return [*csv.DictReader(io.StringIO(file.getvalue().decode("utf8"), newline=""))]


def test_omop_a_mention_is_a_row_of_note_nlp(doc: Doc) -> None:
    first, second = write([("77", doc)], system="pipe 1.0")
    assert tuple(first) == COLUMNS
    assert [first["note_nlp_id"], second["note_nlp_id"]] == ["1", "2"]
    assert (first["note_id"], first["offset"]) == ("77", "5")
    assert (first["lexical_variant"], first["nlp_system"]) == ("aspirin", "pipe 1.0")
    assert first["snippet"].startswith("Took aspirin now now")
    assert {len(row["snippet"]) for row in (first, second)} == {250, 132}
    assert first["note_nlp_concept_id"] == "1112807"
    assert first["term_modifiers"] == "cui=C1,score=0.5"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", first["nlp_date"])
    assert first["nlp_datetime"].startswith(f"{first['nlp_date']} ")


def test_omop_without_an_athena_id_the_concept_is_zero(doc: Doc) -> None:
    doc.ents[0]._.candidates = [{**CANDIDATE, "codes": {"OMOP": ["no number"]}}]
    rows = write([(-7, doc)])
    assert [row["note_nlp_concept_id"] for row in rows] == ["0", "0"]
    assert [row["note_id"] for row in rows] == ["-7", "-7"]
    assert rows[1]["term_modifiers"] == ""


@pytest.mark.parametrize("id", ["note.txt", "", None, 2**63, "1.5", "٣"])
def test_omop_id_that_is_no_note_id_is_an_error(id: Any, doc: Doc) -> None:
    with pytest.raises(SapbertError, match="E378.*--id-field"):
        write([(id, doc)])


def test_omop_ids_of_rows_have_32_bits_for_any_note(doc: Doc) -> None:
    rows = write([(2_148, doc), (2**40, doc)], first_id=2**31 - 4)
    assert [int(row["note_nlp_id"]) for row in rows] == [*range(2**31 - 4, 2**31)]
    assert rows[2]["note_id"] == str(2**40)
    with pytest.raises(SapbertError, match="E007.*--first-id"):
        write([(1, doc)], first_id=2**31 - 1)


def test_omop_of_link_in_parts(
    make_kb: Callable[..., Path], few_concepts: list[Concept], tmp_path: Path
) -> None:
    concepts = [*few_concepts]
    concepts[3] = replace(concepts[3], codes={"OMOP": ["437663"]})
    kb = make_kb(tmp_path, concepts)
    notes = tmp_path / "notes.csv"
    notes.write_text("note_id,text\n5,fever and MI\n6,\n7,aspirin\n", "utf8")
    arguments = ["link", kb, notes, "--id-field", "note_id"]
    arguments += ["--format", "omop", "--shard-size", 2, "--output", tmp_path / "out"]
    arguments += ["--first-id", 9]
    invoke(*arguments, code=0)
    parts = sorted((tmp_path / "out").glob("part-*.csv"))
    rows = [row for part in parts for row in csv.DictReader(part.open("r", newline=""))]
    assert [row["note_nlp_id"] for row in rows] == ["9", "10", "11"]
    assert rows[0]["note_nlp_concept_id"] == "437663"
    # What was stopped is continued with the ids that follow.
    state = json.loads((tmp_path / "out" / STATE_FILE).read_text("utf8"))
    last = state["parts"].pop()
    state["finished"] = False
    (tmp_path / "out" / STATE_FILE).write_text(json.dumps(state), "utf8")
    (tmp_path / "out" / last["file"]).unlink()
    invoke(*arguments, code=0)
    with (tmp_path / "out" / last["file"]).open("r", newline="") as file:
        assert [row["note_nlp_id"] for row in csv.DictReader(file)] == ["11"]
    assert re.fullmatch(
        r"en_pipeline [\d.]+, spacy-sapbert [\d.]+, kb [0-9a-f]{16}",
        rows[0]["nlp_system"],
    )
