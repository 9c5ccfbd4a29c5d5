from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.gold_mentions import (
    find_concepts,
    group_aliases,
    is_seen,
    read_aliases,
    read_mentions,
    read_pairs,
)
from spacy_sapbert.formats.gold import GoldMention

HEADER = "doc\tstart\tend\tlang\ttype\tmention\tids\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf8")
    return path


def test_read_mentions_reads_a_table(tmp_path):
    text = HEADER + "d1\t0\t2\ten\tDisease\tMI\tC1|C2\nd2\t\t\ten\t\tfever \t\n\n"
    path = write(tmp_path / "gold.tsv", text)
    assert list(read_mentions(path)) == [
        GoldMention(0, 2, "Disease", "MI", [["C1", "C2"]], 2),
        GoldMention(-1, -1, "", "fever ", [], 3),
    ]
    (joined, _) = read_mentions(path, bars_join_parts=True)
    assert joined.parts == [["C1"], ["C2"]]


def test_read_mentions_reads_what_map_writes_as_sssom(tmp_path):
    path = write(
        tmp_path / "terms.sssom.tsv",
        "#license: x\nsubject_id\tsubject_label\tpredicate_id\tobject_id\n"
        "LOCAL:7\tMI\tskos:exactMatch\tUMLS:C0027051\n"
        "\town\tskos:exactMatch\tconcept:X%201\n"
        "\tnear\tskos:closeMatch\tUMLS:C2\n"
        "\tnone\tskos:exactMatch\tsssom:NoTermFound\n",
    )
    assert list(read_mentions(path)) == [
        GoldMention(0, 2, "", "MI", [["UMLS:C0027051", "C0027051"]], 3),
        GoldMention(0, 3, "", "own", [["X 1"]], 4),
        GoldMention(0, 4, "", "none", [], 6),
    ]


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("mention\tcui\nfever\tC1\n", ":1", "`mention` and `ids`"),
        ("fever C1\n", ":1", "mention||id"),
        (HEADER + "d1\t0\t2\ten\tDisease\tC1\n", ":2", "7 fields with tabs"),
        (HEADER + "d1\t0\t2\ten\tDisease\t \tC1\n", ":2", "blank"),
        ("fever||C1\nfever||Disease||C1\n", ":2", "2 fields with `||`"),
        ("C0003864||poliartritis\n", ":1", "ids come first"),
        *((text, "", "E106") for text in ("", "\n\n", HEADER)),
    ],
)
def test_read_mentions_names_file_line_and_fix(tmp_path, text, place, says):
    path = write(tmp_path / "gold.tsv", text)
    with pytest.raises(SapbertError) as error:
        list(read_mentions(path))
    assert f"{path}{place}" in str(error.value)
    assert says in str(error.value)
    assert "fever" not in str(error.value)
    assert "poliartritis" not in str(error.value)


def test_read_aliases_follows_chains_and_closes_circles(tmp_path):
    path = write(tmp_path / "aliases.tsv", "A\tB\nB\tC\n\nY\tX\nX\tY\nW\tX\nA\tB\n")
    last = {"A": "C", "B": "C", "C": "C", "X": "X", "Y": "X", "W": "X"}
    assert read_aliases(path) == last


@pytest.mark.parametrize(
    ("text", "shown"),
    [("A\tB\nA\n", ":2:"), ("A\tB\nA\t\n", ":2:"), ("A\tB\nA\tC\n", "'A'")],
)
def test_read_aliases_names_the_bad_line_or_id(tmp_path, text, shown):
    path = write(tmp_path / "aliases.tsv", text)
    with pytest.raises(SapbertError, match="E117") as error:
        read_aliases(path)
    assert shown in str(error.value)


# OMIM:1 and M1 are aliases of D1, which is retired for D2; D3 stands for D2 as well.
ALIASES = {"OMIM:1": "D1", "M1": "D1", "D1": "D1", "D2": "D3", "D3": "D3"}


@pytest.mark.parametrize(
    ("cui", "ids", "found"),
    [
        ("OMIM:1", {"D1": "D1"}, {"D1"}),
        ("D1", {"M1": "M1"}, {"D1"}),
        ("OMIM:1", {"D1": "D2", "D2": "D2"}, {"D3"}),
        ("OMIM:1", {"D2": "D2"}, set()),
        ("C9", {"C9": "C1"}, {"C1"}),
    ],
)
def test_find_concepts_follows_aliases_and_retired_ids(cui, ids, found):
    groups = group_aliases(ALIASES)
    assert find_concepts(cui, ids.get, ALIASES, groups) == found


IDS = {"C1": "C1", "C2": "C2", "C9": "C1"}


def test_is_seen_needs_the_same_text_and_id(tmp_path):
    aliases = {"OMIM:1": "D1", "D1": "D1"}
    training = tmp_path / "train.txt"
    training.write_text("Breast  Cancer||OMIM:1\nboth||A+B\n", "utf8")
    pairs = read_pairs([training], aliases)

    def seen(text: str, *parts: str) -> bool:
        gold = GoldMention(-1, -1, "", text, [part.split("|") for part in parts], 9)
        return is_seen(gold, pairs, aliases)

    assert seen("breast cancer", "D1")
    assert seen("breast cancer", "Z|D1")
    assert seen("both", "A", "B")
    assert not seen("breast cancer", "D2")
    assert not seen("cancer", "D1")
    assert not seen("both", "A", "C")
