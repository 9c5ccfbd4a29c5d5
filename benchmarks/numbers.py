"""The tables of docs/numbers*.md, from the commands that each page has at its end."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import typer

from benchmarks.harness import machine_line, markdown_table, read_json, run_cli
from spacy_sapbert.evaluation.accuracy import LEVELS, TIES, format_mean
from spacy_sapbert.evaluation.evaluate import LIBRARIES, describe_versions
from spacy_sapbert.evaluation.rankers import read_dictionary
from spacy_sapbert.system.terminal import msg
from spacy_sapbert.vocabularies.concepts import read_concepts
from training.experiments.summarize_runs import Key, read_run

OUTPUT = re.compile(r"\$OUT/([\w.-]+)")  # in a command
KS = (1, 5)

# numbers.md; the names of runs begin with the linker, of several seeds
LINKERS = ("base", "trained", "fine-tuned")
COMPARED = ("trained-0", "fine-tuned-0")  # with the encoder before training
SECTIONS = {
    "mesh": "As the corpora are",
    "medic": "Pre-processed as BioSyn does",
    "medic-ncbi": "The same, NCBI disease's training mentions added to the dictionary",
    "medic-bc5cdr": "The same, BC5CDR's training mentions added to the dictionary",
}

# numbers-languages.md
ENCODERS = {
    "base": "before training",
    "english": "trained on English names",
    "all": "trained on the names of all languages",
    "translated": "the last one, trained on word translations too",
}
DICTIONARIES = {
    "all": "Names of all languages to be found",
    "english": "English names to be found",
}
CORPORA = {
    "xlbel_es.test.tsv.gz": "XL-BEL Spanish",
    "xlbel_ru.test.tsv.gz": "XL-BEL Russian",
    "bionnel_ru.train.tsv.gz": "BioNNE-L Russian",
}

# numbers-hierarchies.md
KINDS = {  # the beginning of the name of each run
    "base": "before training",
    "sap": "trained on names",
    "hierarchical": "trained on names and hierarchies",
}
VOCABULARIES = {
    "open": "Open ontologies (PAR/CHD of MRREL)",
    "icd10cm": "ICD-10-CM",
    "phecode": "PhecodeX",
}
DISTANCES = [f"{one}-{other}" for one, other in combinations(range(4), 2)]
DEV = "ncbi_disease.dev.tsv.gz"


def run_commands(page: Path, data: Path, base: str, out: Path) -> None:
    """Run the commands of a page of numbers, except those whose outputs exist.

    A name in $OUT is an output of the first command that has it.

    page (Path): Markdown; its last code block has the commands, with $DATA, $BASE and
        $OUT as placeholders of the next arguments.
    RAISES (typer.Exit): If a command fails, with its exit code.
    """
    out.mkdir(parents=True, exist_ok=True)
    places = {"$DATA": os.fspath(data), "$OUT": os.fspath(out), "$BASE": base}
    block = page.read_text("utf8").split("```bash\n")[-1].partition("```")[0]
    known: set[str] = set()
    for command in block.splitlines():
        outputs = {*OUTPUT.findall(command)} - known
        known |= outputs
        if all((out / name).exists() for name in outputs):
            continue
        words = shlex.split(command)
        words = words[1:] if words[0] == "python" else ["-m", *words]
        for name, place in places.items():
            words = [word.replace(name, place) for word in words]
        msg.info(command)
        done = subprocess.run([sys.executable, *words], check=False)
        if done.returncode:
            raise typer.Exit(done.returncode)


def format_section(out: Path, name: str) -> Iterator[str]:
    """Yield the lines of the tables of one dictionary."""
    dictionary = read_dictionary(read_concepts(out / f"{name}.jsonl"))
    results = {
        linker: [read_json(p) for p in sorted(out.glob(f"kb-{name}-{linker}*.json"))]
        for linker in LINKERS
    }
    base = results["base"][0]
    yield from (
        f"{len(set(dictionary.ids.values())):,} concepts, {len(dictionary.names):,} "
        "distinct names.",
        "",
    )
    for number, file in enumerate(base["files"]):
        accuracies = {name: [found] for name, found in file["baselines"].items()}
        for linker, found in results.items():
            accuracies[linker] = [one["files"][number]["accuracy"] for one in found]
        yield from (*format_file(file, accuracies, base["settings"]["ks"]), "")


def format_file(
    file: dict[str, Any], accuracies: dict[str, list[Any]], ks: Sequence[int]
) -> list[str]:
    """Format the table of one corpus.

    file (dict[str, Any]): Its entry in evaluation.json.
    accuracies (dict[str, list[Any]]): For each linker the accuracies of its seeds.
    """
    columns = {f"Acc@{k} {level}": ("all", level, k) for level in LEVELS for k in ks}
    columns |= {f"Acc@{k} unseen": ("unseen", "concepts", k) for k in ks}
    rows = []
    for linker, seeds in accuracies.items():
        for tie in TIES:
            values = [
                [seed[group][level][f"acc@{k}"][tie] for seed in seeds]
                for group, level, k in columns.values()
            ]
            rows.append((linker, tie, *map(format_mean, values)))
    return [
        f"**{file['file'].partition('.tsv')[0]}**: {file['judged']:,} mentions, "
        f"{file['accuracy']['unseen']['mentions']:,} of them unseen in training "
        f"mentions; the dictionary covers {file['coverage']:.1%}.",
        "",
        *markdown_table(["Linker", "Ties", *columns], rows, left=2),
    ]


def format_significance(out: Path) -> list[str]:
    """Format the differences in Acc@1 from the encoder before training."""
    rows = []
    for run in COMPARED:
        comparison = read_json(out / f"kb-mesh-{run}.json")["comparison"]
        for result in comparison["results"]:
            found = result["ties"]["lenient"]
            low, high = found["interval"]
            file = result["file"].partition(".tsv")[0]
            mentions = f"{file}, {result['mentions']:,}"
            interval = f"{low:+.4f} to {high:+.4f}"
            difference, p = f"{found['difference']:+.4f}", f"{found['p']:.2g}"
            linker = run.rpartition("-")[0]
            rows.append((linker, mentions, difference, interval, p))
    header = ("Linker", "Mentions", "More than *base*", "95 % interval", "p")
    return markdown_table(header, rows, left=2)


def format_causes(errors: dict[str, Any]) -> list[str]:
    """Format the causes in the evaluation.json of `--errors`, most frequent first."""
    causes = sorted(errors["causes"].items(), key=lambda cause: -cause[1])
    wrong = sum(errors["causes"].values())
    judged = sum(file["judged"] for file in errors["files"])
    rows = [(cause, f"{count:,}", f"{count / wrong:.1%}") for cause, count in causes]
    return [
        f"{wrong:,} of {judged:,} mentions are not right for certain.",
        "",
        *markdown_table(("Cause", "Mentions", "Share"), rows),
    ]


def format_numbers(out: Path) -> Iterator[str]:
    """Yield the lines of the tables of numbers.md."""
    versions = describe_versions([*LIBRARIES, "scikit-learn"])
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    yield from (f"{machine_line()}; {listed}.", "")
    for name, title in SECTIONS.items():
        yield from (f"## {title}", "", *format_section(out, name))
    yield from ("## More than chance", "", *format_significance(out), "")
    causes = format_causes(read_json(out / "errors.json"))
    yield from ("## Why it is wrong", "", *causes, "")


def format_languages(out: Path) -> Iterator[str]:
    """Yield the tables of languages: precision by concepts, ties expected."""
    titles = [f"{title} P@{k}" for title in CORPORA.values() for k in KS]
    keys = [Key(file, "concepts", k) for file in CORPORA for k in KS]
    for dictionary, heading in DICTIONARIES.items():
        runs = {
            title: read_run(out / f"kb-{dictionary}-{encoder}.json", "covered")
            for encoder, title in ENCODERS.items()
        }
        coverages = next(iter(runs.values())).coverages
        covered = [f"{coverages[file]:.1%} of {name}" for file, name in CORPORA.items()]
        rows = [
            (title, *(format_mean([run.accuracies[key]["expected"]]) for key in keys))
            for title, run in runs.items()
        ]
        yield from (f"## {heading}", "")
        yield from (f"Covered, and scored here: {', '.join(covered)}.", "")
        yield from (*markdown_table(["Encoder", *titles], rows), "")


def format_areas(out: Path, vocabulary: str) -> list[str]:
    """Format the areas under ROC curves of one vocabulary, mean ± deviation."""
    results = {
        title: [read_json(p) for p in sorted(out.glob(f"{vocabulary}-{kind}*.json"))]
        for kind, title in KINDS.items()
    }
    first = results[KINDS["base"]][0]
    counts = ", ".join(f"{n:,} at {each}" for each, n in first["pairs"].items())
    known = [name for name in DISTANCES if first["auc"].get(name) is not None]
    related = first.get("relatedness", {}).get("relations", {})
    rows = []
    for title, runs in results.items():
        columns = [[run["auc"][name] for run in runs] for name in known]
        columns.append([run["spearman"] for run in runs])
        for name in related:
            areas = [run["relatedness"]["relations"][name]["auc"] for run in runs]
            columns.append(areas)
        rows.append((title, *map(format_mean, columns)))
    titles = [*known, "Spearman", *(f"`{name}`" for name in related)]
    return [f"Pairs: {counts}.", "", *markdown_table(["Encoder", *titles], rows)]


def format_linking(out: Path) -> list[str]:
    """Format the accuracy of linking by concepts, ties lenient."""
    rows = []
    for kind, title in KINDS.items():
        runs = [read_run(path) for path in sorted(out.glob(f"kb-{kind}*.json"))]
        keys = [Key(DEV, "concepts", k) for k in KS]
        values = [[run.accuracies[key]["lenient"] for run in runs] for key in keys]
        rows.append((title, *map(format_mean, values)))
    return markdown_table(["Encoder", *(f"Acc@{k}" for k in KS)], rows)


def format_hierarchies(out: Path) -> Iterator[str]:
    """Yield the lines of the tables of numbers-hierarchies.md."""
    for vocabulary, title in VOCABULARIES.items():
        yield from (f"## {title}", "", *format_areas(out, vocabulary), "")
    yield from ("## What it costs", "", *format_linking(out), "")


PAGES: dict[str, Callable[[Path], Iterator[str]]] = {
    "numbers": format_numbers,
    "numbers-languages": format_languages,
    "numbers-hierarchies": format_hierarchies,
}


def main(
    page: Path = typer.Argument(..., help="docs/numbers.md, or one of the others."),
    data: Path = typer.Argument(..., help="Folder of vocabularies and corpora."),
    base: str = typer.Option(..., help="Encoder to train: folder or hub id."),
    out: Path = typer.Option(..., help="Folder for all outputs."),
) -> None:
    """page with commands + folder of vocabularies and corpora -> its tables

    The commands of the page are run, except those whose outputs exist.

    Example: python -m benchmarks.numbers docs/numbers.md $SPACY_SAPBERT_DATA --base
    models/minilm --out results/numbers
    """
    if page.stem not in PAGES:
        raise typer.BadParameter(f"expected a page named {', '.join(PAGES)}")
    run_commands(page, data, base, out)
    typer.echo("\n".join(PAGES[page.stem](out)))


if __name__ == "__main__":
    run_cli(main)
