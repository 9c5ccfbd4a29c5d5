import pytest

from spacy_sapbert.cli.options import gather_filter, read_ids
from spacy_sapbert.errors import SapbertError


def test_gather_filter_returns_lists_by_name(tmp_path):
    (tmp_path / "deny.txt").write_text("C1\n")
    assert gather_filter(
        "T047, DISO", "MSH", "ENG,SPA", None, tmp_path / "deny.txt"
    ) == {
        "types": ["T047", "DISO"],
        "sources": ["MSH"],
        "languages": ["ENG", "SPA"],
        "deny": ["C1"],
    }


def test_read_ids_reads_one_id_a_line(tmp_path):
    path = tmp_path / "ids.txt"
    path.write_text("# why\n\nC1\tFever, high\r\n MONDO:5 \nC1\n\t\n")
    assert read_ids(path) == ["C1", "MONDO:5"]


@pytest.mark.parametrize("line", ["C1 C2", "Fever, high", "\tFever"])
def test_read_ids_invalid_line_is_an_error_with_its_number(tmp_path, line):
    path = tmp_path / "ids.txt"
    path.write_text(f"C1\n{line}\n")
    with pytest.raises(SapbertError, match="E117|ids.txt:2"):
        read_ids(path)


def test_gather_filter_empty_allow_list_is_an_error(tmp_path):
    path = tmp_path / "ids.txt"
    path.write_text("# none\n")
    with pytest.raises(SapbertError, match="E106"):
        gather_filter(allow=path)
    assert gather_filter(deny=path) == {}
