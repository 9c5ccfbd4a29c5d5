"""A server of the Model Context Protocol on standard input and output.

SOURCE: https://modelcontextprotocol.io/specification; the `mcp` library.
"""

import asyncio
import json
import logging
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from inspect import getdoc
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from pydantic import TypeAdapter, ValidationError

from ..io.system import END_SIGNALS
from ..io.version import __version__
from .agent_lines import Lines
from .agent_tools import TOOLS, call_tool
from .api.concepts import get_kb
from .problems import FAILED, describe_invalid, tell
from .service import Service

INSTRUCTIONS = (
    "Links biomedical terms to the concepts of one knowledge base on this machine. "
    "Use only ids that a tool has returned, and cite each with its name, as "
    "[id name]. Before you keep an id from elsewhere, call verify_id. If a mention has "
    "no id, say so; do not guess one. A score is a similarity from -1 to 1, not a "
    "probability; where `certainty` is not sure, other concepts may be meant: say "
    "which. Lists in calls and answers have at most 50 entries."
)
KB = types.Resource(
    name="knowledge_base",
    uri="sapbert://knowledge-base",
    description="What the knowledge base has: counts, sources, threshold, calibration.",
    mime_type="application/json",
)
READS_ONLY = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)


def make_agent_server(service: Service) -> "Server[Any]":
    """Return a server with the tools and the resource of a started service."""

    async def list_tools(*_: Any) -> types.ListToolsResult:
        tools = [describe_tool(name, function) for name, function in TOOLS.items()]
        return types.ListToolsResult(tools=tools)

    async def call(_: Any, asked: Any) -> types.CallToolResult:
        data = None
        try:
            data = await call_tool(service, asked.name, asked.arguments or {})
            text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        except Exception as error:
            text = describe_error(error, asked.name)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)],
            structured_content=data,
            is_error=data is None,
        )

    async def list_resources(*_: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[KB])

    async def read_resource(*_: Any) -> types.ReadResourceResult:
        text = get_kb(service, None).model_dump_json()
        read = types.TextResourceContents(uri=KB.uri, mime_type=KB.mime_type, text=text)
        return types.ReadResourceResult(contents=[read])

    return Server(
        "spacy-sapbert",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )


def describe_tool(name: str, function: Callable[..., Any]) -> types.Tool:
    """Return what an agent reads of a tool."""
    kinds = function.__annotations__
    return types.Tool(
        name=name,
        description=getdoc(function),
        input_schema=kinds["body"].model_json_schema(),
        output_schema=TypeAdapter(kinds["return"]).json_schema(),
        annotations=READS_ONLY,
    )


def describe_error(error: Exception, tool: str) -> str:
    """Return what an agent is told; it quotes no argument.

    An error of the service itself has no text.
    """
    if isinstance(error, ValidationError):
        return str(describe_invalid(error.errors()[0]))
    told = tell(error)
    return f"Error executing tool {tool}" if told.status == FAILED else str(told)


async def serve(server: "Server[Any]") -> None:
    """Serve on standard input and output until the input ends."""
    lines = Lines(sys.stdin.fileno())
    try:
        async with stdio_server(stdin=lines) as (requests, answers):
            lines.answers = answers
            options = server.create_initialization_options()
            await server.run(requests, answers, options)
    except* BrokenPipeError:
        pass  # the agent has gone


def run_agent_server(service: Service) -> None:
    """Serve on standard input and output until the input ends.

    Nothing is logged: an error of a library may quote a note. A signal ends the tasks
    first: an error that it raises within one of them can leave a thread waiting.

    Args:
        service: Started; it is closed at the end.
    """
    logging.disable(logging.CRITICAL)
    signals: list[int] = []

    async def run() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def end(number: int, _: Any) -> None:
            signals.append(number)
            loop.call_soon_threadsafe(task.cancel)

        handled = [n for n in END_SIGNALS if callable(signal.getsignal(n))]
        before = {number: signal.signal(number, end) for number in handled}
        try:
            await serve(make_agent_server(service))
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    try:
        with suppress(asyncio.CancelledError):
            asyncio.run(run())
    finally:
        service.close()
    for number in signals:
        signal.raise_signal(number)
