"""The metadata: the extras have the packages that their features and tests need."""

import email
import re
import shutil
import tomllib
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import Any

import jinja2
import pytest
import srsly

from spacy_sapbert.io.version import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
SOURCE = PROJECT["urls"]["Source"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
PINNED = (ROOT / "constraints.txt").read_text("utf8").lower()
BUILT_FROM = ["pyproject.toml", "setup.py", "README.md", "LICENSE"]
BUILT_FROM.append("spacy_sapbert/io/version.py")
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


@pytest.fixture(scope="module")
def metadata(tmp_path_factory) -> Message:
    """What a package index gets of the package."""
    backend = pytest.importorskip("setuptools.build_meta")
    folder = tmp_path_factory.mktemp("metadata")
    for name in BUILT_FROM:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        made = backend.prepare_metadata_for_build_wheel(str(folder))
    return email.message_from_string((folder / made / "METADATA").read_text("utf8"))


def test_metadata_has_what_a_package_index_shows(metadata):
    assert metadata["Version"] == __version__
    assert metadata["Author"] == "The spacy-sapbert maintainers"
    assert metadata["Description-Content-Type"] == "text/markdown"
    urls = dict(line.split(", ") for line in metadata.get_all("Project-URL"))
    assert urls.keys() == {"Source", "Documentation", "Issues", "Changelog"}
    assert len(metadata["Keywords"].split(",")) > 5
    lowest = PROJECT["requires-python"].removeprefix(">=")
    assert f"Programming Language :: Python :: {lowest}" in metadata.get_all(
        "Classifier"
    )


def test_readme_of_a_package_index_has_no_relative_link(metadata):
    readme = metadata.get_payload()
    links = re.findall(r"""\]\(([^)\s]+)|\b(?:src|href)=["']?([^"'\s>]+)""", readme)
    targets = {markdown or html for markdown, html in links}
    assert [target for target in targets if not target.startswith("https://")] == []
    place = f"{SOURCE}/blob/v{__version__}/"
    files = {target.removeprefix(place).partition("#")[0] for target in targets}
    assert {"LICENSE", "README.md", "docs/install.md"} <= files
    assert f"{SOURCE}/raw/v{__version__}/docs/images/linked-note.png" in targets


def read_recipe() -> dict[str, Any]:
    """Return the recipe as conda-build renders it, with two of its functions."""
    folder = ROOT / "conda"

    def load_file_data(path: str, *, from_recipe_dir: bool) -> dict[str, Any]:
        return tomllib.loads((folder / path).read_text("utf8"))

    def load_file_regex(path: str, pattern: str, *, from_recipe_dir: bool) -> Any:
        return re.search(pattern, (folder / path).read_text("utf8"))

    template = jinja2.Template((folder / "meta.yaml").read_text("utf8"))
    functions = {"load_file_data": load_file_data, "load_file_regex": load_file_regex}
    recipe: dict[str, Any] = srsly.yaml_loads(template.render(functions))
    return recipe


def test_conda_recipe_asks_for_the_light_installation_and_hnswlib():
    recipe = read_recipe()
    asked = {line.replace(" ", "") for line in recipe["requirements"]["run"]}
    python = f"python{PROJECT['requires-python']}"
    assert asked == {*PROJECT["dependencies"], *EXTRAS["hnsw"], python}


def test_conda_recipe_reads_version_and_addresses():
    recipe = read_recipe()
    assert recipe["package"] == {"name": "spacy-sapbert", "version": __version__}
    assert recipe["about"]["home"] == SOURCE
    assert recipe["about"]["summary"] == PROJECT["description"]
    written = (ROOT / "conda" / "meta.yaml").read_text("utf8")
    assert __version__ not in written
