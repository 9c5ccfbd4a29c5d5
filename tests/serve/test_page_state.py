"""The page's scripts without a browser: their state, and their types.

They need Node; the types need TypeScript too (`npm install typescript`, in TSC the path
of its `tsc` unless it is on the PATH).
"""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import spacy_sapbert.serve.page as page

FOLDER = Path(page.__path__[0])
NODE = shutil.which("node")
TSC = os.environ.get("TSC") or shutil.which("tsc")
CHECK = (
    *("--noEmit", "--allowJs", "--checkJs", "--strict"),
    *("--noImplicitAny", "false", "--target", "esnext"),
    *("--module", "esnext", "--moduleResolution", "bundler"),
    *("--lib", "esnext,dom,dom.iterable", "--useUnknownInCatchVariables", "false"),
)


def check(new_process: Any, *command: object, **environment: str) -> None:
    """Run a command, and fail with what it says."""
    process = new_process.start(
        [*map(str, command)],
        env={**os.environ, **environment},
        stdout=new_process.PIPE,
        stderr=new_process.STDOUT,
        text=True,
    )
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said


@pytest.mark.skipif(NODE is None, reason="there is no node on the path")
def test_the_state_of_the_page(new_process: Any) -> None:
    script = Path(__file__).with_name("state.test.mjs")
    check(new_process, NODE, "--test", script, PAGE=str(FOLDER))


@pytest.mark.skipif(TSC is None, reason="TSC names no compiler of TypeScript")
def test_the_scripts_have_no_type_errors(new_process: Any) -> None:
    check(new_process, TSC, *CHECK, FOLDER / "page.js")
