"""The page: files of this package, and nothing else.

Its modules are sent as one script, and its first answers in the page itself, so that a
browser far away waits once for each.
"""

import hashlib
import json
import re
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Request, Response

from ...formats.page.groups import BY_TYPE, OTHER, SHOWN, group_styles, name_type
from ..api.answers import to_json
from ..api.concepts import describe
from ..api.health import access
from ..depends import OptionalStoreDep, ServiceDep, SettingsDep
from ..problems import RequestError

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
IMPORT = re.compile(
    r'^import (?:\{([^}]*)\}|\* as (\w+)) from "\./(\w+)\.js";\n', re.MULTILINE
)
EXPORT = re.compile(
    r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE
)


def join_modules(modules: dict[str, str], first: str) -> str:
    """Return one script with a module and all that it imports.

    Each module becomes a function that returns what it exports. The forms of `import`
    and `export` are those of `IMPORT` and `EXPORT`.
    """
    done: dict[str, str] = {}

    def add(name: str) -> None:
        if name in done:
            return
        done[name] = ""  # a cycle would be an error of the script

        def replace(found: re.Match[str]) -> str:
            names, whole, other = found.groups()
            add(other)
            target = whole or "{" + names.replace(" as ", ": ") + "}"
            return f"const {target} = modules.{other};\n"

        text = IMPORT.sub(replace, modules[name])
        exported = ", ".join(found[2] for found in EXPORT.finditer(text))
        body = EXPORT.sub(r"\1", text)
        del done[name]  # after those that it needs
        done[name] = (
            f"modules.{name} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();\n"
        )

    add(first)
    return "const modules = {};\n" + "".join(done.values())


def list_types() -> dict[str, Any]:
    """Return name and colour (the class of its style) of each type, and the groups."""
    known = {code: group.key for code, group in SHOWN.items()}
    known |= {type: group.key for type, group in BY_TYPE.items()}
    shown = {type: {"key": key, "name": name_type(type)} for type, key in known.items()}
    groups = [
        {"key": group.key, "name": group.name} for group in (*SHOWN.values(), OTHER)
    ]
    return {"types": shown, "groups": groups}


def load_files() -> dict[str, bytes]:
    """Return the files of the page by their names.

    The style sheet has all colours, the script all modules, and the page names the two
    by their contents, so that a browser keeps them.
    """
    found = {
        path.name: path.read_bytes()
        for path in files(__package__).iterdir()
        if path.name.endswith(tuple(KINDS))
    }
    modules = {
        name.removesuffix(".js"): found.pop(name).decode()
        for name in sorted(found)
        if name.endswith(".js")
    }
    data = f"globalThis.PAGE_DATA = {json.dumps(list_types())};\n"
    found["page.js"] = (data + join_modules(modules, "page")).encode()
    found["page.css"] += group_styles(".mention").encode()
    for name in ("page.js", "page.css"):
        digest = hashlib.sha256(found[name]).hexdigest()[:16]
        old, new = f"/page/{name}", f"/page/{name}?{digest}"
        found["index.html"] = found["index.html"].replace(old.encode(), new.encode())
    return found


FILES = load_files()


@router.get("/")
async def index(
    request: Request,
    service: ServiceDep,
    store: OptionalStoreDep,
    settings: SettingsDep,
) -> Response:
    """The page, with the answers that it asks for first, unless they need a token."""
    answers: dict[str, Any] = {}
    if not settings.tokens:
        found = {"/kb": describe(service, store), "/access": await access(request)}
        answers = {path: one.model_dump(mode="json") for path, one in found.items()}
    data = bytes(to_json(answers).body).replace(b"<", rb"\u003c")
    page = FILES["index.html"].replace(ANSWERS, ANSWERS[:-2] + data)
    return send_file("index.html", page)


@router.get("/page/{name}")
def page_file(request: Request, name: str) -> Response:
    """A script or a style sheet; with the query that the page has, for ever."""
    if name not in FILES:
        raise RequestError(
            "E464",
            "Expected a path and a method of /openapi.json, but got others.",
            404,
        )
    return send_file(name, FILES[name], FOREVER if request.url.query else "no-cache")


def send_file(name: str, data: bytes, cache: str = "no-cache") -> Response:
    """Return a file of the page."""
    kind = KINDS[name[name.rindex(".") :]]
    headers = {"content-security-policy": POLICY, "cache-control": cache}
    return Response(data, headers=headers, media_type=kind)
