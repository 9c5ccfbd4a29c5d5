import pytest

from tests.pipelines import make_nlp


@pytest.fixture(scope="session", autouse=True)
def attributes() -> None:
    """Register what a linker writes to entities."""
    make_nlp(None)
