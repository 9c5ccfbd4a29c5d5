"""The extra `test` has every package without which a test would be skipped."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXTRA = re.search(
    r'"test": \[(.*?)\n        \]', (ROOT / "setup.py").read_text("utf8"), re.DOTALL
)
PINNED = (ROOT / "constraints.txt").read_text("utf8").lower()


@pytest.mark.parametrize(
    "package",
    [
        "axe-playwright-python",
        "bioc",
        "dask",
        "datasets",
        "gliner",
        "fastapi",
        "lxml",
        "matplotlib",
        "negspacy",
        "openvino",
        "playwright",
        "polars",
        "prometheus-client",
        "pyarrow",
        "pythainlp",
        "scikit-learn",
        "scipy",
        "sudachidict-core",
        "sudachipy",
        "tensorboard",
        "uvicorn",
    ],
)
def test_extra_test_has_the_packages_of_optional_features(package: str) -> None:
    assert EXTRA is not None
    assert re.search(rf'"{package}[>=[]', EXTRA[1])
    assert re.search(rf"^{package}==", PINNED, re.MULTILINE)


@pytest.mark.parametrize("engine", ["pyspark", "ray"])
def test_engines_of_their_own_extras_are_pinned(engine: str) -> None:
    assert re.search(rf"^{engine}==", PINNED, re.MULTILINE)
