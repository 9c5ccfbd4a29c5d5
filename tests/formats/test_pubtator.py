import io
from pathlib import Path
from typing import Any

import pytest
from spacy.tokens import Span

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.formats.entities import describe_docs
from spacy_sapbert.formats.gold import GoldDocument, GoldMention
from spacy_sapbert.formats.pubtator import read_gold, write_docs
from tests.pipelines import NLP

TITLE = "1|t|Breast and ovarian cancer\n"
ABSTRACT = "1|a|It hurts.\n"
COMPOSITE = "1\t0\t25\tBreast and ovarian cancer\tDisease\tD1|D2"


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(lines), "utf8", newline="")
    return path


def read(path: Path, **options: Any) -> list[GoldMention]:
    return [span for each in read_gold(path, **options) for span in each.mentions]


def test_pubtator_title_and_abstract_are_joined_as_the_offsets_count(
    tmp_path: Path,
) -> None:
    path = write(
        tmp_path / "corpus.txt",
        "\n1|t|Fever in mice\n",
        "1|a|It|a|hurts; no fever.\n",
        "1\t0\t5\tFever\tDisease\t D1 \n",
        "1\t29\t34\tfever\tT047,T191\tUMLS:C1\n",
        "1\tCID\tD2\tD1\n",
        "1\tAssociation\tD2\tD1\tNovel\n",
        "\n2|t|Rats\r\n2|a|\r\n2\t0\t4\tRats\tAnimal\t-1\r\n",
    )
    assert list(read_gold(path)) == [
        GoldDocument(
            "1",
            "Fever in mice\nIt|a|hurts; no fever.",
            [
                GoldMention(0, 5, "Disease", "Fever", [["D1"]], 4),
                GoldMention(29, 34, "T047,T191", "fever", [["UMLS:C1"]], 5),
            ],
        ),
        GoldDocument("2", "Rats\n", [GoldMention(0, 4, "Animal", "Rats", [], 11)]),
    ]


@pytest.mark.parametrize("ids", ["\t-1", "\t-", "\t", "", "\t-1\t"])
def test_pubtator_a_mention_may_have_no_id(tmp_path: Path, ids: str) -> None:
    line = f"1\t0\t6\tBreast\tDisease{ids}\n"
    (span,) = read(write(tmp_path / "corpus.txt", TITLE, ABSTRACT, line))
    assert span.parts == []


def test_pubtator_bars_join_parts_unless_told_otherwise(tmp_path: Path) -> None:
    path = write(tmp_path / "corpus.txt", TITLE, ABSTRACT, COMPOSITE, "+OMIM:3\n")
    assert read(path)[0].parts == [["D1"], ["D2"], ["OMIM:3"]]
    assert read(path, bars_join_parts=False)[0].parts == [["D1", "D2"], ["OMIM:3"]]


def test_pubtator_a_composite_is_split_where_its_parts_are_named(
    tmp_path: Path,
) -> None:
    names = "\tBreast cancer|ovarian cancer\n"
    path = write(tmp_path / "corpus.txt", TITLE, ABSTRACT, COMPOSITE, names)
    assert read(path, split_composites=True) == [
        GoldMention(-1, -1, "Disease", "Breast cancer", [["D1"]], 3),
        GoldMention(-1, -1, "Disease", "ovarian cancer", [["D2"]], 3),
    ]
    assert read(path)[0].parts == [["D1"], ["D2"]]


@pytest.mark.parametrize("names", ["\n", "\t\n", "\tone|two|three\n", "\tone|\n"])
def test_pubtator_a_composite_stays_whole_where_they_are_not(
    tmp_path: Path, names: str
) -> None:
    path = write(tmp_path / "corpus.txt", TITLE, ABSTRACT, COMPOSITE, names)
    (span,) = read(path, split_composites=True)
    assert (span.start, span.end, len(span.parts)) == (0, 25, 2)


def test_pubtator_blanks_around_a_mention_do_not_count(tmp_path: Path) -> None:
    line = "1\t26\t37\tIt hurts.  \tDisease\tD1\n"
    (span,) = read(write(tmp_path / "corpus.txt", TITLE, ABSTRACT, line))
    assert (span.start, span.end, span.mention) == (26, 35, "It hurts.")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("1\t1\t7\tBreast\tDisease\tD1", "E117"),
        ("1\t0\t6\tbreast\tDisease\tD1", "E117"),
        ("1\t90\t96\tBreast\tDisease\tD1", "E117"),
        ("1\t-1\t-1\tBreast\tDisease\tD1", "E117"),
        ("1\t0\tsix\tBreast\tDisease\tD1", "E117"),
        ("1\tO\t6\tBreast\tDisease\tD1", "E117"),
        ("1\t6\t6\tBreast\tDisease\tD1", "E117"),
        ("1\t0\t6\t \tDisease\tD1", "E117"),
        ("2\t0\t6\tBreast\tDisease\tD1", "E117"),
        ("1\t0\t6\tBreast", "E117"),
        ("1\t0\t6\tBreast\tDisease\tD1\t\t", "E117"),
        ("Breast", "E117"),
        ("1|a|Breast", "E117"),
        ("2|a|Breast", "E117"),
    ],
)
def test_pubtator_a_bad_line_is_named_and_not_quoted(
    tmp_path: Path, line: str, code: str
) -> None:
    path = write(tmp_path / "corpus.txt", TITLE, ABSTRACT, line, "\n")
    with pytest.raises(SapbertError, match=code) as error:
        read(path)
    assert f"{path}:3:" in str(error.value)
    assert "breast" not in str(error.value).lower()


def test_pubtator_an_abstract_comes_before_the_mentions(tmp_path: Path) -> None:
    mention = "1\t0\t6\tBreast\tDisease\tD1\n"
    path = write(tmp_path / "corpus.txt", TITLE, mention, ABSTRACT)
    with pytest.raises(SapbertError, match=r":3: .* without its title"):
        read(path)


@pytest.mark.parametrize(
    ("corpus", "table", "documents", "mentions"),
    [("develop", "dev", 100, 787), ("train", "train", 593, 5145)],
)
def test_pubtator_ncbi_disease_reads_as_its_table(
    data_folder: Path, corpus: str, table: str, documents: int, mentions: int
) -> None:
    path = data_folder / "eval-text" / f"NCBI{corpus}set_corpus.txt.gz"
    read_from = list(read_corpus(path, "pubtator", prefix="MESH:"))
    path = data_folder / "eval" / f"ncbi_disease.{table}.tsv.gz"
    expected = read_corpus(path, "tsv", bars_join_parts=True)

    def key(span: GoldMention) -> tuple[str, list[list[str]]]:
        return span.mention.strip(), span.parts

    spans = [span for document in read_from for span in document.mentions]
    assert [key(s) for s in spans] == [key(s) for d in expected for s in d.mentions]
    assert (len(read_from), len(spans)) == (documents, mentions)


@pytest.mark.parametrize("split", ["Development", "Training"])
def test_pubtator_offsets_of_bc5cdr_match_its_mentions(
    data_folder: Path, split: str
) -> None:
    path = data_folder / "eval-text" / f"CDR_{split}Set.PubTator.txt.gz"
    documents = list(read_gold(path))
    assert len(documents) == 500
    for document in documents:
        for span in document.mentions:
            assert document.text[span.start : span.end] == span.mention
            assert span.type in ("Chemical", "Disease")


def write_one(text: str, *places: tuple[int, int, str, str], number: Any = 7) -> str:
    doc = NLP(text)
    doc.spans["sc"] = [
        Span(doc, start, end, label=label, kb_id=kb_id)
        for start, end, label, kb_id in places
    ]
    file = io.BytesIO()
    write_docs(describe_docs([(number, doc)], spans_key="sc"), file)
    return file.getvalue().decode()


def test_pubtator_a_text_is_written_as_title_and_abstract() -> None:
    mentions = [(0, 1, "Disease", "MESH:D005334"), (3, 4, "Animal", "NIL")]
    assert write_one("Fever in\nmice", *mentions) == (
        "7|t|Fever in\n7|a|mice\n"
        "7\t0\t5\tFever\tDisease\tMESH:D005334\n7\t9\t13\tmice\tAnimal\t-\n\n"
    )


def test_pubtator_line_ends_and_tabs_become_blanks_of_the_same_length() -> None:
    doc = NLP("a\r\nb\tc\nd\u2028e")
    whole = write_one(doc.text, (0, len(doc), "L", "C1"))
    assert whole == "7|t|a \n7|a|b c d e\n7\t0\t10\ta  b c d e\tL\tC1\n\n"


def test_pubtator_changes_are_counted_in_one_warning() -> None:
    doc = "x\n\ny"
    with pytest.warns(UserWarning, match="W520.* 1 ids of documents changed") as found:
        text = write_one(doc, (0, 1, "a\tb", "A|B"), (1, 2, "L", "C1"), number="n|1\t2")
    assert text == "n_1_2|t|x\nn_1_2|a| y\nn_1_2\t0\t1\tx\ta b\tA%7CB\n\n"
    (warning,) = found
    for said in ("1 labels changed", "1 ids quoted", "1 mentions of blanks left out"):
        assert said in str(warning.message)


def test_pubtator_a_line_may_be_as_long_as_a_document(tmp_path: Path) -> None:
    path = write(tmp_path / "long.txt", f"1|t|{'é' * 900_000}\n")
    (document,) = read_gold(path)
    assert len(document.text) == 900_000


def test_pubtator_offsets_may_be_those_of_a_stripped_title(tmp_path: Path) -> None:
    lines = "1|t|Alpha fever \n1|a|The cough stops.\n"
    (kept,) = read(write(tmp_path / "a.txt", lines, "1\t17\t22\tcough\tX\tD1\n"))
    assert kept.start == 17
    path = write(tmp_path / "b.txt", lines, "1\t16\t21\tcough\tX\tD1\n")
    (document,) = read_gold(path)
    assert document.text == "Alpha fever\nThe cough stops."
    assert document.mentions[0].start == 16
    path = write(tmp_path / "c.txt", lines, "1\t15\t20\tcough\tX\tD1\n")
    with pytest.raises(SapbertError, match=r"c.txt:3: .*from character 15"):
        read(path)


def test_pubtator_a_relation_may_have_three_fields(tmp_path: Path) -> None:
    relation = "1\tTranslation fever\tcough\n"
    assert read(write(tmp_path / "corpus.txt", TITLE, ABSTRACT, relation)) == []
