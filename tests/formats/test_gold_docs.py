"""Annotated documents as Docs and as tables: `convert`, `read_docs`."""

import warnings
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.gold_mentions import (
    read_mentions,
)
from spacy_sapbert.formats import gold_docs
from spacy_sapbert.formats.convert import convert_corpus
from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.formats.gold import GoldDocument, GoldMention
from spacy_sapbert.formats.gold_docs import make_gold_docs
from tests.pipelines import NLP, make_nlp

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


def without_concepts(gold: Doc) -> Doc:
    """Return a copy whose entities have no concepts."""
    doc = gold.copy()
    doc.set_ents([Span(doc, e.start, e.end, label=e.label) for e in gold.ents])
    return doc


@pytest.mark.parametrize(
    ("ids", "f"),
    [
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


CANCER = "Breast and ovarian  cancer."


def make(*spans: Any, text: str = CANCER, nlp: Any = NLP, **options: Any) -> Any:
    gold = [
        GoldMention(s, e, label, text[s:e], parts, 1) for s, e, label, parts in spans
    ]
    documents = [GoldDocument("d", text, gold)]
    options = {
        "path": Path("gold.txt"),
        "spans_key": "gold",
        "label": "ENTITY",
        **options,
    }
    ((key, doc),) = make_gold_docs(documents, nlp, **options)
    assert key == "d"
    return doc


def describe(spans: Any) -> Any:
    return [(s.start_char, s.end_char, s.label_, s.kb_id_) for s in spans]


def test_gold_docs_mentions_of_whole_tokens_are_entities() -> None:
    mentions = [(0, 6, "A", [["C1", "C2"]]), (11, 18, "B", []), (20, 26, "C", [["X"]])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        doc = make(*mentions)
    expected = [(0, 6, "A", "C1"), (11, 18, "B", "NIL"), (20, 26, "C", "X")]
    assert describe(doc.ents) == describe(doc.spans["gold"]) == expected
    assert doc.spans["gold"].attrs["ids"] == [[["C1", "C2"]], [], [["X"]]]


def test_gold_docs_a_composite_has_no_id_that_is_right_alone() -> None:
    doc = make((0, 26, "A", [["C1"], ["C2"]]))
    assert describe(doc.ents) == [(0, 26, "A", "")]
    assert doc.spans["gold"].attrs["ids"] == [[["C1"], ["C2"]]]


def test_gold_docs_overlapping_mentions_are_in_the_group_with_a_warning() -> None:
    mentions = [
        (0, 26, "LONG", [["C1"]]),
        (11, 26, "INSIDE", [["C2"]]),
        (11, 15, "PART", [["C3"]]),
        (18, 19, "BLANK", [["C4"]]),
    ]
    with pytest.warns(UserWarning, match=r"W530.*gold.txt.* of 4 2 .* 1 overlap"):
        doc = make(*mentions)
    assert describe(doc.ents) == [(0, 26, "LONG", "C1")]
    assert describe(doc.spans["gold"]) == [
        (0, 26, "LONG", "C1"),
        (11, 26, "INSIDE", "C2"),
        (11, 18, "PART", "C3"),
        (11, 18, "BLANK", "C4"),
    ]
    assert doc.spans["gold"].attrs["start_char"] == [0, 11, 11, 18]
    assert doc.spans["gold"].attrs["end_char"] == [26, 26, 15, 19]


def test_gold_docs_warn_also_if_a_stream_is_not_finished() -> None:
    document = GoldDocument("d", "ab", [GoldMention(0, 1, "", "a", [], 1)])
    options = {"path": Path("p"), "spans_key": "gold", "label": "ENTITY"}
    stream = make_gold_docs([document] * 2, NLP, **options)
    next(stream)
    with pytest.warns(UserWarning, match="W530.* of 1 1 "):
        stream.close()


def test_gold_docs_keep_the_group_when_saved() -> None:
    with pytest.warns(UserWarning, match="W530"):
        doc = make((0, 3, "A", [["C1"]]))
    copy = Doc(NLP.vocab).from_bytes(doc.to_bytes())
    assert copy.spans["gold"].attrs == doc.spans["gold"].attrs
    assert describe(copy.spans["gold"]) == [(0, 6, "A", "C1")]


def test_gold_docs_may_be_longer_than_the_pipeline_takes() -> None:
    nlp = spacy.blank("en")
    nlp.max_length = 5
    assert make((0, 6, "A", [["C1"]]), nlp=nlp).ents
    assert nlp.max_length == 5


def test_gold_docs_are_read_from_a_folder_or_by_the_ending(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("fever")
    (tmp_path / "a.ann").write_text("T1\tX 0 5\tfever\nN1\tReference T1 M:1\t\n")
    ((key, doc),) = gold_docs.read_docs(tmp_path, NLP)
    assert (key, describe(doc.ents)) == ("a", [(0, 5, "X", "M:1")])
    ((key, doc),) = gold_docs.read_docs(tmp_path / "a.txt", NLP)
    assert (key, describe(doc.ents)) == ("a", [(0, 5, "X", "M:1")])
    (tmp_path / "b.txt").write_text("fever")
    with pytest.raises(SapbertError, match="E117.*`mention` and `ids`"):
        list(gold_docs.read_docs(tmp_path / "b.txt", NLP))
    (tmp_path / "c.tsv").write_text("doc\tmention\tids\nd\tfever\tM:1\n")
    ((key, doc),) = gold_docs.read_docs(tmp_path / "c.tsv", NLP)
    assert (key, doc.text, describe(doc.ents)) == (
        "d:2",
        "fever",
        [(0, 5, "ENTITY", "M:1")],
    )


def test_gold_docs_of_ncbi_disease_have_all_its_mentions(data_folder: Path) -> None:
    path = data_folder / "eval-text" / "NCBIdevelopset_corpus.txt.gz"
    docs = [doc for _, doc in gold_docs.read_docs(path, NLP)]  # detected by its content
    assert sum(len(doc.spans["gold"]) for doc in docs) == 787
    assert sum(len(doc.ents) for doc in docs) == 787
