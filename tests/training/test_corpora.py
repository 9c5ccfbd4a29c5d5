"""Corpora of research: read, their mentions expanded and split as BioSyn does."""

import gzip
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
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
)
from training.corpora.mention_text import (
    SEPARATOR,
    expand_abbreviations,
    split_composite,
)
from training.corpora.research import read_askapatient, read_cometa, read_xlbel

READERS = {"xlbel": read_xlbel, "cometa": read_cometa, "askapatient": read_askapatient}
XLBEL = "C0000001||calor\n"
COMETA = (
    "\tID\tTerm\tGeneral SNOMED ID\tGeneral SNOMED Label\tSpecific SNOMED ID\t"
    "Specific SNOMED Label\tExample\n"
)
ROW = "0\t17\theart racing\t80313002\tPalpitations\t3424008\tTachycardia\tIt raced.\n"
QUOTED = '1\t18\tsick\t1\tIll\t2\tNausea\t"He said ""sick"".\nThen\tleft."\n'
ASKAPATIENT = "271782001\tDrowsy\tbit drowsy\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf8")
    return path


CONTEXT = "C0000001||fiebre||Tiene  <tgt>fiebre</tgt> || y tos .\n"


@pytest.mark.parametrize(
    ("format", "text", "options", "expected"),
    [
        (
            "xlbel",
            "C0000001||fiebre\n\nC0000002|C0000003||tos\n",
            {},
            [("1", "fiebre", [["C0000001"]], 1)]
            + [("3", "tos", [["C0000002", "C0000003"]], 3)],
        ),
        ("xlbel", CONTEXT, {}, [("1", "fiebre", [["C0000001"]], 1)]),
        ("cometa", COMETA + ROW, {}, [("17", "heart racing", [["80313002"]], 2)]),
        (
            "cometa",
            COMETA + QUOTED + ROW,  # quotes with tabs and line ends
            {"level": "specific"},
            [("18", "sick", [["2"]], 2), ("17", "heart racing", [["3424008"]], 4)],
        ),
        (
            "askapatient",
            f"\n{ASKAPATIENT}",
            {},
            [("2", "bit drowsy", [["271782001"]], 2)],
        ),
    ],
)
def test_research_corpus_has_a_document_for_each_mention(
    format: str, text: str, options: dict[str, Any], expected: Any, tmp_path: Path
) -> None:
    documents = list(READERS[format](write(tmp_path / "x", text), **options))
    found = [(d.id, m.mention, m.parts, m.line) for d in documents for m in d.mentions]
    assert found == expected
    if text == CONTEXT:
        (span,) = documents[0].mentions
        assert documents[0].text == "Tiene  fiebre || y tos ."
        assert documents[0].text[span.start : span.end] == "fiebre"


def test_read_xlbel_of_a_real_file_equals_its_table(data_folder: Path) -> None:
    queries = data_folder / "eval-text" / "es_1k_test_query.txt.gz"
    table = data_folder / "eval" / "xlbel_es.test.tsv.gz"
    pairs = [
        [(span.mention, span.parts) for each in documents for span in each.mentions]
        for documents in (read_xlbel(queries), read_corpus(table, "tsv"))
    ]
    assert pairs[0] == pairs[1]


def test_read_askapatient_reads_the_file_of_fold_and_split(tmp_path: Path) -> None:
    write(tmp_path / "AskAPatient.fold-0.test.txt", ASKAPATIENT)
    write(tmp_path / "AskAPatient.fold-9.train.txt", ASKAPATIENT * 3)
    assert len(list(read_askapatient(tmp_path))) == 1
    assert len(list(read_askapatient(tmp_path, fold=9, split="train"))) == 3
    with pytest.raises(SapbertError, match="fold-3.validation.txt"):
        list(read_askapatient(tmp_path, fold=3, split="validation"))


@pytest.mark.parametrize(
    ("format", "text", "line", "code"),
    [
        ("xlbel", f"{XLBEL}C0000001", 2, "E117"),
        ("xlbel", f"{XLBEL}fiebre||C0000001", 2, "E117"),
        ("xlbel", f"{XLBEL}C0000001|| ", 2, "E117"),
        ("xlbel", f"{XLBEL}C0000001||fiebre||Tiene fiebre .", 2, "E117"),
        ("xlbel", f"{XLBEL}C0000001||fiebre||Tiene <tgt>fiebre .", 2, "E117"),
        ("xlbel", f"{XLBEL}C0000001||fiebre||A </tgt>fiebre<tgt> .", 2, "E117"),
        ("xlbel", f"{XLBEL}C0000001||fiebre||{'<tgt>fiebre</tgt> y' * 2}", 2, "E117"),
        ("xlbel", f"{XLBEL}C0000001||fiebre||Tiene <tgt>tos</tgt>", 2, "E117"),
        ("cometa", "Term\tID\nsick\t1\n", 1, "E117"),
        ("cometa", f"{COMETA}{ROW}1\t18\tsick\t1\n", 3, "E117"),
        ("cometa", COMETA + ROW + ROW.replace("heart racing", " "), 3, "E117"),
        ("cometa", COMETA + ROW + QUOTED.replace('left."', "left."), 3, "E117"),
        ("cometa", COMETA + QUOTED + QUOTED.replace('left."', 'left."x'), 4, "E117"),
        ("askapatient", f"{ASKAPATIENT}1\tDrowsy\n", 2, "E117"),
        ("askapatient", f"{ASKAPATIENT}1\tDrowsy\t \n", 2, "E117"),
    ],
)
def test_research_corpus_with_a_bad_line_names_it_without_its_text(
    tmp_path: Path, format: str, text: str, line: int, code: str
) -> None:
    path = write(tmp_path / "table.txt", text)
    with pytest.raises(SapbertError, match=code) as error:
        list(READERS[format](path))
    assert f"{path}:{line}:" in str(error.value)
    assert not any(word in str(error.value) for word in ("fiebre", "sick", "Drowsy"))


def test_convert_corpus_writes_a_table_that_evaluate_reads(
    invoke: Callable[..., Any], tmp_path: Path
) -> None:
    path, output = write(tmp_path / "dev.csv", COMETA + ROW), tmp_path / "dev.tsv"
    words = ["convert-corpus", path, "--format", "cometa", "--level", "specific"]
    shown = invoke(*words, "--prefix", "S:", "--output", output)
    assert "written" in shown.output
    (document,) = read_corpus(output)
    assert [(m.mention, m.parts) for m in document.mentions] == [
        ("heart racing", [["S:3424008"]])
    ]


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
