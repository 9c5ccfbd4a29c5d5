"""The Model Context Protocol, with the client of its library."""

import asyncio
import json
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra `mcp` is not installed")

from mcp import Client

from spacy_sapbert.serve.agent import make_agent_server
from spacy_sapbert.serve.agent_lines import LONGEST_LINE, replace_halves
from spacy_sapbert.serve.agent_tools import LONGEST_NOTE, MOST_SHOWN, TOOLS
from spacy_sapbert.serve.service import Service

from .conftest import start_linking

LARGEST = 32_000  # characters of an answer, of some 8,000 tokens
NOTE = "He had a heart attack in 2019. No fever today."


@pytest.fixture(scope="module")
def linking(sample_kb) -> Iterator[Service]:
    service = start_linking(sample_kb)
    yield service
    service.close()


def talk(service: Service, say: Callable[[Client], Awaitable[Any]]) -> Any:
    """Say something to a server in this process, and return its result."""

    async def run() -> Any:
        async with Client(make_agent_server(service)) as client:
            return await say(client)

    return asyncio.run(run())


def call(service: Service, tool: str, **arguments: Any) -> Any:
    """Call a tool, and return its structured answer."""
    result = talk(service, lambda client: client.call_tool(tool, arguments))
    assert not result.is_error, result.content[0].text
    assert json.loads(result.content[0].text) == result.structured_content
    assert len(result.content[0].text) < LARGEST
    return result.structured_content


def fail(service: Service, tool: str, **arguments: Any) -> str:
    """Call a tool, and return its error."""
    result = talk(service, lambda client: client.call_tool(tool, arguments))
    assert result.is_error
    text: str = result.content[0].text
    assert len(text) < 2_000
    return text


def test_every_tool_and_the_knowledge_base_are_listed(linking):
    tools = talk(linking, lambda client: client.list_tools()).tools
    assert [tool.name for tool in tools] == [*TOOLS]
    assert all(tool.description for tool in tools)
    assert all(tool.annotations.read_only_hint for tool in tools)
    (kb,) = talk(linking, lambda client: client.list_resources()).resources
    assert str(kb.uri) == "sapbert://knowledge-base"
    (read,) = talk(linking, lambda client: client.read_resource(str(kb.uri))).contents
    assert json.loads(read.text)["digest"] == linking.kb.manifest.digest


def test_link_text_returns_mentions_with_ids_a_page_at_a_time(linking):
    found = call(linking, "link_text", text=NOTE, candidates=1)
    assert found["kb"] == linking.kb.manifest.digest
    shown = [(NOTE[m["start"] : m["end"]], m["cui"]) for m in found["mentions"]]
    assert shown == [("heart attack", "C0000001"), ("fever", "C0000004")]
    assert found["mentions"][0]["certainty"] == "sure"
    assert found["mentions"][0]["name"] == "Myocardial infarction"
    (candidate,) = found["mentions"][0]["candidates"]
    assert candidate["cui"] == "C0000001"
    first = call(linking, "link_text", text=NOTE, limit=1)
    assert (first["total"], first["next"], len(first["mentions"])) == (2, 1, 1)
    rest = call(linking, "link_text", text=NOTE, first=first["next"])
    assert rest["next"] is None
    assert first["mentions"][0]["candidates"] == []
    assert [m["cui"] for m in rest["mentions"]] == ["C0000004"]
    assert call(linking, "link_text", text="")["total"] == 0


def test_a_long_note_has_a_bounded_answer(linking):
    text = "heart attack, fever and headache. " * 300
    found = call(linking, "link_text", text=text, limit=50, candidates=5)
    assert 10 < len(found["mentions"]) < 50
    assert (found["next"], found["total"]) == (len(found["mentions"]), 900)
    assert "200000" in fail(linking, "link_text", text="a " * LONGEST_NOTE)


def test_link_terms_says_what_to_review(linking):
    pyrexia, nothing = call(linking, "link_terms", terms=["Pyrexia", "§"])["found"]
    assert (pyrexia["cui"], pyrexia["status"]) == ("C0000004", "exact")
    assert (len(pyrexia["candidates"]), nothing["cui"]) == (3, None)
    (bare,) = call(linking, "link_terms", terms=["MI"], candidates=0)["found"]
    assert (bare["certainty"], bare["candidates"]) == ("tied", [])


def test_concepts_are_searched_and_read(linking):
    found = call(linking, "search_concepts", text="I21", k=1)["concepts"]
    assert [one["cui"] for one in found] == ["C0000001"]
    only = call(linking, "search_concepts", text="fever", types=["T047"])
    assert "C0000004" not in [one["cui"] for one in only["concepts"]]
    card = call(linking, "get_concept", id="C9999999")  # a retired id
    assert (card["cui"], card["retired"]) == ("C0000001", ["C9999999"])
    assert card["parents"] == [{"cui": "C0000003", "name": "Heart disease"}]


def test_an_agent_verifies_what_it_wrote(linking):
    pairs = {"texts": ["pyrexia", "fever"], "ids": ["C0000007", "C0000004"]}
    labels = ["Pyrexia", ""]
    found = call(linking, "verify_id", **pairs, labels=labels)
    wrong, right = found["verdicts"]
    assert (wrong["verdict"], wrong["better"]) == ("wrong", "C0000004")
    assert right["verdict"] == "right"
    pairs = {"texts": ["HD"], "ids": ["C0000003"]}
    contexts = ["Heart disease (HD) is common."]
    found = call(linking, "verify_id", **pairs, contexts=contexts)
    assert found["verdicts"][0]["verdict"] == "right"
    many = {"texts": ["HD"] * (MOST_SHOWN + 1), "ids": ["C0000003"] * (MOST_SHOWN + 1)}
    assert "E458" in fail(linking, "verify_id", **many)


NAME = "Zqxwvut Patientname"


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("link_text", {"text": [NAME]}, "text as in the schema (string_type)"),
        ("link_text", {NAME: NAME}, "text, which is required"),
        ("link_terms", {"terms": [{NAME: 1}]}, "terms.0 as in the schema"),
        ("search_concepts", {"text": "a", "types": [NAME]}, "`filter.types`"),
        ("verify_id", {"texts": [NAME], "ids": []}, "as many `ids` as `texts`"),
        (NAME, {}, "a tool that is listed"),
        ("get_concept", {"id": NAME}, "E463"),
    ],
)
def test_errors_say_what_was_expected_and_do_not_quote_the_arguments(
    linking, tool, arguments, expected
):
    error = fail(linking, tool, **arguments)
    assert expected in error
    assert not re.search(r"`?/[a-z]", error)  # no path of HTTP
    assert not {"Zqxwvut", "Patientname"} & {*re.findall(r"\w+", error)}


def test_a_failure_of_the_service_has_no_text(linking, monkeypatch):
    def crash(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a line of a note")

    monkeypatch.setattr("spacy_sapbert.serve.api.columns.map_batch", crash)
    assert "note" not in fail(linking, "link_terms", terms=["fever"])


def test_only_halves_of_surrogate_pairs_are_replaced():
    line = r'"\ud83d\ude00 \ud800 \\ud800"'
    assert replace_halves(line) == r'"\ud83d\ude00 \ufffd \\ud800"'


START = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class Agent:
    """A process of `mcp` that was greeted."""

    def __init__(self, new_process: Any, kb: Path, *program: str) -> None:
        program = program or ("-m", "spacy_sapbert")
        command = [sys.executable, *program, "mcp", kb]
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), new_process.PIPE)
        self.process = new_process.start(command, **streams)
        self.send({"id": 1, "method": "initialize", "params": START})
        assert "tools" in self.read()["result"]["capabilities"]
        self.send({"method": "notifications/initialized"})

    def write(self, line: bytes) -> None:
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, message: dict[str, Any]) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def link(self, id: int, text: str) -> None:
        call = {"name": "link_text", "arguments": {"text": text}}
        self.send({"id": id, "method": "tools/call", "params": call})

    def read(self) -> Any:
        return json.loads(self.process.stdout.readline())


@pytest.fixture
def agent(exported_kb, new_process) -> Agent:
    return Agent(new_process, exported_kb)


def test_the_command_speaks_on_its_standard_streams(agent):
    """A call that is given up does not stop the next, nor does half of a character."""
    agent.link(2, "heart attack, fever and headache. " * 3_000)
    agent.send({"method": "notifications/cancelled", "params": {"requestId": 2}})
    agent.link(3, "\U0001f600\ud800 fever \udc00")
    agent.send({"id": 4, "method": "ping"})
    answered: dict[int, Any] = {}
    while not {3, 4} <= answered.keys():
        answer = agent.read()
        answered[answer["id"]] = answer
    assert "mentions" not in str(answered.get(2))
    (mention,) = answered[3]["result"]["structuredContent"]["mentions"]
    assert (mention["start"], mention["text"]) == (3, "fever")
    assert agent.process.communicate(timeout=60)[1] == b""
    assert agent.process.returncode == 0


PING = b'{"jsonrpc":"2.0","id":5,"method":"ping"}'
PARSE, INVALID = -32700, -32600
WRONG_LINES: list[tuple[bytes, int, Any]] = [
    (b"Patientname", PARSE, None),
    (b'{"jsonrpc":"2.0","id":5,"method":"Patientname"', PARSE, None),
    (b"\xff\xfe" + PING, PARSE, None),
    (PING + b"\r" + PING, PARSE, None),
    (b"[" * 100_000, PARSE, None),
    (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, PARSE, None),
    (b"null", INVALID, None),
    (b"[" + PING + b"," + PING + b"]", INVALID, None),  # a batch
    (b'{"id":5,"method":"ping"}', INVALID, 5),
    (b'{"jsonrpc":"1.0","id":"a","method":"ping"}', INVALID, "a"),
    (b'{"jsonrpc":"2.0","id":5,"method":7}', INVALID, 5),
    (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":["Patientname"]}', INVALID, 5),
    (b'{"jsonrpc":"2.0","id":[5],"method":"ping"}', INVALID, None),
    (b'{"jsonrpc":"2.0","id":5.5,"method":"ping"}', INVALID, None),
    (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', INVALID, None),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', INVALID, None),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID, None),
    (b"x" * (LONGEST_LINE + 1), INVALID, None),
    (b" " * LONGEST_LINE + PING, INVALID, None),
]


def test_every_line_is_answered_and_not_quoted(agent):
    """An agent waits for the answer to a request, whatever is wrong with it."""
    for line, code, id in WRONG_LINES:
        agent.write(line)
        answer = agent.read()
        assert (answer["error"]["code"], answer["id"]) == (code, id), line[:80]
        assert "Patientname" not in str(answer)
    for ignored in (b"", b" \r", b'{"jsonrpc":"2.0","id":9,"result":7}'):
        agent.write(ignored)  # no request
    agent.write(PING)
    assert agent.read() == {"jsonrpc": "2.0", "id": 5, "result": {}}
    agent.process.stdin.write(PING[:-1])  # the last line has no end
    assert agent.process.communicate(timeout=60)[1] == b""
    assert agent.process.returncode == 0


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_ends_the_command_although_its_input_is_open(agent, name):
    number = getattr(signal, name)
    agent.link(2, "Patientname has fever. " * 100)
    assert agent.read()["id"] == 2
    agent.process.send_signal(number)
    assert agent.process.wait(timeout=60) == 128 + number
    assert b"Patientname" not in agent.process.stderr.read()


# A tool that gets a signal while it works.
SIGNALLED = """
import signal, sys
from spacy_sapbert.cli.main import app
from spacy_sapbert.serve import agent_tools

async def stop(service, body: agent_tools.NoteRequest) -> agent_tools.LinkedNote:
    signal.raise_signal(signal.SIGTERM)
    print("goes on", file=sys.stderr)

agent_tools.TOOLS["link_text"] = stop
app()
"""


def test_a_signal_raises_no_error_within_a_task(exported_kb, new_process):
    """The library can leave a thread waiting then, and the command does not end."""
    agent = Agent(new_process, exported_kb, "-c", SIGNALLED)
    agent.link(2, "fever")
    assert agent.process.wait(timeout=60) == 128 + signal.SIGTERM
    assert b"goes on" in agent.process.stderr.read()


def test_the_command_ends_in_silence_if_nobody_reads_its_answers(agent):
    agent.process.stdout.close()
    for _ in range(2):
        with suppress(BrokenPipeError):
            agent.link(2, "Patientname has fever.")
    assert agent.process.wait(timeout=60) == 0
    assert agent.process.stderr.read() == b""


PAGE = Path(__file__).parents[2] / "docs" / "agents.md"
ASKED = re.compile(
    r"^\*\*(\w+)\*\*\n\n```json\n(.*?)\n```\n\n```json\n(.*?)\n```", re.S | re.M
)


def is_like(shown: Any, real: Any) -> bool:
    """Return whether an answer is as shown; "…" stands for anything."""
    if shown == "…":
        return True
    if isinstance(shown, dict):
        same = isinstance(real, dict) and shown.keys() == real.keys()
        return same and all(is_like(shown[key], real[key]) for key in shown)
    if isinstance(shown, list):
        if shown[-1:] == ["…"]:
            shown, real = shown[:-1], real[: len(shown) - 1]
        same = isinstance(real, list) and len(shown) == len(real)
        return same and all(map(is_like, shown, real))
    return bool(shown == real)


def test_the_session_of_the_docs_is_what_is_answered(demo_folder):
    service = start_linking(demo_folder / "models" / "sample" / "kb")
    text = PAGE.read_text("utf8").partition("<!-- session: start -->")[2]
    turns = ASKED.findall(text)
    assert {tool for tool, *_ in turns} == {"link_text", "link_terms"}
    for tool, asked, told in turns:
        real = call(service, tool, **json.loads(asked))
        assert is_like(json.loads(told), real), json.dumps(real, ensure_ascii=False)
    service.close()
