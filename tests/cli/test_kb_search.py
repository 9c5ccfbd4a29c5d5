import json

import pytest
from typer.testing import CliRunner

from spacy_sapbert.cli.kb_search import search_mentions
from spacy_sapbert.cli.main import app


def run(*arguments):
    return CliRunner().invoke(app, ["kb", "search", *map(str, arguments)])


def test_search_shows_the_candidates_in_order(sample_kb):
    result = run("pyrexia", "head pain", "--kb", sample_kb, "-k", 2)
    assert result.exit_code == 0, result.output
    first, second = result.output.split("\n\nhead pain\n")
    rows = [line.split() for line in first.splitlines()[4:]]
    assert [row[0] for row in rows] == ["1", "2"]
    assert rows[0][1:] == ["1.000", "C0000004", "Fever", "Pyrexia", "T184"]
    assert "C0000007" in second


def test_search_json_has_every_candidate_as_it_is(sample_kb):
    result = run("pyrexia", "MI", "--kb", sample_kb, "--k", 3, "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.output)
    assert [found["mention"] for found in data] == ["pyrexia", "MI"]
    assert [len(found["candidates"]) for found in data] == [3, 3]
    assert {c["cui"] for c in data[1]["candidates"][:2]} == {"C0000001", "C0000002"}


def test_search_a_mention_without_candidates_exits_with_3(sample_kb):
    result = run("fever", "...", "--kb", sample_kb)
    assert result.exit_code == 3
    assert "no candidates" in result.output
    assert json.loads(run("...", "--kb", sample_kb, "--json").output)[0]["note"]


def test_search_without_a_kb_is_an_error(tmp_path):
    result = run("fever", "--kb", tmp_path / "none")
    assert result.exit_code == 1
    assert "E310" in result.output


def test_search_does_not_let_a_mention_steer_the_terminal(sample_kb):
    result = run("fever\x1b[31m", "--kb", sample_kb)
    assert "\x1b[31m" not in result.output


@pytest.mark.parametrize("filter", [None, {}, {"types": ["T047"]}])
def test_search_filter_reaches_the_kb_only_if_it_says_something(filter):
    class Kb:
        def link(self, mentions, **options):
            assert options == ({"k": 1, "filter": filter} if filter else {"k": 1})
            return []

    assert search_mentions(Kb(), [], k=1, filter=filter) == []
