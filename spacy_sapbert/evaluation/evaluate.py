"""kb/ + mentions.tsv → results.json: how many mentions get the right concept."""

import json
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import typer
from wasabi import msg

import spacy_sapbert
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.accuracy import LEVELS, SCORE_DIGITS, TIES
from spacy_sapbert.evaluation.gold_mentions import make_resolver, read_aliases
from spacy_sapbert.evaluation.kb_ranker import (
    make_kb_lookup,
    make_kb_search,
    measure_recall,
)
from spacy_sapbert.evaluation.score_mentions import (
    EvaluationSettings,
    answer_mentions,
    choose_mentions,
    judge_mentions,
    list_predictions,
    make_evaluation_settings,
)
from spacy_sapbert.evaluation.seen_mentions import Pair, read_pairs
from spacy_sapbert.evaluation.training_mentions_ranker import make_back_off, read_known
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.system.reading import file_digest
from spacy_sapbert.system.writing import write_atomically, write_json

LIBRARIES = ("numpy", "spacy", "spacy-transformers", "torch", "transformers")


def describe_versions(libraries: Sequence[str] = LIBRARIES) -> dict[str, str]:
    """Return the versions that a result depends on.

    libraries (Sequence[str]): Names of installed packages.
    RETURNS (dict[str, str]): By name.
    """
    return {
        "python": platform.python_version(),
        "spacy-sapbert": spacy_sapbert.__version__,
        **{name: version(name) for name in libraries},
    }


def describe_settings(settings: EvaluationSettings) -> dict[str, Any]:
    """Say how answers were judged, for whoever reads the results later.

    settings (EvaluationSettings): How answers are judged.
    RETURNS (dict[str, Any]): Plain JSON types.
    """
    fixed = {"levels": LEVELS, "ties": TIES, "tie_digits": SCORE_DIGITS}
    return {**settings._asdict(), **fixed}


def describe_kb(kb: KnowledgeBase) -> dict[str, Any]:
    """Say which knowledge base was judged.

    kb (KnowledgeBase): The knowledge base.
    RETURNS (dict[str, Any]): What its meta.json says, without the checksums and what
        plays no part here.
    """
    left_out = ("files", "threshold", "calibration")
    described = {key: val for key, val in kb.meta.items() if key not in left_out}
    return {"folder": kb.folder.name, **described}


def list_table(result: dict[str, Any], ks: Sequence[int]) -> list[tuple[str, ...]]:
    """Lay the accuracies of one file out as a table.

    result (dict[str, Any]): From `judge_mentions`.
    ks (Sequence[int]): How many answers count.
    RETURNS (list[tuple[str, ...]]): A header, and a row for each group and level.
    """
    columns = [f"Acc@{k} {tie}" for k in ks for tie in TIES]
    table: list[tuple[str, ...]] = [("Mentions", "By", "Number", *columns)]
    for group, accuracy in result["accuracy"].items():
        for level in LEVELS:
            values = [accuracy[level][f"acc@{k}"][tie] for k in ks for tie in TIES]
            cells = ["–" if value is None else f"{value:.4f}" for value in values]
            table.append((group, level, f"{accuracy['mentions']:,}", *cells))
    return table


def print_result(result: dict[str, Any], ks: Sequence[int]) -> None:
    """Print what was found for one file.

    result (dict[str, Any]): From `judge_mentions`, with the counts.
    ks (Sequence[int]): How many answers count.
    """
    header, *rows = list_table(result, ks)
    msg.divider(result["file"])
    repeated = f", {result['repeated']:,} repeated" if result["repeated"] else ""
    msg.text(
        f"{result['judged']:,} of {result['mentions']:,} mentions judged "
        f"({result['without_id']:,} without an id{repeated}); the dictionary covers "
        f"{result['coverage']:.1%} of them."
    )
    msg.table(
        rows, header=header, divider=True, aligns=["l", "l"] + ["r"] * (len(header) - 2)
    )


def evaluate_kb(
    kb: KnowledgeBase,
    paths: Sequence[Path],
    settings: EvaluationSettings,
    *,
    aliases: dict[str, str] | None = None,
    seen: set[Pair] | None = None,
    back_off: Sequence[Path] = (),
    recall_queries: int = 1000,
    progress: bool = False,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Judge a knowledge base on files of gold mentions.

    kb (KnowledgeBase): The knowledge base.
    paths (Sequence[Path]): The files.
    settings (EvaluationSettings): How answers are judged.
    aliases (dict[str, str] | None): From `read_aliases`.
    seen (set[Pair] | None): What was in training; None = not asked.
    back_off (Sequence[Path]): Training mentions that are looked up first.
    recall_queries (int): Mentions for which the index is held against exact search.
    progress (bool): Show bars.
    RETURNS (tuple[dict[str, Any], list[dict[str, Any]]]): What results.json says, and
        the predictions.
    RAISES (SapbertError): If a file of mentions is not usable.
    """
    aliases = aliases or {}
    chosen = [choose_mentions(path, settings) for path in paths]
    texts = list(dict.fromkeys(gold.mention for golds, _ in chosen for gold in golds))
    lookup = make_kb_lookup(kb)
    rank = make_kb_search(kb, aliases, k=max(settings.ks))
    if back_off:
        resolve = make_resolver(lookup, aliases)
        bars = settings.bars_join_parts
        known = read_known(back_off, resolve, bars_join_parts=bars)
        rank = make_back_off(rank, known)
    answers = answer_mentions(rank, texts, progress=progress)
    results: list[dict[str, Any]] = []
    predictions: list[dict[str, Any]] = []
    for path, (golds, counts) in zip(paths, chosen, strict=True):
        judged = judge_mentions(golds, answers, lookup, aliases, settings, seen=seen)
        file = {"file": path.name, "sha256": file_digest(path)}
        results.append({**file, **counts, **judged})
        predictions += list_predictions(path.name, golds, answers, max(settings.ks))
    step = max(1, len(texts) // max(1, recall_queries))
    return {
        "settings": {
            **describe_settings(settings),
            "back_off": {path.name: file_digest(path) for path in back_off},
        },
        "kb": describe_kb(kb),
        "versions": describe_versions(),
        "index_recall": measure_recall(kb, texts[::step][:recall_queries]),
        "files": results,
    }, predictions


def main(
    kb: str = typer.Argument(..., help="Folder or name of a knowledge base."),
    mentions: list[Path] = typer.Argument(..., help="mentions.tsv, or mention||id."),
    k: int = typer.Option(5, min=1, help="Answers that count, besides the first."),
    composite: str = typer.Option(
        "parts", help="Of A+B: parts = both have to be found, released = any."
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
        [], help="Mentions of the training; may be repeated."
    ),
    back_off: list[Path] = typer.Option(
        [], help="Training mentions to look up first; may be repeated."
    ),
    limit: int = typer.Option(0, min=0, help="First mentions of each file; 0 = all."),
    recall_queries: int = typer.Option(
        1000, min=0, help="Mentions to hold the index against exact search with."
    ),
    output: Path | None = typer.Option(None, help="results.json to write."),
    predictions: Path | None = typer.Option(
        None, help="JSON lines to write: file, line, cuis, scores; never the text."
    ),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """kb/ + mentions.tsv -> results.json

    Ties are always counted in three ways: lenient, expected and strict.

    Example: python -m spacy_sapbert.evaluation.evaluate models/kb assets/sample/mentions.tsv
    --output results.json

    Example: python -m spacy_sapbert.evaluation.evaluate models/kb corpus/dev.tsv.gz --aliases
    aliases.tsv --seen corpus/train.tsv.gz --predictions predictions.jsonl
    """
    try:
        settings = make_evaluation_settings(
            k,
            composite=composite,
            bars_join_parts=bars_join_parts,
            distinct=distinct,
            limit=limit,
        )
        known = read_aliases(aliases) if aliases else {}
        bars = bars_join_parts
        pairs = read_pairs(seen, known, bars_join_parts=bars) if seen else None
        results, predicted = evaluate_kb(
            load_kb(kb),
            mentions,
            settings,
            aliases=known,
            seen=pairs,
            back_off=back_off,
            recall_queries=recall_queries,
            progress=sys.stderr.isatty() and not quiet,
        )
        if output:
            write_json(output, results)
        if predictions:
            with write_atomically(predictions) as file:
                for row in predicted:
                    file.write(json.dumps(row).encode("utf8") + b"\n")
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    if quiet:
        return
    for result in results["files"]:
        print_result(result, settings.ks)
    recall = [f"{key} {val}" for key, val in results["index_recall"].items()]
    msg.text(f"Index against exact search: {', '.join(recall)}")
    for written in filter(None, (output, predictions)):
        msg.good(f"Wrote {written}")


if __name__ == "__main__":
    typer.run(main)
