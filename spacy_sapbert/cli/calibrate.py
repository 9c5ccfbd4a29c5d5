"""`spacy sapbert calibrate`: the NIL threshold of a knowledge base."""

from pathlib import Path

import typer

from ..errors import SapbertError
from ..evaluation.gold_mentions import read_aliases
from ..io.terminal import format_json, msg
from ..kb.folder.publication import check_writable, read_only_kb
from ..kb.folder.records import Calibration
from ..kb.folder.versions import find_kb
from ..kb.knowledge_base import load_kb
from ..kb.settings import has_learned_order
from ..linking.probability import score_probability
from .app import app, check_outputs
from .evaluate import MOST, print_links
from .options import OnError, Skipped

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


@app.command("calibrate")
def calibrate(
    mentions: list[Path] = typer.Argument(
        ...,
        metavar="MENTIONS...",
        help="Annotated files or folders of any format, also tables: docs/corpora.md.",
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
    limit: int = typer.Option(
        0, min=0, max=MOST, help="First mentions of each file; 0 = all."
    ),
    on_error: OnError = "fail",
    figure: Path | None = typer.Option(None, help="Figure to write, .png or .svg."),
    check: bool = typer.Option(
        False, "--check", help="Measure the present threshold; no change."
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Do not change the knowledge base."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    force: bool = typer.Option(False, "--force", help="Replace an existing figure."),
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
    check_outputs(figure, force=force)
    keep = dry_run or check
    folder = find_kb(kb)
    if not keep:
        if kb is None or not Path(kb).is_dir():  # an installed one
            raise read_only_kb(path=folder)
        check_writable(folder)
    if figure is not None:
        from ..evaluation.figures import check_figure, draw_calibration, save_figure

        check_figure(figure)
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
    if figure is not None:
        save_figure(draw_calibration(top, calibration), figure)
    if not keep:
        from ..kb.settings import write_calibration

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
            print_links(evaluation.measure_beside(top, written))
        if figure is not None:
            msg.good(f"Wrote {figure}")
        if not keep:
            msg.good(f"Wrote the threshold into {folder}")
        elif dry_run:
            msg.info(f"{folder} was not changed (`--dry-run`)")
