"""Three hierarchies → docs/numbers-hierarchies.md: the effect of training on them.

The folder of data has `open-rrf/` and `mesh-rrf/` (RRF with MRREL), `hierarchies/`
(ICD-10-CM and PhecodeX) and `eval/` (mention tables). A step whose output exists is
skipped, so the command can be stopped and run again.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import typer

from benchmarks.harness import (
    Step,
    format_call,
    format_commands,
    machine_line,
    markdown_table,
    run_cli,
    run_steps,
    write_page,
)
from spacy_sapbert.evaluation.accuracy import format_mean
from training.experiments.summarize_runs import Key, Run, read_run

KINDS = {
    "base": "before training",
    "sap": "trained on names",
    "hierarchical": "trained on names and hierarchies",
}
VOCABULARIES = {
    "open": ("$DATA/open-rrf", "Open ontologies (PAR/CHD of MRREL)"),
    "icd10cm": ("$DATA/hierarchies/icd10cm_tabular_2021.xml.gz", "ICD-10-CM"),
    "phecode": ("$DATA/hierarchies/phecodeX_R_labels.csv.gz", "PhecodeX"),
}
DISTANCES = [f"{one}-{other}" for one, other in combinations(range(4), 2)]
DEV = "ncbi_disease.dev.tsv.gz"
KS = (1, 5)


def list_vocabularies() -> Iterator[Step]:
    """Yield the steps from the vocabularies to training data and held-out concepts."""
    for name, (path, _) in VOCABULARIES.items():
        yield Step(
            f"{name}.jsonl",
            f"spacy sapbert concepts {path} --output $OUT/{name}.jsonl",
        )
        # Concepts are held out by their ids, so these are the same as in the union.
        yield Step(
            f"{name}-held-out.jsonl",
            f"python -m training hold-out $OUT/{name}.jsonl $OUT/{name}-rest.jsonl "
            f"$OUT/{name}-held-out.jsonl",
        )
    three = " ".join(f"$OUT/{name}.jsonl" for name in VOCABULARIES)
    yield Step(
        "three.jsonl", f"spacy sapbert concepts {three} --output $OUT/three.jsonl"
    )
    yield Step(
        "trained.jsonl",
        "python -m training hold-out $OUT/three.jsonl $OUT/trained.jsonl "
        "$OUT/held-out.jsonl",
    )
    yield Step(
        "pairs.tsv", "python -m training pairs $OUT/trained.jsonl $OUT/pairs.tsv"
    )
    yield Step(
        "families.tsv",
        "python -m training families $OUT/trained.jsonl $OUT/families.tsv",
    )


def list_training(seeds: int, options: str) -> Iterator[Step]:
    """Yield the steps to two encoders for each seed."""
    hierarchy = (
        "--config training/configs/hierarchy.cfg --hierarchy.families "
        "$OUT/families.tsv --hierarchy.concepts $OUT/trained.jsonl "
    )
    for seed in range(seeds):
        for kind, more in (("sap", ""), ("hierarchical", hierarchy)):
            yield Step(
                f"{kind}-{seed}",
                f"python -m training train $OUT/pairs.tsv $OUT/{kind}-{seed} "
                f"{more}--encoder.base $BASE --encoder.pooling mean --training.seed "
                f"{seed} {options}".rstrip(),
            )


def list_runs(seeds: int) -> dict[str, list[str]]:
    """Return the names of the runs of each kind of encoder."""
    return {
        kind: ["base"] if kind == "base" else [f"{kind}-{n}" for n in range(seeds)]
        for kind in KINDS
    }


def list_steps(seeds: int, options: str) -> list[Step]:
    """Return all steps in order; `options` are more options of `training train`."""
    steps = [*list_vocabularies(), *list_training(seeds, options)]
    steps.append(
        Step(
            "ctd.jsonl",
            "spacy sapbert concepts $DATA/mesh-rrf --output $OUT/ctd.jsonl --sources "
            "CTD --cui-pattern .+",
        )
    )
    for run in (name for names in list_runs(seeds).values() for name in names):
        encoder = "$BASE" if run == "base" else f"$OUT/{run}"
        for name in VOCABULARIES:
            more = " --relations $DATA/open-rrf" if name == "open" else ""
            steps.append(
                Step(
                    f"{name}-{run}.json",
                    f"python -m training evaluate-hierarchy {encoder} $OUT/{name}"
                    f".jsonl $OUT/{name}-held-out.jsonl $OUT/{name}-{run}.json{more}",
                )
            )
        steps += [
            Step(
                f"kb-{run}",
                f"spacy sapbert kb build $OUT/ctd.jsonl $OUT/kb-{run} --encoder "
                f"{encoder} --pooling mean --backend exact --precision bf16",
            ),
            Step(
                f"kb-{run}.json",
                f"spacy sapbert evaluate $OUT/kb-{run} $DATA/eval/{DEV} --aliases "
                f"$DATA/mesh-rrf/aliases.tsv.gz --output $OUT/kb-{run}.json",
            ),
        ]
    return steps


def format_areas(results: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Format the results of one vocabulary.

    results (dict[str, list[dict[str, Any]]]): From `training evaluate-hierarchy`, by
        kind of encoder.
    """
    first = results["base"][0]
    counts = ", ".join(f"{n:,} at {each}" for each, n in first["pairs"].items())
    known = [name for name in DISTANCES if first["auc"].get(name) is not None]
    related = first.get("relatedness", {}).get("relations", {})
    rows = []
    for kind, runs in results.items():
        columns = [[run["auc"][name] for run in runs] for name in known]
        columns.append([run["spearman"] for run in runs])
        for name in related:
            areas = [run["relatedness"]["relations"][name]["auc"] for run in runs]
            columns.append(areas)
        rows.append((KINDS[kind], *map(format_mean, columns)))
    titles = [*known, "Spearman", *(f"`{name}`" for name in related)]
    table = markdown_table(["Encoder", *titles], rows)
    return [f"Pairs: {counts}.", "", *table, ""]


def format_linking(runs: dict[str, list[Run]]) -> list[str]:
    """Format the accuracy of linking; `runs` by kind of encoder."""
    keys = [Key(DEV, "concepts", k) for k in KS]
    rows = [
        (
            KINDS[kind],
            *(
                format_mean([s.accuracies[key]["lenient"] for s in seeds])
                for key in keys
            ),
        )
        for kind, seeds in runs.items()
    ]
    return [*markdown_table(["Encoder", *(f"Acc@{k}" for k in KS)], rows), ""]


def format_page(
    areas: dict[str, dict[str, list[dict[str, Any]]]],
    linking: dict[str, list[Run]],
    steps: Sequence[Step],
    options: dict[str, str],
    machine: str,
) -> list[str]:
    """Format the page.

    areas (dict[str, dict[str, list[dict[str, Any]]]]): From `training
        evaluate-hierarchy`, by vocabulary and kind of encoder.
    linking (dict[str, list[Run]]): By kind of encoder.
    """
    lines = [
        "# Numbers: hierarchies",
        "",
        *format_call("benchmarks.hierarchies", "docs/numbers-hierarchies.md", options),
        "",
        f"{machine}. One tenth of the concepts is held out: none of their names was "
        "trained on, and one concept of each pair is one of them. A column is the area "
        "under the ROC curve of the cosine for pairs at two distances: 0 one concept, "
        "1 siblings, 2 parent and child, 3 neither, and of relations against 3 "
        "([how](hierarchies.md#evaluation)); of "
        f"{len(linking['sap'])} seeds mean ± sample standard deviation. Both kinds of "
        "training have the same number of steps.",
        "",
    ]
    for name, (_, title) in VOCABULARIES.items():
        lines += [f"## {title}", "", *format_areas(areas[name])]
    return [
        *lines,
        "## What it costs",
        "",
        "NCBI disease dev, linked to the CTD's diseases, by concepts, ties lenient.",
        "",
        *format_linking(linking),
        "## Published",
        "",
        "HiPrBERT (2023): relatedness of 28 relations of UMLS, mean area 0.937 against "
        "0.886 of the next best encoder. For orientation, not to be subtracted.",
        "",
        "## The command of each row",
        "",
        *format_commands(steps),
        "",
    ]


def main(
    data: Path = typer.Argument(..., help="Folder of vocabularies and corpora."),
    base: str = typer.Option(..., help="Encoder to train: folder or hub id."),
    out: Path = typer.Option(..., help="Folder for all outputs."),
    page: Path = typer.Option(..., help="Markdown to write."),
    seeds: int = typer.Option(3, min=1, help="Encoders of each kind to train."),
    train: str = typer.Option("", help="More options of `python -m training train`."),
) -> None:
    """folder of vocabularies and corpora -> docs/numbers-hierarchies.md

    Example: python -m benchmarks.hierarchies $SPACY_SAPBERT_DATA --base models/minilm
    --out results/hierarchies --page docs/numbers-hierarchies.md --train
    "--training.steps 400"
    """
    steps = list_steps(seeds, train)
    run_steps(steps, data, base, out)
    runs = list_runs(seeds)
    areas = {
        vocabulary: {
            kind: [
                json.loads((out / f"{vocabulary}-{run}.json").read_text("utf8"))
                for run in names
            ]
            for kind, names in runs.items()
        }
        for vocabulary in VOCABULARIES
    }
    linking = {
        kind: [read_run(out / f"kb-{run}.json") for run in names]
        for kind, names in runs.items()
    }
    options = {"seeds": str(seeds), "train": train}
    write_page(page, format_page(areas, linking, steps, options, machine_line()))


if __name__ == "__main__":
    run_cli(main)
