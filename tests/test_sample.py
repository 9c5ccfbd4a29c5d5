"""The sample of the project: its notes, their mentions and its vocabulary agree."""

import csv
from pathlib import Path

import pytest

from spacy_sapbert.formats.registry import load_reader

SAMPLE = Path(__file__).parents[1] / "assets" / "sample"
FOLDERS = {"en": "notes", "es": "notas"}
Mention = tuple[str, int, int, str]  # document, start, end, type


def read_gold(lang: str) -> dict[Mention, str]:
    """Return the mentions of `mentions.tsv` in a language, with their texts."""
    with (SAMPLE / "mentions.tsv").open(encoding="utf8", newline="") as file:
        return {
            (row["doc"], int(row["start"]), int(row["end"]), row["type"]): row[
                "mention"
            ]
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            if row["lang"] == lang
        }


@pytest.mark.parametrize("lang", FOLDERS)
def test_sample_notes_are_marked_as_in_the_gold_mentions(lang: str) -> None:
    found = {
        (str(document.id), span.start, span.end, span.type): span.mention
        for document in load_reader("brat")(SAMPLE / FOLDERS[lang])
        for span in document.mentions
        if not span.parts  # the linker has to find the ids
    }
    assert found == read_gold(lang)


@pytest.mark.parametrize(
    ("lang", "mentions"),
    [
        ("en", {"heart atack", "migrane", "sleeps badly", "ringing in my ears"}),
        ("es", {"mareos", "Taquicárdico", "hinchazón de las piernas"}),
    ],
)
def test_sample_notes_have_mentions_that_only_an_encoder_can_link(
    lang: str, mentions: set[str]
) -> None:
    rows = (SAMPLE / "MRCONSO.RRF").read_text("utf8").splitlines()
    names = {row.split("|")[14].casefold() for row in rows}
    unknown = {m for m in read_gold(lang).values() if m.casefold() not in names}
    assert mentions <= unknown
    assert len(unknown) > len(read_gold(lang)) / 4
