import pytest

from spacy_sapbert.formats.gold import GoldMention, choose_kb_id, split_ids


@pytest.mark.parametrize(
    ("ids", "parts"),
    [
        ("C0000001", [["C0000001"]]),
        ("C0000001|C0000002", [["C0000001", "C0000002"]]),
        ("C0000001+C0000002", [["C0000001"], ["C0000002"]]),
        ("A|B+C", [["A", "B"], ["C"]]),
        (" A | B ", [["A", "B"]]),
        ("A|-1", [["A"]]),
        ("", []),
        ("-1", []),
        ("CUI-less", []),
        ("A+-1", []),  # nobody can find both
    ],
)
def test_split_ids_parses_alternatives_and_composites(
    ids: str, parts: list[list[str]]
) -> None:
    assert split_ids(ids) == parts


def test_split_ids_can_parse_bars_as_composites() -> None:
    assert split_ids("A|B+C", bars_join_parts=True) == [["A"], ["B"], ["C"]]


@pytest.mark.parametrize(
    ("parts", "kb_id"),
    [([], "NIL"), ([["A", "B"]], "A"), ([["A"], ["B"]], "")],
)
def test_choose_kb_id_returns_the_one_correct_id(
    parts: list[list[str]], kb_id: str
) -> None:
    assert choose_kb_id(GoldMention(0, 1, "", "x", parts, 1)) == kb_id
