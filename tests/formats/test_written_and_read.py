"""What one command writes the next reads: outputs of link, map and convert."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.io.tables.files import read_rows, write_table
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.linking.options import LinkOptions
from spacy_sapbert.mapping.run import TermColumns, map_table
from spacy_sapbert.pipeline.link_files import LinkJob, link_files
from tests.commands import invoke

TEXTS = {
    "n1": "Fever and fever, heart attack.\nNo myocardial infarction.",
    "n2": "Nothing here.",
}
CUIS = ["C0000004", "C0000004", "C0000001", "C0000001"]


def find_mentions(path: Path) -> list[tuple[str, list[list[str]]]]:
    return [(m.mention, m.parts) for d in read_corpus(path) for m in d.mentions]


# mentions without a line of their own, a folder, and without texts
@pytest.mark.parametrize("name", ["jsonl", "brat", "parquet"])
def test_annotated_output_is_read_by_every_command(name, sample_kb, tmp_path):
    notes, path = tmp_path / "notes.csv", tmp_path / f"linked.{name}"
    rows = "".join(f'{id},"{text}"\r\n' for id, text in TEXTS.items())
    notes.write_text(f"id,text\r\n{rows}", "utf8")
    link_files(LinkJob((notes,), path, kb=str(sample_kb), format=name))
    expected = find_mentions(path)
    assert [parts for _, parts in expected] == [[[cui]] for cui in CUIS]
    predictions = tmp_path / "predictions.jsonl"
    invoke("evaluate", sample_kb, path, "--predictions", predictions, code=0)
    invoke("evaluate", sample_kb, path, "--compare", predictions, code=0)
    invoke("convert", path, "--output", tmp_path / "again.tsv", code=0)
    for option in ("--lang", "--label"):  # of docs.spacy alone
        words = ("--output", tmp_path / "other.tsv", option, "de")
        assert "[E113]" in invoke("convert", path, *words, code=1).output
    assert not (tmp_path / "other.tsv").exists()
    assert find_mentions(tmp_path / "again.tsv") == expected
    words = ["teach", sample_kb, path, "--output", tmp_path / "taught", "--force"]
    invoke(*words, code=0)
    if name != "parquet":
        names = tmp_path / "stop_names.tsv"
        invoke("stop-names", sample_kb, path, "--output", names, code=0)
        output = tmp_path / "again.jsonl"
        invoke("link", sample_kb, path, "--output", output, code=0)
        assert [mention for mention, _ in find_mentions(output)] == [
            mention for mention, _ in expected
        ]


def choose(rows: list[list[str]]) -> Iterator[list[str]]:
    """Fill the column for a person's choices: the found concept, or none."""
    header, *others = rows
    chosen, found = header.index("match_chosen"), header.index("match_id")
    for row in others:
        yield [*row[:chosen], row[found] or "NIL", *row[chosen + 1 :]]


@pytest.mark.parametrize(
    "name",
    ["m.csv.gz", "m.tsv", "m.xlsx", "m.sssom.tsv"],
)
def test_a_table_of_map_is_read_by_every_command(name, sample_kb, tmp_path):
    terms, output = tmp_path / "terms.csv", tmp_path / name
    terms.write_text(
        'term\nfever\n"""acute"" pain"\n=1+1\n"\'\'=x"\nheart attack\n', "utf8"
    )
    options = LinkOptions(k=1, threshold=0.5)
    map_table(load_kb(sample_kb), terms, output, TermColumns("term"), options)
    if "sssom" not in name:
        found = list(read_rows(output))
        # as a person's program may write it: texts in all columns
        found[0] = [column.replace("match_score", "score") for column in found[0]]
        found[0] = [column.replace("match_prob", "prob") for column in found[0]]
        write_table(output, found[0], choose(found))
    expected = find_mentions(output)
    texts = [text for text, _ in expected]
    assert texts[0] == "fever"
    assert texts[-1] == "heart attack"
    assert "sssom" in name or texts[1:4] == ['"acute" pain', "=1+1", "'=x"]
    assert expected[0][1][0][-1] == "C0000004"
    invoke("evaluate", sample_kb, output, code=0)
    invoke("convert", output, "--output", tmp_path / "again.tsv", code=0)
    assert find_mentions(tmp_path / "again.tsv") == expected
    words = ["teach", sample_kb, output, "--output", tmp_path / "taught", "--force"]
    invoke(*words, code=0)
    if "sssom" in name:
        invoke("concepts", output, "--output", tmp_path / "concepts.jsonl", code=0)


def test_table_of_any_columns_is_read_by_every_command(sample_kb, tmp_path):
    path, again = tmp_path / "gold.txt", tmp_path / "again.tsv"
    path.write_text("d1$fever$0004\nd1$heart attack$0001\nd2$cough$-\n", "utf8")
    options = ["--columns", "doc=1,mention=2,ids=3", "--delimiter", "$"]
    options += ["--prefix", "C000"]
    invoke("convert", path, *options, "--output", again, code=0)
    expected = [("fever", [["C0000004"]]), ("heart attack", [["C0000001"]])]
    assert find_mentions(again) == [*expected, ("cough", [])]
    invoke("evaluate", sample_kb, path, *options, code=0)
    # read, and too few
    assert "E582" in invoke("calibrate", sample_kb, path, *options, code=1).output
    words = ["--output", tmp_path / "taught", "--force"]
    invoke("teach", sample_kb, path, *options, *words, code=0)
    # a format that has no columns to name
    brat = tmp_path / "brat"
    brat.mkdir()
    output = invoke(
        "convert", brat, *options, "--output", again, "--force", code=1
    ).output
    assert "[E113]" in output


def test_table_of_windows_is_read_with_its_encoding(sample_kb, tmp_path):
    path, again = tmp_path / "gold.csv", tmp_path / "again.tsv"
    path.write_text("§;mention;ids\n;Rückenschmerz;C0000001\n", "cp1252")
    taught, options = tmp_path / "taught", ["--encoding", "cp1252"]
    for words in (
        ["convert", path, "--output", again],
        ["teach", sample_kb, path, "--output", taught, "--force"],
        ["evaluate", sample_kb, path],
    ):
        error = invoke(*words, code=1).output
        assert re.search(r"\[E009\].*gold\.csv:1: .*`--encoding cp1252`", error)
        invoke(*words, *options, code=0)
    assert find_mentions(again) == [("Rückenschmerz", [["C0000001"]])]
    # read, and too few
    words = ["calibrate", sample_kb, path, *options]
    assert "[E582]" in invoke(*words, code=1).output


def test_mentions_of_a_table_with_texts_are_linked(sample_kb, tmp_path):
    path, output = tmp_path / "gold.tsv", tmp_path / "linked.jsonl"
    header = "file\ttext\toff0\toff1\tspan\n"
    rows = [("0", "5", "Fever"), ("17", "29", "heart attack")]
    lines = [f"n1\t{TEXTS['n1'][:29]}\t" + "\t".join(row) for row in rows]
    path.write_text(header + "\n".join(lines) + "\n", "utf8")
    columns = "doc=file,text=text,mention=span,start=off0,end=off1"
    words = ["link", sample_kb, path, "--columns", columns, "--output", output]
    invoke(*words, code=0)
    # "fever" in the middle is a name too, and no mention of the table
    assert find_mentions(output) == [
        ("Fever", [["C0000004"]]),
        ("heart attack", [["C0000001"]]),
    ]
    # without ids they can be neither measured nor taught, and without texts not linked
    words = ["evaluate", sample_kb, path, "--columns", columns]
    assert "E106" in invoke(*words, code=1).output
    words = ["link", sample_kb, path, "--columns", "doc=file,mention=span"]
    assert "E117" in invoke(*words, "--output", output, "--force", code=1).output
