"""`spacy sapbert info`: what a report of a problem needs."""

import os
import platform
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

import typer

from ..io.plugins import TORCH, is_installed
from ..io.terminal import format_json, msg
from ..io.version import __version__
from ..kb.folder.versions import find_kb, read_version
from .app import app
from .kb.description import describe_manifest
from .options import AsJson

# Rows that name files and vocabularies of the user
PRIVATE = ("Taught by", "Calibrated by", "Sources", "Names from")
DISTRIBUTION = "spacy-sapbert"


@app.command("info")
def info(
    kb: str | None = typer.Argument(
        None, metavar="KB", help="A knowledge base to describe too."
    ),
    as_json: AsJson = False,
) -> None:
    """versions, platform, kb/ -> table for a report of a problem

    It has no text of documents and no name of a file, except that of the encoder.

    Example: spacy sapbert info models/kb
    """
    rows = [*describe_machine(), *list_versions()]
    if kb is not None:
        opened = read_version(find_kb(kb))
        described = describe_manifest(opened.manifest)
        rows.append(("Version of the knowledge base", opened.name))
        rows += [row for row in described if row[0] not in PRIVATE]
    if as_json:
        typer.echo(format_json(dict(rows)))
    else:
        msg.table(rows)


def describe_machine() -> Iterator[tuple[str, str]]:
    """Yield rows on the installation, Python, system and processors."""
    missing = [name for name in TORCH if not is_installed(name)]
    yield "spacy-sapbert", __version__
    light = f"light, without {', '.join(missing)}: does not train or build"
    yield "Installation", light if missing else "full"
    yield "Python", platform.python_version()
    yield "Platform", platform.platform()
    yield "Processors", str(os.cpu_count())
    if not missing:
        import torch

        yield "Threads of torch", str(torch.get_num_threads())
        cuda = torch.cuda.is_available()
        yield "GPU", torch.cuda.get_device_name() if cuda else "none"


def list_versions() -> Iterator[tuple[str, str]]:
    """Yield the versions of the installed packages that this one can use."""
    names = {
        re.split(r"[^\w.-]", requirement)[0]
        for requirement in requires(DISTRIBUTION) or ()
        if not re.search(r"extra == .test.", requirement)
    }
    for name in sorted(names - {DISTRIBUTION}):
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue
