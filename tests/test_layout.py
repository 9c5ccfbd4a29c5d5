"""The import statements, held against the arrows in docs/architecture.md.

`python tests/test_layout.py` prints the arrows as the code has them.
"""

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("spacy_sapbert", "training")
NO_ROOMS = {"utils", "util", "helpers", "helper", "common", "misc"}


def room_of(module: str) -> str:
    """A file, or a folder as a whole: spacy_sapbert/indexes/hnsw.py is `indexes`."""
    package, _, rest = module.partition(".")
    room = rest.partition(".")[0]
    return f"training.{room}" if package == "training" else room


def imported_modules(path: Path, module: str) -> Iterator[str]:
    """Return every module of ours that a file imports, at the top or in a function."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text("utf8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                above = parents[: len(parents) - node.level + 1]
                base = ".".join([*above, base]).rstrip(".")
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def import_arrows() -> dict[str, set[str]]:
    """Read from the code which room imports which."""
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    }
    arrows: dict[str, set[str]] = {}
    for module, path in files.items():
        room = room_of(module)
        if not room or room == "training.":
            continue
        targets = {
            room_of(name) for name in imported_modules(path, module) if name in files
        }
        arrows.setdefault(room, set()).update(targets - {room, "", "training."})
    return arrows


def written_arrows() -> dict[str, set[str]]:
    """Read from docs/architecture.md which room may import which."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf8")
    block = re.search(r"```arrows\n(.*?)```", text, re.DOTALL)
    assert block, "docs/architecture.md has no block of arrows"
    arrows: dict[str, set[str]] = {}
    for line in block.group(1).splitlines():
        room, _, targets = line.partition("->")
        arrows[room.strip()] = set(targets.split())
    return arrows


def format_arrows(arrows: dict[str, set[str]]) -> str:
    lines = (f"{room} -> {' '.join(sorted(arrows[room]))}" for room in sorted(arrows))
    return "\n".join(line.rstrip() for line in lines)


def python_files() -> list[Path]:
    return [
        path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))
    ]


def test_arrows_in_the_code_are_those_in_the_design() -> None:
    assert format_arrows(import_arrows()) == format_arrows(written_arrows())


def test_arrows_make_no_circle() -> None:
    assert list(TopologicalSorter(import_arrows()).static_order())


def test_the_package_never_imports_training() -> None:
    for room, targets in import_arrows().items():
        if not room.startswith("training."):
            assert not {t for t in targets if t.startswith("training.")}, room


def test_every_room_has_a_name_that_says_something() -> None:
    names = {part for path in python_files() for part in path.with_suffix("").parts}
    assert not names & NO_ROOMS


def test_nothing_is_pickled_or_evaluated() -> None:
    for path in python_files():
        for node in ast.walk(ast.parse(path.read_text("utf8"))):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = {getattr(node, "module", None)} | {a.name for a in node.names}
                assert not names & {"pickle", "cloudpickle", "dill", "joblib"}, path
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec", "compile"}, path


def test_no_error_is_worded_where_it_is_raised() -> None:
    for path in python_files():
        for node in ast.walk(ast.parse(path.read_text("utf8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "SapbertError"
            ):
                literal = isinstance(node.args[0], (ast.Constant, ast.JoinedStr))
                assert not literal, f"{path}:{node.lineno}"


def test_every_error_text_is_used_once_defined() -> None:
    files = [*python_files(), *sorted((ROOT / "benchmarks").rglob("*.py"))]
    source = "\n".join(
        path.read_text("utf8") for path in files if path.name != "errors.py"
    )
    errors = (ROOT / "spacy_sapbert" / "errors.py").read_text("utf8")
    codes = re.findall(r"^    ([EW]\d{3}) =", errors, re.MULTILINE)
    assert sorted(codes) == sorted(set(codes))  # each stands for one thing
    for code in codes:
        assert re.search(rf"(Errors|Warnings)\.{code}\b", source), code


if __name__ == "__main__":
    print(format_arrows(import_arrows()))  # noqa: T201
