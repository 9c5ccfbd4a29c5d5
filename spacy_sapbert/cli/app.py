"""The app of all commands: how it reports errors, and how signals end it."""

import os
import re
import signal
import sqlite3
import sys
import threading
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import typer
from typer.core import TyperGroup

from ..errors import SapbertError, find_place, refused_by_system
from ..io import writing
from ..io.system import END_SIGNALS, STREAM
from ..io.terminal import msg, printable
from ..io.version import SITE, __version__

try:
    from typer.main import get_current_context
except ImportError:  # an older typer uses click, of which the newer one has a copy
    from click import get_current_context  # type: ignore[no-redef]

# What typer ends a command with itself
WRONG_OPTION: Any = typer.BadParameter.__mro__[2]  # the base of these
ENDINGS: tuple[Any, ...] = (typer.Exit, typer.Abort, WRONG_OPTION)
FAILED = 1  # exit code after an error
# Of help: the lines of a paragraph are joined, and brackets are kept.
MARKUP: Literal["markdown"] = "markdown"
BY_SIGNAL = 128  # plus the signal: exit code, as in shells
RUST_ERROR = re.compile(r"\(os error (\d+)\)")  # of tokenizers and safetensors
# Two threads of torch that wait in a loop take each other's core beside other work.
# OpenMP reads it when torch is imported: after this, unless spaCy itself runs.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# transformers sends what libraries measure to a port of this machine, and waits for it
# at the end, if OpenTelemetry is installed, e.g. by Weights & Biases.
os.environ.setdefault("OTEL_SDK_DISABLED", "true")


class Stopped(KeyboardInterrupt):
    """A signal that ends the command like Ctrl-C; half-written files are removed."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def raise_stopped(number: int, _: Any) -> None:
    """Raise `Stopped`, unless a signal before has raised it and files are removed now.

    A terminal that is closed hangs up twice.
    """
    error = sys.exception()
    while error is not None:
        if isinstance(error, Stopped):
            return
        error = error.__context__
    raise Stopped(number)


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """Raise `Stopped` at `END_SIGNALS`, if they would end the process.

    Those that are ignored, e.g. of a terminal under nohup, are still ignored.
    """
    old: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in END_SIGNALS:
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                old[number] = signal.signal(number, raise_stopped)
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def name_error(error: BaseException) -> SapbertError:
    """Return the error with a code for any other one.

    Only the system and SQLite have messages without texts of documents.
    """
    if isinstance(error, SapbertError):
        return error
    if isinstance(error, MemoryError):
        return SapbertError(
            "E004",
            "Expected enough memory, but the system has none left. Close other "
            "programs, pass a smaller `--batch-size` or `--n-process`, or use a "
            "machine with more.",
        )
    if isinstance(error, UnicodeEncodeError) and error.encoding == "utf-8":
        return SapbertError(
            "E009",
            "Expected names of files and values on the command line in UTF-8, but "
            "one has other bytes. Rename the file, or type the value again.",
        )
    if isinstance(error, sqlite3.Error):
        return SapbertError(
            "E004",
            f"Expected a database that SQLite can read and write, but got: {error}. "
            "Make space on the disk, or copy or build the knowledge base again.",
        )
    place = "the standard output or another file"
    if not isinstance(error, OSError):
        match = RUST_ERROR.search(str(error))
        if match is None:
            traceback.print_tb(error.__traceback__)
            kind, place = type(error).__name__, find_place(error)
            return SapbertError(
                "E024",
                f"Expected the command to end by itself, but got {kind} at {place}. "
                "Its message is left out, since it may quote a document. Report the "
                "lines above to the authors of the package that has this file.",
            )
        error, place = OSError(int(match[1]), os.strerror(int(match[1]))), "a file"
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        place = "the standard output"
        with suppress(OSError, ValueError):  # or Python fails again when it exits
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno is None:  # of a library, with a text of its own
        place = "a file"
    return refused_by_system(
        path=error.filename or place, reason=error.strerror or error
    )


@contextmanager
def report_errors(code: int = FAILED) -> Iterator[None]:
    """Print an error in one line, and exit.

    The reader of a pipe may end, like `head`: typer exits then without a message.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # of rich, in a help
            raise
        msg.fail(name_error(error))  # a plugin may call `sys.exit`
        raise typer.Exit(code) from error
    except KeyboardInterrupt as error:
        number = getattr(error, "number", signal.SIGINT)
        msg.warn("Stopped before it was done.")
        raise typer.Exit(BY_SIGNAL + number) from None
    except ENDINGS:
        raise
    except Exception as error:
        msg.fail(name_error(error))
        raise typer.Exit(code) from error


def format_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """Format a warning in one line; those of this package have codes."""
    text = str(message)
    kind = "" if text.startswith("[W") else f"{category.__name__}: "
    return printable(f"⚠ {kind}{text}") + "\n"


@contextmanager
def short_warnings() -> Iterator[None]:
    """Print warnings without the line of code, and without control characters."""
    old = warnings.formatwarning
    warnings.formatwarning = format_warning
    try:
        yield
    finally:
        warnings.formatwarning = old


def name_pages(pages: str) -> str:
    """Return the end of a help, which names pages of the site: "linker formats"."""
    addresses = [f"{SITE}{page}.html" for page in pages.split()]
    return f"More: {' '.join(addresses)}"


class PanelGroup(TyperGroup):
    """Lets typer draw help in panels; spaCy switches that off for its commands.

    Attributes:
        pages: The commands in the order of work, which is that of help, and which pages
            of the site have more about each.
    """

    pages: Mapping[str, str] = {}

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "rich_markup_mode": MARKUP})

    def get_command(self, ctx: Any, name: str) -> Any:
        command = super().get_command(ctx, name)
        if command is not None:
            command.rich_markup_mode = MARKUP  # type: ignore[attr-defined]
        if command is not None and name in self.pages:
            command.epilog = name_pages(self.pages[name])
        return command

    def list_commands(self, ctx: Any) -> list[str]:
        known = super().list_commands(ctx)
        return sorted(known, key=[*self.pages, *known].index)


class ErrorReportingGroup(PanelGroup):
    """Prints errors in one line and exits with 1; after a signal with 128 + signal."""

    def invoke(self, ctx: Any) -> Any:
        with stop_on_signals(), short_warnings(), report_errors():
            try:
                result = super().invoke(ctx)
            except typer.Exit:
                sys.stdout.flush()
                raise
            except typer.BadParameter as error:
                if not error.message:  # of one that is missing
                    error.message = getattr(error.param, "help", None) or ""
                raise
            sys.stdout.flush()
            return result


class MainGroup(ErrorReportingGroup):
    """The commands of this package."""

    pages = {
        "concepts": "vocabularies",
        "fetch-encoder": "knowledge_base",
        "kb": "knowledge_base",
        "assemble": "linker deployment",
        "link": "commands formats linker",
        "map": "mapping linker",
        "verify": "verify",
        "explain": "commands linker",
        "serve": "service page protocols linker",
        "mcp": "agents",
        "convert": "corpora",
        "teach": "teaching corpora",
        "stop-names": "linker corpora",
        "evaluate": "evaluation corpora",
        "calibrate": "evaluation corpora",
        "regress": "evaluation",
        "update": "verify",
        "info": "install",
    }


def check_outputs(*paths: Path | None, force: bool) -> None:
    """Check the files that this command will write; see `writing.check_outputs`."""
    keep_inputs(*paths)
    writing.check_outputs(*paths, force=force)


def keep_inputs(*outputs: Path | None) -> None:
    """Raise an error if a path that this command reads would be lost by an output."""
    values = get_current_context().params.values()
    given = chain.from_iterable(v if isinstance(v, list) else [v] for v in values)
    # the outputs are among them, each once
    paths = Counter(p for p in given if isinstance(p, Path) and p != STREAM)
    inputs = paths - Counter(filter(None, outputs))
    for output in filter(None, outputs):
        place = writing.real_place(output)
        for path in inputs:
            if writing.real_place(path).is_relative_to(place):
                raise SapbertError(
                    "E003",
                    f"Expected to write {output}, but {path}, which is read, would be "
                    "lost. Name another place.",
                )


def make_app(**options: Any) -> typer.Typer:
    """Return an app for commands.

    A traceback of typer may show texts of documents, so it is switched off.
    """
    options.setdefault("cls", PanelGroup)
    return typer.Typer(
        rich_markup_mode=MARKUP, pretty_exceptions_enable=False, **options
    )


def print_version(shown: bool) -> None:
    """Print the version of the package, and exit."""
    if shown:
        typer.echo(f"spacy-sapbert {__version__}")
        raise typer.Exit


app = make_app(
    name="sapbert",
    cls=MainGroup,
    help="Vocabularies, knowledge bases and linking with a self-aligned encoder.",
    no_args_is_help=True,
)


@app.callback()
def main(
    version: bool = typer.Option(
        False,
        "--version",
        callback=print_version,
        is_eager=True,
        help="Print the version, and exit.",
    ),
) -> None:
    """Vocabularies, knowledge bases and linking with a self-aligned encoder."""
