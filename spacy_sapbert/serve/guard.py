"""What every request passes before the application sees it, and its line in the log.

Host → Origin → token → role → room for this client → whole body in time → name →
application.
"""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from ..errors import SapbertError
from .access import (
    ALL,
    OPEN,
    REVIEWS,
    Access,
    check_name,
    check_role,
    find_access,
    is_open,
)
from .logs import EventLog, describe_exception
from .metrics import Metrics
from .problems import RequestError, failed
from .protocols.errors import describe_answer
from .settings import Settings, is_allowed_host

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

UNKNOWN_ROUTE = "other"
TABLE_PATH, TABLE_BYTES = "/column/write", 1 << 26
DRAINED = 16  # times the limit of a body that are read before its answer
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
ALLOWED_HEADERS = "authorization, content-type"
METHODS = ("GET", "HEAD", "POST", "DELETE")
# A page of another site may show these, but not read them.
SHOWN = (*OPEN, "/reconcile/preview")


class Guard:
    """The outermost part of the application."""

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
        """Answer a request; see ASGI."""
        if scope["type"] == "lifespan":
            await self.application(scope, receive, send)
        elif scope["type"] == "http":
            await self.answer(scope, receive, send)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, pass it to the application, and log it."""
        answer = Answer(send, request=secrets.token_hex(8), path=scope["path"])
        started = time.monotonic()
        client = (scope.get("client") or ("",))[0]
        self.of_client[client] += 1
        self.metrics.in_flight.inc()
        fields: dict[str, Any] = {}
        try:
            fields = await self.pass_on(scope, receive, answer, client)
        except SapbertError as error:
            fields["code"] = str(error)[1:5]
            await answer.send_problem(error)
        except Exception as error:
            fields = describe_exception(error)
            await answer.send_problem(failed())
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

        Raises:
            RequestError: If it does not pass.
        """
        headers = {
            k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]
        }
        if not is_allowed_host(headers.get("host", ""), self.settings.names):
            raise RequestError(
                "E453",
                "Expected `Host` to be localhost or an IP address, but got another "
                "name. Start the service with `--allow-host NAME` if it is to have "
                "this name.",
                421,
            )
        self.check_origin(scope, headers, answer)
        if scope["method"] == "OPTIONS":
            await answer.send_preflight()
            return {}
        access = self.find_access(scope["path"], headers)
        check_role(access, scope["method"], scope["path"])
        if self.of_client[client] > self.limits.of_client:
            limit = self.limits.of_client
            raise RequestError(
                "E459",
                f"Expected at most {limit} requests of a client at once, but got "
                "more. Send the next when one is answered.",
                429,
                retry_after=1,
            )
        limit = self.limits.body
        if scope["path"] == TABLE_PATH:  # all that was shown of a table
            limit = max(limit, TABLE_BYTES)
        body = await self.read_body(headers, receive, limit)
        check_name(access, scope["method"], scope["path"], body)
        scope.setdefault("state", {})["access"] = access
        fields: dict[str, Any] = {"bytes": len(body)}
        work = asyncio.ensure_future(self.application(scope, Replay(body), answer))
        # What a reviewer sent is kept, even if the page is closed.
        gone = None
        if not scope["path"].startswith(REVIEWS):
            gone = asyncio.ensure_future(wait_for_end(receive))
        try:
            await asyncio.wait(
                [task for task in (work, gone) if task],
                timeout=self.limits.seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if work.done():
                work.result()
                return fields
            if gone and gone.done():
                return {**fields, "gone": True}
        finally:
            for task in (work, gone):
                if task and not task.done():
                    task.cancel()
                    await asyncio.wait([task])
        seconds = self.limits.seconds
        raise RequestError(
            "E461",
            f"Expected an answer within {seconds:g} seconds, but it took longer. "
            "Send less in a request, or the request again later.",
            503,
        )

    def check_origin(
        self, scope: Scope, headers: dict[str, str], answer: "Answer"
    ) -> None:
        """Check that a page of another origin may use the service.

        Browsers send no `Origin` with the address of an image, but `Sec-Fetch-Site`.

        Raises:
            RequestError: If it may not.
        """
        origin = headers.get("origin")
        if origin is None:
            other = headers.get("sec-fetch-site") in ("cross-site", "same-site")
            if other and scope["path"] not in SHOWN:
                raise of_another_origin()
            return
        if origin in self.settings.origins:
            answer.headers |= {
                "access-control-allow-origin": origin,
                "access-control-allow-headers": ALLOWED_HEADERS,
                "access-control-allow-methods": ", ".join(METHODS),
                "vary": "Origin",
            }
        elif origin not in {
            *(f"{scheme}://{headers.get('host')}" for scheme in ("http", "https")),
            self.settings.public_origin,
        }:
            raise of_another_origin()

    def find_access(self, path: str, headers: dict[str, str]) -> Access:
        """Return what the token of a request allows."""
        if not self.settings.tokens or is_open(path):
            return ALL
        return find_access(self.settings.tokens, headers.get("authorization", ""))

    async def read_body(
        self, headers: dict[str, str], receive: Receive, limit: int
    ) -> bytes:
        """Read the body, which is bounded in size and time.

        Raises:
            RequestError: If it is too large or too slow.
        """
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.limits.seconds):
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
            seconds = self.limits.seconds
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
        status = str(answer.status)
        self.metrics.requests.labels(route, method, status).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        self.log.write(
            "request",
            request=answer.request,
            method=method,
            route=route,
            status=answer.status,
            ms=round(1000 * seconds, 1),
            **fields,
        )


class Replay:
    """Gives the application a body that was read, and then nothing."""

    def __init__(self, body: bytes) -> None:
        self.body: bytes | None = body

    async def __call__(self) -> Message:
        """Return the body; later calls wait, since the guard sees a client go."""
        if self.body is None:
            await asyncio.Event().wait()
        body, self.body = self.body, None
        return {"type": "http.request", "body": body, "more_body": False}


async def wait_for_end(receive: Receive) -> None:
    """Wait until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


class Answer:
    """Sends an answer with the headers that all answers have.

    Args:
        request: The id of the request, also in the log.
        path: Of the request, on which the form of an error depends.
    """

    def __init__(self, send: Send, *, request: str, path: str) -> None:
        self.send = send
        self.path = path
        self.request = request
        self.headers = {**HEADERS, "x-request-id": request}
        self.status = 0  # not sent yet
        self.finished = False

    async def __call__(self, message: Message) -> None:
        """Send a message of the application; see ASGI."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            given = {name for name, _ in message.get("headers", ())}
            own = ((k.encode(), v.encode("latin-1")) for k, v in self.headers.items())
            others = [(name, value) for name, value in own if name not in given]
            message = {**message, "headers": [*message.get("headers", ()), *others]}
        await self.send(message)
        if message["type"] == "http.response.body":
            self.finished = not message.get("more_body", False)

    async def send_problem(self, error: SapbertError) -> None:
        """Answer with an error, unless an answer was begun."""
        if self.status:
            return
        status, media, body = describe_answer(error, self.path)
        headers = {"content-type": media}
        if isinstance(error, RequestError) and error.retry_after is not None:
            headers["retry-after"] = str(error.retry_after)
        if status in (408, 413):
            headers["connection"] = "close"  # the rest of the body is not read
        if status == 401:
            headers["www-authenticate"] = "Bearer"
        await self.send_whole(status, headers, body)

    async def send_preflight(self) -> None:
        """Answer the question of a browser whether a page may send a request."""
        await self.send_whole(204, {}, b"")

    async def send_whole(
        self, status: int, headers: dict[str, str], body: bytes
    ) -> None:
        """Send an answer whose body is complete."""
        headers = {**headers, "content-length": str(len(body))}
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        with suppress(OSError):  # the client has gone
            await self(
                {"type": "http.response.start", "status": status, "headers": raw}
            )
            await self({"type": "http.response.body", "body": body})


def of_another_origin() -> RequestError:
    return RequestError(
        "E454",
        "Expected a request of the same origin, but it comes from a page of another. "
        "Start the service with `--allow-origin` and that origin, if it is to be "
        "used by it.",
        403,
    )
