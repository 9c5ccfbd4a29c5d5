"""Two files of predictions for the same gold mentions → is one linker better?"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer
from wasabi import msg

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.gold_mentions import (
    GoldMention,
    Lookup,
    make_resolver,
    read_aliases,
)
from spacy_sapbert.evaluation.kb_ranker import make_kb_lookup
from spacy_sapbert.evaluation.paired_tests import Chance, compare_outcomes
from spacy_sapbert.evaluation.predictions import (
    Place,
    check_predictions,
    judge_predictions,
    read_golds,
    read_predictions,
)
from spacy_sapbert.evaluation.score_mentions import (
    EvaluationSettings,
    make_evaluation_settings,
)
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.system.reading import file_digest
from spacy_sapbert.system.writing import write_json


def compare_predictions(
    golds: dict[Place, GoldMention],
    paths: Sequence[Path],
    lookup: Lookup,
    aliases: dict[str, str],
    settings: EvaluationSettings,
    chance: Chance,
) -> list[dict[str, Any]]:
    """Compare two files of predictions.

    golds (dict[Place, GoldMention]): From `read_golds`.
    paths (Sequence[Path]): The two files.
    lookup (Lookup): Gives the id that stands for a gold id now.
    aliases (dict[str, str]): Ids that another one stands for.
    settings (EvaluationSettings): How answers are judged.
    chance (Chance): How chance is drawn.
    RETURNS (list[dict[str, Any]]): For each gold file, and for all if there are
        several, the number of mentions and the comparison by the way of ties.
    RAISES (SapbertError): If the predictions are not for these gold mentions.
    """
    resolve = make_resolver(lookup, aliases)
    partial = settings.distinct or bool(settings.limit)
    judged: list[np.ndarray] = []
    for path in paths:
        predictions = read_predictions(path, aliases)
        check_predictions(path, predictions, golds, partial=partial)
        judged.append(
            judge_predictions(predictions, golds, resolve, settings.composite)
        )
    names = np.array([file for file, _ in golds])
    files = list(dict.fromkeys(names.tolist()))
    masks = {file: names == file for file in files}
    if len(files) > 1:
        masks[f"all {len(files)} files"] = np.ones(len(names), dtype=bool)
    return [
        {
            "file": file,
            "mentions": int(mask.sum()),
            "ties": compare_outcomes(judged[0][mask], judged[1][mask], chance),
        }
        for file, mask in masks.items()
    ]


def print_comparison(data: dict[str, Any]) -> None:
    """Print which linker is better, and how surely.

    data (dict[str, Any]): What the JSON file says.
    """
    confidence = f"{data['settings']['confidence']:.0%}"
    for result in data["results"]:
        msg.divider(f"{result['file']}, {result['mentions']:,} mentions")
        rows = [
            (
                tie,
                f"{found['first']:.4f}",
                f"{found['second']:.4f}",
                f"{found['difference']:+.4f}",
                f"{found['interval'][0]:+.4f} to {found['interval'][1]:+.4f}",
                f"{found['only_first']:,} : {found['only_second']:,}",
                f"{found['p']:.2g}",
                found["test"],
            )
            for tie, found in result["ties"].items()
        ]
        columns = ("First", "Second", "Difference", f"{confidence} interval")
        header = ("Acc@1", *columns, "Only one right", "p", "Test")
        aligns = ["l", *["r"] * 6, "l"]
        msg.table(rows, header=header, divider=True, aligns=aligns)


def main(
    gold: list[Path] = typer.Argument(..., help="mentions.tsv, or mention||id."),
    first: Path = typer.Option(..., help="predictions.jsonl of one linker."),
    second: Path = typer.Option(..., help="predictions.jsonl of the other."),
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
    kb: str | None = typer.Option(
        None, help="Knowledge base that knows which ids are retired."
    ),
    limit: int = typer.Option(0, min=0, help="First mentions of each file; 0 = all."),
    samples: int = typer.Option(10_000, min=1, help="How often chance is drawn."),
    confidence: float = typer.Option(
        0.95, min=0.0, max=1.0, help="Share of the draws that an interval holds."
    ),
    seed: int = typer.Option(0, min=0, help="Where chance begins."),
    output: Path | None = typer.Option(None, help="JSON to write."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """mentions.tsv + two predictions.jsonl -> table, JSON

    Example: python -m spacy_sapbert.evaluation.significance corpus/dev.tsv.gz --first base.jsonl
    --second trained.jsonl --distinct
    """
    try:
        settings = make_evaluation_settings(
            1,
            composite=composite,
            bars_join_parts=bars_join_parts,
            distinct=distinct,
            limit=limit,
        )
        chance = Chance(samples, confidence, seed)
        live: Lookup = make_kb_lookup(load_kb(kb)) if kb else str
        paths = (first, second)
        results = compare_predictions(
            read_golds(gold, settings),
            paths,
            lambda cui: live(cui) or cui,
            read_aliases(aliases) if aliases else {},
            settings,
            chance,
        )
        files = [{"file": p.name, "sha256": file_digest(p)} for p in (*gold, *paths)]
        data = {
            "settings": {**settings._asdict(), **chance._asdict()},
            "gold": files[:-2],
            "first": files[-2],
            "second": files[-1],
            "results": results,
        }
        if output:
            write_json(output, data)
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    if not quiet:
        print_comparison(data)
        if output:
            msg.good(f"Wrote {output}")


if __name__ == "__main__":
    typer.run(main)
