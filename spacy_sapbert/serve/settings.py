"""Settings of a service: where it listens, who may use it, and its limits."""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from ..errors import Errors, SapbertError
from ..io.reading import read_lines

LEAST_TOKEN = 16  # characters
TOKEN = re.compile(rf"[\w.~+/=-]{{{LEAST_TOKEN},200}}", re.ASCII)
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
    """

    body: int = 4 * MIB
    documents: int = 1_000
    characters: int = 1_000_000
    waiting: int = 256
    of_client: int = 64
    seconds: float = 60.0


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True)
class Settings:
    """Where a service listens, and who may use it.

    Attributes:
        port: 0 = any that is free.
        token: What clients send; None = none is needed.
        names: Values of `Host` besides localhost and IP addresses.
        origins: Origins of other pages that may use the service, e.g.
            "http://127.0.0.1:3333" for OpenRefine.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    token: str | None = None
    names: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    limits: Limits = DEFAULT_LIMITS


def is_local(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    if host in LOCAL_NAMES:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def check_remote(host: str, *, token: str | None, allow_remote: bool) -> None:
    """Check that a service which others reach has a token, or needs none on purpose.

    Raises:
        SapbertError: If not.
    """
    if not (is_local(host) or token or allow_remote):
        raise SapbertError(Errors.E450.format(host=host))


def read_token(path: Path) -> str:
    """Read the token of a file with one line.

    Raises:
        SapbertError: If it is something else, or too short to be secret.
    """
    lines = [line.strip() for _, line in read_lines(path)]
    tokens = [line for line in lines if line]
    if len(tokens) != 1 or not TOKEN.fullmatch(tokens[0]):
        raise SapbertError(Errors.E452.format(path=path, least=LEAST_TOKEN))
    return tokens[0]


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
