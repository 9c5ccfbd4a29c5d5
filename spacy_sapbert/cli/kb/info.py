"""`spacy sapbert kb info`, `verify` and `package`."""

from pathlib import Path

import typer

from ...io.terminal import format_json, msg
from ...kb.folder.versions import find_kb, read_version
from ...kb.knowledge_base import open_version
from ..options import AsJson, Force, InstalledKb, KbFolder, Quiet, split_values
from .app import kb_app
from .description import describe_manifest


@kb_app.command("info")
def info(
    kb: InstalledKb = None,
    as_json: AsJson = False,
) -> None:
    """kb/ -> table

    Example: spacy sapbert kb info models/kb
    """
    folder = find_kb(kb)
    version = read_version(folder)
    manifest = version.manifest
    if as_json:
        typer.echo(format_json(manifest.model_dump()))
    else:
        place = [("Folder", str(folder)), ("Version", version.name)]
        msg.table([*place, *describe_manifest(manifest)])


@kb_app.command("verify")
def verify(
    kb: InstalledKb = None,
    digest: str | None = typer.Option(
        None, help="The digest that it must have; `kb info` prints it."
    ),
    quiet: Quiet = False,
) -> None:
    """kb/ -> exit code 0 if it is whole and names are found

    Example: spacy sapbert kb verify models/kb
    """
    from ...kb.probe import probe_kb

    opened = open_version(read_version(find_kb(kb)), digest=digest, whole=True)
    probed = probe_kb(opened)
    if not quiet:
        msg.good(
            f"{len(opened.manifest.files) + 1} files are valid; the index finds "
            f"{probed.rows:.1%} of its rows, and {probed.names:.1%} of the names find "
            "their concept"
        )


@kb_app.command("package")
def package(
    kb: KbFolder,
    output: Path = typer.Argument(..., help="Folder for the wheel."),
    name: str = typer.Option(..., "--name", "-n", help='Name for `kb = "…"`.'),
    version: str = typer.Option("0.1.0", help="Of the package."),
    may_distribute: str | None = typer.Option(
        None,
        help="Sources with a limiting licence that you have the right to distribute: "
        "MTH,SNOMEDCT_US.",
    ),
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """kb/ -> wheel

    Example: spacy sapbert kb package models/kb packages --name umls_2024aa
    """
    from ...kb.knowledge_base import load_kb
    from ...kb.packages import list_unknown, package_kb

    wheel = package_kb(
        kb,
        output,
        name=name,
        version=version,
        may_distribute=split_values(may_distribute) or (),
        force=force,
    )
    if not quiet:
        if unknown := list_unknown(load_kb(kb)):
            sources = ", ".join(unknown)
            msg.warn(f"The licence of these sources of names is unknown: {sources}")
        msg.good(f"Wrote {wheel}", f"pip install {wheel}")
