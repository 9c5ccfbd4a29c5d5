"""The extras have the packages that their features and tests need."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SETUP = (ROOT / "setup.py").read_text("utf8")
EXTRA = re.search(r'"test": \[(.*?)\n        \]', SETUP, re.DOTALL)
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


@pytest.mark.parametrize("package", ["bioc", "lxml", "openpyxl"])
def test_extra_serve_has_the_packages_of_formats_that_the_page_offers(
    package: str,
) -> None:
    serve = re.search(r'"serve": \[(.*?)\]', SETUP, re.DOTALL)
    assert serve is not None
    assert re.search(rf'"{package}[>=[]', serve[1])
