from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from spacy_sapbert.cli.main import app


@pytest.fixture(scope="session")
def invoke() -> Callable[..., Result]:
    """Runs a command of `spacy sapbert`, and checks its exit code."""

    def run(*words: Any, code: int = 0) -> Result:
        result = CliRunner().invoke(app, [str(word) for word in words])
        assert result.exit_code == code, result.output
        return result

    return run
