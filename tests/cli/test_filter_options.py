import pytest

from spacy_sapbert.cli.filter_options import gather_filter, read_ids
from spacy_sapbert.errors import SapbertError


def test_filtering_options_become_lists_by_name(tmp_path):
    (tmp_path / "deny.txt").write_text("C1\n")
    assert gather_filter(
        "T047, DISO", "MSH", "ENG,SPA", None, tmp_path / "deny.txt"
    ) == {
        "types": ["T047", "DISO"],
        "sources": ["MSH"],
        "languages": ["ENG", "SPA"],
        "deny": ["C1"],
    }


def test_filtering_tells_nothing_given_from_everything_allowed():
    assert gather_filter() is None
    assert gather_filter(types="all") == {}


def test_filtering_reads_an_id_a_line(tmp_path):
    path = tmp_path / "ids.txt"
    path.write_text("# why\n\nC1\tFever, high\r\n MONDO:5 \nC1\n\t\n")
    assert read_ids(path) == ["C1", "MONDO:5"]


@pytest.mark.parametrize("line", ["C1 C2", "Fever, high", "\tFever"])
def test_filtering_other_lines_are_an_error_with_the_line(tmp_path, line):
    path = tmp_path / "ids.txt"
    path.write_text(f"C1\n{line}\n")
    with pytest.raises(SapbertError, match="E516|ids.txt:2"):
        read_ids(path)


def test_filtering_to_allow_nothing_is_an_error_not_everything(tmp_path):
    path = tmp_path / "ids.txt"
    path.write_text("# none\n")
    with pytest.raises(SapbertError, match="E517"):
        gather_filter(allow=path)
    assert gather_filter(deny=path) == {}
