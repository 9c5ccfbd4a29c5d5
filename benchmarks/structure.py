"""Modules, imports between packages, cycles and lines of a revision of the code.

Example: python -m benchmarks.structure HEAD~20 HEAD
"""

import ast
import subprocess
from collections.abc import Iterable
from importlib.util import resolve_name
from typing import NamedTuple

import typer

ROOTS = ("spacy_sapbert", "training")
FOLDERS = {  # suffix of their files
    "spacy_sapbert": ".py",
    "training": ".py",
    "benchmarks": ".py",
    "tests": ".py",
    "docs, README.md": ".md",
}


class Structure(NamedTuple):
    """The import graph of the source.

    Attributes:
        modules: Names of all modules.
        imports: Pairs of modules: importer, imported.
    """

    modules: set[str]
    imports: set[tuple[str, str]]


def read_revision(revision: str, folders: Iterable[str], suffix: str) -> dict[str, str]:
    """Return the text files of a git revision in some folders, by path."""
    listed = ["git", "ls-tree", "-r", "--name-only", revision, "--", *folders]
    names = subprocess.check_output(listed, text=True).splitlines()
    chosen = [name for name in names if name.endswith(suffix)]
    return {
        name: subprocess.check_output(["git", "show", f"{revision}:{name}"], text=True)
        for name in chosen
    }


def name_module(path: str) -> str:
    """Return the module name of a path, e.g. "a/b/__init__.py" → "a.b"."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def read_structure(files: dict[str, str]) -> Structure:
    """Parse the imports between modules, at the top of a module and in functions.

    Args:
        files: Source by path, e.g. "spacy_sapbert/errors.py".
    """
    modules = {name_module(path) for path in files}
    imports: set[tuple[str, str]] = set()
    for path, source in files.items():
        module = name_module(path)
        is_package = path.endswith("__init__.py")
        package = module if is_package else module.rpartition(".")[0]
        for node in ast.walk(ast.parse(source)):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = resolve_name("." * node.level + (node.module or ""), package)
                names = [f"{base}.{alias.name}" for alias in node.names]
                names = [name if name in modules else base for name in names]
            imports.update((module, name) for name in names if name in modules)
    return Structure(modules, {(a, b) for a, b in imports if a != b})


def package_of(module: str) -> str:
    """Return the package of a module below the root, e.g. "spacy_sapbert.kb"."""
    return ".".join(module.split(".")[:2])


def package_imports(structure: Structure) -> set[tuple[str, str]]:
    """Return the pairs of different packages of which one imports the other."""
    pairs = {(package_of(a), package_of(b)) for a, b in structure.imports}
    return {(a, b) for a, b in pairs if a != b and a not in ROOTS and b not in ROOTS}


def find_cycles(edges: set[tuple[str, str]]) -> list[list[str]]:
    """Return the groups of nodes that reach each other, sorted."""
    targets: dict[str, set[str]] = {}
    for start, end in edges:
        targets.setdefault(start, set()).add(end)

    def reach(node: str) -> set[str]:
        found: set[str] = set()
        pending = [node]
        while pending:
            for other in targets.get(pending.pop(), ()):
                if other not in found:
                    found.add(other)
                    pending.append(other)
        return found

    reached = {node: reach(node) for node in targets}
    groups = {
        tuple(sorted(o for o in reached[node] if node in reached.get(o, ())))
        for node in targets
        if node in reached[node]
    }
    return sorted(map(list, groups))


def describe(revision: str) -> dict[str, str]:
    """Return the rows of the table for a revision."""
    files = read_revision(revision, ROOTS, ".py")
    structure = read_structure(files)
    edges = package_imports(structure)
    modules = [name for name in structure.modules if "." in name]
    lines = {}
    for name, suffix in FOLDERS.items():
        texts = read_revision(revision, name.split(", "), suffix).values()
        lines[f"lines of {name}"] = f"{sum(len(text.splitlines()) for text in texts):,}"
    flat = [m for m in modules if m.count(".") == 1 and f"{m}." not in str(modules)]
    cycles = find_cycles(edges)
    return {
        "modules": f"{len(modules):,}",
        "of these directly in a root": f"{len(flat):,}",
        "imports between modules": f"{len(structure.imports):,}",
        "packages": f"{len({package_of(m) for m in modules}):,}",
        "imports between packages": f"{len(edges):,}",
        "cycles between packages": f"{len(cycles):,}",
        "cycles between modules": f"{len(find_cycles(structure.imports)):,}",
        **lines,
    }


def main(
    revisions: list[str] = typer.Argument(..., help="Git revisions to compare."),
) -> None:
    """git revisions -> table

    Example: python -m benchmarks.structure HEAD~20 HEAD
    """
    columns = [describe(revision) for revision in revisions]
    typer.echo(f"| | {' | '.join(revisions)} |")
    typer.echo(f"|---|{'---:|' * len(revisions)}")
    for row in columns[0]:
        typer.echo(f"| {row} | {' | '.join(column[row] for column in columns)} |")


if __name__ == "__main__":
    typer.run(main)
