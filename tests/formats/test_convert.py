from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.gold_mentions import (
    read_mentions,
)
from spacy_sapbert.formats.convert import convert_corpus
from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.formats.gold import GoldDocument, GoldMention
from tests.commands import invoke
from tests.pipelines import make_nlp

TEXT = "Acute fever and head pain; MI."


def make_span(mention: str, *parts: str, type: str = "Disease") -> GoldMention:
    start = TEXT.find(mention)
    end = start + len(mention) if start >= 0 else -1
    return GoldMention(
        start, end, type, mention, [part.split("|") for part in parts], 1
    )


DOCUMENTS = [
    GoldDocument(
        "d1",
        TEXT,
        [
            make_span("fever", "C4"),
            make_span("Acute fever", "C4|C9"),
            make_span("fever and head pain", "C4", "C7", type=""),
            make_span("head", "C7"),
            make_span("M"),
            make_span("cephalalgia", "C7"),
        ],
    )
]


def read_docs(path: Path, lang: str = "en") -> list[Doc]:
    return list(DocBin().from_disk(path).get_docs(spacy.blank(lang).vocab))


def list_entities(doc: Doc) -> list[tuple[str, str, str]]:
    return [(ent.text, ent.label_, ent.kb_id_) for ent in doc.ents]


@pytest.mark.parametrize("name", ["gold.tsv", "gold.tsv.gz"])
def test_convert_corpus_table_can_be_read_by_evaluation(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    counts = convert_corpus(DOCUMENTS, path)
    assert list(read_mentions(path)) == [
        span._replace(line=line) for line, span in enumerate(DOCUMENTS[0].mentions, 2)
    ]
    again = [document._replace(text=TEXT) for document in read_corpus(path, "tsv")]
    spans = [span._replace(line=1) for span in again[0].mentions]
    assert spans == DOCUMENTS[0].mentions
    assert counts == {
        "documents": 1,
        "mentions": 6,
        "without an id": 1,
        "composites": 1,
        "with alternatives": 1,
        "written": 6,
    }


def test_write_table_replaces_tabs_and_line_ends(tmp_path: Path) -> None:
    span = GoldMention(-1, -1, "", "left\nand\tright\rknee", [["C1"]], 1)
    convert_corpus([GoldDocument("a\tb", "", [span])], tmp_path / "gold.tsv")
    (document,) = read_corpus(tmp_path / "gold.tsv")
    assert document.id == "a b"
    assert document.mentions[0].mention == "left and right knee"


def test_convert_corpus_docs_have_entities(tmp_path: Path) -> None:
    spans = [span for span in DOCUMENTS[0].mentions if "Acute" not in span.mention]
    path = tmp_path / "gold.spacy"
    counts = convert_corpus([DOCUMENTS[0]._replace(mentions=spans)], path)
    (doc,) = read_docs(path)
    assert doc.text == TEXT
    assert list_entities(doc) == [
        ("fever and head pain", "ENTITY", ""),
        ("MI", "Disease", "NIL"),
    ]
    assert counts["overlapping, left out"] == 2
    assert counts["widened to whole tokens"] == 1
    assert counts["without offsets, left out"] == 1
    assert (counts["Docs written"], counts["entities written"]) == (1, 2)


def test_convert_corpus_linked_only(tmp_path: Path) -> None:
    path = tmp_path / "gold.spacy"
    counts = convert_corpus(DOCUMENTS, path, linked_only=True)
    (doc,) = read_docs(path)
    assert list_entities(doc) == [
        ("Acute fever", "Disease", "C4"),
        ("head", "Disease", "C7"),
    ]
    assert (counts["without an id"], counts["composites"]) == (1, 1)


def test_convert_corpus_without_text_has_a_doc_for_each_mention(tmp_path: Path) -> None:
    path = tmp_path / "gold.spacy"
    counts = convert_corpus([DOCUMENTS[0]._replace(text="")], path, label="X")
    docs = read_docs(path)
    assert [doc.text for doc in docs] == [
        span.mention for span in DOCUMENTS[0].mentions
    ]
    assert list_entities(docs[2]) == [("fever and head pain", "X", "")]
    assert counts["Docs written"] == counts["entities written"] == 6


@pytest.mark.parametrize(
    ("name", "lang", "code"),
    [("gold.json", "en", "E110"), ("gold.spacy", "nolanguage", "E331")],
)
def test_convert_corpus_with_a_bad_output_writes_nothing(
    tmp_path: Path, name: str, lang: str, code: str
) -> None:
    with pytest.raises(SapbertError, match=code):
        convert_corpus(DOCUMENTS, tmp_path / name, lang=lang)
    assert not list(tmp_path.iterdir())


def test_convert_prints_counts(tmp_path: Path) -> None:
    corpus, output = tmp_path / "corpus.txt", tmp_path / "gold.tsv"
    corpus.write_text("1|t|Fever\n1|a|\n1\t0\t5\tFever\tDisease\tUMLS:C1\n", "utf8")
    words = ["convert", corpus, "--format", "pubtator", "--output", output]
    words += ["--drop-prefix", "UMLS:", "--prefix", "X:"]
    assert "without an id" in invoke(*words, code=0).output
    assert next(read_mentions(output)).parts == [["X:C1"]]
    assert invoke(*words, "--force", "--quiet", code=0).output == ""


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--format", "pubtator", "--language", "en"], "E113"),
        (["--format", "tsv"], "E117"),
    ],
)
def test_convert_prints_errors(tmp_path: Path, options: list[str], code: str) -> None:
    corpus, output = tmp_path / "corpus.txt", tmp_path / "gold.tsv"
    corpus.write_text("1|t|Fever\n", "utf8")
    words = ("convert", corpus, *options, "--output", output)
    assert code in invoke(*words, code=1).output
    assert not output.exists()


def without_concepts(gold: Doc) -> Doc:
    """Return a copy whose entities have no concepts."""
    doc = gold.copy()
    doc.set_ents([Span(doc, e.start, e.end, label=e.label) for e in gold.ents])
    return doc


@pytest.mark.parametrize(
    ("ids", "f"),
    [
        ({"Pyrexia": "C0000004", "Headache": "C0000007"}, 1.0),
        ({"Pyrexia": "C0000004", "Headache": "C0000001"}, 0.5),
        ({"Pyrexia": "C0000004", "Headache": "-"}, 2 / 3),
    ],
)
def test_convert_docs_can_be_evaluated(
    tmp_path: Path, sample_kb: Path, ids: dict[str, str], f: float
) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(
        "1|t|Pyrexia of mice\n1|a|Headache followed.\n"
        f"1\t0\t7\tPyrexia\tDisease\t{ids['Pyrexia']}\n"
        f"1\t16\t24\tHeadache\tDisease\t{ids['Headache']}\n",
        "utf8",
    )
    path = tmp_path / "gold.spacy"
    convert_corpus(read_corpus(corpus, "pubtator"), path)
    nlp = make_nlp(sample_kb, threshold=-1)
    golds = list(DocBin().from_disk(path).get_docs(nlp.vocab))
    scores = nlp.evaluate([Example(without_concepts(gold), gold) for gold in golds])
    assert scores["nel_micro_f"] == pytest.approx(f)
    assert 0 <= scores["nel_micro_p"] <= 1


def test_convert_corpus_of_real_data(data_folder: Path, tmp_path: Path) -> None:
    corpus = data_folder / "eval-text" / "NCBIdevelopset_corpus.txt.gz"
    path = tmp_path / "gold.spacy"
    counts = convert_corpus(read_corpus(corpus, "pubtator", prefix="MESH:"), path)
    docs = read_docs(path)
    assert (len(docs), counts["mentions"]) == (100, 787)
    left_out = counts["overlapping, left out"]
    assert sum(len(doc.ents) for doc in docs) == 787 - left_out
