"""What every request passes before the application sees it, and its line in the log.

Host → Origin → token → role → room for this client → whole body in time → application.
"""

import asyncio
import secrets
import time
from collections import Counter
from contextlib import suppress
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp as Application
from starlette.types import Message, Receive, Scope, Send

from ..errors import SapbertError
from .access import (
    ALL,
    OPEN,
    REVIEWS,
    check_role,
    find_access,
    is_open,
)
from .logs import EventLog, describe_exception
from .metrics import Metrics
from .problems import RequestError
from .protocols.errors import answer_error
from .settings import Settings, is_allowed_host

UNKNOWN_ROUTE = "other"
# All that was shown of a table, to be written or kept.
TABLES, TABLE_BYTES = ("/column/write", "/reviews/columns"), 1 << 26
DRAINED = 16  # times the limit of a body that are read before its answer
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
METHODS = ("GET", "HEAD", "POST", "DELETE")
# A page of another site may show these, but not read them.
SHOWN = (*OPEN, "/reconcile/preview")


class Guard:
    """The outermost part of the application but for the headers of CORS."""

    def __init__(
        self,
        application: Application,
        settings: Settings,
        *,
        log: EventLog,
        metrics: Metrics,
    ) -> None:
        self.application = application
        self.settings = settings
        self.limits = settings.limits
        self.log = log
        self.metrics = metrics
        self.of_client: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, pass it to the application, and log it; see ASGI."""
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        answer = Answer(send)
        started = time.monotonic()
        client = (scope.get("client") or ("",))[0]
        self.of_client[client] += 1
        self.metrics.in_flight.inc()
        fields: dict[str, Any] = {}
        try:
            fields = await self.pass_on(scope, receive, answer, client)
        except Exception as error:
            if isinstance(error, SapbertError):
                fields["code"] = error.code
            else:
                fields = describe_exception(error)
            if not answer.status:  # none was begun
                whole = answer_error(error, scope["path"])
                if whole.status_code in (408, 413):
                    whole.headers["connection"] = "close"  # the rest is not read
                with suppress(OSError):  # the client has gone
                    await whole(scope, receive, answer)
        finally:
            self.metrics.in_flight.dec()
            self.of_client[client] -= 1
            if not self.of_client[client]:
                del self.of_client[client]
            self.report(scope, answer, time.monotonic() - started, fields)

    async def pass_on(
        self, scope: Scope, receive: Receive, answer: "Answer", client: str
    ) -> dict[str, Any]:
        """Check a request, and pass it to the application.

        Returns:
            More fields for the log.
        """
        headers = Headers(scope=scope)
        path, method = scope["path"], scope["method"]
        if not is_allowed_host(headers.get("host", ""), self.settings.names):
            raise RequestError(
                "E453",
                "Expected `Host` to be localhost or an IP address, but got another "
                "name. Start the service with `--allow-host NAME` if it is to have "
                "this name.",
                421,
            )
        self.check_origin(path, headers)
        access = ALL
        if self.settings.tokens and not is_open(path):
            access = find_access(self.settings.tokens, headers.get("authorization", ""))
        check_role(access, method, path)
        if self.of_client[client] > self.limits.of_client:
            limit = self.limits.of_client
            raise RequestError(
                "E459",
                f"Expected at most {limit} requests of a client at once, but got "
                "more. Send the next when one is answered.",
                429,
            )
        limit = self.limits.body
        if path in TABLES:
            limit = max(limit, TABLE_BYTES)
        body = await self.read_body(receive, limit)
        scope.setdefault("state", {})["access"] = access
        fields: dict[str, Any] = {"bytes": len(body)}
        work = asyncio.ensure_future(self.application(scope, replay(body), answer))
        tasks = [work]
        # What a reviewer sent is kept, even if the page is closed.
        if not path.startswith(REVIEWS):
            tasks.append(asyncio.ensure_future(wait_for_end(receive)))
        seconds = self.limits.seconds
        try:
            done, _ = await asyncio.wait(
                tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if work in done:
                work.result()
                return fields
            if done:
                return {**fields, "gone": True}
        finally:
            for task in tasks:
                if not task.done():
                    task.cancel()
                    await asyncio.wait([task])
        raise RequestError(
            "E461",
            f"Expected an answer within {seconds:g} seconds, but it took longer. "
            "Send less in a request, or the request again later.",
            503,
        )

    def check_origin(self, path: str, headers: Headers) -> None:
        """Check that a page of another origin may use the service.

        Browsers send no `Origin` with the address of an image, but `Sec-Fetch-Site`.
        """
        origin, host = headers.get("origin"), headers["host"]
        site = headers.get("sec-fetch-site")
        own = (f"http://{host}", f"https://{host}", self.settings.public_origin)
        if origin is None:
            allowed = path in SHOWN or site not in ("cross-site", "same-site")
        else:
            allowed = origin in own or origin in self.settings.origins
        if not allowed:
            raise RequestError(
                "E454",
                "Expected a request of the same origin, but it comes from a page of "
                "another. Start the service with `--allow-origin` and that origin, if "
                "it is to be used by it.",
                403,
            )

    async def read_body(self, receive: Receive, limit: int) -> bytes:
        """Read the body, which is bounded in size and time."""
        parts: list[bytes] = []
        size = 0
        seconds = self.limits.seconds
        try:
            async with asyncio.timeout(seconds):
                more = True
                # A client reads the answer when it has sent its body.
                while more and size <= DRAINED * limit:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise TimeoutError  # a body that is cut is not whole
                    part = message.get("body", b"")
                    size += len(part)
                    if size <= limit:
                        parts.append(part)
                    more = message.get("more_body", False)
        except TimeoutError:
            raise RequestError(
                "E462",
                f"Expected a whole body within {seconds:g} seconds, but it is still "
                "incomplete. Send the request again.",
                408,
            ) from None
        if size > limit:
            raise RequestError(
                "E456",
                f"Expected a body of at most {limit:,} bytes, but got more. Send "
                "fewer texts in a request.",
                413,
            )
        return b"".join(parts)

    def report(
        self, scope: Scope, answer: "Answer", seconds: float, fields: dict[str, Any]
    ) -> None:
        """Count a request, and log it."""
        route = getattr(scope.get("route"), "path", UNKNOWN_ROUTE)
        method = scope["method"] if scope["method"] in METHODS else UNKNOWN_ROUTE
        self.metrics.requests.labels(route, method, str(answer.status)).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        self.log.write(
            "request",
            request=answer.headers["x-request-id"],
            method=method,
            route=route,
            status=answer.status,
            ms=round(1000 * seconds, 1),
            **fields,
        )


def replay(body: bytes) -> Receive:
    """Return what gives the application a body that was read, and then nothing."""
    sent = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Message:
        for message in sent:
            return message
        return await asyncio.Future()  # never: the guard sees a client go

    return receive


async def wait_for_end(receive: Receive) -> None:
    """Wait until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


class Answer:
    """Sends an answer with the headers that all answers have."""

    def __init__(self, send: Send) -> None:
        self.send = send
        self.headers = {**HEADERS, "x-request-id": secrets.token_hex(8)}
        self.status = 0  # not sent yet

    async def __call__(self, message: Message) -> None:
        """Send a message of the application; see ASGI."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in self.headers.items():
                headers.setdefault(name, value)
        await self.send(message)
