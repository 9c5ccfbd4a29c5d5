"""A server of the Model Context Protocol on standard input and output.

SOURCE: https://modelcontextprotocol.io/specification; the `mcp` library.
"""

import functools
import inspect
import json
import logging
import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import TypeAdapter, ValidationError

from ..errors import SapbertError
from ..io.version import __version__
from .agent_lines import Lines
from .agent_tools import AgentTools, shorten
from .api.concepts import get_kb
from .problems import FAILED, describe_invalid, tell
from .service import Service

INSTRUCTIONS = (
    "Links biomedical terms to the concepts of one knowledge base on this machine. "
    "Use only ids that a tool has returned, and cite each with its name, as "
    "[id name]. Before you keep an id from elsewhere, call verify_id. If a mention has "
    "no id, say so; do not guess one. A score is a similarity from -1 to 1, not a "
    "probability; where `certainty` is not sure, other concepts may be meant: say "
    "which."
)
KB_ADDRESS = "sapbert://knowledge-base"
READS_ONLY = ToolAnnotations(
    read_only_hint=True,
    destructive_hint=False,
    idempotent_hint=True,
    open_world_hint=False,
)
TOOLS = ("link_text", "link_terms", "search_concepts", "get_concept", "verify_id")


class AgentServer(MCPServer):
    """A server that quotes no argument in its errors, and answers every line."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Any = None
    ) -> Any:
        """Call a tool; an error of the service itself has no text."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError):
                told = describe_invalid(cause.errors()[0])
            elif isinstance(cause, SapbertError):
                told = tell(cause)
            else:
                raise
            if told.status == FAILED:
                raise
            raise ToolError(str(told)) from None

    async def run_stdio_async(self) -> None:
        """Serve on standard input and output; see `MCPServer`."""
        server, lines = self._lowlevel_server, Lines(sys.stdin.fileno())
        try:
            async with stdio_server(stdin=lines) as (requests, answers):
                lines.answers = answers
                options = server.create_initialization_options()
                await server.run(requests, answers, options)
        except* BrokenPipeError:
            pass  # the agent has gone


def wrap(tool: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    """Return a tool with compact answers: the library would indent them."""
    signature = inspect.signature(tool)
    answers: TypeAdapter[Any] = TypeAdapter(signature.return_annotation)

    @functools.wraps(tool)
    async def run(**arguments: Any) -> CallToolResult:
        data = shorten(answers.dump_python(await tool(**arguments), mode="json"))
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        content = [TextContent(type="text", text=text)]
        return CallToolResult(content=content, structured_content=data)

    returned = Annotated[CallToolResult, signature.return_annotation]
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        return_annotation=returned
    )
    return run


def make_agent_server(service: Service) -> MCPServer:
    """Return a server with the tools and the resource of a started service."""
    server = AgentServer(
        "spacy-sapbert",
        version=__version__,
        instructions=INSTRUCTIONS,
        log_level="CRITICAL",
    )
    tools = AgentTools(service)
    for name in TOOLS:
        tool = wrap(getattr(tools, name))
        server.add_tool(tool, name=name, annotations=READS_ONLY)

    @server.resource(KB_ADDRESS, mime_type="application/json")
    def knowledge_base() -> str:
        """What the knowledge base has: counts, sources, threshold, calibration."""
        return get_kb(service, None).model_dump_json()

    return server


def run_agent_server(service: Service) -> None:
    """Serve on standard input and output until the input ends.

    Nothing is logged: an error of a library may quote a note.

    Args:
        service: Started; it is closed at the end.
    """
    logging.disable(logging.CRITICAL)
    try:
        make_agent_server(service).run("stdio")
    finally:
        service.close()
