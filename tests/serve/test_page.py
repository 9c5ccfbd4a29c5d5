"""The files of the page, and its scripts without a browser.

The scripts need Node; their types need TypeScript too (`npm install typescript`, in TSC
the path of its `tsc` unless it is on the PATH).
"""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import spacy_sapbert.serve.page as page
from spacy_sapbert.serve.page.routes import DIGEST, FILES

from .conftest import BEARER

FOLDER = Path(page.__path__[0])
NODE = shutil.which("node")
TSC = os.environ.get("TSC") or shutil.which("tsc")
CHECK = (
    *("--noEmit", "--allowJs", "--checkJs", "--strict"),
    *("--noImplicitAny", "false", "--target", "esnext"),
    *("--module", "esnext", "--moduleResolution", "bundler"),
    *("--lib", "esnext,dom,dom.iterable", "--useUnknownInCatchVariables", "false"),
)


def test_the_page_loads_only_files_of_the_service(local):
    answer = local.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    named = re.findall(r'(?:href|src)="([^"#]*)"', answer.body.decode())
    assert "page.js" in named[2]
    for path in named:  # relative: a proxy may put the service behind a path
        assert path.startswith(f"page/{DIGEST}/")
        assert local.get(f"/{path}").status == 200
    for type, name in (("T047", "Disease or Syndrome"), ("DISO", "Disorders")):
        assert f'"{type}": {{"key": "diso", "name": "{name}"}}' in answer.body.decode()


def test_files_of_the_page_name_no_other_site_and_parse_no_html(local):
    words = rb"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|DOMParser"
    for name, data in FILES.items():
        answer = local.get(f"/page/{DIGEST}/{name}")
        assert answer.body == data
        # a browser keeps it until it changes
        assert "immutable" in answer.headers["cache-control"]
        old = local.get(f"/page/older/{name}")
        assert old.headers["cache-control"] == "no-cache"
        addresses = {*re.findall(rb"https?://[^\s\"'`)]+", data)}
        assert addresses <= {b"http://www.w3.org/2000/svg"}, name
        if name.endswith(".js"):
            assert not re.search(words, data), name
            # relative: a proxy may put the service behind a path
            imported = re.findall(rb'\b(?:from |import\()"([^"]+)"', data)
            assert all(path.startswith(b"./") for path in imported), name
    assert local.get(f"/page/{DIGEST}/none.js").status == 404


def test_the_page_has_the_first_answers_of_a_service_without_tokens(local, strict):
    found = re.search(r'id="answers">(.*?)</script>', local.get("/").body.decode())
    assert found is not None
    answers = json.loads(found[1])
    assert answers == {path: local.get(f"/{path}").json() for path in ("kb", "access")}
    assert answers["access"] == {"role": "admin", "reviewer": None}
    # With tokens the page needs none, but its requests do.
    assert b'id="answers">{}<' in strict.get("/").body
    assert strict.get(f"/page/{DIGEST}/page.js").status == 200
    assert strict.get("/access", **BEARER).status == 200


def check(new_process: Any, *command: object, **environment: str) -> None:
    """Run a command, and fail with what it says."""
    options = {"env": {**os.environ, **environment}, "stderr": new_process.STDOUT}
    done = new_process.run(command, stdout=new_process.PIPE, **options)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(NODE is None, reason="there is no node on the path")
def test_the_state_of_the_page(new_process):
    script = Path(__file__).with_name("state.test.mjs")
    check(new_process, NODE, "--test", script, PAGE=str(FOLDER))


@pytest.mark.skipif(TSC is None, reason="TSC names no compiler of TypeScript")
def test_the_scripts_have_no_type_errors(new_process):
    check(new_process, TSC, *CHECK, FOLDER / "page.js")
