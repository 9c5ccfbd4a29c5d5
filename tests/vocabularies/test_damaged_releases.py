"""Releases of several tables, of which any may be damaged."""

import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import write_concepts
from spacy_sapbert.vocabularies.registry import read_vocabulary
from tests.vocabularies import test_loinc, test_omop, test_rxnorm, test_snomed

WRITERS = {
    "omop": test_omop.write,
    "snomed": test_snomed.write,
    "loinc": test_loinc.write,
    "rxnorm": test_rxnorm.write,
}
PIECES = ["\t", "|", ",", '"', "\n", "\r", "\0", "\ufeff", "1\t", "Maps to", "9" * 30]


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@given(
    which=st.integers(0, 99),
    place=st.floats(0, 1),
    extra=st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=4),
    cut=st.integers(0, 30),
    on_error=st.sampled_from(["fail", "skip"]),
)
def test_read_vocabulary_a_damaged_table_gives_concepts_or_a_sapbert_error(
    write: Callable[[Path], Path],
    which: int,
    place: float,
    extra: list[str],
    cut: int,
    on_error: str,
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = write(Path(name))
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        path = files[which % len(files)]
        data = path.read_bytes()
        where = int(place * len(data))
        path.write_bytes(
            data[:where]
            + "".join(extra).encode("utf8", "replace")
            + data[where + cut :]
        )
        with suppress(SapbertError):
            concepts = list(read_vocabulary(folder, on_error=on_error))
            assert all(each.cui and each.aliases for each in concepts)
            write_concepts(folder / "again.jsonl", concepts)
