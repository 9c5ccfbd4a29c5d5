"""Listens on a port, and ends without losing a request that was accepted."""

import asyncio
import gc
import os
import signal
import socket
import sys
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import SapbertError
from ..io.system import HANG_UP
from .application import make_application
from .logs import EventLog, redirect_messages
from .reviews.store import ReviewStore
from .service import Service
from .settings import Settings

HEADER_SECONDS = 10.0  # for the headers of a request to arrive
KEEP_ALIVE_SECONDS = 30  # that an unused connection stays open
END_SECONDS = 5.0  # more than a request may take
BACKLOG = 512
HEADER_BYTES = 64 * 1024  # of which the path and its query are a part
SWITCH_SECONDS = 0.0005  # that a thread goes on while another one waits
FULL_SEARCH = 1_000  # of so many searches for garbage one looks at all objects


class TimedProtocol(H11Protocol):
    """Closes connections that do not send the headers of a request in time."""

    timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start the time of the first request."""
        super().connection_made(transport)
        self.start_timer()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        super().data_received(data)
        self.start_timer()

    def start_timer(self) -> None:
        """Start the time in which headers must arrive, if they are not complete."""
        if self.timer is None and self.waits_for_headers():
            self.timer = self.loop.call_later(HEADER_SECONDS, self.end_time)

    def waits_for_headers(self) -> bool:
        """Return whether the first bytes of a request have come, or none at all."""
        idle = self.cycle is None or self.cycle.response_complete
        return idle and self.timeout_keep_alive_task is None

    def end_time(self) -> None:
        """Close the connection if the headers are not complete."""
        self.timer = None
        if self.waits_for_headers():
            self.transport.close()


def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address.

    Raises:
        SapbertError: If the system refuses it.
    """
    try:
        # Only if the protocol is named does asyncio send an answer without waiting for
        # the client to confirm the headers, which takes 40 ms.
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        reason = error.strerror or error
        raise SapbertError(
            "E450",
            f"Expected to listen on {host} port {port}, but the system refused: "
            f"{reason}. Pass another `--port` (0 = any that is free) or another "
            "`--host`.",
        ) from None
    return bound


def format_address(bound: socket.socket) -> str:
    """Return the address of a socket as a URL."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def let_threads_share() -> None:
    """Set how threads of this process share it, so that they wait less.

    None of them goes on while Python looks for garbage among all objects: up to a
    second, each time, while an answer of 100 MB is made, for some thirty objects.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], FULL_SEARCH)


def run_server(
    service: Service,
    settings: Settings,
    bound: socket.socket,
    log: EventLog,
    store: ReviewStore | None = None,
) -> None:
    """Answer requests until one of `END_SIGNALS`.

    Args:
        service: Started; it is closed at the end.
        bound: See `open_socket`.
        store: See `make_application`; it is closed at the end.
    """
    redirect_messages(log)
    let_threads_share()
    config = uvicorn.Config(
        make_application(service, settings, log, store),
        http=TimedProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(settings.limits.seconds + END_SECONDS),
        h11_max_incomplete_event_size=HEADER_BYTES,
    )
    server = uvicorn.Server(config)

    def end(*_: Any) -> None:
        server.should_exit = True

    if HANG_UP is not None and signal.getsignal(HANG_UP) != signal.SIG_IGN:
        signal.signal(HANG_UP, end)
    bound.listen(BACKLOG)
    started = {"kb": service.kb.manifest.digest, "process": os.getpid()}
    log.write("listening", url=format_address(bound), **started)
    try:
        server.run(sockets=[bound])
    except KeyboardInterrupt:
        pass  # uvicorn repeats the signal that ended it
    finally:
        service.close()
        if store is not None:
            store.close()
    log.write("ended")
