"""The layout of the code: which package may import which, and what is banned."""

import re
import tomllib
from fnmatch import fnmatch
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from grimp import ImportGraph, build_graph

ROOT = Path(__file__).parents[1]
PACKAGES = ("spacy_sapbert", "training")

PAGE = (ROOT / "docs" / "architecture.md").read_text("utf8")
ROWS = re.findall(r"^\| `([\w.]+)` \| .+ \| (.+) \|$", PAGE, re.MULTILINE)
# Which package may import which; those that a package imports may be imported too.
MAY_IMPORT = {
    package: [
        f"training.{name}" if f"training.{name}" in dict(ROWS) else name
        for name in re.findall(r"\w+", others.replace("the installed package", "cli"))
    ]
    for package, others in ROWS
}


@cache  # when a test needs it: each worker collects all tests
def read_graph() -> ImportGraph:
    """Return which modules import which, at their top and in functions."""
    return build_graph(*PACKAGES, include_external_packages=True, cache_dir=None)


def package_of(module: str) -> str:
    """Return the package of a module below the root, e.g. "spacy_sapbert.kb"."""
    return ".".join(module.split(".")[:2])


def package_imports() -> dict[str, set[str]]:
    """Return which of our packages each of them imports."""
    graph = read_graph()
    imports: dict[str, set[str]] = {}
    for module in graph.modules:
        if module.startswith(PACKAGES):
            imported = graph.find_modules_directly_imported_by(module)
            ours = {package_of(name) for name in imported if name.startswith(PACKAGES)}
            package = package_of(module)
            imports.setdefault(package, set()).update(ours - {package, *PACKAGES})
    return imports


def allowed_imports(package: str) -> set[str]:
    """Return the packages that a package may import, directly or not."""
    direct = MAY_IMPORT[package]
    return {*direct, *(other for name in direct for other in allowed_imports(name))}


def find_sources(pattern: str) -> set[str]:
    """Return the files of the packages that contain a regular expression."""
    files = [path for name in PACKAGES for path in (ROOT / name).rglob("*.py")]
    found = [path for path in files if re.search(pattern, path.read_text("utf8"))]
    return {path.relative_to(ROOT).as_posix() for path in found}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_package_imports_only_packages_below_it(package):
    full = package if package.startswith("training.") else f"spacy_sapbert.{package}"
    names = {n.removeprefix("spacy_sapbert.") for n in package_imports()[full]}
    assert names <= allowed_imports(package)


def test_installed_package_does_not_import_training():
    graph = read_graph()
    importing = graph.find_downstream_modules("training", as_package=True)
    assert {name for name in importing if name.startswith("spacy_sapbert")} == set()


def test_every_package_is_in_the_table():
    packages = {name.removeprefix("spacy_sapbert.") for name in package_imports()}
    others = {*PACKAGES, "__main__", "training.__main__"}
    assert packages - others == {*MAY_IMPORT}


def test_imports_between_packages_have_no_cycle():
    # it raises an error that names the cycle
    TopologicalSorter(package_imports()).prepare()


def test_imports_between_modules_have_no_cycle():
    """Imports in functions, and those that only a type checker reads, count too."""
    graph = read_graph()
    modules = {name for name in graph.modules if name.startswith(PACKAGES)}
    imports = {m: graph.find_modules_directly_imported_by(m) for m in modules}
    TopologicalSorter({m: names & modules for m, names in imports.items()}).prepare()


def test_files_that_are_no_modules_are_in_the_wheel():
    data = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))
    patterns = data["tool"]["setuptools"]["package-data"]["spacy_sapbert"]
    folder = ROOT / "spacy_sapbert"
    files = [path for path in folder.rglob("*.*") if path.is_file()]
    names = {path.relative_to(folder).as_posix() for path in files}
    others = {name for name in names if not name.endswith((".py", ".pyc"))}
    assert {n for n in others if not any(fnmatch(n, p) for p in patterns)} == set()


def test_nothing_is_pickled_or_evaluated():
    assert not {"pickle", "cloudpickle", "dill", "joblib"} & read_graph().modules
    assert find_sources(r"(?<![\w.])(?:eval|exec|compile)\(") == set()


def test_what_only_some_systems_have_is_in_one_module():
    found = find_sources(r"\bos\.fork|fcntl|(?<!\w)/dev/|SIGHUP|\btermios\b")
    assert found == {"spacy_sapbert/io/system.py"}
