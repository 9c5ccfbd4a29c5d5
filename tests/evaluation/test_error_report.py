import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from spacy_sapbert.evaluation.error_causes import CAUSES
from spacy_sapbert.evaluation.error_report import main
from spacy_sapbert.evaluation.evaluate import main as evaluate
from spacy_sapbert.kb.build import build_kb
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts

SENTINEL = "xyzzy"
SCRIPT = '<script>alert("x")</script>'
GOLD = f"""mention\tids
Fever\tC0000004
MI\tC0000001
MI\tC0000002
MI\tC0000001
{SENTINEL} {SCRIPT} & \u202eabc\tC0000003|C0000007
Heart disease\tC9999999
{SENTINEL} and fever\tC0000001+C0000004
lupus\tMESH:1
...\tC0000005
nothing\t-1
"""
VOID = {"meta", "input"}

app = typer.Typer()
app.command()(main)
evaluation = typer.Typer()
evaluation.command()(evaluate)


class Page(HTMLParser):
    """Reads a page, and holds every start tag against its end tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, Any]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, Any]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] not in (["script"], ["style"]):
            self.texts.append(data)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def report(kb: Path, gold: Path, *options: Any) -> tuple[Page, dict[str, Any]]:
    html, data = gold.with_suffix(".html"), gold.with_suffix(".json")
    result = run(kb, gold, "--output", html, "--json", data, *options)
    assert result.exit_code == 0, result.output
    assert SENTINEL not in result.output
    return Page(html.read_text("utf8")), json.loads(data.read_text("utf8"))


def mentions_of(groups: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for group in groups:
        yield from group["mentions"]


@pytest.fixture
def gold_file(tmp_path: Path) -> Path:
    path = tmp_path / "gold.tsv"
    path.write_text(GOLD, "utf8")
    return path


def test_error_report_counts_each_wrong_mention_once(
    sample_kb: Path, gold_file: Path, tmp_path: Path
) -> None:
    _, data = report(sample_kb, gold_file)
    counts = {cause["cause"]: cause["count"] for cause in data["causes"]}
    assert list(counts) == list(CAUSES)
    assert counts["tie"] == 3
    found = {name for name, number in counts.items() if number == 1}
    assert found >= {"not covered", "composite", "no answer", "equal name elsewhere"}
    (file,) = data["files"]
    assert (file["judged"], file["without_id"], file["wrong"]) == (9, 1, data["wrong"])
    assert sum(counts.values()) == data["wrong"]
    for cause in data["causes"]:
        groups = cause["concepts"]
        assert sum(group["count"] for group in groups) == cause["count"]
        shown = sum(mention["count"] for mention in mentions_of(groups))
        assert shown == cause["count"]
    assert sum(concept["count"] for concept in data["concepts"]) == data["wrong"]


def test_error_report_calls_wrong_what_evaluate_does_not_count(
    sample_kb: Path, gold_file: Path, tmp_path: Path
) -> None:
    _, data = report(sample_kb, gold_file)
    output = tmp_path / "results.json"
    arguments = [sample_kb, gold_file, "--output", output, "--quiet"]
    CliRunner().invoke(evaluation, [str(argument) for argument in arguments])
    (judged,) = json.loads(output.read_text("utf8"))["files"]
    (file,) = data["files"]
    assert file["acc@1"] == judged["accuracy"]["all"]["concepts"]["acc@1"]
    strict = 1 - file["wrong"] / file["judged"]
    assert file["acc@1"]["strict"] == pytest.approx(strict, abs=1e-6)


def test_error_report_page_says_what_the_json_says(
    sample_kb: Path, gold_file: Path
) -> None:
    page, data = report(sample_kb, gold_file)
    for cause in data["causes"]:
        number = cause["count"]
        if number:
            word = "mention" if number == 1 else "mentions"
            title = f"{cause['cause']}: {number} {word}, {cause['share']:.1%}"
            assert title in page.text
        for mention in mentions_of(cause["concepts"]):
            assert " ".join(mention["mention"].split()) in page.text
            for candidate in mention["candidates"]:
                for key in ("cui", "name", "alias"):
                    assert candidate[key] in page.text
                assert f"{candidate['score']:.4f}" in page.text
    ties = " ".join(f"{value:.4f}" for value in data["files"][0]["acc@1"].values())
    cells = [text for text in page.texts if text.strip()]
    assert ties in " ".join(cells)
    assert data["notice"] in page.text
    for concept in data["concepts"]:
        assert f"{concept['count']} of {concept['judged']}" in page.text


def test_error_report_shows_where_the_right_answer_stands(
    sample_kb: Path, gold_file: Path
) -> None:
    page, data = report(sample_kb, gold_file, "--k", 1)
    (tie,) = (cause for cause in data["causes"] if cause["cause"] == "tie")
    first, second = tie["concepts"]
    assert [first["count"], second["count"]] == [2, 1]
    assert first["gold"][0][0]["cui"] == "C0000001"
    assert first["mentions"][0]["lines"] == ["gold.tsv:3", "gold.tsv:5"]
    # Only one answer is asked for; the right one is added.
    (mention,) = second["mentions"]
    places = [(one["place"], one["cui"], one["right"]) for one in mention["candidates"]]
    assert places == [(1, "C0000001", False), (2, "C0000002", True)]
    assert "2 ✓ right" in page.text
    assert "first right answer at place 2" in page.text


def test_error_report_has_nothing_from_outside_and_no_markup_from_the_data(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    concepts = [
        Concept(
            "C1", ["Fever", f"{SCRIPT}<img src=x onerror=alert(1)>"], types=["<b>"]
        ),
        Concept("C2", ["Cold", "'\"&amp;</table>"], types=["</details>"]),
    ]
    write_concepts(tmp_path / "concepts.jsonl", concepts)
    build_kb(tmp_path / "concepts.jsonl", tmp_path / "kb", str(tiny_encoder))
    gold = tmp_path / "<i>gold&.tsv"
    rows = [f"{SCRIPT}<img src=x onerror=alert(1)>\tC2", f"{SCRIPT}\t<u>C7</u>"]
    gold.write_text("mention\tids\n" + "\n".join(rows) + "\nx\0y\tC2\n", "utf8")
    page, data = report(tmp_path / "kb", gold)
    assert data["causes"][0]["count"] == 1
    assert page.count("script") == page.count("style") == 1
    tags = {tag for tag, _ in page.tags}
    assert tags.isdisjoint({"img", "i", "u", "link", "iframe", "a", "base"})
    assert SCRIPT in page.text
    assert "x\ufffdy" in page.text
    names = {name for _, attributes in page.tags for name in attributes}
    assert names.isdisjoint({"src", "href", "style", "onerror", "onclick"})
    (policy,) = (a["content"] for _, a in page.tags if "http-equiv" in a)
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def test_error_report_page_can_be_read_without_eyes_and_without_script(
    sample_kb: Path, gold_file: Path
) -> None:
    page, _ = report(sample_kb, gold_file)
    assert ("html", {"lang": "en"}) in page.tags
    assert page.count("table") == page.count("caption") == page.count("thead")
    headings = [
        int(tag[1]) for tag, _ in page.tags if tag[0] == "h" and tag[1:].isdigit()
    ]
    assert headings[0] == 1
    steps = zip(headings, headings[1:], strict=False)
    assert all(after - before <= 1 for before, after in steps)
    assert all(a["scope"] in ("col", "row") for tag, a in page.tags if tag == "th")
    assert all("aria-hidden" in a for tag, a in page.tags if tag == "svg")
    # Only the filter, which needs the script, is hidden without it.
    assert [a["id"] for _, a in page.tags if "hidden" in a] == ["filter"]


def test_error_report_counts_what_it_does_not_show(
    sample_kb: Path, gold_file: Path
) -> None:
    page, data = report(sample_kb, gold_file, "--most", 1, "--most-mentions", 1)
    (tie,) = (cause for cause in data["causes"] if cause["cause"] == "tie")
    assert len(tie["concepts"]) == 1
    assert (tie["concepts_left_out"], tie["left_out"]) == (1, 1)
    assert "1 more mention of 1 more gold concept." in page.text
    shown = sum(concept["count"] for concept in data["concepts"])
    assert (len(data["concepts"]), shown + data["left_out"]) == (1, data["wrong"])
    for groups in (data["concepts"], tie["concepts"]):
        (group,) = groups
        (mention,) = group["mentions"]
        assert mention["count"] + group["left_out"] == group["count"]


def test_error_report_takes_aliases_and_related_concepts(
    sample_kb: Path, tmp_path: Path
) -> None:
    gold, aliases = tmp_path / "gold.tsv", tmp_path / "aliases.tsv"
    gold.write_text("mention\tids\nHeart diseases\tMESH:1\nfever\tMESH:2\n", "utf8")
    aliases.write_text("MESH:1\tX:1\nC0000001\tX:1\nC0000003\tX:3\n", "utf8")
    _, data = report(sample_kb, gold, "--aliases", aliases)
    counts = {c["cause"]: c["count"] for c in data["causes"] if c["count"]}
    assert counts == {"not covered": 1, "too general": 1}
    (cause,) = (c for c in data["causes"] if c["cause"] == "too general")
    (group,) = cause["concepts"]
    assert group["gold"][0][0]["cui"] == "C0000001"
    assert group["gold"][0][0]["names"][1] == "Heart attack"
    assert group["mentions"][0]["candidates"][0]["cui"] == "C0000003"
    _, data = report(sample_kb, gold, "--aliases", aliases, "--steps", 0)
    assert not any(c["count"] for c in data["causes"] if c["cause"] == "too general")


def test_error_report_is_the_same_each_time(sample_kb: Path, gold_file: Path) -> None:
    output = gold_file.with_suffix(".html")
    pages = []
    for _ in range(2):
        assert run(sample_kb, gold_file, "--output", output).exit_code == 0
        pages.append(output.read_bytes())
    assert pages[0] == pages[1]


def test_error_report_of_no_mistake_is_a_page(sample_kb: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold.txt"
    gold.write_text("fever||C0000004\n", "utf8")
    page, data = report(sample_kb, gold)
    assert (data["wrong"], data["concepts"]) == (0, [])
    assert "0 wrong answers" in page.text


def test_error_report_is_quiet_when_asked(sample_kb: Path, gold_file: Path) -> None:
    output = gold_file.with_suffix(".html")
    result = run(sample_kb, gold_file, "--output", output, "--quiet")
    assert (result.exit_code, result.output) == (0, "")


def test_error_report_refuses_bad_settings_and_files_and_leaves_no_page(
    sample_kb: Path, gold_file: Path, tmp_path: Path
) -> None:
    output = tmp_path / "page.html"
    (tmp_path / "more").mkdir()
    twin = tmp_path / "more" / gold_file.name
    twin.write_text(GOLD, "utf8")
    for arguments, code in (
        ([sample_kb, gold_file, "--composite", "half"], "E605"),
        ([sample_kb, gold_file, twin], "E740"),
        ([tmp_path, gold_file], "E303"),
    ):
        result = run(*arguments, "--output", output)
        assert result.exit_code == 1
        assert code in result.output
        assert not output.exists()
