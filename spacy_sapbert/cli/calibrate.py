"""`spacy sapbert calibrate`: the NIL threshold of a knowledge base."""

import json
import sys
from pathlib import Path
from typing import Any

import typer
from wasabi import msg

from ..errors import Errors, SapbertError
from ..evaluation.gold_mentions import read_aliases
from ..kb.installed import find_kb
from ..kb.knowledge_base import load_kb
from ..kb.manifest import Calibration, check_writable, write_calibration
from ..linking.probability import score_probability
from .app import app


def find_own_kb(name: str | None, *, read_only: bool) -> Path:
    """Find the folder of a knowledge base.

    name (str | None): See `find_kb`.
    read_only (bool): Nothing will be written to it.
    RAISES (SapbertError): If there is none, or it must be written to and cannot.
    """
    folder = find_kb(name)
    if not read_only:
        if name is None or not Path(name).is_dir():
            raise SapbertError(Errors.E586.format(path=folder))
        check_writable(folder)
    return folder


def list_rows(calibration: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the rows of the table."""
    from ..evaluation.calibration import Logistic

    counts = {
        "Mentions": calibration["mentions"],
        "Documents": calibration["documents"],
        "True NILs": calibration["nil"],
        "With an answer": calibration["answered"],
        "With the right answer": calibration["right"],
        "Linked at the threshold": calibration["linked"],
    }
    threshold, logistic = calibration["threshold"], Logistic(**calibration["logistic"])
    numbers = {
        "Precision": calibration["precision"],
        "Recall": calibration["recall"],
        "F1": calibration["f1"],
        "Accuracy with NIL": calibration["accuracy"],
        "Probability at the threshold": score_probability(logistic, threshold),
        "Expected calibration error": calibration["calibration_error"],
    }
    return [
        *((what, f"{count:,}") for what, count in counts.items()),
        ("Threshold", f"{threshold:.6f}"),
        *((w, "unknown" if n is None else f"{n:.4f}") for w, n in numbers.items()),
    ]


@app.command("calibrate")
def calibrate(
    mentions: list[Path] = typer.Argument(
        ..., metavar="MENTIONS...", help="mentions.tsv, or mention||id; also .gz."
    ),
    kb: str | None = typer.Option(
        None, help="Folder of the knowledge base to calibrate."
    ),
    criterion: str = typer.Option(
        "f1", help="Best f1 or accuracy (with NIL), or the lowest with precision=0.95."
    ),
    aliases: Path | None = typer.Option(
        None, help="Lines: an id, a tab, the id that it is an alias of."
    ),
    bars_join_parts: bool = typer.Option(
        False, "--bars-join-parts", help="A|B means A+B, as in NCBI disease and BC5CDR."
    ),
    limit: int = typer.Option(0, min=0, help="First mentions of each file; 0 = all."),
    figure: Path | None = typer.Option(
        None, help="Figure to write, .png or .svg; an existing file is replaced."
    ),
    check: bool = typer.Option(
        False, "--check", help="Check the calibration on other mentions; no change."
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Do not change the knowledge base."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """mentions.tsv … + kb/ -> threshold and probability in kb/meta.json

    Mentions without an id, or with ids that are not in the knowledge base, are true
    NILs.

    Example: spacy sapbert calibrate corpus/train.tsv --kb models/kb --figure
    calibration.png

    Example: spacy sapbert calibrate corpus/train.tsv --kb models/kb --criterion
    precision=0.95 --dry-run

    Example: spacy sapbert calibrate corpus/dev.tsv --kb models/kb --check
    """
    from ..evaluation import calibration as evaluation

    evaluation.parse_criterion(criterion)
    keep = dry_run or check
    folder = find_own_kb(kb, read_only=keep)
    if figure is not None:
        from ..evaluation.figures import check_figure, draw_calibration, save_figure

        check_figure(figure)
    files = evaluation.read_gold_files(
        mentions, bars_join_parts=bars_join_parts, limit=limit
    )
    opened = load_kb(folder)
    known = opened.manifest.calibration if check else None
    if check and known is None:
        raise SapbertError(Errors.E587.format(path=folder))
    top = evaluation.score_top1(
        opened,
        files,
        read_aliases(aliases) if aliases else {},
        progress=sys.stderr.isatty() and not quiet,
    )
    calibration = evaluation.describe_calibration(
        evaluation.calibrate(top, criterion, known),
        known.criterion if known else criterion,
        files,
        {
            "aliases": aliases.name if aliases else None,
            "bars_join_parts": bars_join_parts,
            "limit": limit,
        },
    )
    if figure is not None:
        save_figure(draw_calibration(top, calibration), figure)
    if not keep:
        write_calibration(folder, Calibration.model_validate(calibration))
    if as_json:
        typer.echo(json.dumps(calibration, indent=2, ensure_ascii=False))
    elif not quiet:
        header = (f"By {calibration['criterion']}", "")
        rows = list_rows(calibration)
        msg.table(rows, header=header, divider=True, aligns=("l", "r"))
        if figure is not None:
            msg.good(f"Wrote {figure}")
        if not keep:
            msg.good(f"Wrote the threshold into {folder}")
        elif dry_run:
            msg.info(f"{folder} was not changed (`--dry-run`)")
