import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.indexes.row_file import (
    RowFile,
    encode_rows,
    write_at,
    write_rows,
)

UnitRows = Callable[[int, int, int], np.ndarray]


def test_encode_rows_keeps_cosines(unit_rows: UnitRows, tmp_path: Path) -> None:
    a, b = unit_rows(300, 64, 1), unit_rows(300, 64, 2)
    write_rows(b, tmp_path / "rows", compact=True, progress=False)
    decoded = RowFile(tmp_path / "rows", rows=300, width=64)[:]
    assert decoded.dtype == np.float32
    assert np.abs(a @ b.T - a @ decoded.T).max() < 1e-4
    again = encode_rows(decoded, compact=True)
    np.testing.assert_array_equal(again, encode_rows(b, compact=True))


@pytest.mark.parametrize("compact", [True, False])
def test_row_file_written_in_any_order_returns_its_rows(
    compact: bool, unit_rows: UnitRows, tmp_path: Path
) -> None:
    vectors = unit_rows(100, 8, 3)
    path = tmp_path / "rows"
    order = np.random.default_rng(0).permutation(100)
    with open(path, "wb") as file:
        for part in np.split(order, [20, 55]):
            write_at(file, part, encode_rows(vectors[part], compact=compact))
    read = RowFile(path, rows=100, width=8, compact=compact)
    assert len(read) == 100
    tolerance = 2e-5 if compact else 0
    for some in (np.array([3, 99, 3]), np.arange(10, 30), np.array([], dtype=int)):
        assert np.abs(read[some] - vectors[some]).max(initial=0) <= tolerance
    assert np.abs(read[90:200] - vectors[90:]).max() <= tolerance
    assert read[5:5].shape == (0, 8)


def test_row_file_of_another_size_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(bytes(100))
    with pytest.raises(SapbertError, match="E306.*100 bytes and not 160"):
        RowFile(path, rows=10, width=8)


def test_row_file_that_is_cut_while_it_is_used_is_an_error(
    unit_rows: UnitRows, tmp_path: Path
) -> None:
    path = tmp_path / "rows"
    write_rows(unit_rows(100, 8, 4), path, compact=True, progress=False)
    rows = RowFile(path, rows=100, width=8)
    os.truncate(path, 500)
    assert rows[np.array([2, 9])].shape == (2, 8)
    for some in (np.array([2, 70]), slice(60, 80)):
        with pytest.raises(SapbertError, match="E306.*cut"):
            rows[some]


def test_write_rows_links_a_file_of_the_same_kind(
    unit_rows: UnitRows, tmp_path: Path
) -> None:
    vectors = unit_rows(40, 8, 6)
    write_rows(vectors, tmp_path / "one", compact=True, progress=False)
    source = RowFile(tmp_path / "one", rows=40, width=8)
    write_rows(source, tmp_path / "two", compact=True, progress=False)
    write_rows(source, tmp_path / "wide", compact=False, progress=False)
    assert (tmp_path / "two").stat().st_ino == (tmp_path / "one").stat().st_ino
    wide = RowFile(tmp_path / "wide", rows=40, width=8, compact=False)
    np.testing.assert_array_equal(wide[:], source[:])
