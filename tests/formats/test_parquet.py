import io
import json
from pathlib import Path
from typing import Any

import pytest
from spacy.tokens import Doc, Span

from spacy_sapbert import __version__
from spacy_sapbert.formats.entities import COLUMNS, RUN_COLUMNS, describe_docs
from spacy_sapbert.kb.folder.versions import read_version
from tests.commands import invoke
from tests.pipelines import NLP

pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
write_docs = pytest.importorskip("spacy_sapbert.formats.parquet").write_docs

CANDIDATE = {
    "cui": "C0004057",
    "name": "Aspirin",
    "alias": "aspirin",
    "score": 0.5,
    "rank": 1,
    "types": ["T109"],
    "codes": {"MSH": ["D001241"], "ATC": ["B01AC06", "A01AD05"]},
    "tie": None,
    "probability": None,
}


@pytest.fixture
def doc() -> Doc:
    doc = NLP("Took aspirin 💊 today")
    doc.ents = [Span(doc, 1, 2, label="DRUG"), Span(doc, 3, 4, label="X")]
    doc.ents[0]._.cui, doc.ents[0]._.candidates = "C0004057", [CANDIDATE]
    return doc


def write(docs: Any, **options: Any) -> Any:
    file = io.BytesIO()
    write_docs(describe_docs(docs), file, **options)
    file.seek(0)
    return pq.ParquetFile(file)


def test_parquet_a_mention_is_a_row_with_nested_columns(doc: Doc) -> None:
    first, second = write([(7, doc)], kb_digest="abc").read().to_pylist()
    codes = [*CANDIDATE["codes"].items()]
    assert first == {
        "id": "7",
        "start": 5,
        "end": 12,
        "text": "aspirin",
        "label": "DRUG",
        "cui": "C0004057",
        "name": "Aspirin",
        "score": 0.5,
        "probability": None,
        "types": ["T109"],
        "codes": codes,
        "candidates": [{**CANDIDATE, "codes": codes}],
        "note": None,
        "tie": None,
        "kb_digest": "abc",
        "package_version": __version__,
        "error": None,
    }
    assert (second["start"], second["cui"], second["candidates"]) == (15, None, [])


def test_parquet_candidates_of_an_older_linker_lack_what_they_lack(doc: Doc) -> None:
    doc.ents[0]._.candidates = [{"cui": "C0004057", "score": float("nan")}]
    (candidate,) = write([(7, doc)]).read().to_pylist()[0]["candidates"]
    assert candidate["cui"] == "C0004057"
    assert (candidate["score"], candidate["rank"], candidate["codes"]) == (
        None,
        None,
        [],
    )


def test_parquet_is_written_in_row_groups(doc: Doc) -> None:
    file = write(((i, doc) for i in range(1100)), rows_per_group=1500)
    groups = [file.metadata.row_group(i).num_rows for i in range(2)]
    assert groups == [1500, 700]
    ids = file.read(columns=["id"]).column("id").to_pylist()
    assert ids == [str(i) for i in range(1100) for _ in range(2)]


def test_parquet_of_no_documents_still_has_its_columns() -> None:
    assert write([]).schema_arrow.names == [*COLUMNS, *RUN_COLUMNS]


def test_parquet_without_text_has_no_column_for_it(doc: Doc) -> None:
    columns = write([(7, doc)], include_text=False).schema_arrow.names
    assert columns == [n for n in (*COLUMNS, *RUN_COLUMNS) if n != "text"]


def test_parquet_of_link_keeps_the_reason_of_a_tie(
    cold_kb: Path, tmp_path: Path
) -> None:
    note = tmp_path / "note.txt"
    note.write_text("A cold, and asthma.", "utf8")
    outputs = tmp_path / "linked.parquet", tmp_path / "linked.jsonl"
    for output in outputs:
        arguments = ["link", cold_kb, note, "--output", output]
        invoke(*arguments, code=0)
    rows = pq.read_table(outputs[0]).to_pylist()
    digest = read_version(cold_kb).manifest.digest
    assert {row["kb_digest"] for row in rows} == {digest}
    entities = json.loads(outputs[1].read_text("utf8"))["entities"]
    for key in ("cui", "score", "alias", "tie"):
        found = [[c.get(key) for c in row["candidates"]] for row in rows]
        assert found == [[c.get(key) for c in e["candidates"]] for e in entities]
    ties = [c["tie"] for c in rows[0]["candidates"]]
    assert ties[0] is not None
    assert rows[1]["candidates"][0]["tie"] is None
