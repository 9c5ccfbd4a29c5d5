from pathlib import Path

from spacy_sapbert.evaluation.gold_mentions import GoldMention
from spacy_sapbert.evaluation.seen_mentions import is_seen, read_pairs


def test_is_seen_asks_for_the_same_text_and_meaning(tmp_path: Path) -> None:
    aliases = {"OMIM:1": "D1", "D1": "D1"}
    training = tmp_path / "train.txt"
    training.write_text("Breast  Cancer||OMIM:1\nboth||A+B\n", "utf8")
    pairs = read_pairs([training], aliases)

    def seen(text: str, *parts: str) -> bool:
        gold = GoldMention(9, "", text, [part.split("|") for part in parts])
        return is_seen(gold, pairs, aliases)

    assert seen("breast cancer", "D1")
    assert seen("breast cancer", "Z|D1")
    assert seen("both", "A", "B")
    assert not seen("breast cancer", "D2")
    assert not seen("cancer", "D1")
    assert not seen("both", "A", "C")
