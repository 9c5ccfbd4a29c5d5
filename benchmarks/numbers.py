"""Vocabularies and corpora → docs/numbers.md, with the command of each row.

The folder of data has `mesh-rrf/` (RRF with aliases.tsv.gz), `medic/` (MEDIC in
BioSyn's format), `eval/` (mention tables) and `eval-text/` (PubTator). A step whose
output exists is skipped, so the command can be stopped and run again.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer

from benchmarks.harness import (
    Step,
    describe_machine,
    format_call,
    format_commands,
    markdown_table,
    run_cli,
    run_steps,
    write_page,
)
from spacy_sapbert.evaluation.accuracy import LEVELS, TIES, format_mean
from spacy_sapbert.evaluation.evaluate import LIBRARIES, describe_versions
from spacy_sapbert.evaluation.rankers import read_dictionary
from spacy_sapbert.vocabularies.concepts import read_concepts

CORPORA = ("ncbi_disease", "bc5cdr_disease", "bc5cdr_chemical")
ALIASES = "--aliases $DATA/mesh-rrf/aliases.tsv.gz"
TEXTS = {
    "ncbi-train": "NCBItrainset_corpus",
    "ncbi-dev": "NCBIdevelopset_corpus",
    "bc5cdr-train": "CDR_TrainingSet.PubTator",
    "bc5cdr-dev": "CDR_DevelopmentSet.PubTator",
}
LINKERS = {
    "exact look-up": "the mention is a name, but for case",
    "TF-IDF": "cosine of character 3-grams, as scispaCy's linker",
    "base": "the encoder before training",
    "trained": "the encoder after training on the names of the vocabulary",
    "fine-tuned": "the first of them after training on annotated mentions too",
}
COMPARED = ("trained-0", "fine-tuned-0")  # with the encoder before training
PUBLISHED = (
    ("PubMedBERT", "77.8 / 86.9", "89.0 / 93.8", "93.0 / 94.6"),
    ("PubMedBERT + SapBERT", "92.0 / 95.6", "93.5 / 96.0", "96.5 / 98.2"),
    ("the same, fine-tuned", "92.3 / 95.5", "–", "–"),
)


class Section(NamedTuple):
    """One dictionary: its name in the names of files, a heading and a text."""

    name: str
    title: str
    about: str


SECTIONS = (
    Section(
        "mesh",
        "As the corpora are",
        "Dictionary: MeSH descriptors and MEDIC together, whose ids go through a table "
        "of aliases. No abbreviation is expanded and no composite split.",
    ),
    Section(
        "medic",
        "Pre-processed as BioSyn does",
        "Dictionary: MEDIC of 6 July 2012. Abbreviations are expanded from the "
        "document, composites split, case and punctuation dropped on both sides. This "
        "is the protocol of the published figures, but for the tool that finds "
        "abbreviations, and on dev instead of test.",
    ),
    Section(
        "medic-ncbi",
        "The same, NCBI disease's training mentions added to the dictionary",
        "As in some published figures. A mention that is also in the training set is "
        "always found: look at the unseen ones.",
    ),
    Section(
        "medic-bc5cdr",
        "The same, BC5CDR's training mentions added to the dictionary",
        "See above.",
    ),
)


def list_runs(name: str, seeds: int) -> dict[str, list[str]]:
    """Return the encoders of a section by linker; some sections have one seed."""
    count = seeds if name in ("mesh", "medic") else 1
    trained = [f"trained-{seed}" for seed in range(count)]
    return {"base": ["base"], "trained": trained, "fine-tuned": ["fine-tuned-0"]}


def list_training(seeds: int, options: str) -> Iterator[Step]:
    """Yield the steps from a vocabulary to an encoder for each seed, one fine-tuned."""
    yield Step(
        "mesh.jsonl",
        "spacy sapbert concepts $DATA/mesh-rrf --output $OUT/mesh.jsonl "
        "--cui-pattern .+",
    )
    yield Step(
        "mesh-pairs.tsv",
        "python -m training pairs $OUT/mesh.jsonl $OUT/mesh-pairs.tsv",
    )
    mentions = " ".join(f"$DATA/eval/{name}.train.tsv.gz" for name in CORPORA)
    yield Step(
        "train-pairs.tsv",
        f"python -m training finetune-pairs {mentions} --concepts $OUT/mesh.jsonl "
        f"{ALIASES} --output $OUT/train-pairs.tsv",
    )
    for seed in range(seeds):
        yield Step(
            f"trained-{seed}",
            f"python -m training train $OUT/mesh-pairs.tsv $OUT/trained-{seed} "
            f"--encoder.base $BASE --encoder.pooling mean --training.seed {seed} "
            f"{options}".rstrip(),
        )
    yield Step(
        "fine-tuned-0",
        "python -m training train $OUT/train-pairs.tsv $OUT/fine-tuned-0 "
        "--config training/configs/finetune_scientific.cfg --encoder.base "
        "$OUT/trained-0 --encoder.pooling mean",
    )


def list_evaluation(
    name: str, mentions: Sequence[str], more: str, seeds: int
) -> Iterator[Step]:
    """Yield the steps from a dictionary and encoders to the results of a section."""
    for run in (run for runs in list_runs(name, seeds).values() for run in runs):
        encoder = "$BASE" if run == "base" else f"$OUT/{run}"
        kb = f"kb-{name}-{run}"
        yield Step(
            kb,
            f"spacy sapbert kb build $OUT/{name}.jsonl $OUT/{kb} --encoder {encoder} "
            "--pooling mean --backend exact --precision bf16",
        )
        options = more
        if run == "base":
            options += " --baselines"
        if name == "mesh" and run == "base":
            options += " --predictions $OUT/base.jsonl"
        elif name == "mesh" and run in COMPARED:
            options += " --compare $OUT/base.jsonl"
        yield Step(
            f"{kb}.json",
            f"spacy sapbert evaluate $OUT/{kb} {' '.join(mentions)} {options} --output "
            f"$OUT/{kb}.json",
        )


def list_medic(seeds: int) -> Iterator[Step]:
    """Yield the steps of the protocol of the published figures."""
    yield Step(
        "medic-raw.jsonl",
        "spacy sapbert concepts $DATA/medic/medic_06Jul2012.txt.gz --format biosyn "
        "--output $OUT/medic-raw.jsonl",
    )
    yield Step(
        "medic.jsonl",
        "python -m training biosyn-names $OUT/medic-raw.jsonl $OUT/medic.jsonl",
    )
    for name, file in TEXTS.items():
        yield Step(
            f"{name}.tsv",
            f"python -m training biosyn-mentions $DATA/eval-text/{file}.txt.gz "
            "--format pubtator --drop-prefix OMIM: --dictionary $OUT/medic.jsonl "
            f"--output $OUT/{name}.tsv",
        )
    both = [f"$OUT/{name}-dev.tsv" for name in ("ncbi", "bc5cdr")]
    seen = "--seen $OUT/ncbi-train.tsv --seen $OUT/bc5cdr-train.tsv"
    yield from list_evaluation("medic", both, seen, seeds)
    for name in ("ncbi", "bc5cdr"):
        yield Step(
            f"medic-{name}.jsonl",
            f"python -m training add-mentions $OUT/medic.jsonl $OUT/{name}-train.tsv "
            f"--output $OUT/medic-{name}.jsonl",
        )
        dev, seen = f"$OUT/{name}-dev.tsv", f"--seen $OUT/{name}-train.tsv"
        yield from list_evaluation(f"medic-{name}", [dev], seen, seeds)


def list_steps(seeds: int, options: str) -> list[Step]:
    """Return all steps in order; `options` are more options of `training train`."""
    dev = [f"$DATA/eval/{name}.dev.tsv.gz" for name in CORPORA]
    seen = " ".join(f"--seen $DATA/eval/{name}.train.tsv.gz" for name in CORPORA)
    return [
        *list_training(seeds, options),
        *list_evaluation("mesh", dev, f"{ALIASES} {seen}", seeds),
        *list_medic(seeds),
        Step(
            "errors.json",
            f"spacy sapbert evaluate $OUT/kb-mesh-fine-tuned-0 {dev[1]} {ALIASES} "
            "--errors $OUT/errors.html --output $OUT/errors.json",
        ),
    ]


def read_json(path: Path) -> Any:
    return json.loads(path.read_text("utf8"))


def format_section(section: Section, out: Path, seeds: int) -> list[str]:
    """Format the tables of one dictionary from the files in `out`."""
    dictionary = read_dictionary(read_concepts(out / f"{section.name}.jsonl"))
    results = {
        linker: [read_json(out / f"kb-{section.name}-{run}.json") for run in runs]
        for linker, runs in list_runs(section.name, seeds).items()
    }
    base = results["base"][0]
    lines = [
        f"## {section.title}",
        "",
        f"{section.about} {len(set(dictionary.ids.values())):,} concepts, "
        f"{len(dictionary.names):,} distinct names.",
        "",
    ]
    for number, file in enumerate(base["files"]):
        accuracies = {name: [found] for name, found in file["baselines"].items()}
        for linker, found in results.items():
            accuracies[linker] = [one["files"][number]["accuracy"] for one in found]
        lines += [*format_file(file, accuracies, base["settings"]["ks"]), ""]
    return lines


def format_file(
    file: dict[str, Any], accuracies: dict[str, list[Any]], ks: Sequence[int]
) -> list[str]:
    """Format the table of one corpus.

    file (dict[str, Any]): Its entry in evaluation.json.
    accuracies (dict[str, list[Any]]): For each linker the accuracies of its seeds.
    """
    columns = [("all", level, k) for level in LEVELS for k in ks]
    columns += [("unseen", "concepts", k) for k in ks]
    titles = [f"Acc@{k} {level}" for _, level, k in columns[: -len(ks)]]
    titles += [f"Acc@{k} unseen" for k in ks]
    rows = []
    for linker, seeds in accuracies.items():
        for tie in TIES:
            values = [
                [seed[group][level][f"acc@{k}"][tie] for seed in seeds]
                for group, level, k in columns
            ]
            rows.append((linker, tie, *map(format_mean, values)))
    return [
        f"**{file['file'].partition('.tsv')[0]}**: {file['judged']:,} mentions, "
        f"{file['accuracy']['unseen']['mentions']:,} of them unseen in training "
        f"mentions; the dictionary covers {file['coverage']:.1%}.",
        "",
        *markdown_table(["Linker", "Ties", *titles], rows, left=2),
    ]


def format_significance(tests: dict[str, Any]) -> list[str]:
    """Format the differences from the encoder before training.

    tests (dict[str, Any]): For each linker the `comparison` of its evaluation.json.
    """
    rows = []
    for name, test in tests.items():
        for result in test["results"]:
            found = result["ties"]["lenient"]
            low, high = found["interval"]
            file = result["file"].partition(".tsv")[0]
            mentions = f"{file}, {result['mentions']:,}"
            interval = f"{low:+.4f} to {high:+.4f}"
            difference, p = f"{found['difference']:+.4f}", f"{found['p']:.2g}"
            rows.append((name, mentions, difference, interval, p))
    header = ("Linker", "Mentions", "More than *base*", "95 % interval", "p")
    return [
        "## More than chance",
        "",
        "Acc@1 by concepts against *base*, as the corpora are, ties lenient, seed 0; "
        "p by McNemar's exact test on pairs of answers.",
        "",
        *markdown_table(header, rows, left=2),
        "",
    ]


def format_causes(errors: dict[str, Any]) -> list[str]:
    """Format the causes in the evaluation.json of `--errors`, most frequent first."""
    causes = sorted(errors["causes"].items(), key=lambda cause: -cause[1])
    wrong = sum(errors["causes"].values())
    judged = sum(file["judged"] for file in errors["files"])
    rows = [(cause, f"{count:,}", f"{count / wrong:.1%}") for cause, count in causes]
    return [
        "## Why it is wrong",
        "",
        f"BC5CDR disease dev as it is, *fine-tuned*, seed 0: {wrong:,} of "
        f"{judged:,} mentions are not right for certain. Each has one cause, "
        "explained in [evaluation.md](evaluation.md).",
        "",
        *markdown_table(("Cause", "Mentions", "Share"), rows),
        "",
    ]


def format_page(
    out: Path, steps: Sequence[Step], seeds: int, options: dict[str, str]
) -> list[str]:
    """Format the page from the files in `out`."""
    machine = describe_machine()
    versions = describe_versions([*LIBRARIES, "scikit-learn"])
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    tests = {
        run.rpartition("-")[0]: read_json(out / f"kb-mesh-{run}.json")["comparison"]
        for run in COMPARED
    }
    corpora = ("", "NCBI disease", "BC5CDR disease", "BC5CDR chemical")
    return [
        "# Numbers",
        "",
        *format_call("benchmarks.numbers", "docs/numbers.md", options),
        "",
        f"{machine['cpu']}, {machine['cores']} cores; {listed}. All figures are of "
        f"dev sets. *trained*: {seeds} seeds, mean ± sample standard deviation; "
        "*fine-tuned*: the first of them alone. Ties, levels and groups are explained "
        "in [evaluation.md](evaluation.md); *unseen* is by concepts. Nothing was "
        "trained on the mentions that are scored.",
        "",
        *markdown_table(("Linker", "What it is"), LINKERS.items(), left=2),
        "",
        *(line for s in SECTIONS for line in format_section(s, out, seeds)),
        *format_significance(tests),
        *format_causes(read_json(out / "errors.json")),
        "## Published",
        "",
        "Acc@1 / Acc@5 in percent, **test** sets, by rows, ties lenient, "
        "pre-processed, other dictionaries; Liu et al. (2021). They are here for "
        "orientation, not to be subtracted.",
        "",
        *markdown_table(corpora, PUBLISHED),
        "",
        "## The command of each row",
        "",
        "`--baselines` makes *exact look-up* and *TF-IDF*, the knowledge base that "
        "ends in `-base` makes *base*, and those that end in a seed make the others.",
        "",
        *format_commands(steps),
        "",
    ]


def main(
    data: Path = typer.Argument(..., help="Folder of vocabularies and corpora."),
    base: str = typer.Option(..., help="Encoder to train: folder or hub id."),
    out: Path = typer.Option(..., help="Folder for all outputs."),
    page: Path = typer.Option(..., help="Markdown to write."),
    seeds: int = typer.Option(3, min=1, help="Encoders to train."),
    train: str = typer.Option("", help="More options of `python -m training train`."),
) -> None:
    """folder of vocabularies and corpora -> docs/numbers.md

    Example: python -m benchmarks.numbers $SPACY_SAPBERT_DATA --base models/minilm --out
    results/numbers --page docs/numbers.md --train "--training.steps 1000"
    """
    steps = list_steps(seeds, train)
    run_steps(steps, data, base, out)
    options = {"seeds": str(seeds), "train": train}
    write_page(page, format_page(out, steps, seeds, options))


if __name__ == "__main__":
    run_cli(main)
