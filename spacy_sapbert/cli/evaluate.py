"""`spacy sapbert evaluate`: how often a knowledge base finds the right concept."""

import json
from pathlib import Path
from typing import Any, Literal

import typer

from ..io.progress import format_count
from ..io.terminal import msg
from ..io.writing import write_atomically, write_json
from .app import app, check_outputs
from .calibrate import print_links
from .options import (
    ANNOTATED_FORMAT,
    OUTPUT,
    Aliases,
    BarsJoinParts,
    Delimiter,
    Device,
    DropPrefix,
    Force,
    KbName,
    LeastConfidence,
    LeastCosine,
    Limit,
    MentionColumns,
    Mentions,
    OnError,
    Prefix,
    Quiet,
    Skipped,
    TableEncoding,
    Threshold,
    gather_reading,
    open_kb,
)

TIE = "expected"  # how ties are counted in what is printed


def print_file(result: dict[str, Any]) -> None:
    """Print how often the first answer, and one of the first k, is right."""
    from ..evaluation.accuracy import wilson_interval

    judged = result["judged"]
    text = f"{result['file']}: {format_count(judged, 'mention')}"
    if others := result["mentions"] - judged:
        text += f" ({others:,} without an id, or repeated, are left out)"
    if result["coverage"] < 1:
        text += f"; the knowledge base has the concepts of {result['coverage']:.1%}"
    rows = []
    for name, ties in result["accuracy"]["all"]["concepts"].items():
        k = int(name.removeprefix("acc@"))
        low, high = wilson_interval(ties[TIE], judged)
        title = "first answer is right" if k == 1 else f"one of the first {k} is right"
        rows.append((title, f"{ties[TIE]:.1%}", f"({low:.1%} to {high:.1%})"))
    msg.text(text)
    msg.table(rows, aligns=("l", "r", "l"))


def print_comparison(comparison: dict[str, Any]) -> None:
    """Print the differences from other predictions, and how certain they are."""
    rows = []
    for result in comparison["results"]:
        scores = result["ties"][TIE]
        low, high = scores["interval"]
        rows.append(
            (
                result["file"],
                f"{scores['first']:.1%}",
                f"{scores['second']:.1%}",
                f"{scores['difference']:+.1%} ({low:+.1%} to {high:+.1%})",
                f"{scores['p']:.2g}",
            )
        )
    header = ("First answer is right", comparison["with"]["file"], "This", "More", "p")
    msg.table(rows, header=header, divider=True, aligns=["l", *["r"] * 4])


def print_causes(causes: dict[str, int]) -> None:
    """Print the number of errors of each cause."""
    total = sum(causes.values())
    rows = [(c, f"{n:,}", f"{n / total:.1%}") for c, n in causes.items() if n]
    msg.text(format_count(total, "wrong answer"))
    msg.table(rows, aligns=("l", "r", "r"))


@app.command("evaluate")
def evaluate(
    kb: KbName,
    mentions: Mentions,
    k: int = typer.Option(
        5, "-k", "--k", min=1, help="Answers that count, besides the first."
    ),
    format: str | None = ANNOTATED_FORMAT,
    columns: MentionColumns = None,
    delimiter: Delimiter = None,
    encoding: TableEncoding = None,
    prefix: Prefix = "",
    drop_prefix: DropPrefix = "",
    composite: Literal["parts", "released"] = typer.Option(
        "parts", help="Of A+B: parts = both must be found, released = any."
    ),
    bars_join_parts: BarsJoinParts = False,
    least_confidence: LeastConfidence = None,
    distinct: bool = typer.Option(
        False, "--distinct", help="Count each pair of mention and ids once."
    ),
    aliases: Aliases = None,
    seen: list[Path] = typer.Option(
        [], help="Training mentions, for the groups seen and unseen; may be repeated."
    ),
    limit: Limit = 0,
    recall_queries: int = typer.Option(
        1000, min=0, help="Mentions to compare the index with exact search."
    ),
    threshold: Threshold = None,
    least_cosine: LeastCosine = None,
    compare: Path | None = typer.Option(
        None, help="predictions.jsonl of another linker to compare with."
    ),
    on_error: OnError = "fail",
    device: Device = "auto",
    output: Path | None = typer.Option(
        None,
        "--output",
        "-o",
        help="JSON to write: groups, levels, ties, thresholds, recall of the index.",
        **OUTPUT,
    ),
    errors: Path | None = typer.Option(
        None,
        help="Table of wrong answers with their causes and texts to write, e.g. .csv "
        "or .xlsx; .jsonl has all their candidates.",
        **OUTPUT,
    ),
    predictions: Path | None = typer.Option(
        None,
        help="JSON lines to write: file, line, cuis, scores; never the text.",
        **OUTPUT,
    ),
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """kb/ + mentions.tsv … -> accuracy, metrics.json

    It prints how many answers are right, by concepts, with 95% intervals; a tie
    counts by its chance.

    Example: spacy sapbert evaluate models/kb assets/sample/mentions.tsv -o
    metrics.json

    Example: spacy sapbert evaluate models/kb corpus/dev.tsv.gz --aliases aliases.tsv
    --seen corpus/train.tsv.gz --predictions trained.jsonl --compare base.jsonl

    Example: spacy sapbert evaluate models/kb corpus/dev.tsv.gz --errors errors.csv
    """
    from ..evaluation.compare import compare_with_file
    from ..evaluation.error_report import count_causes, find_errors, write_errors
    from ..evaluation.evaluate import evaluate_kb
    from ..evaluation.gold_mentions import read_aliases, read_pairs
    from ..evaluation.rankers import kb_lookup
    from ..evaluation.score_mentions import EvaluationSettings
    from ..io.tables.files import find_kind
    from .unknown_ids import UnknownIds

    check_outputs(output, predictions, errors, force=force)
    if errors:
        find_kind(errors)
    skipped = Skipped(on_error)
    reading = gather_reading(
        format=format,
        columns=columns,
        delimiter=delimiter,
        encoding=encoding,
        prefix=prefix,
        drop_prefix=drop_prefix,
        bars_join_parts=bars_join_parts,
        least_confidence=least_confidence,
    )
    settings = EvaluationSettings(
        ks=(1, k) if k > 1 else (1,),
        composite=composite,
        distinct=distinct,
        limit=limit,
        reading=reading,
    )
    known = read_aliases(aliases) if aliases else {}
    opened = open_kb(kb, device)
    evaluation = evaluate_kb(
        opened,
        mentions,
        settings,
        aliases=known,
        seen=read_pairs(seen, known, **reading) if seen else None,
        recall_queries=recall_queries,
        threshold=threshold,
        least_cosine=least_cosine,
        progress=not quiet,
        on_error=skipped,
    )
    results = evaluation.results
    if compare:
        results["comparison"] = compare_with_file(
            compare,
            evaluation.golds,
            evaluation.answers,
            kb_lookup(opened),
            known,
            settings,
        )
    if errors:
        wrong = find_errors(
            opened, evaluation.golds, evaluation.answers, known, settings
        )
        results["causes"] = count_causes(wrong)
        write_errors(errors, wrong)
    if predictions:
        with write_atomically(predictions) as file:
            for row in evaluation.predictions:
                file.write(json.dumps(row).encode("utf8") + b"\n")
    if output:
        write_json(output, results)
    if quiet:
        return
    for result in results["files"]:
        print_file(result)
    skipped.report()
    unknown = UnknownIds(opened, known)
    for name, gold in evaluation.golds:
        unknown.add(gold, name)
    unknown.report()
    print_links(results["links"], results["settings"]["threshold"])
    if compare:
        print_comparison(results["comparison"])
    if errors:
        print_causes(results["causes"])
    if not output:
        msg.text("All figures: `-o metrics.json`")
    for written in filter(None, (output, predictions, errors)):
        msg.good(f"Wrote {written}")
