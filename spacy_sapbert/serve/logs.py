"""The log of a service: one JSON object a line, without a word of any document.

A line has the route ("/concepts/{cui}"), never the path, the query or the body, and of
an exception only its class and the place in the code, since its text may quote them.
"""

import json
import logging
import re
import sys
import warnings
from datetime import UTC, datetime
from typing import Any, TextIO

from ..errors import find_place

CODE = re.compile(r"\[(W\d{3})\] ")


def describe_exception(error: BaseException) -> dict[str, str]:
    """Return the class of an exception and where it was raised, without its text."""
    return {"exception": type(error).__name__, "place": find_place(error)}


class EventLog:
    """Writes events as JSON lines.

    Args:
        stream: Where to; None = the standard error.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr

    def write(self, event: str, **fields: Any) -> None:
        """Write an event; a log that cannot be written does not stop the service."""
        time = datetime.now(tz=UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": time, "event": event, **fields})
        try:
            self.stream.write(line + "\n")
            self.stream.flush()
        except (OSError, ValueError):
            return


class ServerMessages(logging.Handler):
    """Writes what the HTTP server reports; of an exception only class and place."""

    def __init__(self, log: EventLog) -> None:
        super().__init__(logging.WARNING)
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record. Its message is the server's own, without its arguments."""
        error = record.exc_info[1] if record.exc_info else None
        fields = describe_exception(error) if error else {}
        message = str(record.msg).partition("\n")[0]
        self.log.write("server", level=record.levelname, message=message, **fields)


def redirect_messages(log: EventLog) -> None:
    """Send the messages of uvicorn and asyncio, and all warnings, to a log.

    Of a warning only its class and code are written: that of another package may quote
    a text.
    """
    for name in ("uvicorn", "uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers = [ServerMessages(log)]
        logger.propagate = False

    def write_warning(
        message: Warning | str, category: type[Warning], *_: Any, **__: Any
    ) -> None:
        code = CODE.match(str(message))
        kind = category.__name__
        log.write("warning", category=kind, code=code[1] if code else None)

    warnings.showwarning = write_warning
