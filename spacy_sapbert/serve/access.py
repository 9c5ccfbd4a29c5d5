"""Who may do what: roles, their tokens, and the role that each request needs."""

import re
import secrets
from collections.abc import Iterable, Sequence
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from ..errors import SapbertError
from ..io.reading import read_lines
from .problems import RequestError

LEAST_TOKEN = 16  # characters
TOKEN = re.compile(rf"[\w.~+/=-]{{{LEAST_TOKEN},200}}", re.ASCII)
LONGEST_NAME = 200  # characters of the name of a reviewer
# Paths that need no token: they say nothing of documents and vocabularies.
OPEN = ("/", "/healthz", "/readyz", "/openapi.json")
OPEN_FOLDER = "/page/"  # files of this package
REVIEWS = "/reviews/"
OF_ADMINS = ("/reviews/teach", "/reviews/switch", "/reviews/quality")


class Role(IntEnum):
    """What a client may do; each role may do what those before it may.

    A reader links and looks up. A reviewer reads and decides on the documents that are
    kept. An admin deletes, teaches, and chooses and measures the knowledge base in use.
    """

    READER = 1
    REVIEWER = 2
    ADMIN = 3


ROLES = {role.name.lower(): role for role in Role}


class Access(NamedTuple):
    """A token, and what it allows.

    Attributes:
        reviewer: The only name under which it may decide; None = any.
    """

    token: str
    role: Role
    reviewer: str | None = None

    def check_names(self, reviewers: Iterable[str]) -> None:
        """Check that something is written under the name of the token."""
        if self.reviewer is not None and {*reviewers} - {self.reviewer}:
            raise RequestError(
                "E486",
                "Expected the reviewer's name of the token, but got another. GET "
                "/access returns the name.",
                403,
            )


ALL = Access("", Role.ADMIN)  # of a service without tokens


def is_open(path: str) -> bool:
    """Return whether a path needs no token."""
    return path in OPEN or path.startswith(OPEN_FOLDER)


def needed_role(method: str, path: str) -> Role | None:
    """Return the role that a request needs; None = it needs no token."""
    if is_open(path):
        return None
    if method == "DELETE" or path.startswith(OF_ADMINS):
        return Role.ADMIN
    return Role.REVIEWER if path.startswith(REVIEWS) else Role.READER


def read_tokens(path: Path) -> tuple[Access, ...]:
    """Read the tokens of a file: one alone, or lines of role, token and name.

    One token alone is of an admin. The name is that of a reviewer; it may have blanks.
    """
    lines = [line.strip() for _, line in read_lines(path)]
    lines = [line for line in lines if line and not line.startswith("#")]
    if len(lines) == 1 and TOKEN.fullmatch(lines[0]):
        return (Access(lines[0], Role.ADMIN),)
    found = []
    for line in lines:
        role, _, rest = line.partition(" ")
        token, _, name = rest.strip().partition(" ")
        name = " ".join(name.split())
        known = ROLES.get(role.lower())
        if known is None or not TOKEN.fullmatch(token) or len(name) > LONGEST_NAME:
            break
        found.append(Access(token, known, name or None))
    whole = len(found) == len(lines) and found
    if not whole or len({access.token for access in found}) < len(found):
        raise SapbertError(
            "E450",
            f"{path}: Expected one token, or lines of a role (reader, reviewer or "
            "admin), a token and, if wanted, a name, each token of at least "
            f"{LEAST_TOKEN} letters, digits, `-`, `_` or `.` and only once, but got "
            "something else. Write tokens with `openssl rand -hex 32`.",
        )
    return tuple(found)


def find_access(tokens: Sequence[Access], header: str) -> Access:
    """Return what a token allows; `header` is the value of `Authorization`."""
    kind, _, given = header.partition(" ")
    secret = given.strip().encode()
    # all are compared, so that the time says nothing of the place
    compare = secrets.compare_digest
    same = [access for access in tokens if compare(secret, access.token.encode())]
    if kind.lower() != "bearer" or not same:
        raise RequestError(
            "E455",
            "Expected the token of the service, but got none or another. Send it as "
            "`Authorization: Bearer TOKEN`.",
            401,
        )
    return same[0]


def check_role(access: Access, method: str, path: str) -> None:
    """Check that a request may be made."""
    needed = needed_role(method, path) or Role.READER
    if access.role < needed:
        raise RequestError(
            "E485",
            f"Expected a token of the role {needed.name.lower()}, but got one of the "
            f"role {access.role.name.lower()}. Ask who runs the service for another "
            "token.",
            403,
        )
