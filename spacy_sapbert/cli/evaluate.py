"""`spacy sapbert evaluate`: how often a knowledge base finds the right concept."""

import json
from pathlib import Path
from typing import Any

import typer

from ..io.terminal import msg
from ..io.writing import write_atomically, write_json
from ..kb.knowledge_base import load_kb
from .app import app, check_outputs
from .options import OnError, Skipped

MOST = 1_000_000_000  # mentions of a file
USED = 1  # number of the threshold in force; see `list_beside`


def format_accuracy(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return a header, and a row for each linker, group, level and k of one file."""
    from ..evaluation.accuracy import LEVELS, TIES

    linkers = {"": result["accuracy"], **result.get("baselines", {})}
    ks = list(result["accuracy"]["all"]["concepts"])
    table: list[tuple[str, ...]] = [("Mentions", "By", "Number", "Acc", *TIES)]
    for linker, groups in linkers.items():
        for group, accuracy in groups.items():
            name = f"{linker}, {group}" if linker else group
            for level in LEVELS:
                start = (name, level, f"{accuracy['mentions']:,}")
                for k in ks:
                    values = [accuracy[level][k][tie] for tie in TIES]
                    cells = ["–" if v is None else f"{v:.4f}" for v in values]
                    table.append((*start, k.removeprefix("acc"), *cells))
    return table


def print_file(result: dict[str, Any]) -> None:
    """Print counts and accuracies of one file."""
    header, *rows = format_accuracy(result)
    msg.divider(result["file"])
    repeated = f", {result['repeated']:,} repeated" if result["repeated"] else ""
    msg.text(
        f"{result['judged']:,} of {result['mentions']:,} mentions scored "
        f"({result['without_id']:,} without an id{repeated}); the knowledge base "
        f"covers {result['coverage']:.1%} of them."
    )
    aligns = ["l", "l"] + ["r"] * (len(header) - 2)
    msg.table(rows, header=header, divider=True, aligns=aligns)


def print_links(figures: list[dict[str, Any]]) -> None:
    """Print what the threshold does, and some beside it."""
    if not figures:
        return
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


def print_comparison(comparison: dict[str, Any]) -> None:
    """Print the differences from other predictions, and how certain they are."""
    for result in comparison["results"]:
        title = f"{result['file']}: this against {comparison['with']['file']}"
        msg.divider(title)
        rows = [
            (
                tie,
                f"{scores['first']:.4f}",
                f"{scores['second']:.4f}",
                f"{scores['difference']:+.4f}",
                f"{scores['interval'][0]:+.4f} to {scores['interval'][1]:+.4f}",
                f"{scores['only_first']:,} : {scores['only_second']:,}",
                f"{scores['p']:.2g}",
                scores["test"],
            )
            for tie, scores in result["ties"].items()
        ]
        numbers = ("Other", "This", "Difference", "95% interval", "Only one right", "p")
        header = ("Acc@1", *numbers, "Test")
        msg.table(rows, header=header, divider=True, aligns=["l", *["r"] * 6, "l"])


def print_causes(causes: dict[str, int]) -> None:
    """Print the number of errors of each cause."""
    total = sum(causes.values())
    rows = [(c, f"{n:,}", f"{n / max(1, total):.1%}") for c, n in causes.items()]
    msg.divider(f"{total:,} wrong answers")
    header = ("Cause", "Mentions", "Share")
    msg.table(rows, header=header, divider=True, aligns=("l", "r", "r"))


@app.command("evaluate")
def evaluate(
    kb: str = typer.Argument(..., help="Folder or name of a knowledge base."),
    mentions: list[Path] = typer.Argument(
        ...,
        metavar="MENTIONS...",
        help="Annotated files or folders of any format, also tables: docs/corpora.md.",
    ),
    k: int = typer.Option(
        5, "-k", "--k", min=1, help="Answers that count, besides the first."
    ),
    composite: str = typer.Option(
        "parts", help="Of A+B: parts = both must be found, released = any."
    ),
    bars_join_parts: bool = typer.Option(
        False, "--bars-join-parts", help="A|B means A+B, as in NCBI disease and BC5CDR."
    ),
    distinct: bool = typer.Option(
        False, "--distinct", help="Count each pair of mention and ids once."
    ),
    aliases: Path | None = typer.Option(
        None, help="Lines: an id, a tab, the id that it is an alias of."
    ),
    seen: list[Path] = typer.Option(
        [], help="Training mentions, for the groups seen and unseen; may be repeated."
    ),
    back_off: list[Path] = typer.Option(
        [], help="Training mentions to look up first; may be repeated."
    ),
    limit: int = typer.Option(
        0, min=0, max=MOST, help="First mentions of each file; 0 = all."
    ),
    recall_queries: int = typer.Option(
        1000, min=0, help="Mentions to compare the index with exact search."
    ),
    baselines: bool = typer.Option(
        False, "--baselines", help="Score exact look-up and TF-IDF on the names too."
    ),
    compare: Path | None = typer.Option(
        None, help="predictions.jsonl of another linker to compare with."
    ),
    errors: list[Path] = typer.Option(
        [], help="Wrong answers to write, .jsonl or .html; may be repeated."
    ),
    predictions: Path | None = typer.Option(
        None, help="JSON lines to write: file, line, cuis, scores; never the text."
    ),
    output: Path | None = typer.Option(
        None, "--output", "-o", help="evaluation.json to write."
    ),
    on_error: OnError = "fail",
    force: bool = typer.Option(False, "--force", help="Replace existing outputs."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """kb/ + mentions.tsv … -> accuracy, evaluation.json

    Ties are counted in three ways: lenient, expected and strict.

    Example: spacy sapbert evaluate models/kb assets/sample/mentions.tsv --output
    evaluation.json

    Example: spacy sapbert evaluate models/kb corpus/dev.tsv.gz --aliases aliases.tsv
    --seen corpus/train.tsv.gz --predictions trained.jsonl --compare base.jsonl

    Example: spacy sapbert evaluate models/kb corpus/dev.tsv.gz --errors errors.html
    """
    from ..evaluation.compare import compare_with_file
    from ..evaluation.error_report import (
        check_errors_path,
        count_causes,
        find_errors,
        write_errors,
    )
    from ..evaluation.evaluate import evaluate_kb
    from ..evaluation.gold_mentions import read_aliases, read_pairs
    from ..evaluation.rankers import kb_lookup
    from ..evaluation.score_mentions import make_evaluation_settings

    for path in errors:
        check_errors_path(path)
    check_outputs(output, predictions, *errors, force=force)
    skipped = Skipped(on_error)
    settings = make_evaluation_settings(
        k,
        composite=composite,
        bars_join_parts=bars_join_parts,
        distinct=distinct,
        limit=limit,
    )
    known = read_aliases(aliases) if aliases else {}
    bars = bars_join_parts
    opened = load_kb(kb)
    evaluation = evaluate_kb(
        opened,
        mentions,
        settings,
        aliases=known,
        seen=read_pairs(seen, known, bars_join_parts=bars) if seen else None,
        back_off=back_off,
        baselines=baselines,
        recall_queries=recall_queries,
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
        for path in errors:
            write_errors(path, wrong)
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
    print_links(results["links"])
    recall = [f"{key} {val}" for key, val in results["index_recall"].items()]
    msg.text(f"Index against exact search: {', '.join(recall)}")
    if compare:
        print_comparison(results["comparison"])
    if errors:
        print_causes(results["causes"])
    for written in filter(None, (output, predictions, *errors)):
        msg.good(f"Wrote {written}")
