"""Tables of texts and ids: formats, a stop, and the job of the page."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.io.tables.files import write_table
from spacy_sapbert.io.tables.spreadsheets import Cell
from spacy_sapbert.verification import verified_tables
from spacy_sapbert.verification.verdicts import Verifier
from spacy_sapbert.verification.verified_tables import PairColumns, verify_table
from tests.commands import invoke
from tests.rows import read_dicts

DOCS = Path(__file__).parents[2] / "docs"
HEADER = ["nr", "term", "code", "label"]
ROWS: list[list[Cell]] = [
    ["1", "Heart attack", "C0000001", "Myocardial infarction"],
    ["2", "Fever", "C0000001", "Fever"],
    ["3", "Heart attack", "C9999999", ""],
    ["4", "Fever", "c0000004", ""],
    ["5", "Fever", "", ""],
    ["6", "n/a", "C0000004", ""],
    ["7", "Fever", "C0000004; C0000007", ""],
    ["8", "Heart attack", "C0000003", ""],
]
VERDICTS = ["right", "wrong", "retired", "unknown", "", "unsure", "unknown", "near"]
COLUMNS = PairColumns("term", "code", "label")
ENDINGS = ["csv", "xlsx", "parquet", "jsonl.gz"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_is_read_and_written(kb, tmp_path, ending):
    pytest.importorskip("pyarrow" if ending == "parquet" else "openpyxl")
    table, output = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
    write_table(table, HEADER, ROWS)
    counts = verify_table(kb, table, output, COLUMNS)
    rows = read_dicts(output)
    assert [[row[name] for name in HEADER] for row in rows] == ROWS
    assert [row["verify_verdict"] for row in rows] == VERDICTS
    assert counts == Counter(filter(None, VERDICTS)) | {"empty": 1}
    assert [path.name for path in tmp_path.glob("out*")] == [output.name]


def test_sssom_is_written_with_its_metadata(kb, tmp_path):
    path, output, again = (tmp_path / f"{n}.sssom.tsv" for n in ("in", "out", "again"))
    head = [
        "#curie_map:",
        "#  UMLS: https://example.org/",
        "subject_id\tsubject_label\tobject_id\tobject_label\tconfidence",
    ]
    row = "A:1\tFever\tUMLS:C0000001\tFever\t0.9"
    path.write_text("\n".join([*head, row]) + "\n", "utf8")
    invoke("verify", kb.folder, path, "-o", output, code=0)
    written = output.read_text("utf8").splitlines()
    assert written[:2] == head[:2]
    assert written[2].startswith(f"{head[2]}\tverify_verdict\t")
    assert written[3].startswith(f"{row}\twrong\t")
    assert len(written) == 4
    invoke("verify", kb.folder, output, "-o", again, code=0)
    assert again.read_bytes() == output.read_bytes()


# The verdict on a mapping, by the verdict on its text and its object
JUDGED = ("right", "near", "wrong", "retired", "unknown", "unsure")
SAME = dict(zip(JUDGED, JUDGED, strict=True))
OTHERS = {**dict.fromkeys(JUDGED, "other"), "unknown": "unknown"}
CLAIMS = {
    ("", ""): SAME,
    ("skos:exactMatch", ""): SAME,
    ("http://www.w3.org/2004/02/skos/core#exactMatch", ""): SAME,
    ("owl:equivalentClass", ""): SAME,
    ("oboInOwl:hasDbXref", ""): SAME,
    ("skos:closeMatch", ""): SAME | {"wrong": "unsure"},
    ("skos:exactMatch", "Not"): OTHERS | {"right": "unsure", "retired": "unsure"},
    ("skos:closeMatch", "Not"): OTHERS | {"right": "unsure", "retired": "unsure"},
    ("skos:broadMatch", ""): OTHERS,
    ("skos:narrowMatch", ""): OTHERS,
    ("skos:relatedMatch", ""): OTHERS,
    ("skos:relatedMatch", "Not"): OTHERS,
    ("rdfs:subClassOf", ""): OTHERS,
}
# A text and its object, by the verdict on the two
JUDGED_PAIRS = {
    "right": ("Fever", "C0000004"),
    "near": ("Heart attack", "C0000003"),
    "wrong": ("Fever", "C0000001"),
    "retired": ("Heart attack", "C9999999"),
    "unknown": ("Fever", "C7777777"),
    "unsure": ("n/a", "C0000004"),
}


def write_claims(path, claims):
    lines = ["subject_label\tpredicate_id\tpredicate_modifier\tobject_id"]
    lines += [
        f"{JUDGED_PAIRS[judged][0]}\t{predicate}\t{modifier}\t"
        f"UMLS:{JUDGED_PAIRS[judged][1]}"
        for (predicate, modifier), judged in claims
    ]
    lines.append("Fever\tskos:exactMatch\t\tsssom:NoTermFound")
    path.write_text("\n".join(lines) + "\n", "utf8")


def test_a_mapping_is_judged_by_what_it_says(kb, tmp_path):
    path, output, page = (
        tmp_path / n for n in ("a.sssom.tsv", "b.sssom.tsv", "c.html")
    )
    claims = [(claim, judged) for claim in CLAIMS for judged in JUDGED]
    write_claims(path, claims)
    expected = [CLAIMS[claim][judged] for claim, judged in claims]
    result = invoke("verify", kb.folder, path, "-o", output, code=0)
    rows = read_dicts(output)
    assert [row["verify_verdict"] for row in rows] == [*expected, ""]
    assert f"are the same: {expected.count('other')}" in result.output
    not_fever = rows[claims.index((("skos:exactMatch", "Not"), "right"))]
    assert not_fever["verify_why"].startswith("The mapping says that this is not Fever")
    others = [row for row in rows if row["verify_verdict"] == "other"]
    assert not any(row["verify_better"] for row in others)
    invoke("verify", kb.folder, path, "-o", page, code=0)
    shown = re.findall(
        rf"<td><bdi>({'|'.join(JUDGED)}|other)</bdi></td>", page.read_text()
    )
    assert {*shown[len(JUDGED) :]} == {*JUDGED} - {"right"}


@pytest.mark.parametrize("claim", CLAIMS, ids="".join)
def test_the_job_of_the_page_ends_on_what_a_mapping_says(kb, tmp_path, claim):
    path = tmp_path / "a.sssom.tsv"
    words = ["-o", tmp_path / "b.html", "--fail-on", "wrong,unknown,retired", "-f"]
    for failing in (True, False):
        claims = [
            (claim, judged)
            for judged, verdict in CLAIMS[claim].items()
            if (verdict in ("wrong", "retired")) == failing and verdict != "unknown"
        ]
        write_claims(path, claims)
        code = int(failing and bool(claims))
        said = "Exit code 1, by `--fail-on`: "
        shown = invoke("verify", kb.folder, path, *words, code=code).stderr
        assert (said in shown) == bool(code)
        shown = invoke("verify", kb.folder, path, *words, "--quiet", code=code).output
        assert said not in shown


def test_a_job_that_fails_says_by_which_verdicts(kb, tmp_path):
    path = tmp_path / "in.csv"
    write_table(path, HEADER, ROWS)
    words = ["--column", "term", "--id", "code", "-o", tmp_path / "out.csv"]
    words += ["--fail-on", "unknown,wrong"]
    shown = invoke("verify", kb.folder, path, *words, code=1).stderr
    assert shown.endswith("⚠ Exit code 1, by `--fail-on`: 2 unknown, 1 wrong\n")


def test_stopped_run_continues(kb, tmp_path, monkeypatch):
    write_table(tmp_path / "in.csv", HEADER, ROWS)
    output = tmp_path / "out.csv"
    monkeypatch.setattr(verified_tables, "ROWS_AT_ONCE", 2)
    asked: list[str] = []
    real = Verifier.verify

    def stop(self: Verifier, texts: Any, ids: Any, **others: Any) -> Any:
        if "c0000004" in ids and not asked.count("stopped"):
            asked.append("stopped")
            raise KeyboardInterrupt
        asked.extend(ids)
        return real(self, texts, ids, **others)

    monkeypatch.setattr(Verifier, "verify", stop)
    with pytest.raises(KeyboardInterrupt):
        verify_table(kb, tmp_path / "in.csv", output, COLUMNS)
    assert not output.exists()
    verify_table(kb, tmp_path / "in.csv", output, COLUMNS)
    assert [row["verify_verdict"] for row in read_dicts(output)] == VERDICTS
    assert asked.count("C0000003") == asked.index("stopped") / 2 == 1


@pytest.mark.parametrize(("id", "code"), [("C0000004", 0), ("C0000001", 1)])
def test_job_of_the_page_fails_on_a_wrong_id(
    sample_kb, tmp_path, monkeypatch, id, code
):
    page = (DOCS / "verify.md").read_text("utf8")
    (command,) = re.findall(r"- run: spacy-sapbert (verify .*)", page)
    words = [str(sample_kb) if word == "kb" else word for word in command.split()]
    monkeypatch.chdir(tmp_path)
    Path("mappings.sssom.tsv").write_text(
        "#curie_map:\n#  UMLS: https://example.org/\n"
        "subject_label\tobject_id\tobject_label\n"
        f"Fever\tUMLS:{id}\tFever\n",
        "utf8",
    )
    invoke(*words, code=code)
    assert Path("verified.html").stat().st_size > 0  # uploaded in both cases
