"""`spacy sapbert calibrate`: probabilities and threshold of a knowledge base."""

from pathlib import Path
from typing import Any

import typer

from ..io.terminal import format_json, msg
from .app import app
from .options import (
    ANNOTATED_FORMAT,
    Aliases,
    AsJson,
    BarsJoinParts,
    Delimiter,
    Device,
    DropPrefix,
    KbName,
    LeastConfidence,
    Limit,
    MentionColumns,
    Mentions,
    OnError,
    Prefix,
    Quiet,
    Skipped,
    TableEncoding,
    gather_reading,
    open_kb,
)

# Rows of the table: the key and its words.
ROWS = {
    "mentions": "Mentions",
    "documents": "Documents",
    "nil": "True NILs",
    "answered": "With an answer",
    "right": "With the right answer",
    "linked": "Linked at the threshold",
    "threshold": "Threshold",
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "accuracy": "Accuracy with NIL",
    "nil_precision": "Precision of NIL",
    "nil_recall": "Recall of NIL",
    "calibration_error": "Expected calibration error",
}


def format_number(number: float | None) -> str:
    """Format a count or a measure."""
    if number is None:
        return "unknown"
    return f"{number:,}" if isinstance(number, int) else f"{number:.4f}"


def print_links(figures: list[dict[str, Any]], used: float) -> None:
    """Print what the threshold does that is used, and what others do."""
    names = ("precision", "recall", "nil_precision", "nil_recall")
    rows = [
        (
            f"{each['threshold']:g}{' (used)' * (each['threshold'] == used)}",
            *("–" if each[n] is None else f"{each[n]:.4f}" for n in names),
        )
        for each in figures
    ]
    msg.divider("Links at thresholds")
    header = ("Probability", "Precision", "Recall", "NIL precision", "NIL recall")
    msg.table(rows, header=header, divider=True, aligns=["l", *["r"] * 4])


@app.command("calibrate")
def calibrate(
    kb: KbName,
    mentions: Mentions,
    criterion: str = typer.Option(
        "f1", help="Best f1 or accuracy (with NIL), or the lowest with precision=0.95."
    ),
    aliases: Aliases = None,
    format: str | None = ANNOTATED_FORMAT,
    columns: MentionColumns = None,
    delimiter: Delimiter = None,
    encoding: TableEncoding = None,
    prefix: Prefix = "",
    drop_prefix: DropPrefix = "",
    bars_join_parts: BarsJoinParts = False,
    least_confidence: LeastConfidence = None,
    limit: Limit = 0,
    on_error: OnError = "fail",
    device: Device = "auto",
    check: bool = typer.Option(
        False, "--check", help="Measure threshold and probabilities; no change."
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Do not change the knowledge base."
    ),
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """kb/ + mentions.tsv … -> kb/ with better probabilities, and a threshold

    Mentions without an id, or with ids that are not in the knowledge base, are true
    NILs.

    Example: spacy sapbert calibrate models/kb corpus/train.tsv --criterion
    precision=0.95 --dry-run

    Example: spacy sapbert calibrate models/kb corpus/dev.tsv --check
    """
    from ..evaluation import calibration as evaluation
    from ..evaluation.gold_mentions import read_aliases
    from ..kb.adjust import write_calibration
    from ..kb.folder.publication import check_writable, read_only_kb
    from ..kb.folder.records import Calibration
    from ..kb.folder.versions import find_kb

    evaluation.parse_criterion(criterion)
    keep = dry_run or check
    folder = find_kb(kb)
    if not keep:
        if not Path(kb).is_dir():  # an installed one
            raise read_only_kb(path=folder)
        check_writable(folder)
    skipped = Skipped(on_error)
    files = evaluation.read_gold_files(
        mentions,
        limit=limit,
        on_error=skipped,
        **gather_reading(
            format=format,
            columns=columns,
            delimiter=delimiter,
            encoding=encoding,
            prefix=prefix,
            drop_prefix=drop_prefix,
            bars_join_parts=bars_join_parts,
            least_confidence=least_confidence,
        ),
    )
    opened = open_kb(folder, device)
    manifest = opened.manifest
    if manifest.taught is not None and not (quiet or as_json):
        msg.warn(
            f"{folder} was taught. Name other mentions than those that it learned "
            "from: of these it knows more than of others."
        )
    top = evaluation.score_top1(
        opened,
        files,
        read_aliases(aliases) if aliases else {},
        progress=not quiet,
    )
    if check:
        title = "Threshold in force"
        found = evaluation.measure(top, files, manifest.threshold)
    else:
        title = f"By {criterion}"
        known = manifest.calibration
        found = evaluation.calibrate(top, files, criterion, known)
    if not keep:
        write_calibration(opened.version, Calibration.model_validate(found))
    if as_json:
        typer.echo(format_json(found))
    elif not quiet:
        rows = [(text, format_number(found[key])) for key, text in ROWS.items()]
        msg.table(rows, header=(title, ""), divider=True, aligns=("l", "r"))
        skipped.report()
        print_links(found["thresholds"], found["threshold"])
        if not keep:
            msg.good(f"Wrote probabilities and threshold into {folder}")
        elif dry_run:
            msg.info(f"{folder} was not changed (`--dry-run`)")
