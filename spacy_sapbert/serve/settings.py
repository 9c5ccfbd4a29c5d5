"""Settings of a service: where it listens, who may use it, and its limits."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from ipaddress import ip_address
from typing import Any, get_args
from urllib.parse import urlsplit

from ..errors import SapbertError
from ..formats.entities import CONTEXTS, Context
from .access import Access

LOCAL_NAMES = ("localhost", "localhost.localdomain")
MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What one request, one client and all clients together may ask for.

    Attributes:
        documents: Texts or mentions of a request.
        characters: Characters of all texts of a request.
        waiting: Requests that wait for the linking thread.
        of_client: Requests of one address at once.
        seconds: For a body to arrive, and then for an answer.
        kept: Documents and columns that are kept for review.
    """

    body: int = 4 * MIB
    documents: int = 1_000
    characters: int = 1_000_000
    waiting: int = 256
    of_client: int = 64
    seconds: float = 60.0
    kept: int = 100_000


DEFAULT_LIMITS = Limits()


def read_limits(given: Iterable[str]) -> Limits:
    """Return limits of which some are changed: "seconds=120"."""
    known = asdict(DEFAULT_LIMITS)
    changed: dict[str, Any] = {}
    for text in given:
        name, _, value = text.partition("=")
        number = value.replace("_", "").strip()
        if name not in known or not number.isdecimal() or int(number[:12]) < 1:
            names = ", ".join(known)
            got = text[:60]
            raise SapbertError(
                "E331",
                f"Expected `--limit NAME=NUMBER` with one of {names} and a positive "
                f"whole number, but got {got!r}. Correct it.",
            )
        changed[name] = type(known[name])(int(number[:12]))
    return replace(DEFAULT_LIMITS, **changed)


def read_contexts(given: Iterable[str]) -> Mapping[str, Context]:
    """Return what attributes of entities say, some of them others: "neg=negated"."""
    contexts: dict[str, Any] = dict(CONTEXTS)
    kinds = [one for one in get_args(Context) if one]
    for text in given:
        name, _, kind = text.partition("=")
        if not name or kind not in kinds:
            raise SapbertError(
                "E331",
                f"Expected `--context ATTRIBUTE=KIND` with one of {', '.join(kinds)}, "
                f"but got {text[:60]!r}. Correct it.",
            )
        contexts[name] = kind
    return contexts


@dataclass(frozen=True)
class Settings:
    """Where a service listens, and who may use it.

    Attributes:
        port: 0 = any that is free.
        tokens: Of which clients send one; empty = none is needed.
        names: Values of `Host` besides localhost and IP addresses.
        origins: Origins of other pages that may use the service, e.g.
            "http://127.0.0.1:3333" for OpenRefine.
        public_url: The address that clients use, if a proxy has another one.
        workers: Processes behind the port; see `workers`.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    tokens: tuple[Access, ...] = ()
    names: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    limits: Limits = DEFAULT_LIMITS
    public_url: str | None = None
    workers: int = 1

    @property
    def public_origin(self) -> str | None:
        """The origin of the page behind the proxy."""
        if self.public_url is None:
            return None
        parts = urlsplit(self.public_url)
        return f"{parts.scheme}://{parts.netloc}"


def read_public_url(given: str | None) -> str | None:
    """Return an address without a slash at its end."""
    if given is None:
        return None
    parts = urlsplit(given)
    wrong = parts.query or parts.fragment or parts.username or not parts.hostname
    if parts.scheme not in ("http", "https") or wrong:
        got = given[:60]
        raise SapbertError(
            "E331",
            "Expected `--public-url` to be an address such as "
            f"https://terms.example/sapbert, but got {got!r}. Correct it.",
        )
    return given.rstrip("/")


def is_local(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    if host in LOCAL_NAMES:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def check_remote(host: str, *, tokens: Sequence[Access], allow_remote: bool) -> None:
    """Check that a service which others reach has a token, or needs none on purpose."""
    if not (is_local(host) or tokens or allow_remote):
        raise SapbertError(
            "E450",
            "Expected `--host` to be an address of this machine alone, such as "
            f"127.0.0.1, but got {host}, which others reach. Pass `--token-file`, so "
            "that they need a token, or `--allow-remote` to serve all who reach the "
            "port.",
        )


def is_allowed_host(value: str, names: frozenset[str]) -> bool:
    """Return whether the header `Host` names this service.

    A page of another site can make its own name point to this machine (DNS rebinding),
    but it cannot be at an IP address that is not its own.
    """
    host = value.rpartition(":")[0] if re.search(r":\d*$", value) else value
    host = host.lower().rstrip(".")
    if host in LOCAL_NAMES or host in names:
        return True
    try:
        ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
