"""The page: files of this package, and nothing else.

The page names the modules that it needs first, and has its first answers in itself, so
that a browser far away waits once for each. All addresses are relative: a proxy may put
the service behind a path.
"""

import hashlib
import json
import re
from importlib.resources import files
from typing import Any, get_args

from fastapi import APIRouter, HTTPException, Response

from ...formats.entities import Context
from ...formats.page.groups import BY_TYPE, OTHER, SHOWN, group_styles, name_type
from ..api.answers import JsonResponse
from ..api.concepts import get_kb
from ..api.health import get_access
from ..depends import AccessDep, OptionalStoreDep, ServiceDep, SettingsDep

router = APIRouter(include_in_schema=False)
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Scripts and styles of this origin only; no text can become a script.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
ANSWERS = b'id="answers">{}'  # where the page has answers of requests
FOREVER = "max-age=31536000, immutable"
IMPORT = re.compile(rb'^import .* from "\./(\w+\.js)";$', re.MULTILINE)


def list_types() -> dict[str, Any]:
    """Return name and colour (the class of its style) of each type, and other lists."""
    known = {code: group.key for code, group in SHOWN.items()}
    known |= {type: group.key for type, group in BY_TYPE.items()}
    shown = {type: {"key": key, "name": name_type(type)} for type, key in known.items()}
    groups = [
        {"key": group.key, "name": group.name} for group in (*SHOWN.values(), OTHER)
    ]
    return {"types": shown, "groups": groups, "contexts": get_args(Context)}


def load_files() -> tuple[str, dict[str, bytes]]:
    """Return the files of the page by their names, and the digest of all.

    Their addresses have the digest, so that a browser keeps them.
    """
    found = {
        path.name: path.read_bytes()
        for path in files(__package__).iterdir()
        if path.name.endswith(tuple(KINDS))
    }
    found["page.css"] += group_styles(".mention").encode()
    first = ["page.js"]  # and what it imports, but not what it loads later
    for name in first:
        first += [one.decode() for one in IMPORT.findall(found[name])]
        first[:] = dict.fromkeys(first)
    links = "\n".join(
        f'<link rel="modulepreload" href="page/{name}">' for name in first[1:]
    )
    whole = found["index.html"].replace(b"<!-- modules -->", links.encode())
    whole = whole.replace(b"TYPES", json.dumps(list_types()).encode())
    digest = hashlib.sha256(b"".join(found.values())).hexdigest()[:16]
    found["index.html"] = whole.replace(b'"page/', f'"page/{digest}/'.encode())
    return digest, found


DIGEST, FILES = load_files()


@router.get("/")
async def index(
    access: AccessDep,
    service: ServiceDep,
    store: OptionalStoreDep,
    settings: SettingsDep,
) -> Response:
    """The page, with the answers that it asks for first, unless they need a token."""
    answers: dict[str, Any] = {}
    if not settings.tokens:
        found = {"kb": get_kb(service, store), "access": await get_access(access)}
        answers = {path: one.model_dump(mode="json") for path, one in found.items()}
    data = bytes(JsonResponse(answers).body).replace(b"<", rb"\u003c")
    page = FILES["index.html"].replace(ANSWERS, ANSWERS[:-2] + data)
    return send_file("index.html", page)


@router.get("/page/{digest}/{name}")
def page_file(digest: str, name: str) -> Response:
    """A module or a style sheet; for ever, under the digest that the page has."""
    if name not in FILES:
        raise HTTPException(404)
    return send_file(name, FILES[name], FOREVER if digest == DIGEST else "no-cache")


def send_file(name: str, data: bytes, cache: str = "no-cache") -> Response:
    """Return a file of the page."""
    kind = KINDS[name[name.rindex(".") :]]
    headers = {"content-security-policy": POLICY, "cache-control": cache}
    return Response(data, headers=headers, media_type=kind)
