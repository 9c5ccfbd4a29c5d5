"""The lines of JSON-RPC that an agent sends: bounded, and each answered.

SOURCE: https://www.jsonrpc.org/specification;
https://modelcontextprotocol.io/specification, "Transports".
"""

import asyncio
import json
import os
import re
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)

LONGEST_LINE = 1 << 22  # bytes: a note of the most characters, each with its escapes
READ_BYTES = 1 << 16
# Each escape of JSON, one of half a surrogate pair in a group.
ESCAPE = re.compile(
    r"\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|\\(u[dD][89a-fA-F]\w\w)|\\."
)


def replace_halves(line: str) -> str:
    """Return a line of JSON with U+FFFD for each half of a surrogate pair.

    The library would not answer the line, since its parser refuses it.
    """
    return ESCAPE.sub(lambda found: r"\ufffd" if found[1] else found[0], line)


def read_lines(file: int) -> Iterator[bytes]:
    """Yield the lines of a file descriptor; of one that is too long the beginning."""
    line = b""
    with suppress(OSError):  # as at its end
        while part := os.read(file, READ_BYTES):
            first, *others = part.split(b"\n")
            line = (line + first)[: LONGEST_LINE + 1]
            for other in others:
                yield line
                line = other
    yield line


def is_message(line: str) -> bool:
    """Return whether a line is a message of JSON-RPC."""
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return False
    # The library takes a request with a wrong id for a notification.
    return not (isinstance(message, JSONRPCNotification) and "id" in json.loads(line))


def refuse_line(line: str) -> JSONRPCError | None:
    """Return the answer to a line that is no message; None = it needs none."""
    code, expected, id = PARSE_ERROR, "a line of JSON", None
    with suppress(ValueError, RecursionError):
        given = json.loads(line)
        code, expected = INVALID_REQUEST, "a line with one message of JSON-RPC 2.0"
        if isinstance(given, dict):
            if "method" not in given and ("result" in given or "error" in given):
                return None  # a response
            of = given.get("id")
            id = of if isinstance(of, int | str) and not isinstance(of, bool) else None
    return make_error(code, expected, id)


def make_error(code: int, expected: str, id: int | str | None = None) -> JSONRPCError:
    """Return an error without text of the line."""
    text = f"Expected {expected}, but got something else. Correct it."
    return JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=text))


class Lines:
    """The lines of a file descriptor that are messages, as the library reads them.

    A thread of their own reads them, and nothing waits for it: a signal ends the
    command although its input is open.

    Attributes:
        answers: Where the answers to other lines go; it is set before any is read.
    """

    def __init__(self, file: int) -> None:
        self.file = file
        self.answers: Any = None

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield the lines that are messages, and answer the others."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(1)

        def read() -> None:
            with suppress(RuntimeError):  # the loop has ended
                for line in chain(read_lines(self.file), [None]):
                    asyncio.run_coroutine_threadsafe(queue.put(line), loop).result()

        threading.Thread(target=read, daemon=True).start()
        while (data := await queue.get()) is not None:
            error = None
            line = replace_halves(data.decode("utf8", "replace"))
            if len(data) > LONGEST_LINE:
                expected = f"a line of at most {LONGEST_LINE:,} bytes"
                error = make_error(INVALID_REQUEST, expected)
            elif is_message(line):
                yield line
            elif line.strip():
                error = refuse_line(line)
            if error is not None:
                await self.answers.send(SessionMessage(error))
