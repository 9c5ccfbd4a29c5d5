from pathlib import Path

from benchmarks.names import count_named, read_names
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts


def test_count_named_by_hand(tmp_path: Path) -> None:
    base = [Concept("A:1", ["Hematuria"], retired=["A:9"]), Concept("A:2", ["Tumor"])]
    write_concepts(tmp_path / "base.jsonl", base)
    base[0].aliases.append("blood in urine")
    write_concepts(tmp_path / "more.jsonl", base)
    mentions = tmp_path / "mentions.tsv"
    lines = [
        "mention\tids",
        "hematuria\tA:1",  # a name
        "blood in urine\tA:9",  # added, right
        "blood in urine\tA:2",  # added, wrong
        "haematuria\tA:1",  # another form, right
        "tumours\tA:1",  # another form, wrong
        "something else\tA:1",
        "tumours\tX:1",  # not covered
        "tumours\tA:1+A:2",  # a composite
    ]
    mentions.write_text("\n".join(lines), "utf8")
    vocabularies = [read_names(tmp_path / f"{name}.jsonl") for name in ("base", "more")]
    assert count_named(mentions, *vocabularies, {}) == {
        "mentions": 6,
        "without": 5,
        "names right": 1,
        "names wrong": 1,
        "forms right": 1,
        "forms wrong": 1,
    }
