import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.encoder.hub import find_hub_problem

LIMIT = 60  # seconds for a new process; without a limit of ours it takes longer


@pytest.fixture
def silent_hub() -> Iterator[str]:
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_find_hub_problem_of_a_silent_hub(silent_hub: str) -> None:
    problem = find_hub_problem("some/encoder", endpoint=silent_hub, seconds=0.2)
    assert problem is not None
    assert "did not answer" in problem


def test_find_hub_problem_of_a_name_that_no_encoder_can_have() -> None:
    problem = find_hub_problem("some/encoder/of/mine")
    assert problem == "this is no folder, and cannot be a hub id."


def test_find_hub_problem_asks_nothing_for_a_folder(tmp_path: Path) -> None:
    assert find_hub_problem(str(tmp_path), endpoint="no address") is None


def test_load_encoder_from_a_hub_out_of_reach_is_an_error_soon(
    run_python: Callable[..., Any], silent_hub: str, tmp_path: Path
) -> None:
    code = (
        "from spacy_sapbert.encoder.huggingface import load_encoder\n"
        "load_encoder('some/encoder')"
    )
    env = {**os.environ, "HF_ENDPOINT": silent_hub, "HF_HOME": str(tmp_path)}
    env["PYTHONPATH"] = os.pathsep.join(map(str, sys.path))
    done = run_python(code, timeout=LIMIT, env=env)
    assert done.returncode == 1
    assert "[E634]" in done.stderr
    assert "did not answer" in done.stderr
