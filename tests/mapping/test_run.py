import csv
import gc
import re
import shlex
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from random import Random

import pytest
import srsly
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.gold_mentions import read_mentions
from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.io.tables.files import read_cell, read_header, read_rows, write_table
from spacy_sapbert.io.tables.formulas import AsRead
from spacy_sapbert.io.tables.spreadsheets import text_of
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.linking.options import LinkOptions
from spacy_sapbert.mapping.run import TermColumns, map_table
from spacy_sapbert.verification.verified_tables import PairColumns, verify_table
from spacy_sapbert.vocabularies.reader_table import read_vocabulary
from spacy_sapbert.vocabularies.sssom import PERSON, write_again
from tests.commands import invoke
from tests.faults import fill_disk
from tests.rows import read_dicts

openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")

TERMS = [
    ["nr", "term", "ward"],
    ["1", "HEART ATTACK", "A"],
    ["2", "Fever, NOS (R50.9)", "B"],
    ["3", "", "C"],
    ["4", "head pain; fever", "D"],
    ["5", "=1+1", "E"],
]
COLUMNS = TermColumns("term", separator=";")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def table(tmp_path):
    write_table(tmp_path / "terms.csv", TERMS[0], TERMS[1:])
    return tmp_path / "terms.csv"


def test_map_table_names_the_row_of_a_cell_that_is_no_filter(tmp_path, kb):
    rows = [["fever", "T047", ""], ["a; b", "", ""], ["fever", "T047,Zqxwvut", ""]]
    write_table(tmp_path / "bad.csv", ["term", "types", "lang"], rows)
    columns = TermColumns("term", "types", "lang", ";")
    with pytest.raises(SapbertError, match=r"E332.*bad\.csv.* row 4 ") as caught:
        map_table(kb, tmp_path / "bad.csv", tmp_path / "b.csv", columns, LinkOptions())
    assert "Zqxwvut" not in str(caught.value)  # a cell of any column
    assert [path.name for path in tmp_path.iterdir()] == ["bad.csv"]


# --- reviewed tables ---


def test_reviewed_table_is_annotated(kb, table, tmp_path):
    mapped = tmp_path / "mapped.xlsx"
    map_table(kb, table, mapped, COLUMNS, LinkOptions(k=1))
    header, *rows = read_rows(mapped)
    with pytest.raises(SapbertError, match=r"E106.*match_chosen"):
        list(read_mentions(mapped))  # nobody has chosen
    place = header.index("match_chosen")
    chosen = iter(["C0027051", "C1|C2", "", "NIL", "", "C3"])
    for row in rows:
        row[place] = next(chosen)
    reviewed = tmp_path / "reviewed.xlsx"
    write_table(reviewed, header, rows)
    found = [(m.mention, m.parts, m.line) for m in read_mentions(reviewed)]
    assert found[:3] == [
        ("HEART ATTACK", [["C0027051"]], 2),
        ("Fever, NOS (R50.9)", [["C1", "C2"]], 3),
        ("head pain", [], 5),
    ]
    assert len(found) == 4
    documents = list(read_corpus(reviewed))
    assert [m.parts for d in documents for m in d.mentions] == [p for _, p, _ in found]
    assert documents[3].mentions[0].mention == "=1+1"


def test_every_row_for_a_person_says_why(kb, cold_kb, tmp_path):
    path, output = tmp_path / "terms.csv", tmp_path / "mapped.csv"
    terms = {
        "Fever (R50.9)": "unsure",  # it may be another code
        "Cold": "tied",
        "snow (2)": "dropped",
        "heart attack": "",
        "MI": "ambiguous",
    }
    write_table(path, ["term"], [[term] for term in terms])
    said: dict[str, str] = {}
    for opened in (load_kb(cold_kb), kb):
        map_table(opened, path, output, TermColumns("term"), LinkOptions())
        for row in read_dicts(output):
            assert row["match_note"] or row["match_status"] != "review"
            if row["match_status"] == "review" or row["match_id"]:
                said[row["term"]] = row["match_note"]
    assert said == terms


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_decisions_are_kept_when_a_table_is_mapped_again(
    sample_kb, kb, table, tmp_path, ending
):
    mapped, again, sssom = (
        tmp_path / n for n in (f"a.{ending}", f"b.{ending}", "c.sssom.tsv")
    )
    map_table(kb, table, mapped, COLUMNS, LinkOptions(k=1))
    header, *rows = read_rows(mapped)
    place, term = header.index("match_chosen"), header.index("term")
    chosen = ["C0000002", "C0000004|C0000005", "", "NIL", "", "-"]
    for row, choice in zip(rows, chosen, strict=True):
        row[place] = choice
    rows[5][term] = "another"
    write_table(mapped, header, rows)
    words = ["map", sample_kb, mapped, "--column", "term", "--split", ";", "-k", 2]
    result = invoke(*words, "-o", again, code=0)
    assert "Decisions of people that are kept: 3" in result.output
    assert "since their terms are other ones now: 1." in result.output
    found = read_dicts(again)
    assert [row["match_chosen"] for row in found] == [*chosen[:5], ""]
    assert [row["match_term"] for row in found][3:] == ["head pain", "fever", "another"]
    invoke(*words, "-o", sssom, code=0)
    mappings = [line.split("\t")[1:7] for line in sssom.read_text("utf8").splitlines()]
    by_person = [m[:1] + m[3:5] for m in mappings if m[-1:] == [PERSON]]
    assert by_person == [
        ["HEART ATTACK", "UMLS:C0000002", kb.concept("C0000002").name],
        ["head pain", "sssom:NoTermFound", ""],
    ]
    assert not any("Fever, NOS" in mapping[0] for mapping in mappings if mapping)


def write_choices(path, choices):
    rows = [[f"term {n}", choice] for n, choice in enumerate(choices, 2)]
    good = [["hot skin", "C0000004"], ["bad heart", "C0000003"]] * 3
    write_table(path, ["match_term", "match_chosen"], [*rows, *good])
    return path


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ("c0000001", "'c0000001'; it has C0000001"),
        ("C0000001, c0000004", "like an id; it has C0000001 and C0000004"),
        ("C0000001;C0000004", "like an id; it has C0000001 and C0000004"),
        ("C8888888 C7777777", "one that does not look like an id. Correct it"),
        ("NILL", "one that does not look like an id. Correct it"),
    ],
)
@pytest.mark.parametrize("command", ["teach", "evaluate"])
def test_an_id_that_is_not_written_as_one_is_named(
    own_kb, tmp_path, command, choice, says
):
    path = write_choices(tmp_path / "a.csv", ["C0000001", choice])
    force = ["--force"] if command == "teach" else []
    output = invoke(command, own_kb, path, *force, code=1).output
    assert "a.csv:3: Expected an id of the knowledge base, several with bars" in output
    assert says in output
    words = [*force, "--on-error", "skip"]
    output = invoke(command, own_kb, path, *words, code=0).output
    assert "1 documents or lines were left out" in output


def test_no_concept_may_be_written_in_several_ways(own_kb, tmp_path):
    choices = ["none", "None", "nil", "NIL", "-", "cui-less"]
    path = write_choices(tmp_path / "a.csv", [*choices, "C8888888"])
    output = invoke("teach", own_kb, path, "--force", code=0).output
    assert re.search(r"Annotated with no concept +6 ", output)
    assert "Unknown ids: 'C8888888' (a.csv:8)" in output  # as in any corpus


def test_unknown_ids_have_their_line_and_what_is_written_almost_so(own_kb, tmp_path):
    choices = ["C0000001", "C1", "NIL", "C8888888", "C8888888"]
    path = write_choices(tmp_path / "a.csv", choices)
    for words in (["teach", own_kb, path, "--force"], ["evaluate", own_kb, path]):
        assert (
            "Unknown ids: 'C8888888' (2 mentions, the first in a.csv:5), "
            "'C1' (a.csv:3; C0000001 is written almost so)"
        ) in invoke(*words, code=0).output
    aliases = tmp_path / "aliases.tsv"
    aliases.write_text("C1\tC0000001\nC8888888\tC0000004\n", "utf8")
    output = invoke("evaluate", own_kb, path, "--aliases", aliases, code=0).output
    assert "Unknown ids" not in output


@pytest.mark.parametrize("ending", ["csv", "xlsx", "sssom.tsv"])
def test_what_a_person_chose_holds_in_the_next_table(own_kb, tmp_path, ending):
    """No concept was linked again, and a decided acronym was for review again."""
    path, mapped = tmp_path / "terms.csv", tmp_path / "mapped.csv"
    terms = {"MI": "C0000002", "h/o Fever": "NIL", "head pain": "C0000007"}

    def write(path: Path, *others: str) -> None:
        write_table(path, ["term"], [[term] for term in (*terms, *others)])

    def map_terms(output: Path) -> list[list[str]]:
        invoke("map", own_kb, path, "--column", "term", "-o", output, code=0)
        return [[*map(text_of, row)] for row in read_rows(output)]

    write(path)
    header, *rows = map_terms(mapped)
    status, id = header.index("match_status"), header.index("match_id")
    assert [row[status] for row in rows] == ["review", "review", "exact"]
    place = header.index("match_chosen")
    for row in rows:
        row[place] = terms[row[0]]
    reviewed = tmp_path / f"reviewed.{ending}"
    if ending.startswith("sssom"):  # written from the decisions
        write_table(mapped, header, rows)
        invoke("map", own_kb, mapped, "--column", "term", "-o", reviewed, code=0)
    else:
        write_table(reviewed, header, rows)
    invoke("teach", own_kb, reviewed, code=0)
    write(path, "fever", "mi")
    _, *rows = map_terms(tmp_path / "next.csv")
    assert [(row[status], row[id]) for row in rows] == [
        ("exact", "C0000002"),
        ("none", ""),
        ("exact", "C0000007"),
        ("exact", "C0000004"),  # only the whole term has none
        ("exact", "C0000002"),
    ]


@pytest.mark.parametrize("ending", ["csv", "sssom.tsv"])
def test_a_term_that_says_something_else_is_not_learned(own_kb, tmp_path, ending):
    """The same from a table as from SSSOM, and also of what is not the first."""
    path, mapped = tmp_path / "terms.csv", tmp_path / "mapped.csv"
    reviewed = tmp_path / f"reviewed.{ending}"
    terms = {
        "h/o fever": "C0000004",
        "F/H diabetes": "C0000001",  # not the first candidate
        "no evidence of headache": "C0000007",
        "MI?": "C0000001",
        "h/o appendectomy": "NIL",
        "sore head, left": "C0000007",
        "Fever (R50.9)": "C0000004",
        "hot": "C0000004",
    }
    write_table(path, ["term"], [[term] for term in terms])
    invoke("map", own_kb, path, "--column", "term", "-o", mapped, code=0)
    header, *rows = read_rows(mapped)
    for row in rows:
        row[header.index("match_chosen")] = terms[text_of(row[0])]
    write_table(mapped, header, rows)
    words = ["--column", "term", "--force"]
    invoke("map", own_kb, mapped, *words, "-o", reviewed, code=0)
    with pytest.warns(UserWarning, match="W538.*may stay"):
        invoke("teach", own_kb, reviewed, "--force", code=0)
    kb = load_kb(own_kb)
    decided = kb.searcher.find_decisions([*terms])
    learned = [one and one.cui for one in decided]
    assert learned == [*[None] * 4, "", "C0000007", "C0000004", "C0000004"]
    names = {kb.entries([row])[row][0].alias for row in range(kb.rows)}
    assert "hot" in names
    assert names.isdisjoint([*terms][:4])


# --- mappings ---

CODED = [
    ["code", "term", "ward"],
    ["A1", "heart attack", "x"],
    ["A1", "heart attack", "y"],
    ["A2", "heart attack", "x"],
    ["", "fever", "x"],
    ["B:4", "fever; head pain", "x"],
    ["D003924", "Fever (R50.9)", "x"],
]


def read_sssom(path):
    lines = [n for n in path.read_text("utf8").splitlines() if not n.startswith("#")]
    return [*csv.DictReader(lines, delimiter="\t")]


def test_mappings_have_the_ids_of_rows_and_are_read_again(sample_kb, tmp_path):
    table, output = tmp_path / "terms.csv", tmp_path / "m.sssom.tsv"
    write_table(table, CODED[0], CODED[1:])
    words = ["--column", "term", "--split", ";", "--id", "code"]
    result = invoke("map", sample_kb, table, *words, "-o", output, code=0)
    assert "Columns that the mappings do not have: ward\n" in result.output
    rows = read_sssom(output)
    assert [row["subject_id"] for row in rows][:3] == ["subject:A1", "subject:A2", ""]
    words += ["--subject-prefix", "LAB", "--force"]
    invoke("map", sample_kb, table, *words, "-o", output, code=0)
    rows = read_sssom(output)
    subjects = [(row["subject_id"], row["subject_label"]) for row in rows]
    assert subjects == [
        ("LAB:A1", "heart attack"),
        ("LAB:A2", "heart attack"),
        ("", "fever"),
        ("B:4", "fever"),
        ("B:4", "head pain"),
    ]
    head = output.read_text("utf8").partition("\nsubject_id")[0]
    assert '#  LAB: "https://w3id.org/spacy-sapbert/subject/LAB/"' in head
    assert [row["subject_type"] == "rdfs literal" for row in rows] == [
        not id for id, _ in subjects
    ]
    verified = tmp_path / "v.sssom.tsv"
    invoke("verify", sample_kb, output, "-o", verified, code=0)
    assert {row["verify_verdict"] for row in read_sssom(verified)} == {"right"}
    mentions = [*read_mentions(output)]
    assert [m.mention for m in mentions] == [label for _, label in subjects]
    taught = ["--output", tmp_path / "taught", "--least-confidence", 0.999]
    result = invoke("teach", sample_kb, output, *taught, code=1)
    assert "E106" in result.output
    taught[-1] = 0.2
    invoke("teach", sample_kb, output, *taught, "--force", code=0)
    words[-2] = "my lab"
    result = invoke("map", sample_kb, table, *words, "-o", output, code=1)
    assert "E331" in result.output


@pytest.mark.parametrize("name", ["m.sssom.csv", "my_sssom.tsv.gz", "SSSOM.tsv"])
def test_every_command_knows_mappings_by_their_name(sample_kb, tmp_path, name):
    table, output = tmp_path / "terms.csv", tmp_path / name
    write_table(table, CODED[0], [["A,1", '"heart, attack"', "x"], *CODED[4:]])
    words = ["--column", "term", "--id", "code", "-o", output]
    invoke("map", sample_kb, table, *words, code=0)
    verified = tmp_path / f"again.{name}"
    invoke("verify", sample_kb, output, "-o", verified, code=0)
    for path in (output, verified):
        found = invoke("evaluate", sample_kb, path, code=0).output
        assert "2 mentions" in found
        invoke("concepts", path, "-o", tmp_path / "c.jsonl", "--force", code=0)
    invoke("update", sample_kb, sample_kb, verified, "-o", tmp_path / "u.sssom.tsv")
    assert (tmp_path / "u.sssom.tsv").read_text("utf8").startswith("#curie_map:\n")


def test_a_decision_stands_for_all_rows_of_its_term(kb, tmp_path):
    table, output = tmp_path / "terms.csv", tmp_path / "m.sssom.tsv"
    rows = [["fever", "fever", ""], ["fever", "fever", "C0000001"]]
    write_table(table, ["term", "match_term", "match_chosen"], rows)
    map_table(kb, table, output, TermColumns("term"), LinkOptions())
    (row,) = read_sssom(output)
    assert row["object_id"] == "UMLS:C0000001"


@pytest.fixture(scope="module")
def omop_kb(make_kb, tmp_path_factory) -> Path:
    release = ROOT / "tests" / "vocabularies" / "examples" / "omop" / "release"
    concepts = read_vocabulary(release, mapped_names=True, languages=["ENG"])
    return make_kb(tmp_path_factory.mktemp("omop"), concepts, backend="exact")


LOCAL = [
    ["code", "term", "match_term", "match_chosen"],
    ["00123", "Blue fever", "Blue fever", ""],
    ["00123", "blue fever", "blue fever", ""],
    ["=7", "Cold", "Cold", "OMOP:2"],
    ["=7", "Cold", "Cold", ""],
    ["X9", "OMOP:7", "OMOP:7", ""],
    ["X10", "fever", "fever", "NIL"],
    ["X11", "zebra", "zebra", ""],
]


def test_a_chosen_id_that_there_is_not_is_in_no_mapping(kb, tmp_path):
    table, mapped = tmp_path / "terms.csv", tmp_path / "mapped.csv"
    rows = [[t, t, c] for t, c in (("fever", "C00000001"), ("chill", "Mrs Doe"))]
    write_table(table, ["term", "match_term", "match_chosen"], rows)
    said = r"W538.*'C00000001' in row 2.*, one that does not .* an id in row 3\. They"
    with pytest.warns(UserWarning, match=said):
        map_table(kb, table, mapped, TermColumns("term"), LinkOptions())
    assert [row["match_chosen"] for row in read_dicts(mapped)] == [r[2] for r in rows]
    sssom = tmp_path / "m.sssom.tsv"
    with pytest.raises(SapbertError, match=r"E117.*in row 3\. Correct") as raised:
        map_table(kb, table, sssom, TermColumns("term"), LinkOptions())
    assert "Doe" not in str(raised.value)
    assert not sssom.exists()


def test_decisions_are_written_for_omop(omop_kb, tmp_path):
    table, output = tmp_path / "codes.csv", tmp_path / "my_source_to_concept_map.csv"
    write_table(table, LOCAL[0], map(partial(map, AsRead), LOCAL[1:]))
    words = [omop_kb, table, "--column", "term", "--id", "code", "-o", output]
    result = invoke("map", *words, "--subject-prefix", "LOCAL_LAB", code=0)
    assert "do not have" not in result.output
    text = output.read_text("utf8")
    assert text.splitlines()[0] == (
        "source_code,source_concept_id,source_vocabulary_id,source_code_description,"
        "target_concept_id,target_vocabulary_id,valid_start_date,valid_end_date,"
        "invalid_reason"
    )
    always = ["1970-01-01", "2099-12-31", ""]
    assert [*csv.reader(text.splitlines())][1:] == [
        ["00123", "0", "LOCAL_LAB", "Blue fever", "1", "SNOMED", *always],
        ["00123", "0", "LOCAL_LAB", "blue fever", "1", "SNOMED", *always],
        ["=7", "0", "LOCAL_LAB", "Cold", "2", "SNOMED", *always],
        ["X9", "0", "LOCAL_LAB", "OMOP:7", "7", "ATC", *always],
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--id code", "E423.*got code and none.*--subject-prefix"),
        ("--subject-prefix LAB", "E423.*got none and"),
        (f"--id code --subject-prefix {'L' * 21}", "E423.*20 characters"),
        ("--id long --subject-prefix LAB", "E117.*row 3 "),
        ("--id none --subject-prefix LAB", "E117.*row 2 "),
        ("--id code --subject-prefix LAB SAMPLE", "E471.*but got C0000001"),
    ],
)
def test_what_omop_cannot_have_is_an_error_before_terms_are_read(
    omop_kb, sample_kb, tmp_path, words, said
):
    table, output = tmp_path / "codes.csv", tmp_path / "source_to_concept_map.csv"
    rows = [["A", "x" * 50, "", "Cold"], ["B", "x" * 51, "", "Fever"]]
    write_table(table, ["code", "long", "none", "term"], rows)
    kb = sample_kb if words.endswith(" SAMPLE") else omop_kb
    options = words.removesuffix(" SAMPLE").split()
    words = [kb, table, "--column", "term", "-o", output, *options]
    assert re.search(said, " ".join(invoke("map", *words, code=1).output.split()))
    assert not output.exists()


# --- tables ---

CELLS = st.text(st.characters(codec="utf8", exclude_categories=["Cc", "Zl", "Zp"]))


@settings(max_examples=10)  # a workbook takes long
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5))
@pytest.mark.parametrize("ending", ["xlsx", "tsv"])
def test_tables_round_trip(ending, tmp_path_factory, cells):
    path = tmp_path_factory.mktemp("table") / f"t.{ending}"
    rows = [[f"x{one.strip()}", f"{other.strip()}y"] for one, other in cells]
    write_table(path, ["a", "b"], rows)
    expected = [[" ".join(c.split()) for c in row] for row in [["a", "b"], *rows]]
    read = read_cell if ending == "tsv" else text_of
    found = [[*map(read, row)] for row in read_rows(path)]
    assert [[" ".join(c.split()) for c in row] for row in found] == expected


OWN = ["=1+1", "+49 1", "+ve blood culture", "-", "'=x", ' =HYPERLINK("x")', "'s"]
DELIMITERS = {"csv": ",", "tsv": "\t"}


@pytest.mark.parametrize("written", DELIMITERS)
@pytest.mark.parametrize("read", [*DELIMITERS, "jsonl"])
def test_cells_of_the_user_are_written_as_they_were_read(kb, tmp_path, read, written):
    path, output = tmp_path / f"in.{read}", tmp_path / f"out.{written}"
    lines = [["=term", "id"], *[[cell, "C0000001"] for cell in OWN]]
    if read == "jsonl":
        rows = (dict(zip(lines[0], line, strict=True)) for line in lines[1:])
        srsly.write_jsonl(path, rows)
    else:
        with path.open("w", encoding="utf8", newline="") as file:
            csv.writer(file, delimiter=DELIMITERS[read]).writerows(lines)
    for write in (
        partial(map_table, columns=TermColumns("=term"), options=LinkOptions(k=1)),
        partial(verify_table, columns=PairColumns("=term", "id")),
    ):
        write(kb, path, output)
        with output.open(encoding="utf8", newline="") as file:
            found = [*csv.reader(file, delimiter=DELIMITERS[written])]
        assert [row[:2] for row in found] == lines
        others = [cell for row in found for cell in row[2:] if cell]
        assert {cell for cell in others if cell[0] in "=+-@"} <= {"-"}


@pytest.mark.parametrize(
    ("line", "ending", "separator"),
    [
        ("Begriff;Wert", "csv", ";"),
        ("Begriff\tWert", "csv", "\t"),
        ("Begriff|Wert", "csv", "|"),
        ("Begriff\tWert", "tsv", ","),  # by the ending of each
        ("Begriff;Wert", "txt", ","),
        ("Begriff", "csv", ","),
    ],
)
def test_csv_has_the_separator_of_the_csv_that_it_is_made_of(
    sample_kb, tmp_path, line, ending, separator
):
    path, output = tmp_path / f"in.{ending}", tmp_path / "out.csv"
    lines = [line, "Größe" + line.removeprefix("Begriff")]
    path.write_bytes("\n".join(lines).encode("cp1252"))
    words = [path, "--column", "Begriff", "--encoding", "cp1252", "-o", output, "-f"]
    for command in (
        ("map", sample_kb, *words),
        ("verify", sample_kb, *words, "--id", "Begriff"),
        ("update", sample_kb, sample_kb, *words, "--id", "Begriff"),
    ):
        invoke(*command, code=0)
        header, row = csv.reader(output.open(encoding="utf-8-sig"), delimiter=separator)
        own = re.split(r"\W", line)
        assert header[: len(own)] == own
        assert row[: len(own)] == ["Größe", *own[1:]]
        assert len(row) == len(header) > len(own)


def test_csv_begins_with_a_mark_of_utf8_if_its_spreadsheet_needs_it(
    sample_kb, tmp_path
):
    path, output = tmp_path / "in.csv", tmp_path / "out.csv"
    mark, table = b"\xef\xbb\xbf", "Begriff;Wert\nGröße;1\n"
    for data, encoding, begins in (
        (table.encode(), "utf8", b""),
        (mark + table.encode(), "utf8", mark),
        (table.encode("cp1252"), "cp1252", mark),
    ):
        path.write_bytes(data)
        words = [path, "--column", "Begriff", "-o", output, "-f"]
        words += ["--encoding", encoding]
        for command in (
            ("map", sample_kb, *words),
            ("verify", sample_kb, *words, "--id", "Begriff"),
            ("update", sample_kb, sample_kb, *words, "--id", "Begriff"),
        ):
            invoke(*command, code=0)
            head, text = output.read_bytes().split(b"Begriff;", 1)
            assert head == begins
            assert mark not in text
    words[words.index(output)] = tmp_path / "out.tsv"
    invoke("map", sample_kb, *words, code=0)
    assert (tmp_path / "out.tsv").read_bytes().startswith(b"Begriff\t")


def test_texts_of_ours_are_no_formulas_without_their_blanks(tmp_path):
    for name in ("a.tsv", "a.sssom.tsv"):
        path = tmp_path / name
        path.touch()
        write_again(path, path, ["a", "b"], [[" =1+1", AsRead("a\t b")]])
        assert path.read_text("utf8") == "a\tb\n'=1+1\ta b\n"


def test_write_table_refuses_cells_that_excel_would_cut(tmp_path):
    longest = "x" + "\N{GRINNING FACE}" * (32_767 // 2)  # of two units each
    path = tmp_path / "long.xlsx"
    rows = [["1", longest], ["2", None], ["3", f"SENTINEL{longest}"]]
    write_table(path, ["nr", "text"], rows[:2])
    assert [*read_rows(path)][1] == ["1", longest]
    path.unlink()
    with pytest.raises(SapbertError, match="E007.*row 4") as caught:
        write_table(path, ["nr", "text"], rows)
    assert "SENTINEL" not in str(caught.value)
    assert not path.exists()
    write_table(tmp_path / "long.csv", ["nr", "text"], rows)
    assert [*read_rows(tmp_path / "long.csv")][3][1] == rows[2][1]


@pytest.mark.parametrize("ending", ["xlsx", "csv", "parquet", "jsonl.gz"])
def test_a_full_disk_is_one_error_and_leaves_nothing(disk, monkeypatch, ending):
    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    monkeypatch.setattr(tempfile, "tempdir", str(disk))  # of openpyxl
    rows = [[Random(n).randbytes(500).hex()] for n in range(100)]
    found: list[tuple[str, list[str]]] = []
    for free in range(0, 400, 40):
        fill_disk(disk, free << 10)
        try:
            write_table(disk / f"t.{ending}", ["a"], rows)
        except SapbertError as error:
            found.append((error.code, [path.name for path in disk.iterdir()]))
        gc.collect()
        for path in disk.iterdir():
            path.unlink()
    assert 0 < len(found) < 10
    assert found == [("E004", ["filler"])] * len(found)
    assert not unraisable


def test_read_rows_pads_short_rows_and_refuses_long_ones_and_other_files(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b;\n1\n2;3\n4;5;6\n", "utf8")
    rows = read_rows(path)
    assert [next(rows) for _ in range(3)] == [["a", "b"], ["1", ""], ["2", "3"]]
    with pytest.raises(SapbertError, match=r"E117.*t\.csv:4.*Expected 2 fields"):
        next(rows)
    for name, code in (("t.docx", "E110"), ("t.xlsx", "E150"), ("t.parquet", "E150")):
        (tmp_path / name).write_bytes(b"PK nothing")
        with pytest.raises(SapbertError, match=code):
            list(read_rows(tmp_path / name))


def test_read_rows_shows_lists_as_text(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    table = pa.table({"a": ["x", None], "b": [[1, 2], None]})
    pq.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "t.jsonl").write_text(
        '{"a": "x", "b": [1, 2]}\n\n{"a": null}\n', "utf8"
    )
    for name, last in (("t.parquet", [None, None]), ("t.jsonl", ["", ""])):
        rows = [["a", "b"], ["x", "[1, 2]"], last]
        assert [*read_rows(tmp_path / name)] == rows
    pq.write_table(table.select(["a"]).slice(0, 1), tmp_path / "one.parquet")
    assert [*read_rows(tmp_path / "one.parquet")] == [["a"], ["x"]]
    deep = "[" * 995 + "]" * 995
    for wrong in ("{", "[]", '{"c": 1}', f'{{"a": {deep * 100}}}', f'{{"a": {deep}}}'):
        (tmp_path / "t.jsonl").write_text(f'{{"a": "Fever"}}\n{wrong}\n', "utf8")
        with pytest.raises(SapbertError, match=r"E117.*t\.jsonl:2") as caught:
            list(read_rows(tmp_path / "t.jsonl"))
        assert "Fever" not in str(caught.value)


def test_numbers_that_json_lacks_are_written_as_null(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": "x", "b": NaN}\n{"a": "y", "b": -Infinity}\n', "utf8")
    header, *rows = read_rows(path)
    write_table(path, read_header(iter([header])), rows)
    assert [*srsly.read_jsonl(path)] == [{"a": n, "b": None} for n in "xy"]


# --- the command ---


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_map_command_does_not_print_the_first_row_of_a_table_without_names(
    sample_kb, tmp_path, ending
):
    path = tmp_path / f"terms.{ending}"
    write_table(path, ["17", "Zqxwvut", "asthma"], [["18", "Patientname", "fever"]])
    options = ("-o", tmp_path / "o.csv", "--column", "term")
    output = invoke("map", sample_kb, path, *options, code=1).output
    assert "E410" in output
    assert not re.search("Zqxwvut|Patientname|asthma|fever", output)


def test_a_table_without_rows_is_mapped_with_a_warning(sample_kb, tmp_path):
    path, output = tmp_path / "terms.csv", tmp_path / "o.csv"
    write_table(path, ["term"], [])
    words = ["map", sample_kb, path, "--column", "term", "-o", output]
    with pytest.warns(UserWarning, match=r"W537.*terms\.csv"):
        invoke(*words, code=0)
    assert output.read_text("utf8").startswith("term,match_term")


@pytest.mark.usefixtures("few_mentions")
def test_mapping_page_commands_run_on_the_sample(tmp_path, tiny_encoder, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "assets" / "sample", tmp_path / "assets" / "sample")
    shutil.copytree(tiny_encoder, tmp_path / "models" / "minilm")
    page = (ROOT / "docs" / "mapping.md").read_text("utf8")
    blocks = re.findall(r"^```bash\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2

    def run_all(block):
        for line in block.splitlines():
            result = invoke(*shlex.split(line)[2:], code=0)
            yield result.output

    *_, summary = run_all(blocks[0])
    assert "Rows without a term: 1" in summary
    # a tiny encoder links other terms, so the numbers differ
    for line in summary.splitlines():
        _, percent, meaning = line.partition("%   ")
        assert not percent or meaning.strip() in page
    header, *rows = read_rows(tmp_path / "mapped.xlsx")
    chosen, found = header.index("match_chosen"), header.index("match_1_id")
    score = header.index("match_1_score")
    names = [row for row in rows if row[found] and row[score] == 1]
    assert len(names) == 17  # a tiny encoder finds names, and no more
    for row in rows:
        if row[found]:
            row[chosen] = row[found] if row in names else "NIL"
    write_table(tmp_path / "reviewed.xlsx", header, rows)
    accuracy, report = run_all(blocks[1])
    assert accuracy.startswith("reviewed.xlsx: 17 mentions (5 without an id")
    assert "Right first answers" in report
    assert (tmp_path / "models" / "codes" / "taught").is_dir()
