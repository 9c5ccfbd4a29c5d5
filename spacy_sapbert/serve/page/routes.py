"""The page: files of this package, and nothing else."""

from importlib.resources import files

from fastapi import APIRouter, Request, Response

from ...errors import Errors
from ...formats.page.groups import BY_TYPE, SHOWN, group_styles
from ..api.answers import to_json
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


def load_files() -> dict[str, bytes]:
    """Return the files of the page by their names; the style sheet with all colours."""
    found = {
        path.name: path.read_bytes()
        for path in files(__package__).iterdir()
        if path.name.endswith(tuple(KINDS))
    }
    found["page.css"] += group_styles(".text ").encode()
    return found


FILES = load_files()


@router.get("/")
def index(request: Request) -> Response:
    """The page."""
    return send_file("index.html")


@router.get("/page-data/groups")
def groups(request: Request) -> Response:
    """The colour of each semantic type and group: the class of its style."""
    shown = {code: group.key for code, group in SHOWN.items()}
    return to_json({**shown, **{type: group.key for type, group in BY_TYPE.items()}})


@router.get("/page/{name}")
def page_file(request: Request, name: str) -> Response:
    """A script or a style sheet."""
    return send_file(name)


def send_file(name: str) -> Response:
    """Return a file of the page."""
    if name not in FILES:
        raise RequestError(Errors.E464, 404)
    kind = KINDS[name[name.rindex(".") :]]
    headers = {"content-security-policy": POLICY, "cache-control": "no-cache"}
    return Response(FILES[name], headers=headers, media_type=kind)
