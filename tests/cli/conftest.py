"""A few documents with one text that no output may have."""

import json

import pytest

SENTINEL = "SENTINELTEXT"
TEXTS = ["fever", "no headache", "", "heart attack", f"MI {SENTINEL}", "aspirin", "DM"]


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "notes.jsonl"
    rows = (json.dumps({"id": n, "text": text}) for n, text in enumerate(TEXTS))
    path.write_text("".join(row + "\n" for row in rows))
    return path
