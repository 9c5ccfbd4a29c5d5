"""The sample of the project: its notes, their mentions and its vocabulary agree."""

import csv
from pathlib import Path

import pytest

from spacy_sapbert.formats.format_table import load_reader

SAMPLE = Path(__file__).parents[1] / "assets" / "sample"
FOLDERS = {"en": "notes", "es": "notas"}


@pytest.mark.parametrize("lang", FOLDERS)
def test_sample_notes_are_marked_as_in_the_gold_mentions(lang):
    found = {
        (str(document.id), span.start, span.end, span.type): span.mention
        for document in load_reader("brat")(SAMPLE / FOLDERS[lang])
        for span in document.mentions
        if not span.parts  # the linker has to find the ids
    }
    with (SAMPLE / "mentions.tsv").open(encoding="utf8", newline="") as file:
        rows = [*csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    assert found == {
        (row["doc"], int(row["start"]), int(row["end"]), row["type"]): row["mention"]
        for row in rows
        if row["lang"] == lang
    }
