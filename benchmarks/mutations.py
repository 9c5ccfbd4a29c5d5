"""Change lines of the code, one at a time, and see whether a test fails.

    python -m coverage run -m pytest
    python -m benchmarks.mutations results.jsonl --count 100

A change is chosen by the seed: a comparison, a number, `and` for `or`, a condition, a
statement that is left out. Sizes and digits stay: one more is no fault. It is made in a
copy of the repository. There the tests run that ran the line, as the file of `coverage`
says, then those that name the module, and those of its folder. What survives is a line
that no test would miss, or a change that changes nothing: read each. Where nothing
changes, write in the results why, in place of `false`; such a change counts no more.
Run it before a release, on Linux or macOS, since it forks; a stopped run goes on.
"""

import ast
import compileall
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NamedTuple

import pytest
import typer
from coverage import CoverageData
from tqdm import tqdm

from benchmarks.harness import run_cli
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.terminal import msg

ROOT = Path(__file__).parents[1]
PARTS = ("spacy_sapbert", "training")
OWN = (*PARTS, "tests", "benchmarks")  # packages of which a copy has its own modules
LIBRARIES = ("spacy", "torch", "transformers", "hnswlib", "fastapi", "sklearn")
SHOWN = "cli"  # its lines mostly print what others find
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
SECONDS = 300  # that tests may take; a change that makes them longer is found
MOST_TESTS = 60  # of those that ran a line
LEAST_SIZE = 10  # a number from here on is a size, a limit or a default


class Change(NamedTuple):
    """A change of a file: the bytes that are replaced, and what by."""

    path: str
    start: int
    end: int
    new: str
    line: int


def list_changes(path: Path) -> Iterator[Change]:
    """Yield the changes that can be made in a file."""
    source = path.read_text("utf8")
    whole = ast.parse(source)
    kept = {part for node in ast.walk(whole) for part in list_kept(node)}
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))

    def replace(node: ast.stmt | ast.expr, new: str) -> Change:
        end_line, end = node.end_lineno or 0, node.end_col_offset or 0
        begin, end = (
            starts[node.lineno - 1] + node.col_offset,
            starts[end_line - 1] + end,
        )
        return Change(str(path.relative_to(ROOT)), begin, end, new, node.lineno)

    for node in ast.walk(whole):
        if node in kept:
            continue
        match node:
            case ast.Compare(_, _, [ast.Constant(float())]):  # nothing is equal to it
                yield replace(node, f"(not {ast.unparse(node)})")
            case ast.Compare(left, [operator], [right]):
                new = ast.Compare(left, [COMPARISONS[type(operator)]()], [right])
                yield replace(node, f"({ast.unparse(new)})")
            case ast.BoolOp(operator, values):
                other = ast.Or() if isinstance(operator, ast.And) else ast.And()
                yield replace(node, f"({ast.unparse(ast.BoolOp(other, values))})")
            case ast.UnaryOp(ast.Not(), operand):
                yield replace(node, f"bool({ast.unparse(operand)})")
            case ast.Constant(int(value)) if (
                not isinstance(value, bool) and value < LEAST_SIZE
            ):
                yield replace(node, f"({value + 1})")
            case ast.IfExp(orelse=other):
                yield replace(node, f"({ast.unparse(other)})")
            case ast.Expr(ast.Call(function)) if not ast.unparse(function).startswith(
                "bar."
            ):
                yield replace(node, "pass")
            case ast.AugAssign():
                yield replace(node, "pass")


def list_kept(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node that are not changed."""
    match node:
        case ast.JoinedStr():  # without places of their own before Python 3.12
            yield from ast.walk(node)
        case ast.Call(ast.Name("round"), [_, digits]):
            yield digits
        case ast.BinOp(one, ast.LShift(), _):  # 1 << 20
            yield one
        case ast.keyword("quiet", value):  # whether a bar is shown
            yield from ast.walk(value)


def find_tests(path: str) -> list[str]:
    """Return the tests that name a module."""
    module = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    parent, _, name = module.rpartition(".")
    named = (f"{module} import", f"import {module}", f"{parent} import {name}")
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    found = [each for each in tests if any(n in each.read_text("utf8") for n in named)]
    return [str(each.relative_to(ROOT)) for each in found]


def find_folder(path: str) -> str:
    """Return the folder of the tests of a module, or the nearest above it."""
    folder = ROOT / "tests" / Path(path.removeprefix("spacy_sapbert/")).parent
    while not folder.is_dir():
        folder = folder.parent
    return str(folder.relative_to(ROOT))


def find_line_tests(change: Change, covered: CoverageData) -> list[str]:
    """Return tests that run a line, first of the files that name its module."""
    contexts = covered.contexts_by_lineno(change.path)
    named = find_tests(change.path)
    tests = []
    for context in contexts.get(change.line, ()):
        module, _, name = context.rpartition(".")
        path = ROOT / f"{module.replace('.', '/')}.py"
        # It may be of a class, or be removed since.
        if path.is_file() and f"def {name}(" in path.read_text("utf8"):
            tests.append(f"{path.relative_to(ROOT)}::{name}")
    return sorted(tests, key=lambda t: (t.split("::")[0] not in named, t))[:MOST_TESTS]


def is_found(change: Change, copy: Path, line_tests: list[str]) -> bool:
    """Return whether the tests fail if a change is made in a copy."""
    path = copy / change.path
    original = path.read_bytes()
    new = original[: change.start] + change.new.encode() + original[change.end :]
    path.write_bytes(new)
    named = find_tests(change.path)
    # Nobody knows the tests of a line that runs in a fixture, or a thread of a service.
    folder = [find_folder(change.path)]
    try:
        return (
            any_fail(copy, line_tests)
            or any_fail(copy, named)
            or any_fail(copy, folder)
            or any_fail(copy, named, "process and not slow")
        )
    finally:
        path.write_bytes(original)


def any_fail(copy: Path, tests: list[str], marked: str | None = None) -> bool:
    """Return whether tests fail in a copy, in a process that has the libraries."""
    if not tests:
        return False
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what the tests started
        code = os.waitstatus_to_exitcode(status)
        return code not in (0, pytest.ExitCode.NO_TESTS_COLLECTED)
    code = 1
    try:
        os.setsid()
        signal.alarm(SECONDS)
        os.chdir(copy)
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), 1)
            os.dup2(nothing.fileno(), 2)
        # The modules of the copy, in this process and in those that it starts.
        for name in [each for each in sys.modules if each.split(".")[0] in OWN]:
            del sys.modules[name]
        sys.path.insert(0, str(copy))
        sys.dont_write_bytecode = True
        os.environ |= {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
        code = pytest.main([*options, *(["-m", marked] if marked else []), *tests])
    finally:
        os._exit(code)


def main(
    results: Annotated[Path, typer.Argument(help="A line of JSON for each change.")],
    count: Annotated[int, typer.Option(min=1, help="Changes to make.")] = 100,
    seed: Annotated[int, typer.Option(help="Of the choice of the changes.")] = 0,
    least: Annotated[float, typer.Option(help="Share to be found.")] = 0.9,
    coverage: Annotated[Path, typer.Option(help="Which tests ran which lines.")] = Path(
        ".coverage"
    ),
) -> None:
    """Make changes, print those that no test found; exit code 1 if they are many."""
    if not coverage.is_file():
        raise SapbertError(
            "E001",
            f"Expected a file of coverage at {coverage}, but found none. Run "
            "`python -m coverage run -m pytest` first, or correct `--coverage`.",
        )
    files = [each for part in PARTS for each in sorted((ROOT / part).rglob("*.py"))]
    files = [each for each in files if SHOWN not in each.parts]
    every = [change for file in files for change in list_changes(file)]
    chosen = random.Random(seed).sample(every, count)
    covered = CoverageData(str(coverage))
    covered.read()
    lines = results.read_text("utf8").splitlines() if results.exists() else []
    known = {
        (Change(*each["change"])): each["found"] for each in map(json.loads, lines)
    }
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        copy = Path(folder) / "copy"
        names = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
        for name in filter(None, names.split("\0")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
        compileall.compile_dir(copy, quiet=2)
        for library in LIBRARIES:
            importlib.import_module(library)
        for change in tqdm([one for one in chosen if one not in known]):
            known[change] = is_found(change, copy, find_line_tests(change, covered))
            line = json.dumps({"change": change, "found": known[change]})
            with results.open("a", encoding="utf8") as file:
                file.write(f"{line}\n")
    for change in chosen:
        if known[change] is False:
            old = (ROOT / change.path).read_bytes()[change.start : change.end].decode()
            msg.text(f"{change.path}:{change.line}: {old} → {change.new}")
    judged = [known[change] for change in chosen if not isinstance(known[change], str)]
    msg.text(f"{sum(judged)} of {len(judged)} changes were found.")
    raise typer.Exit(int(sum(judged) < least * len(judged)))


if __name__ == "__main__":
    run_cli(main)
