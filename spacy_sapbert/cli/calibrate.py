"""`spacy sapbert calibrate`: the NIL threshold of a knowledge base."""

from pathlib import Path
from typing import Any

import typer

from ..errors import SapbertError
from ..io.terminal import format_json, msg
from .app import app
from .options import (
    Aliases,
    AsJson,
    BarsJoinParts,
    KbName,
    Limit,
    Mentions,
    OnError,
    Quiet,
    Skipped,
)

USED = 1  # number of the threshold in force, see `measure_thresholds`
# Rows of the table: the key and its words.
ROWS = {
    "mentions": "Mentions",
    "documents": "Documents",
    "nil": "True NILs",
    "answered": "With an answer",
    "right": "With the right answer",
    "linked": "Linked at the threshold",
    "by": "Threshold of the",
    "threshold": "Threshold",
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "accuracy": "Accuracy with NIL",
    "nil_precision": "Precision of NIL",
    "nil_recall": "Recall of NIL",
    "calibration_error": "Expected calibration error",
}


def format_number(number: float | str | None) -> str:
    """Format a count or a measure."""
    if number is None:
        return "unknown"
    if isinstance(number, str):
        return number
    return f"{number:,}" if isinstance(number, int) else f"{number:.4f}"


def print_links(figures: list[dict[str, Any]]) -> None:
    """Print what the threshold does, and some beside it."""
    names = ("precision", "recall", "nil_precision", "nil_recall")
    rows = [
        (
            f"{each['threshold']:g}{' (used)' * (number == USED)}",
            *("–" if each[n] is None else f"{each[n]:.4f}" for n in names),
        )
        for number, each in enumerate(figures)
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
    bars_join_parts: BarsJoinParts = False,
    limit: Limit = 0,
    on_error: OnError = "fail",
    check: bool = typer.Option(
        False, "--check", help="Measure the present threshold; no change."
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Do not change the knowledge base."
    ),
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """kb/ + mentions.tsv … -> threshold and probability

    Mentions without an id, or with ids that are not in the knowledge base, are true
    NILs.

    Example: spacy sapbert calibrate models/kb corpus/train.tsv --criterion
    precision=0.95 --dry-run

    Example: spacy sapbert calibrate models/kb corpus/dev.tsv --check
    """
    from ..evaluation import calibration as evaluation
    from ..evaluation.gold_mentions import read_aliases
    from ..kb.adjust import has_learned_order, write_calibration
    from ..kb.folder.publication import check_writable, read_only_kb
    from ..kb.folder.records import Calibration
    from ..kb.folder.versions import find_kb
    from ..kb.knowledge_base import load_kb
    from ..linking.probability import score_probability

    evaluation.parse_criterion(criterion)
    keep = dry_run or check
    folder = find_kb(kb)
    if not keep:
        if not Path(kb).is_dir():  # an installed one
            raise read_only_kb(path=folder)
        check_writable(folder)
    skipped = Skipped(on_error)
    files = evaluation.read_gold_files(
        mentions, bars_join_parts=bars_join_parts, limit=limit, on_error=skipped
    )
    opened = load_kb(folder)
    manifest, ranker = opened.manifest, opened.ranker
    if manifest.has_ranker and not check:
        raise has_learned_order(path=folder)
    known: Calibration | float | None = None
    ordered = ranker is not None
    if check:
        known = manifest.calibration or manifest.threshold
        if ranker is not None and (manifest.has_ranker or known is None):
            known = ranker.threshold
        elif manifest.threshold is not None:  # a cosine, which comes before the order
            ordered = False
    if check and known is None:
        raise SapbertError(
            "E582",
            f"Expected a knowledge base with a threshold to check, but {folder} has "
            "none. Calibrate it with `spacy sapbert calibrate` and without `--check` "
            "first.",
        )
    top = evaluation.score_top1(
        opened,
        files,
        read_aliases(aliases) if aliases else {},
        ordered=ordered,
        progress=not quiet,
    )
    calibration = evaluation.calibrate(top, files, criterion, known, ordered=ordered)
    if not keep:
        write_calibration(opened.version, Calibration.model_validate(calibration))
    if as_json:
        typer.echo(format_json(calibration))
    elif not quiet:
        header = (f"By {calibration['criterion']}", "")
        rows = [(text, format_number(calibration[key])) for key, text in ROWS.items()]
        written = Calibration.model_validate(calibration)
        if written.by == "cosine":
            chance = score_probability(written.logistic, written.threshold)
            rows.append(("Probability at the threshold", f"{chance:.4f}"))
        msg.table(rows, header=header, divider=True, aligns=("l", "r"))
        skipped.report()
        if written.by == "probability":
            beside = (written.logistic, written.threshold)
            print_links(evaluation.measure_beside(top, *beside))
        if not keep:
            msg.good(f"Wrote the threshold into {folder}")
        elif dry_run:
            msg.info(f"{folder} was not changed (`--dry-run`)")
