import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept, clean_name, has_letter_or_digit
from tests.vocabularies import whole

NAMES = st.text(st.characters(exclude_characters="|\r\n", codec="utf8"), min_size=1)


def write(folder: Path, *lines: str) -> Path:
    path = folder / "dictionary.txt"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


read = partial(whole.read, format="biosyn")


def test_read_biosyn_line_has_one_name_or_several(tmp_path: Path) -> None:
    path = write(tmp_path, "D2||fever|pyrexia", "D1||headache")
    assert read(path, type="T184")[0] == [
        Concept("D1", ["headache"], types=["T184"]),
        Concept("D2", ["fever", "pyrexia"], types=["T184"]),
    ]


def test_read_biosyn_further_ids_of_a_line_are_retired(tmp_path: Path) -> None:
    (concept,), report = read(write(tmp_path, "D1|OMIM:1|OMIM:2||fever"))
    assert (concept.cui, concept.retired) == ("D1", ["OMIM:1", "OMIM:2"])
    assert report.counts["retired ids"] == 2


def test_read_biosyn_name_of_a_preprocessed_dictionary_is_one_of_all_its_ids(
    tmp_path: Path,
) -> None:
    """Each name stands once there, with the ids of all concepts that have it."""
    lines = ("D1||fever", "D2|D1||pyrexia", "D2||pain", "D1||febrile")
    concepts, report = read(write(tmp_path, *lines))
    assert concepts == [
        Concept("D1", ["fever", "pyrexia", "febrile"]),
        Concept("D2", ["pyrexia", "pain"]),
    ]
    assert not report.counts["retired ids"]


def test_read_biosyn_dropped_names_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path, "D1||fever|fever|--", "", "D2|| ", "D1||a\u2028b")
    concepts, report = read(path)
    assert concepts == [Concept("D1", ["fever", "a b"])]
    assert report.to_json()["dropped"] == {
        "blank lines": 1,
        "concepts without a name": 1,
        "names without a letter or digit": 2,
        "repeated names": 1,
    }


BAD_LINES = ["fever", "D1|fever", "||fever", "D1|||fever||x", " ||fever", "D1| ||x"]


@pytest.mark.parametrize("line", BAD_LINES)
def test_read_biosyn_invalid_line_is_an_error_or_counted(
    tmp_path: Path, line: str
) -> None:
    path = write(tmp_path, "D1||pain", line)
    with pytest.raises(SapbertError, match=r"E117.*dictionary\.txt:2: ") as error:
        read(path)
    assert "fever" not in str(error.value)
    concepts, report = read(path, on_error="skip")
    assert concepts == [Concept("D1", ["pain"])]
    assert report.dropped["bad lines"] == 1


@given(st.lists(NAMES))
def test_read_biosyn_any_names_are_read_unchanged(names: list[str]) -> None:
    said = [name for name in map(clean_name, names) if has_letter_or_digit(name)]
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), "D1||" + "|".join(["fever", *names]))
        expected = list(dict.fromkeys(["fever", *said]))
        assert read(path)[0] == [Concept("D1", expected)]


def test_read_biosyn_real_dictionary_reads_every_concept(data_folder: Path) -> None:
    concepts, report = read(data_folder / "medic" / "medic_06Jul2012.txt.gz")
    assert len(concepts) == 11_915
    assert report.names == sum(len(concept.aliases) for concept in concepts) == 76_237
