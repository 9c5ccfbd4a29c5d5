from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from spacy_sapbert.evaluation.gold_mentions import GoldMention, read_mentions
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from training.__main__ import app
from training.corpora.biosyn import (
    Steps,
    find_long_forms,
    index_dictionary,
    order_parts,
    preprocess_documents,
)
from training.corpora.mention_text import expand_abbreviations
from training.corpora.registry import GoldDocument, GoldSpan

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


def make_span(mention: str, *parts: list[str]) -> GoldSpan:
    return GoldSpan(3, 9, "Disease", mention, list(parts), 1)


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, ["biosyn-mentions", *map(str, arguments)])


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
def test_expand_abbreviations_ends(mention: str, forms: dict) -> None:
    expand_abbreviations(mention, forms)
    assert expand_abbreviations(mention, {}) == " ".join(mention.split())


def test_preprocess_documents_uses_long_forms_of_the_document() -> None:
    text = "Familial adenomatous\npolyposis (FAP) is not Hexosaminidase  A (Hex\tA)."
    assert find_long_forms(text) == {
        "FAP": "Familial adenomatous polyposis",
        "Hex A": "Hexosaminidase A",
    }


def test_order_parts_by_names() -> None:
    known = index_dictionary(CONCEPTS, {})
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
    assert document.spans == [
        make_span("breast lesions", ["D1"]),
        make_span("ovarian cancer like lesions", ["D2"]),
    ]
    assert counts["abbreviations expanded"] == counts["composites split"] == 1


def test_preprocess_documents_without_optional_steps() -> None:
    text = "Breast and Ovarian Cancer (BOC)"
    spans = [make_span("BOC", ["D1"]), make_span(text[:25], ["D1"], ["D2"])]
    documents = [GoldDocument("1", text, spans)]
    steps = Steps(abbreviations=False, composites=False)
    (document,) = preprocess_documents(documents, Counter(), steps)
    assert [span.mention for span in document.spans] == [
        "boc",
        "breast and ovarian cancer",
    ]
    assert document.spans[1].parts == [["D1"], ["D2"]]


def test_preprocess_documents_with_all_ids_of_parts() -> None:
    spans = [make_span("Breast and Ovarian Cancer", ["D1"], ["D2", "D3"])]
    steps = Steps(part_ids="all")
    documents = [GoldDocument("1", "", spans)]
    (document,) = preprocess_documents(documents, Counter(), steps)
    assert [span.parts for span in document.spans] == [[["D1", "D2", "D3"]]] * 2


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
    known = index_dictionary(CONCEPTS, {"X2": "D2"})
    (document,) = preprocess_documents(
        [GoldDocument("1", "", spans)], counts, known=known
    )
    assert [span.mention for span in document.spans] == ["a", "b", "c"]
    assert counts == {
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


def test_biosyn_mentions_can_be_read_by_evaluation(
    corpus: Path, dictionary: Path, tmp_path: Path
) -> None:
    output = tmp_path / "mentions.tsv"
    done = run(corpus, "--format", "pubtator", "--output", output)
    assert done.exit_code == 0, done.output
    assert [(gold.mention, gold.parts) for gold in read_mentions(output)] == [
        ("ataxia telangiectasia", [["D3"]]),
        ("ovarian cancer", [["D9"]]),
        ("breast cancer", [["D2"]]),
        ("nothing", [["D8"]]),
        ("nothing", []),
    ]
    done = run(
        *(corpus, "--format", "pubtator", "--output", output),
        *("--dictionary", dictionary),
    )
    assert done.exit_code == 0, done.output
    assert "not in the dictionary, dropped" in done.output
    assert list(read_mentions(output)) == [
        GoldMention(2, "1", "ataxia telangiectasia", [["D3"]]),
        GoldMention(3, "1", "ovarian cancer", [["D2"]]),
        GoldMention(4, "1", "breast cancer", [["D9"]]),
    ]


def test_biosyn_mentions_without_optional_steps(corpus: Path, tmp_path: Path) -> None:
    output = tmp_path / "mentions.tsv.gz"
    done = run(
        *(corpus, "--format", "pubtator", "--output", output, "--quiet"),
        *("--no-abbreviations", "--no-composites", "--bars-are-alternatives"),
    )
    assert (done.exit_code, done.output) == (0, "")
    golds = list(read_mentions(output))
    assert [gold.mention for gold in golds[:2]] == ["at", "ovarian and breast cancer"]
    assert golds[1].parts == [["D9", "D2"]]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--part-ids", "some"], "E605"),
        (["--output", "mentions.spacy"], "E722"),
        (["--prefix", "MESH:", "--dictionary", "concepts.jsonl"], "E730"),
    ],
)
def test_biosyn_mentions_prints_errors(
    corpus: Path,
    dictionary: Path,
    arguments: list[str],
    code: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(corpus.parent)
    done = run("corpus.txt", "--format", "pubtator", "--output", "x.tsv", *arguments)
    assert done.exit_code == 1
    assert code in done.output
    assert {path.name for path in Path().iterdir()} == {"corpus.txt", "concepts.jsonl"}


def test_biosyn_mentions_of_a_real_corpus(data_file: Callable[[str], Path]) -> None:
    from spacy_sapbert.vocabularies.registry import read_vocabulary
    from training.corpora.registry import read_corpus

    medic = data_file("medic/medic_06Jul2012.txt.gz")
    path = data_file("eval-text/NCBIdevelopset_corpus.txt.gz")
    known = index_dictionary(read_vocabulary(medic, "biosyn"), {})
    documents = read_corpus(path, "pubtator", drop_prefix="OMIM:")
    counts: Counter[str] = Counter()
    written = list(preprocess_documents(documents, counts, known=known))
    assert counts["mentions"] == 787
    assert counts["abbreviations expanded"] == 166
    assert counts["composites split"] == 19
    assert counts["composites left whole"] == 11
    assert counts["not in the dictionary, dropped"] == 0
    assert sum(len(document.spans) for document in written) == 810
