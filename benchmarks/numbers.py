"""Vocabularies and corpora → docs/numbers.md: every figure, with the command of each.

The folder of data has `mesh-rrf/` (RRF with aliases.tsv.gz), `medic/` (MEDIC in
BioSyn's form), `eval/` (mention tables) and `eval-text/` (PubTator); see
`docs/evaluation.md`. What a step has made is not made again, so that the command can be
stopped and given once more.
"""

import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import typer
from wasabi import msg

from benchmarks.compare_linkers import render_row
from benchmarks.numbers_steps import list_steps
from benchmarks.steps import Step, render_call, render_commands, run_steps
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.accuracy import LEVELS, TIES, format_mean
from spacy_sapbert.system.writing import write_atomically

LINKERS = {
    "exact look-up": "the mention is a name, but for case",
    "TF-IDF": "cosine of character 3-grams, as scispaCy's linker",
    "base": "the encoder before training",
    "trained": "the encoder after training on the names of the vocabulary",
    "fine-tuned": "the first of them after training on annotated mentions too",
}
PUBLISHED = (
    ("PubMedBERT", "77.8 / 86.9", "89.0 / 93.8", "93.0 / 94.6"),
    ("PubMedBERT + SapBERT", "92.0 / 95.6", "93.5 / 96.0", "96.5 / 98.2"),
    ("the same, fine-tuned", "92.3 / 95.5", "–", "–"),
)


class Section(NamedTuple):
    """One comparison.

    name (str): Of its JSON file.
    title (str): A heading.
    about (str): What was done to mentions and dictionary.
    """

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
        "As some published figures do. Mentions that come again are found for certain: "
        "look at the unseen ones.",
    ),
    Section(
        "medic-bc5cdr",
        "The same, BC5CDR's training mentions added to the dictionary",
        "See above.",
    ),
)


def render_file(result: dict[str, Any], ks: Sequence[int]) -> list[str]:
    """Write the table of one corpus.

    result (dict[str, Any]): A file of comparison.json.
    ks (Sequence[int]): How many answers count.
    RETURNS (list[str]): Lines of Markdown.
    """
    columns = [("all", level, k) for level in LEVELS for k in ks]
    columns += [("unseen", "concepts", k) for k in ks]
    titles = [f"Acc@{k} {level}" for _, level, k in columns[: -len(ks)]]
    titles += [f"Acc@{k} unseen" for k in ks]
    first = next(iter(result["linkers"].values()))[0]
    unseen = first["accuracy"]["unseen"]["mentions"]
    lines = [
        f"**{result['file'].partition('.tsv')[0]}**: {result['judged']:,} mentions, "
        f"{unseen:,} of them unseen in training mentions; the dictionary covers "
        f"{first['coverage']:.1%}.",
        "",
        render_row(["Linker", "Ties", *titles]),
        render_row(["---", "---", *["---:"] * len(titles)]),
    ]
    for name, seeds in result["linkers"].items():
        for tie in TIES:
            cells = [
                format_mean(
                    [seed["accuracy"][group][level][f"acc@{k}"][tie] for seed in seeds]
                )
                for group, level, k in columns
            ]
            lines.append(render_row([name, tie, *cells]))
    return [*lines, ""]


def render_causes(errors: dict[str, Any]) -> list[str]:
    """Write why mentions are linked wrongly, the biggest cause first.

    errors (dict[str, Any]): What `spacy sapbert evaluate --errors … --output` wrote.
    RETURNS (list[str]): Lines of Markdown.
    """
    causes = sorted(errors["causes"].items(), key=lambda cause: -cause[1])
    wrong = sum(errors["causes"].values())
    judged = sum(file["judged"] for file in errors["files"])
    return [
        "## Why it is wrong",
        "",
        f"BC5CDR disease dev as it is, *fine-tuned*, seed 0: {wrong:,} of "
        f"{judged:,} mentions are not right for certain. Each has one cause, "
        "explained in [evaluation.md](evaluation.md).",
        "",
        render_row(["Cause", "Mentions", "Share"]),
        render_row(["---", "---:", "---:"]),
        *(
            render_row([cause, f"{count:,}", f"{count / wrong:.1%}"])
            for cause, count in causes
        ),
        "",
    ]


def render_significance(tests: dict[str, Any]) -> list[str]:
    """Write down how far encoders differ from the one before training.

    tests (dict[str, Any]): What `spacy sapbert evaluate --compare` wrote, by linker.
    RETURNS (list[str]): Lines of Markdown.
    """
    columns = ("Linker", "Mentions", "More than *base*", "95 % interval", "p")
    lines = [
        "## More than chance",
        "",
        "Acc@1 by concepts against *base*, as the corpora are, ties lenient, seed 0; "
        "p by McNemar's exact test on pairs of answers.",
        "",
        render_row(columns),
        render_row(["---", "---", "---:", "---:", "---:"]),
    ]
    for name, test in tests.items():
        for result in test["comparison"]["results"]:
            found = result["ties"]["lenient"]
            low, high = found["interval"]
            file = result["file"].partition(".tsv")[0]
            cells = (
                f"{file}, {result['mentions']:,}",
                f"{found['difference']:+.4f}",
                f"{low:+.4f} to {high:+.4f}",
                f"{found['p']:.2g}",
            )
            lines.append(render_row([name, *cells]))
    return [*lines, ""]


def render_page(
    comparisons: dict[str, Any],
    tests: dict[str, Any],
    errors: dict[str, Any],
    steps: Sequence[Step],
    options: dict[str, str],
) -> str:
    """Write the page.

    comparisons (dict[str, Any]): What `benchmarks.compare_linkers` wrote, by section.
    tests (dict[str, Any]): What `spacy sapbert evaluate --compare` wrote, by linker.
    errors (dict[str, Any]): What `spacy sapbert evaluate --errors` wrote.
    steps (Sequence[Step]): The commands.
    options (dict[str, str]): Of the command that writes this page.
    RETURNS (str): Markdown.
    """
    machine = comparisons["mesh"]["machine"]
    versions = ", ".join(f"{name} {v}" for name, v in machine["versions"].items())
    seeds = sum(step.makes.startswith("trained-") for step in steps)
    lines = [
        "# Numbers",
        "",
        *render_call("benchmarks.numbers", "docs/numbers.md", options),
        "",
        f"{machine['cpu']}, {machine['cores']} cores; {versions}. All figures are of "
        f"dev sets. *trained*: {seeds} seeds, mean ± sample standard deviation; "
        "*fine-tuned*: the first of them alone. Ties, levels and groups are explained "
        "in [evaluation.md](evaluation.md); *unseen* is by concepts. Nothing was "
        "trained on the mentions that are judged.",
        "",
        render_row(["Linker", "What it is"]),
        render_row(["---", "---"]),
        *(render_row(row) for row in LINKERS.items()),
        "",
    ]
    for section in SECTIONS:
        data = comparisons[section.name]
        about = next(iter(data["linkers"].values()))
        lines += [
            f"## {section.title}",
            "",
            f"{section.about} {about['concepts']:,} concepts, {about['names']:,} "
            "distinct names.",
            "",
            *chain(*(render_file(e, data["settings"]["ks"]) for e in data["files"])),
        ]
    lines += [*render_significance(tests), *render_causes(errors)]
    lines += [
        "## Published",
        "",
        "Acc@1 / Acc@5 in percent, **test** sets, by rows, ties lenient, "
        "pre-processed, other dictionaries; Liu et al. (2021). They are here for "
        "orientation, not to be subtracted.",
        "",
        render_row(["", "NCBI disease", "BC5CDR disease", "BC5CDR chemical"]),
        render_row(["---", "---:", "---:", "---:"]),
        *(render_row(row) for row in PUBLISHED),
        "",
        "## The command of each row",
        "",
        "*exact look-up* and *TF-IDF* are made by the comparison itself, *base* by "
        "the knowledge base that ends in `-base`, the others by those that end in the "
        "seed.",
        "",
        *render_commands(steps),
        "",
    ]
    return "\n".join(lines)


def read_json(path: Path) -> Any:
    """Read what a step made."""
    return json.loads(path.read_text("utf8"))


def main(
    data: Path = typer.Argument(..., help="Folder of vocabularies and corpora."),
    base: str = typer.Option(..., help="Encoder to train: folder or hub id."),
    out: Path = typer.Option(..., help="Folder for all that is made."),
    page: Path = typer.Option(..., help="Markdown to write."),
    seeds: int = typer.Option(3, min=1, help="Encoders to train."),
    train: str = typer.Option(
        "", help="More options of `python -m training train`."
    ),
) -> None:
    """folder of vocabularies and corpora -> docs/numbers.md

    Example: python -m benchmarks.numbers $SPACY_SAPBERT_DATA --base models/minilm --out
    results/numbers --page docs/numbers.md --train "--training.steps 1000"
    """
    steps = list_steps(seeds, train)
    try:
        run_steps(steps, data, base, out)
        comparisons = {
            section.name: read_json(out / f"{section.name}.json")
            for section in SECTIONS
        }
        tests = {
            name: read_json(out / f"significance-{name}-0.json")
            for name in ("trained", "fine-tuned")
        }
        errors = read_json(out / "errors.json")
        options = {"seeds": str(seeds), "train": train}
        with write_atomically(page) as file:
            text = render_page(comparisons, tests, errors, steps, options)
            file.write(text.encode("utf8"))
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    msg.good(f"Wrote {page}")


if __name__ == "__main__":
    typer.run(main)
