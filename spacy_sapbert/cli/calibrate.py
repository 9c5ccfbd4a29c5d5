"""`spacy sapbert calibrate`: the NIL threshold of a knowledge base, with evidence."""

import json
import sys
from pathlib import Path
from typing import Any

import typer
from wasabi import msg

from ..errors import Errors, SapbertError
from ..evaluation.gold_mentions import read_aliases
from ..evaluation.thresholds import MEASURES, parse_criterion
from ..kb.installed import find_kb
from ..kb.knowledge_base import load_kb
from ..kb.manifest import check_writable, write_calibration
from ..linking.probability import score_probability
from .app import app


def find_own_kb(name: str | None, *, dry_run: bool) -> Path:
    """Find the folder of a knowledge base that may be changed.

    name (str | None): A folder, or the name of an installed knowledge base; None
        for the only one that is installed.
    dry_run (bool): It will not be changed.
    RETURNS (Path): The folder.
    RAISES (SapbertError): If there is none, or it is installed or read-only.
    """
    folder = find_kb(name)
    if not dry_run:
        if name is None or not Path(name).is_dir():
            raise SapbertError(Errors.E586.format(path=folder))
        check_writable(folder)
    return folder


def list_table(calibration: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Lay a calibration out for people.

    calibration (dict[str, Any]): From `calibrate_kb` or `check_kb`.
    RETURNS (list[tuple[str, str, str]]): What, its value, and its interval.
    """

    def interval(name: str, digits: int) -> str:
        bounds = (calibration["interval"] or {}).get(name)
        if bounds is None:
            return ""
        ends = ["none" if end is None else f"{end:.{digits}f}" for end in bounds]
        return " to ".join(ends)

    answered, threshold = calibration["answered"], calibration["threshold"]
    counts = (
        ("Mentions", calibration["mentions"]),
        ("Documents", calibration["documents"]),
        ("True NILs", calibration["nil"]),
        ("With an answer", answered),
        ("With the right answer", calibration["right"]),
        ("Linked at the threshold", calibration["linked"]),
    )
    rows = [(what, f"{count:,}", "") for what, count in counts]
    rows.append(("Threshold", f"{threshold:.6f}", interval("threshold", 6)))
    for name in MEASURES:
        what = {"f1": "F1", "accuracy": "Accuracy with NIL"}.get(name, name.title())
        value = calibration[name]
        shown = "unknown" if value is None else f"{value:.4f}"
        rows.append((what, shown, interval(name, 4)))
    chance = score_probability(calibration, threshold)
    rows.append(("Probability at the threshold", f"{chance:.4f}", ""))
    error = calibration["calibration_error"]
    says = "unknown" if error is None else f"{error:.4f}"
    rows.append(("Expected calibration error", says, ""))
    return rows


def draw_figure(calibration: dict[str, Any], path: Path) -> None:
    """Draw a calibration into a file; see `draw_calibration`."""
    from ..evaluation.calibration_figure import draw_calibration
    from ..evaluation.canvas import close_figure, save_figure

    figure = draw_calibration(calibration)
    save_figure(figure, path)
    close_figure(figure)


@app.command("calibrate")
def calibrate(
    mentions: list[Path] = typer.Argument(
        ..., metavar="MENTIONS...", help="mentions.tsv, or mention||id; also .gz."
    ),
    kb: str | None = typer.Option(
        None, help="Folder of a knowledge base, which gets the threshold."
    ),
    criterion: str = typer.Option(
        "f1", help="f1, accuracy (with NIL), or the lowest with precision=0.95."
    ),
    aliases: Path | None = typer.Option(
        None, help="Lines: an id, a tab, the id that it is an alias of."
    ),
    bars_join_parts: bool = typer.Option(
        False, "--bars-join-parts", help="A|B means A+B, as in NCBI disease and BC5CDR."
    ),
    limit: int = typer.Option(0, min=0, help="First mentions of each file; 0 = all."),
    figure: Path | None = typer.Option(
        None, help="Picture to write, .png or .svg; one that is there is replaced."
    ),
    check: bool = typer.Option(
        False, "--check", help="Try what the kb has on other mentions; changes nothing."
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Leave the knowledge base as it is."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """mentions.tsv … + kb/ -> threshold and its evidence in kb/meta.json

    Mentions without an id, or with ids that the knowledge base has not, are true NILs.

    Example: spacy sapbert calibrate corpus/train.tsv --kb models/kb --figure
    calibration.png

    Example: spacy sapbert calibrate corpus/train.tsv --kb models/kb --criterion
    precision=0.95 --dry-run

    Example: spacy sapbert calibrate corpus/dev.tsv --kb models/kb --check
    """
    from ..evaluation.calibrate_kb import calibrate_kb, check_kb, read_files

    chosen_by = parse_criterion(criterion)
    keep = dry_run or check
    folder = find_own_kb(kb, dry_run=keep)
    if figure is not None:
        from ..evaluation.canvas import check_figure

        check_figure(figure)
    files = read_files(mentions, bars_join_parts=bars_join_parts, limit=limit)
    opened = load_kb(folder)
    options: dict[str, Any] = {
        "aliases": read_aliases(aliases) if aliases else {},
        "settings": {
            "aliases": aliases.name if aliases else None,
            "bars_join_parts": bars_join_parts,
            "limit": limit,
        },
        "progress": sys.stderr.isatty() and not quiet,
    }
    if check:
        calibration = check_kb(opened, files, **options)
    else:
        calibration = calibrate_kb(opened, files, chosen_by, **options)
    if figure is not None:
        draw_figure(calibration, figure)
    if not keep:
        write_calibration(folder, calibration)
    if as_json:
        typer.echo(json.dumps(calibration, indent=2, ensure_ascii=False))
    elif not quiet:
        interval = calibration["interval"]
        level = f"{interval['confidence']:.0%} interval" if interval else ""
        header = (f"By {calibration['criterion']}", "", level)
        rows = list_table(calibration)
        msg.table(rows, header=header, divider=True, aligns=("l", "r", "r"))
        if figure is not None:
            msg.good(f"Wrote {figure}")
        if not keep:
            msg.good(f"Wrote the threshold into {folder}")
        elif dry_run:
            msg.info(f"{folder} is as it was (`--dry-run`)")
