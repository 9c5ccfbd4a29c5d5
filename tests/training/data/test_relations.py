import gzip
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from training.data.relations import read_relations, write_relations

ROWS = [
    ("C1", "RO", "C2", "part_of", "N"),
    ("C2", "RO", "C1", "has_part", "N"),
    ("C1", "RO", "C3", "causes", "N"),
    ("C1", "RO", "C4", "causes", "O"),  # suppressed
    ("C1", "SIB", "C4", "", "N"),  # without a name
    ("C2", "RO", "C2", "causes", "N"),  # to itself
    ("C2", "RO", "C9", "causes", "N"),  # unknown
    ("C3", "RO", "C4", "causes", ""),  # of equal names
]


def write(folder: Path, rows: list[Any] = ROWS) -> Path:
    path = folder / "MRREL.RRF"
    path.write_text(
        "".join(
            f"{one}|A|CUI|{rel}|{other}|A|CUI|{rela}|R||X|X|||{suppress}||\n"
            for one, rel, other, rela, suppress in rows
        ),
        "utf8",
    )
    names = {"C1": ["heart"], "C2": ["valve", "flap"], "C3": ["Pain"], "C4": ["pain"]}
    write_concepts(
        folder / "concepts.jsonl", [Concept(*each) for each in names.items()]
    )
    return path


def pair(folder: Path, **options: Any) -> list[str]:
    path = folder / "relations.tsv"
    concepts, mrrel = folder / "concepts.jsonl", folder / "MRREL.RRF"
    write_relations(concepts, mrrel, path, force=True, **options)
    return path.read_text("utf8").splitlines()


def test_write_relations_has_one_pair_for_two_concepts(tmp_path: Path) -> None:
    write(tmp_path)
    one, other = pair(tmp_path)
    assert one in ("C1+C2\theart\tvalve", "C1+C2\theart\tflap")
    assert other == "C1+C3\theart\tPain"
    assert pair(tmp_path) == [one, other]
    drawn = {pair(tmp_path, seed=seed)[0] for seed in range(10)}
    assert len(drawn) == 2


def test_write_relations_selects_relations_by_name(tmp_path: Path) -> None:
    write(tmp_path)
    assert pair(tmp_path, relations="causes") == ["C1+C3\theart\tPain"]
    with pytest.raises(SapbertError, match="E106"):
        pair(tmp_path, relations="cures")


def test_read_relations_has_the_second_id_first(tmp_path: Path) -> None:
    path = write(tmp_path)
    found = list(read_relations(path))
    assert found[0] == ("part_of", "C2", "C1")
    assert len(found) == 6
    assert list(read_relations(tmp_path)) == found
    packed = tmp_path / "other" / "MRREL.RRF.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert list(read_relations(packed.parent)) == found


def test_read_relations_fails_or_skips_at_bad_rows(tmp_path: Path) -> None:
    with pytest.raises(SapbertError, match=r"E001.*MRREL\.RRF"):
        list(read_relations(tmp_path))
    path = write(tmp_path)
    with path.open("a") as file:
        file.write("C1|cut\n")
    with pytest.raises(SapbertError, match=r"MRREL\.RRF:9"):
        list(read_relations(path))
    assert len(list(read_relations(path, on_error="skip"))) == 6
