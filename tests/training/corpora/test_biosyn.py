from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.evaluation.gold_mentions import (
    read_mentions,
)
from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.formats.gold import GoldDocument, GoldMention
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts, write_concepts
from spacy_sapbert.vocabularies.registry import read_vocabulary
from training.corpora.biosyn import (
    KnownConcepts,
    order_parts,
    preprocess_concepts,
    preprocess_documents,
    preprocess_name,
)
from training.corpora.mention_text import expand_abbreviations

LONG_FORMS = {
    "AT": "ataxia telangiectasia",
    "FAP": "familial APC",
    "APC": "adenomatous polyposis coli",
    "HD": "Huntington disease",
    "ALD/AMN": "adrenoleukodystrophy",
    "Hex A": "hexosaminidase A",
    "X": "Y x",
    "Y": "X y",
}
CONCEPTS = [
    Concept("D1", ["Breast Cancer", "cancer, breast"], retired=["D9"]),
    Concept("D2", ["Ovarian Cancer"]),
    Concept("D3", ["Ataxia-Telangiectasia"]),
]
PUBTATOR = """\
1|t|Ataxia telangiectasia (AT) in families
1|a|AT, ovarian and breast cancer. Nothing. ---

1\t39\t41\tAT\tDisease\tD3
1\t43\t68\tovarian and breast cancer\tComposite\tD9|D2
1\t70\t77\tNothing\tDisease\tD8
1\t70\t77\tNothing\tDisease\t-1
1\t79\t82\t---\tDisease\tD1
"""


def make_span(mention: str, *parts: list[str]) -> GoldMention:
    return GoldMention(3, 9, "Disease", mention, list(parts), 1)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(PUBTATOR, "utf8")
    return path


@pytest.fixture
def dictionary(tmp_path: Path) -> Path:
    path = tmp_path / "concepts.jsonl"
    write_concepts(path, CONCEPTS)
    return path


@pytest.mark.parametrize(
    ("mention", "expected"),
    [
        ("AT", "ataxia telangiectasia"),
        ("AT patients", "ataxia telangiectasia patients"),
        ("AT, and  HD", "ataxia telangiectasia, and Huntington disease"),
        ("AT/HD", "ataxia telangiectasia/Huntington disease"),
        ("AT,/HD,", "ataxia telangiectasia,/Huntington disease,"),
        ("FAP", "familial adenomatous polyposis coli"),
        ("FAP/APC", "familial adenomatous polyposis coli/adenomatous polyposis coli"),
        ("ALD/AMN", "adrenoleukodystrophy"),
        ("low Hex A, of AT", "low hexosaminidase A, of ataxia telangiectasia"),
        ("X", "X y x"),  # two that stand for each other
        ("at", "at"),
        ("ATM", "ATM"),
        ("(AT)", "(AT)"),
        ("AT-like", "AT-like"),
        ("", ""),
    ],
)
def test_expand_abbreviations_inside_long_forms(mention: str, expected: str) -> None:
    assert expand_abbreviations(mention, LONG_FORMS) == expected


@given(st.text("ABab /,", max_size=20), st.dictionaries(*[st.text("ABab /,")] * 2))
def test_expand_abbreviations_of_any_text_ends(
    mention: str, forms: dict[str, str]
) -> None:
    expand_abbreviations(mention, forms)
    assert expand_abbreviations(mention, {}) == " ".join(mention.split())


def test_order_parts_by_names() -> None:
    known = KnownConcepts(CONCEPTS, {})
    names = ["ovarian cancer", "Breast-Cancer"]
    assert order_parts(names, [["D9"], ["D2"]], known) == [["D2"], ["D9"]]
    names = ["ovarian tumours", "breast cancer"]
    assert order_parts(names, [["D1"], ["D2"]], known) == [["D2"], ["D1"]]
    names = ["ovarian tumours", "breast tumours"]
    assert order_parts(names, [["D1"], ["D2"]], known) == [["D1"], ["D2"]]
    assert order_parts(["breast cancer"] * 2, [["D1"]] * 2, known) == [["D1"], ["D1"]]


def test_preprocess_documents_by_hand() -> None:
    # the abbreviation holds the composite, whose parts lose case and punctuation
    text = "Breast and Ovarian Cancer-like lesions (BOCL)"
    documents = [GoldDocument("1", text, [make_span("BOCL", ["D1"], ["D2"])])]
    counts: Counter[str] = Counter()
    (document,) = preprocess_documents(documents, counts)
    assert document.mentions == [
        make_span("breast lesions", ["D1"]),
        make_span("ovarian cancer like lesions", ["D2"]),
    ]
    assert counts["abbreviations expanded"] == counts["composites split"] == 1


def test_preprocess_documents_drops_unknown_mentions() -> None:
    spans = [
        make_span("a", ["D9"]),  # retired
        make_span("b", ["D8", "D1"]),  # one of two suffices
        make_span("c", ["X2"]),  # an alias
        make_span("d", ["D8"]),
        make_span("e", ["D1"], ["D8"]),  # both are needed, and it cannot be split
        make_span("f"),
        make_span("--", ["D1"]),
    ]
    counts: Counter[str] = Counter()
    known = KnownConcepts(CONCEPTS, {"X2": "D2"})
    (document,) = preprocess_documents(
        [GoldDocument("1", "", spans)], counts, known=known
    )
    assert [span.mention for span in document.mentions] == ["a", "b", "c"]
    assert counts == Counter(
        {
            "documents": 1,
            "documents without text": 1,
            "mentions": 7,
            "abbreviations expanded": 0,
            "composites split": 0,
            "composites left whole": 1,
            "of punctuation only, dropped": 1,
            "without an id, dropped": 1,
            "not in the dictionary, dropped": 2,
        }
    )


def test_biosyn_mentions_can_be_read_by_evaluation(
    invoke: Callable[..., Any], corpus: Path, dictionary: Path, tmp_path: Path
) -> None:
    output = tmp_path / "mentions.tsv"
    words = ["biosyn-mentions", corpus, "--format", "pubtator", "--output", output]
    words.append("--force")
    invoke(*words)
    assert [(gold.mention, gold.parts) for gold in read_mentions(output)] == [
        ("ataxia telangiectasia", [["D3"]]),
        ("ovarian cancer", [["D9"]]),
        ("breast cancer", [["D2"]]),
        ("nothing", [["D8"]]),
        ("nothing", []),
    ]
    shown = invoke(*words, "--dictionary", dictionary).output
    assert "not in the dictionary, dropped" in shown
    assert [(gold.mention, gold.parts) for gold in read_mentions(output)] == [
        ("ataxia telangiectasia", [["D3"]]),
        ("ovarian cancer", [["D2"]]),
        ("breast cancer", [["D9"]]),
    ]
    plain = ["--bars-are-alternatives", "--quiet"]
    assert invoke(*words, *plain).output == ""
    golds = list(read_mentions(output))
    assert golds[1].mention == "ovarian and breast cancer"
    assert golds[1].parts == [["D9", "D2"]]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--output", "mentions.spacy"], "E110"),
        (["--prefix", "MESH:", "--dictionary", "concepts.jsonl"], "E106"),
    ],
)
def test_biosyn_mentions_prints_errors(
    invoke: Callable[..., Any],
    corpus: Path,
    dictionary: Path,
    arguments: list[str],
    code: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(corpus.parent)
    words = ["biosyn-mentions", "corpus.txt", "--format", "pubtator"]
    assert code in invoke(*words, "--output", "x.tsv", *arguments, code=1).output
    assert {path.name for path in Path().iterdir()} == {"corpus.txt", "concepts.jsonl"}


def test_biosyn_mentions_of_a_real_corpus(data_file: Callable[[str], Path]) -> None:
    medic = data_file("medic/medic_06Jul2012.txt.gz")
    path = data_file("eval-text/NCBIdevelopset_corpus.txt.gz")
    known = KnownConcepts(read_vocabulary(medic, "biosyn"), {})
    documents = read_corpus(path, "pubtator", drop_prefix="OMIM:")
    counts: Counter[str] = Counter()
    written = list(preprocess_documents(documents, counts, known=known))
    assert counts["mentions"] == 787
    assert counts["abbreviations expanded"] == 166
    assert counts["composites split"] == 19
    assert counts["composites left whole"] == 11
    assert counts["not in the dictionary, dropped"] == 0
    assert sum(len(document.mentions) for document in written) == 810


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Tooth Agenesis, Selective, 6", "tooth agenesis selective 6"),
        ("Crohn's  disease (CD)", "crohn s disease cd"),
        ("beta-2\tagonist\n", "beta 2 agonist"),
        ("C_6 {deficiency}", "c 6 deficiency"),
        ("Sjögren–Larsson", "sjögren–larsson"),  # only ASCII is punctuation
        ("+/-", ""),
        ("", ""),
    ],
)
def test_preprocess_name_removes_case_and_punctuation(name: str, expected: str) -> None:
    assert preprocess_name(name) == expected


@given(st.text())
def test_preprocess_name_twice_equals_once(name: str) -> None:
    once = preprocess_name(name)
    assert preprocess_name(once) == once == " ".join(once.split())


def test_preprocess_concepts_has_distinct_names_in_order() -> None:
    concepts = [
        Concept(
            "C1",
            ["---", "Heart-attack", "MI", "heart attack"],
            types=["T047"],
            sources={"S": [0, 2], "T": [2, 3]},
        ),
        Concept("C2", ["..."]),
    ]
    counts: Counter[str] = Counter()
    assert list(preprocess_concepts(concepts, counts)) == [
        Concept(
            "C1",
            ["heart attack", "mi"],
            types=["T047"],
            sources={"S": [1], "T": [0, 1]},
        )
    ]
    # the given one is left alone
    assert concepts[0].aliases[1] == "Heart-attack"
    assert concepts[0].sources == {"S": [0, 2], "T": [2, 3]}
    assert counts == Counter(
        {
            "concepts": 2,
            "names": 5,
            "of punctuation only, dropped": 2,
            "equal to another of the concept, dropped": 1,
            "names written": 2,
            "concepts written": 1,
        }
    )


def test_biosyn_names_writes_concepts(
    invoke: Callable[..., Any], tmp_path: Path
) -> None:
    path, output = tmp_path / "concepts.jsonl", tmp_path / "out.jsonl.gz"
    write_concepts(path, [Concept("C1", ["..."])])
    assert "E106" in invoke("biosyn-names", path, output, code=1).output
    assert list(tmp_path.iterdir()) == [path]
    write_concepts(path, [Concept("C1", ["Heart-attack", "MI"], retired=["C9"])])
    assert "names written" in invoke("biosyn-names", path, output).output
    assert list(read_concepts(output)) == [
        Concept("C1", ["heart attack", "mi"], retired=["C9"])
    ]
    assert invoke("biosyn-names", path, output, "--force", "--quiet").output == ""


def test_biosyn_names_of_medic_are_as_many_as_published(
    data_file: Callable[[str], Path],
) -> None:
    path = data_file("medic/medic_06Jul2012.txt.gz")
    counts: Counter[str] = Counter()
    concepts = list(preprocess_concepts(read_vocabulary(path, "biosyn"), counts))
    names = {name for concept in concepts for name in concept.aliases}
    assert len(concepts) == 11_915
    assert counts["names"] == 76_237
    assert counts["names written"] == 72_968  # a name of two concepts counts twice
    assert len(names) == 71_924
    # 71,923 with a letter: the other is "1", a slip in MEDIC after "…, Familial, 1"
    assert [name for name in names if name.isnumeric()] == ["1"]
