"""`spacy sapbert kb versions`, `use` and `gc`."""

import typer

from ...io.terminal import format_json, msg
from ...kb.folder.publication import go_back, remove_versions
from ...kb.folder.versions import find_kb, list_history
from ..options import AsJson, InstalledKb, KbFolder, Quiet
from .app import kb_app


@kb_app.command("versions")
def versions(
    kb: InstalledKb = None,
    as_json: AsJson = False,
) -> None:
    """kb/ -> table of its versions, with dates and what each has

    Each build, edit and teaching publishes a version, and never changes an older one.
    `*` marks the version that is used; "Changed", "Removed" and "Taught" count what was
    edited and learned since it was built, "Right" are the first answers after teaching.

    Example: spacy sapbert kb versions models/kb
    """
    entries = list_history(find_kb(kb))
    if as_json:
        typer.echo(
            format_json([{**e._asdict(), "date": e.date.isoformat()} for e in entries])
        )
        return
    rows = [
        (
            f"{entry.name} *" if entry.used else entry.name,
            entry.date.strftime("%Y-%m-%d %H:%M"),
            f"{entry.size / 1e6:,.1f} MB",
            *(f"{n:,}" for n in (entry.concepts, entry.names)),
            *(f"{n:,}" for n in (entry.changed, entry.removed, entry.taught)),
            "–" if entry.right is None else f"{entry.right:.3f}",
            f"{entry.threshold:.3f}",
        )
        for entry in entries
    ]
    header = (
        *("Version", "Written", "Own files", "Concepts built", "Names built"),
        *("Changed", "Removed", "Taught", "Right", "Threshold"),
    )
    msg.table(rows, header=header, divider=True, aligns=("l", "l", *["r"] * 8))


@kb_app.command("use")
def use(
    kb: KbFolder,
    version: str = typer.Argument(..., help="A version of `kb versions`, e.g. v2."),
    quiet: Quiet = False,
) -> None:
    """kb/ -> kb/ that uses another of its versions

    It takes back an edit, a teaching or a build. All versions stay, so that the newest
    can be used again.

    Example: spacy sapbert kb use models/kb v2
    """
    version_now = go_back(kb, version)
    if not quiet:
        msg.good(f"{kb} uses {version_now.name}, digest {version_now.manifest.digest}")


@kb_app.command("gc")
def collect(
    kb: KbFolder,
    quiet: Quiet = False,
) -> None:
    """kb/ -> kb/ without old versions

    The version that is used, the one before it and all newer ones stay, with the files
    of older ones that they use. Processes that use a version that is removed may fail:
    let them reload first.

    Example: spacy sapbert kb gc models/kb
    """
    removed = remove_versions(kb)
    if not quiet:
        msg.good(f"Removed {', '.join(removed) or 'nothing'} from {kb}")
