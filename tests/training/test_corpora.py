"""Corpora of research: read, their mentions expanded and split as BioSyn does."""

import gzip
from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats import gold
from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.formats.gold import GoldDocument, GoldMention
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts
from tests.commands import invoke
from training.__main__ import app
from training.corpora.biosyn import (
    KnownConcepts,
    order_parts,
    preprocess_concepts,
    preprocess_documents,
    read_dictionary_file,
)
from training.corpora.mention_text import (
    SEPARATOR,
    expand_abbreviations,
    split_composite,
)
from training.corpora.research import READERS, read_xlbel

XLBEL = "C0000001||calor\n"
BIOSYN = "7||154|171||DiseaseClass||enzyme deficiency||D008661\n"
COMETA = (
    "\tID\tTerm\tGeneral SNOMED ID\tGeneral SNOMED Label\tSpecific SNOMED ID\t"
    "Specific SNOMED Label\tExample\n"
)
ROW = "0\t17\theart racing\t80313002\tPalpitations\t3424008\tTachycardia\tIt raced.\n"
QUOTED = '1\t18\tsick\t1\tIll\t2\tNausea\t"He said ""sick"".\nThen\tleft."\n'


def test_read_xlbel_of_a_real_file_equals_its_table(data_folder):
    queries = data_folder / "eval-text" / "es_1k_test_query.txt.gz"
    table = data_folder / "eval" / "xlbel_es.test.tsv.gz"
    pairs = [
        [(span.mention, span.parts) for each in documents for span in each.mentions]
        for documents in (read_xlbel(queries), read_corpus(table, "tsv"))
    ]
    assert pairs[0] == pairs[1]


@pytest.mark.parametrize(
    ("format", "text", "line", "code"),
    [
        ("xlbel", f"{XLBEL}C0000001", 2, "E117"),
        ("xlbel", f"{XLBEL}C0000001||fiebre||Tiene <tgt>fiebre .", 2, "E117"),
        ("xlbel", f"{XLBEL}C0000001||fiebre||A </tgt>fiebre<tgt> .", 2, "E117"),
        ("xlbel", f"{XLBEL}C0000001||fiebre||Tiene <tgt>tos</tgt>", 2, "E117"),
        ("cometa", "Term\tID\nsick\t1\n", 1, "E117"),
        ("cometa", f"{COMETA}{ROW}1\t18\tsick\t1\n", 3, "E117"),
        ("cometa", COMETA + ROW + QUOTED.replace('left."', "left."), 3, "E117"),
        ("biosyn", f"{BIOSYN}7||1|2||Disease||fiebre", 2, "E117"),
        ("biosyn", f"{BIOSYN}7||1|2||Disease||fiebre||D1||D2", 2, "E117"),
        ("biosyn", f"{BIOSYN}7||2|1||Disease||fiebre||D1", 2, "E117"),
        ("biosyn", f"{BIOSYN}7||1|2||Disease||fiebre| ||D1|D2", 2, "E1"),
    ],
)
def test_research_corpus_with_a_bad_line_names_it_without_its_text(
    tmp_path, format, text, line, code
):
    path = tmp_path / "table.txt"
    path.write_text(text, "utf8")
    with pytest.raises(SapbertError, match=code) as error:
        list(READERS[format](path))
    assert f"{path}:{line}:" in str(error.value)
    assert not any(word in str(error.value) for word in ("fiebre", "sick", "Drowsy"))


def test_cometa_may_have_no_other_columns(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("Term\tGeneral SNOMED ID\nsick\t2\n", "utf8")
    (document,) = READERS["cometa"](path)
    (span,) = document.mentions
    assert (span.mention, span.parts) == ("sick", [["2"]])


@pytest.fixture
def concept_files(tmp_path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    lines = ("fever||D1|OMIM:2", "fever||D1+D2", "fever||-1", "cough|fever||D1|D2")
    text = "".join(f"8||-1|-1||Disease||{line}\n" for line in lines)
    for name, content in {"12": "", "7": BIOSYN, "8": text}.items():
        (folder / f"{name}.concept").write_text(content, "utf8")
    (folder / "7.txt").write_text("no concept file", "utf8")
    return folder


def test_read_concept_files_by_hand(concept_files):
    deficiency = GoldMention(
        *(154, 171, "DiseaseClass", "enzyme deficiency", [["D008661"]], 1)
    )
    found = [
        ("fever", [["D1", "OMIM:2"]], 1),
        ("fever", [["D1"], ["D2"]], 2),
        ("fever", [], 3),
        ("cough", [["D1"]], 4),
        ("fever", [["D2"]], 4),
    ]
    assert list(READERS["biosyn"](concept_files)) == [
        GoldDocument("12", "", []),
        GoldDocument("7", "", [deficiency]),
        GoldDocument("8", "", [GoldMention(-1, -1, "Disease", *one) for one in found]),
    ]
    (document,) = READERS["biosyn"](concept_files / "7.concept")
    assert document.mentions == [deficiency]
    with pytest.raises(SapbertError, match="E108.*concept"):
        list(READERS["biosyn"](concept_files.parent))


def test_read_concept_files_has_mentions_up_to_a_limit(concept_files, monkeypatch):
    monkeypatch.setattr(gold, "MENTIONS", 3)
    with pytest.raises(SapbertError, match="E007.*at most"):
        list(READERS["biosyn"](concept_files))


DICTIONARY = (
    "D2||fever|pyrexia\nD1|OMIM:1|OMIM:2||headache|headache|--\n\nD4|| \nD3||a b\n"
)
PREPROCESSED = "D1||fever\nD2|D1||pyrexia\nD2||pain\nD1||febrile\n"
BY_LINE = "ids of one line"


@pytest.mark.parametrize(
    ("text", "concepts"),
    [
        (
            DICTIONARY,
            [
                Concept(
                    "D1",
                    ["headache"],
                    retired=["OMIM:1", "OMIM:2"],
                    retired_by={"OMIM:1": BY_LINE, "OMIM:2": BY_LINE},
                ),
                Concept("D2", ["fever", "pyrexia"]),
                Concept("D3", ["a b"]),
            ],
        ),
        (
            PREPROCESSED,
            [
                Concept("D1", ["fever", "pyrexia", "febrile"]),
                Concept("D2", ["pyrexia", "pain"]),
            ],
        ),
    ],
)
def test_convert_dictionary_by_hand(text, concepts, tmp_path):
    path, output = tmp_path / "dictionary.txt.gz", tmp_path / "concepts.jsonl"
    path.write_bytes(gzip.compress(text.encode("utf8")))
    invoke("convert-dictionary", path, output, app=app, code=0)
    assert list(read_concepts(output)) == concepts
    assert "E003" in invoke("convert-dictionary", path, output, app=app, code=1).output


@pytest.mark.parametrize(
    "line", ["fever", "D1|fever", "||fever", "D1|||fever||x", " ||fever", "D1| ||x"]
)
def test_dictionary_with_a_bad_line_names_it_without_its_text(line, tmp_path):
    path = tmp_path / "dictionary.txt"
    path.write_text(f"X:1||pain\n{line}\n", "utf8")
    with pytest.raises(SapbertError, match=f"E117.*{path}:2:") as error:
        list(read_dictionary_file(path))
    assert "fever" not in str(error.value)


COMPOSITES = """\
breast and ovarian cancer: breast cancer + ovarian cancer
breast and/or  ovarian cancer: breast cancer + ovarian cancer
brain, breast, AND prostate cancer: brain cancer + breast cancer + prostate cancer
bone and soft tissue tumors: bone tumors + soft tissue tumors
Prader-Willi and Angelman syndromes: Prader-Willi syndromes + Angelman syndromes
stage IIa or III colon cancer: stage IIa colon cancer + stage III colon cancer
Duchenne and Becker muscular dystrophy: Duchenne muscular dystrophy \
+ Becker muscular dystrophy
Duchenne and Becker Dystrophy: Duchenne Dystrophy + Becker Dystrophy
Duchenne and limb girdle dystrophy: Duchenne dystrophy + limb girdle dystrophy
hepatitis B and C: hepatitis B + hepatitis C
cleft lip/palate: cleft lip + cleft palate
cancer of the breast, colon and ovaries: cancer of the breast + cancer of the colon \
+ cancer of the ovaries
benign and malignant tumors of the skin: benign tumors of the skin \
+ malignant tumors of the skin
loss of memory and lack of sleep: loss of memory + lack of sleep
loss of both and hearing: loss of both + loss of hearing
fever and headache: fever + headache
"""


@pytest.mark.parametrize("line", COMPOSITES.splitlines())
def test_split_composite_by_hand(line):
    mention, _, parts = line.partition(": ")
    assert " + ".join(split_composite(mention, parts.count(" + ") + 1)) == parts


def test_split_composite_without_enough_parts_returns_the_mention():
    assert split_composite("skin and eye cancer", 1) == ["skin and eye cancer"]
    mentions = ["breast-ovarian cancer", "cancer and", "1,2-dimethylhydrazine", ""]
    # a part would have half a bracket
    for mention in (*mentions, "deficiencies (C2 and C7)"):
        assert split_composite(mention, 2) == [mention]


def test_split_composite_equals_annotated_parts(data_file):
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


@pytest.mark.parametrize(
    ("mention", "expected"),
    [
        ("AT patients", "ataxia telangiectasia patients"),
        ("AT, and  HD", "ataxia telangiectasia, and Huntington disease"),
        ("FAP/APC", "familial adenomatous polyposis coli/adenomatous polyposis coli"),
        ("ALD/AMN", "adrenoleukodystrophy"),
        ("low Hex A, of AT", "low hexosaminidase A, of ataxia telangiectasia"),
        ("X", "X y x"),  # two that stand for each other
        ("ATM (AT) AT-like", "ATM (AT) AT-like"),
    ],
)
def test_expand_abbreviations_inside_long_forms(mention, expected):
    assert expand_abbreviations(mention, LONG_FORMS) == expected


def test_order_parts_by_names():
    known = KnownConcepts(CONCEPTS)
    names = ["ovarian cancer", "Breast-Cancer"]
    assert order_parts(names, [["D9"], ["D2"]], known) == [["D2"], ["D9"]]
    names = ["ovarian tumours", "breast cancer"]
    assert order_parts(names, [["D1"], ["D2"]], known) == [["D2"], ["D1"]]
    names = ["ovarian tumours", "breast tumours"]
    assert order_parts(names, [["D1"], ["D2"]], known) == [["D1"], ["D2"]]
    assert order_parts(["breast cancer"] * 2, [["D1"]] * 2, known) == [["D1"], ["D1"]]


@pytest.mark.parametrize(
    ("mention", "parts", "kept"),
    [
        ("cancer", [["D9"]], ["cancer"]),
        ("--", [["D9"]], []),
        ("cancer", [], []),
        ("cancer", [["D7"]], []),
        ("a b", [["D2"], ["D7"]], []),
    ],
)
def test_biosyn_leaves_out_mentions_without_letters_or_known_ids(mention, parts, kept):
    document = GoldDocument(1, mention, [GoldMention(0, 6, "", mention, parts, 1)])
    (written,) = preprocess_documents([document], KnownConcepts(CONCEPTS))
    assert [each.mention for each in written.mentions] == kept


def test_biosyn_mentions_of_a_real_corpus(data_file):
    medic = data_file("medic/medic_06Jul2012.txt.gz")
    path = data_file("eval-text/NCBIdevelopset_corpus.txt.gz")
    known = KnownConcepts(read_dictionary_file(medic))
    read = list(read_corpus(path, "pubtator", drop_prefix="OMIM:"))
    written = list(preprocess_documents(read, known))
    before, after = ([m for d in docs for m in d.mentions] for docs in (read, written))
    assert len(before) == 787
    assert len(after) == 810
    assert sum(len(mention.parts) > 1 for mention in before) == 30
    assert sum(len(mention.parts) > 1 for mention in after) == 11


def test_biosyn_names_of_medic_are_as_many_as_published(data_file):
    path = data_file("medic/medic_06Jul2012.txt.gz")
    concepts = list(preprocess_concepts(read_dictionary_file(path)))
    names = [name for concept in concepts for name in concept.aliases]
    assert len(concepts) == 11_915
    assert len(names) == 72_968  # a name of two concepts counts twice
    assert len({*names}) == 71_924
    # 71,923 with a letter: the other is "1", a slip in MEDIC after "…, Familial, 1"
    assert [name for name in names if name.isnumeric()] == ["1"]
