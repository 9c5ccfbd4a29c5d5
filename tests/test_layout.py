"""The layout of the code: which package may import which, and what is banned."""

import ast
import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from graphlib import TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest

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
def read_files() -> dict[str, str]:
    """Return the source of both packages by path."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text("utf8")
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    }


Import = ast.Import | ast.ImportFrom


def list_imports(node: ast.AST) -> Iterator[Import]:
    """Yield the imports at the top of a module and in its functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Import):
            yield child
        elif isinstance(child, (ast.stmt, ast.excepthandler)):
            yield from list_imports(child)


@cache
def parse_files() -> list[tuple[str, Import]]:
    """Return the imports of both packages, each with the path of its module."""
    return [
        (path, node)
        for path, source in read_files().items()
        for node in list_imports(ast.parse(source))
    ]


def name_modules(node: Import) -> set[str | None]:
    """Return the modules, or the names, that a statement imports."""
    return {getattr(node, "module", None)} | {alias.name for alias in node.names}


def allowed_imports(package: str) -> set[str]:
    """Return the packages that a package may import, directly or not."""
    direct = MAY_IMPORT[package]
    return {*direct, *(other for name in direct for other in allowed_imports(name))}


@cache
def read_imports() -> dict[str, set[str]]:
    """Return which modules each module imports, at its top and in functions."""
    modules = {
        path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for path in read_files()
    }
    imports: dict[str, set[str]] = {module: set() for module in modules}
    for path, node in parse_files():
        module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        is_package = path.endswith("__init__.py")
        package = module if is_package else module.rpartition(".")[0]
        if isinstance(node, ast.Import):
            imports[module] |= {alias.name for alias in node.names} & modules
        else:
            base = resolve_name("." * node.level + (node.module or ""), package)
            names = {f"{base}.{alias.name}" for alias in node.names}
            imports[module] |= {n if n in modules else base for n in names} & modules
        imports[module].discard(module)
    return imports


def package_of(module: str) -> str:
    """Return the package of a module below the root, e.g. "spacy_sapbert.kb"."""
    return ".".join(module.split(".")[:2])


@cache
def package_imports() -> dict[str, set[str]]:
    """Return which packages each package imports."""
    imports: dict[str, set[str]] = {}
    for module, imported in read_imports().items():
        package = package_of(module)
        others = {package_of(name) for name in imported} - {package, *PACKAGES}
        imports.setdefault(package, set()).update(others)
    return imports


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_package_imports_only_packages_below_it(package):
    full = package if package.startswith("training.") else f"spacy_sapbert.{package}"
    names = {n.removeprefix("spacy_sapbert.") for n in package_imports()[full]}
    assert names <= allowed_imports(package)


def test_installed_package_does_not_import_training():
    for module, imported in read_imports().items():
        if module.startswith("spacy_sapbert"):
            assert not any(name.startswith("training") for name in imported), module


def test_every_package_is_in_the_table():
    packages = {
        package_of(name).removeprefix("spacy_sapbert.") for name in read_imports()
    }
    others = {*PACKAGES, "__main__", "training.__main__"}
    assert packages - others == {*MAY_IMPORT}


def test_imports_between_packages_have_no_cycle():
    # it raises an error that names the cycle
    TopologicalSorter(package_imports()).prepare()


def test_files_that_are_no_modules_are_in_the_wheel():
    data = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))
    patterns = data["tool"]["setuptools"]["package-data"]["spacy_sapbert"]
    folder = ROOT / "spacy_sapbert"
    files = [path for path in folder.rglob("*.*") if path.is_file()]
    names = {path.relative_to(folder).as_posix() for path in files}
    others = {name for name in names if not name.endswith((".py", ".pyc"))}
    assert {n for n in others if not any(fnmatch(n, p) for p in patterns)} == set()


def test_nothing_is_pickled_or_evaluated():
    for path, node in parse_files():
        assert not name_modules(node) & {"pickle", "cloudpickle", "dill", "joblib"}, (
            path
        )
    calls = re.compile(r"(?<![\w.])(?:eval|exec|compile)\(")
    assert [path for path, source in read_files().items() if calls.search(source)] == []


def test_what_only_some_systems_have_is_in_one_module():
    words = re.compile(r"\bos\.fork|fcntl|(?<!\w)/dev/|SIGHUP|\btermios\b")
    found = {path for path, source in read_files().items() if words.search(source)}
    assert found == {"spacy_sapbert/io/system.py"}


def test_tests_start_processes_through_one_fixture():
    """So that they have the marker `process`, and end with their test."""
    allowed = {ROOT / "tests" / "conftest.py", ROOT / "tests" / "faults.py"}
    starts = re.compile(r"\bos\.(?:fork|system|popen|posix_spawn)")
    for path in {*(ROOT / "tests").rglob("*.py")} - allowed:
        source = path.read_text("utf8")
        if re.search("subprocess|multiprocessing", source):
            for node in list_imports(ast.parse(source)):
                modules = {str(name).partition(".")[0] for name in name_modules(node)}
                assert not modules & {"subprocess", "multiprocessing"}, path
        if starts.search(source):
            for node in ast.walk(ast.parse(source)):
                assert not (
                    isinstance(node, ast.Attribute) and starts.match(ast.unparse(node))
                ), f"{path}:{node.lineno}"
