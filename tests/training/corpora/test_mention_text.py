import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.corpora.mention_text import SEPARATOR, split_composite

COMPOSITES = """\
breast and ovarian cancer: breast cancer + ovarian cancer
breast and/or  ovarian cancer: breast cancer + ovarian cancer
breast/ovarian cancer: breast cancer + ovarian cancer
brain, breast, AND prostate cancer: brain cancer + breast cancer + prostate cancer
bone and soft tissue tumors: bone tumors + soft tissue tumors
Becker and Duchenne muscular dystrophy: Becker muscular dystrophy \
+ Duchenne muscular dystrophy
Prader-Willi and Angelman syndromes: Prader-Willi syndromes + Angelman syndromes
type 1 and 2 diabetes: type 1 diabetes + type 2 diabetes
stage IIa or III colon cancer: stage IIa colon cancer + stage III colon cancer
hepatitis B and C: hepatitis B + hepatitis C
cleft lip/palate: cleft lip + cleft palate
ventricular tachycardia and fibrillation: ventricular tachycardia \
+ ventricular fibrillation
cancer of the breast, colon and ovaries: cancer of the breast + cancer of the colon \
+ cancer of the ovaries
thrombosis of both the artery and the vein: thrombosis of the artery \
+ thrombosis of the vein
loss of lung function and muscle strength: loss of lung function \
+ loss of muscle strength
benign and malignant tumors of the skin: benign tumors of the skin \
+ malignant tumors of the skin
loss of memory and lack of sleep: loss of memory + lack of sleep
acute renal failure and hepatic failure: acute renal failure + hepatic failure
fever and headache: fever + headache
"""


@pytest.mark.parametrize("line", COMPOSITES.splitlines())
def test_split_composite_by_hand(line: str) -> None:
    mention, _, parts = line.partition(": ")
    assert " + ".join(split_composite(mention, parts.count(" + ") + 1)) == parts


@pytest.mark.parametrize(
    ("mention", "count"),
    [
        ("breast and ovarian cancer", 1),
        ("breast and ovarian cancer", 3),
        ("breast-ovarian cancer", 2),
        ("deficiencies (C2 and C7)", 2),  # a part would have half a bracket
        ("and ovarian cancer", 2),
        ("cancer and", 2),
        ("1,2-dimethylhydrazine toxicity", 2),
        ("/", 2),
        ("", 2),
    ],
)
def test_split_composite_without_enough_parts_returns_the_mention(
    mention: str, count: int
) -> None:
    assert split_composite(mention, count) == [mention]


WORDS = st.sampled_from(
    ["breast", "Cancer", "the", "of", "both", "type", "1", "I", "b", "C6", "(x)", "and"]
)
SEPARATORS = st.sampled_from([" ", " and ", ", ", "/", ", or ", " and/or "])


@given(st.lists(st.tuples(WORDS, SEPARATORS), max_size=8), st.integers(0, 4))
def test_split_composite_has_the_words_of_the_mention(
    pairs: list[tuple[str, str]], count: int
) -> None:
    mention = "".join(word + separator for word, separator in pairs)
    parts = split_composite(mention, count)
    assert parts == [mention] or len(parts) == count
    words = set(re.split(r"[\s,/]+", mention))
    for part in parts if pairs else []:
        assert part.strip()
        assert set(re.split(r"[\s,/]+", part)) <= words


def test_split_composite_equals_annotated_parts(
    data_file: Callable[[str], Path],
) -> None:
    texts = data_file("eval-text")
    right = split = 0
    seen = set()
    for name in ("CDR_TrainingSet", "CDR_DevelopmentSet"):
        with gzip.open(
            texts / f"{name}.PubTator.txt.gz", "rt", encoding="utf8"
        ) as file:
            rows = [line.rstrip("\n").split("\t") for line in file]
        for row in rows:
            if len(row) < 7 or not SEPARATOR.search(row[3]) or row[3] in seen:
                continue
            seen.add(row[3])
            parts = split_composite(row[3], len(row[5].split("|")))
            split += len(parts) > 1
            right += parts == row[6].split("|")
    assert (right, split, len(seen)) == (70, 77, 83)
