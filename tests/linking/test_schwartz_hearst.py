import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.linking import schwartz_hearst
from spacy_sapbert.linking.schwartz_hearst import REACH, find_long_forms

ANY_TEXT = st.text(st.characters(codec=None), max_size=60)  # lone surrogates too
# Short enough an alphabet that definitions come about by chance.
DENSE_TEXT = st.text("abAB1- \n.,;'()[]", max_size=80)


def list_pairs(text: str) -> list[tuple[str, str]]:
    return [*find_long_forms(text).items()]


@pytest.mark.parametrize(
    ("text", "short", "long"),
    [
        ("Boys with ataxia telangiectasia (AT) fell.", "AT", "ataxia telangiectasia"),
        ("by 5-hydroxytryptamine (5-HT)", "5-HT", "5-hydroxytryptamine"),
        ("a cytochrome P450 2D6 (CYP2D6) assay", "CYP2D6", "cytochrome P450 2D6"),
        ('a "Los Angeles" (LA) variant', "LA", "Los Angeles"),
        ("Hexosaminidase A (Hex A) is low", "Hex A", "Hexosaminidase A"),
        ("Crohn disease (CD; MIM 266600)", "CD", "Crohn disease"),
        (
            "homogentisate 1, 2-dioxygenase (HGO)",
            "HGO",
            "homogentisate 1, 2-dioxygenase",
        ),
        ("infected with E. coli (EC)", "EC", "E. coli"),
        # the first two letters are equal
        ("multiple myeloma (MM)", "MM", "multiple myeloma"),
        ("colorectal and cervical cancer (CC)", "CC", "cervical cancer"),
        ("mild. Myeloma (MM)", "MM", "Myeloma"),
        ("adenomatous polyposis. (AP)", "AP", "adenomatous polyposis."),
        ("multiple myeloma syndrome (MMS)", "MMS", "multiple myeloma syndrome"),
        # Greek letters and numerals
        ("stable β-catenin (BC)", "BC", "β-catenin"),
        ("tumor necrosis factor alpha (TNF-α)", "TNF-α", "tumor necrosis factor alpha"),
        ("tumor necrosis factor-α (TNFA)", "TNFA", "tumor necrosis factor-α"),
        ("with type II diabetes (T2D)", "T2D", "type II diabetes"),
        ("herpes simplex virus 2 (HSV-II)", "HSV-II", "herpes simplex virus 2"),
        ("given intravenously (IV)", "IV", "intravenously"),
        # the long form in the brackets
        ("DCC (deleted in colon cancer) was lost", "DCC", "deleted in colon cancer"),
        ("LA (also called Los Angeles)", "LA", "Los Angeles"),
        ("MS [multiple sclerosis, of any kind]", "MS", "multiple sclerosis"),
        # brackets of full width, in other brackets, and those that are not closed
        ("患者有multiple sclerosis（MS）。", "MS", "multiple sclerosis"),
        ("患者のMS（multiple sclerosis，以下略）", "MS", "multiple sclerosis"),
        ("，急性淋巴细胞白血病（急淋）", "急淋", "急性淋巴细胞白血病"),
        (
            "(as of tyrosine hydroxylase (TH)) and [ME [M1]]",
            "TH",
            "tyrosine hydroxylase",
        ),
        ("Tay (its storage) sarcoma (TSS)", "TSS", "Tay (its storage) sarcoma"),
        ("1) one [of ( some ] Norrie disease (ND)", "ND", "Norrie disease"),
        ("and :( Crohn disease (CD)", "CD", "Crohn disease"),
        ("adenomatous\n  polyposis\r\n(AP) runs", "AP", "adenomatous polyposis"),
        # an elided article, but not if its letter is the first of the short form
        ("d’insuffisance rénale (IR)", "IR", "insuffisance rénale"),
        ("dell'insufficienza renale (IR)", "IR", "insufficienza renale"),
        ("IR (l'insuffisance rénale)", "IR", "insuffisance rénale"),
        ("l'enteropatia (LE)", "LE", "l'enteropatia"),
        ("O'Nyong fever (NF)", "NF", "O'Nyong fever"),
        # the "s" of a plural
        ("renal cell carcinomas (RCCs)", "RCCs", "renal cell carcinomas"),
        ("an optic glioma (OGs)", "OG", "optic glioma"),
    ],
)
def test_abbreviations_are_found_at_brackets(text, short, long):
    assert list_pairs(text) == [(short, long)]


@pytest.mark.parametrize(
    "text",
    [
        "no brackets at all",
        "Vitamin C (C) is one character",
        "a long word in brackets (thunderstorm)",
        "nothing matches here (XYZ)",
        "in disease and (ii) in health",
        "between groups of placebo (P < 0.05)",
        "the AT gene (AT)",
        "Dmpk deficient mice (Dmpk-/-)",
        "too few: telangiectasia (AT)",
        "The start is elsewhere: data from Mata (AM)",
        "(and so on) tumour (AST)",
        "Ataxia was seen. Telangiectasia (AT) was not",
        "Ataxia\n\ntelangiectasia (AT)",
        "Ataxia telangiectasia (AT]",
        "A ( )",
        "an Ax By Cz disease (A B C)",
        "an optic glia (Ogs)",
        "Multiple data。S（MS）",
    ],
)
def test_abbreviations_need_a_definition(text):
    assert list_pairs(text) == []


def test_abbreviations_have_long_forms_of_limited_length():
    near = "big " + "x " * 2 + "animals (BA)"  # 2 · |A| = 4 words
    far = "big " + "x " * 3 + "animals (BA)"
    assert list_pairs(near) == [("BA", "big x x animals")]
    assert list_pairs(far) == []
    for middle, found in ((5, True), (6, False)):  # |A| + 5 = 11 words, or 12
        long = f"axe {'x ' * middle}bit cat dog elm fox"
        assert list_pairs(f"{long} (ABCDEF)") == [("ABCDEF", long)] * found
    assert list_pairs(f"Big {'x' * REACH} animals (BA)") == []
    long = "deleted in colon cancer"
    inside = f"({long}, ".ljust(REACH, "x")
    assert list_pairs(f"DCC {inside})") == [("DCC", long)]
    assert list_pairs(f"DCC {inside}x)") == []


def count_work(text: str) -> int:
    """Count the lines of Python that run, and the characters that are copied."""
    work = 0

    class Counted(str):
        def __getitem__(self, key: Any) -> str:
            nonlocal work
            part = super().__getitem__(key)
            work += len(part)
            return part

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal work
        work += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert find_long_forms(Counted(text)) == {}
    finally:
        sys.settrace(before)
    return work


@pytest.mark.parametrize(
    "parts",
    [
        ("(",),
        ("([", ")"),
        ("ab (", "x, ", ")"),
        ("x", "(ab)"),
        ("\n ", "(ab)"),
        (" ", "(ab) x"),
    ],
)
def test_abbreviations_need_work_in_proportion_to_the_text(parts, monkeypatch):
    monkeypatch.setattr(schwartz_hearst, "REACH", 20)  # so that short texts show it
    works = [count_work("".join(part * n for part in parts)) for n in (100, 200)]
    assert works[1] < 2.5 * works[0]


@given(ANY_TEXT | DENSE_TEXT)
def test_abbreviations_of_any_text_are_in_it(text):
    words = " ".join(text.split())
    for short, long in find_long_forms(text).items():
        assert short in words
        assert long in words
        assert len(long) > len(short)
        left = iter(character.lower() for character in long)
        assert all(c.lower() in left for c in short if c.isalnum())


@given(st.permutations("abcdefgh"), st.lists(st.text("xyz"), min_size=2, max_size=8))
def test_abbreviations_of_initials_are_found(first, rests):
    words = [letter + rest + "z" for letter, rest in zip(first, rests, strict=False)]
    short = "".join(word[0] for word in words).upper()
    assert list_pairs(f"1 {' '.join(words)} ({short})") == [(short, " ".join(words))]


def test_abbreviations_of_real_abstracts(data_file):
    path = data_file("eval-text/NCBIdevelopset_corpus.txt.gz")
    documents = read_corpus(path, "pubtator")
    found = {document.id: find_long_forms(document.text) for document in documents}
    assert len(found) == 100
    pairs = [pair for long_forms in found.values() for pair in long_forms.items()]
    # 92 of the 96 are right, judged by eye
    assert len(pairs) == 106
    assert len(set(pairs)) == 96
    assert found["8929413"] == {"5-HTT": "5-HT transporter"}
    assert found["8929264"]["DCC"] == "deleted in colorectal cancer"
    assert found["8954016"]["HPT-JT"] == "hyperparathyroidism-jaw tumor syndrome"
