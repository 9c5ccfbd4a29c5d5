"""The extras have the packages that their features and tests need."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import srsly

from spacy_sapbert.io.version import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
PINNED = (ROOT / "constraints.txt").read_text("utf8").lower()
# which take minutes, slow all processes, need hardware, or are of the pages alone
NOT_TESTED = {"spark", "ray", "transformer", "gpu", "docs", "test"}


def list_packages(extra: str) -> Iterator[str]:
    """The packages of an extra, and those of the extras that it consists of."""
    for requirement in EXTRAS[extra]:
        if own := re.fullmatch(r"spacy-sapbert\[(.*)\]", requirement):
            for other in own[1].split(","):
                yield from list_packages(other)
        else:
            match = re.match(r"[a-z0-9.-]+", requirement)
            assert match is not None
            yield match[0]


@pytest.mark.parametrize("extra", sorted({*EXTRAS} - NOT_TESTED))
def test_extra_test_has_the_packages_of_all_features(extra):
    assert {*list_packages(extra)} <= {*list_packages("test")}


@pytest.mark.parametrize("extra", sorted({*EXTRAS} - {"gpu"}))
def test_packages_of_extras_are_pinned(extra):
    for package in list_packages(extra):
        assert re.search(rf"^{re.escape(package)}==", PINNED, re.MULTILINE), package


def test_conda_recipe_asks_for_the_light_installation_and_hnswlib():
    recipe = srsly.yaml_loads((ROOT / "conda" / "meta.yaml").read_text("utf8"))
    asked = {line.replace(" ", "") for line in recipe["requirements"]["run"]}
    python = f"python{PROJECT['requires-python']}"
    assert asked == {*PROJECT["dependencies"], *EXTRAS["hnsw"], python}
    assert recipe["package"]["version"] == __version__
