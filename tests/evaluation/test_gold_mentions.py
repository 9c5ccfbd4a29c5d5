from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.gold_mentions import (
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


def test_read_mentions_splits_ids_at_bars_or_joins_them(tmp_path):
    path = write(tmp_path / "gold.tsv", HEADER + "d1\t0\t2\ten\tX\tMI\tC1|C2\n")
    for join, parts in ((False, [["C1", "C2"]]), (True, [["C1"], ["C2"]])):
        (gold,) = read_mentions(path, bars_join_parts=join)
        assert gold == GoldMention(0, 2, "X", "MI", parts, 2)


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


def test_what_a_person_chose_for_a_text_with_a_side_or_a_code_is_read(tmp_path):
    person, tool = "semapv:ManualMappingCuration", "semapv:LexicalMatching"
    path = write(
        tmp_path / "a.sssom.tsv",
        "subject_label\tpredicate_id\tobject_id\tmapping_justification\tcomment\n"
        f"side\tskos:broadMatch\tUMLS:C1\t{person}\tside: left; unspecified: NOS\n"
        f"code\tskos:closeMatch\tUMLS:C2\t{person}\tcode: (I21.9)\n"
        f"past\tskos:relatedMatch\tUMLS:C3\t{person}\tpast: h/o\n"
        f"both\tskos:broadMatch\tUMLS:C4\t{person}\tside: left; past: h/o\n"
        f"said\tskos:relatedMatch\tUMLS:C5\t{person}\tside: left\n"
        f"tool\tskos:broadMatch\tUMLS:C6\t{tool}\tside: left\n"
        f"bare\tskos:broadMatch\tUMLS:C7\t{person}\t\n",
    )
    assert [mention.mention for mention in read_mentions(path)] == ["side", "code"]


def test_mappings_that_are_no_annotations_are_counted(tmp_path):
    path = write(
        tmp_path / "a.sssom.tsv",
        "subject_label\tpredicate_id\tpredicate_modifier\tobject_id\tconfidence\n"
        "fever\tskos:exactMatch\t\tUMLS:C1\t0.5\n"
        "fever\tskos:exactMatch\t\tUMLS:C2\t0.4\n"
        "fever\tskos:exactMatch\tNot\tUMLS:C3\t\n"
        "\tskos:exactMatch\t\tUMLS:C4\t\n",
    )
    counts = (
        r"confidence below 0.5 \(--least-confidence\), 1 mappings that say Not, "
        "1 mappings without a `subject_label`"
    )
    with pytest.warns(UserWarning, match=f"W538.*left out 1 mappings with a {counts}"):
        (mention,) = read_mentions(path)
    assert mention.parts == [["UMLS:C1", "C1"]]
    with pytest.warns(UserWarning, match="W538.*left out 1 mappings that say Not"):
        mentions = [*read_mentions(path, least_confidence=0.4)]
    assert [each.parts[0][1] for each in mentions] == ["C1", "C2"]


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("fever C1\n", ":1", "mention||id"),
        (HEADER + "d1\t0\t2\ten\tDisease\tC1\n", ":2", "7 fields, as the first"),
        ("fever||C1\nfever||Disease||C1\n", ":2", "2 fields, as the first"),
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
    for line, shown in (("A", ":2:"), ("A\t", ":2:"), ("A\tC", "'A'")):
        with pytest.raises(SapbertError, match=f"E117.*{shown}"):
            read_aliases(write(path, f"A\tB\n{line}\n"))


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
