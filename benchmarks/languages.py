"""A vocabulary in many languages → docs/numbers-languages.md: accuracy by step.

The folder of data has `open-rrf/` (RRF in many languages), `crosslingual/` (word lists
from English) and `eval/` (mention tables). A step whose output exists is skipped, so
the command can be stopped and run again.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

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
KS = (1, 5)


def list_training(options: str) -> Iterator[Step]:
    """Yield the steps from a vocabulary to the encoders."""
    for name, languages in (("all", "all"), ("english", "ENG")):
        yield Step(
            f"{name}.jsonl",
            f"spacy sapbert concepts $DATA/open-rrf --output $OUT/{name}.jsonl "
            f"--languages {languages}",
        )
    yield Step(
        "translations.tsv",
        "python -m training translation-pairs $DATA/crosslingual/xling-eval-en.zip "
        "--members '*train.freq.5k.en-*' --output $OUT/translations.tsv",
    )
    yield Step(
        "base",
        "python -m training new-encoder $OUT/all.jsonl $OUT/base --body $BASE "
        "--translations $OUT/translations.tsv",
    )
    for name in ("english", "all"):
        yield Step(
            f"{name}-pairs.tsv",
            f"python -m training pairs $OUT/{name}.jsonl $OUT/{name}-pairs.tsv",
        )
        yield Step(
            name,
            f"python -m training train $OUT/{name}-pairs.tsv $OUT/{name} "
            f"--encoder.base $OUT/base --encoder.pooling mean {options}".rstrip(),
        )
    yield Step(
        "translated",
        "python -m training train $OUT/translations.tsv $OUT/translated "
        "--config training/configs/translations.cfg --encoder.base $OUT/all "
        "--encoder.pooling mean",
    )


def list_steps(options: str) -> list[Step]:
    """Return all steps in order; `options` are more options of `training train`."""
    steps = list(list_training(options))
    mentions = " ".join(f"$DATA/eval/{name}" for name in CORPORA)
    for dictionary in DICTIONARIES:
        for encoder in ENCODERS:
            kb = f"kb-{dictionary}-{encoder}"
            steps += [
                Step(
                    kb,
                    f"spacy sapbert kb build $OUT/{dictionary}.jsonl $OUT/{kb} "
                    f"--encoder $OUT/{encoder} --backend exact --precision bf16",
                ),
                Step(
                    f"{kb}.json",
                    f"spacy sapbert evaluate $OUT/{kb} {mentions} --output "
                    f"$OUT/{kb}.json",
                ),
            ]
    return steps


def format_dictionary(runs: dict[str, Run]) -> list[str]:
    """Format the results of one dictionary; `runs` by encoder."""
    coverages = next(iter(runs.values())).coverages
    covered = ", ".join(
        f"{coverages[file]:.1%} of {title}" for file, title in CORPORA.items()
    )
    titles = [f"{title} P@{k}" for title in CORPORA.values() for k in KS]
    keys = [Key(file, "concepts", k) for file in CORPORA for k in KS]
    rows = [
        (ENCODERS[name], *(format_mean([run.accuracies[k]["expected"]]) for k in keys))
        for name, run in runs.items()
    ]
    table = markdown_table(["Encoder", *titles], rows)
    return [f"Covered, and scored here: {covered}.", "", *table, ""]


def format_page(
    results: dict[str, dict[str, Run]],
    steps: Sequence[Step],
    options: dict[str, str],
    machine: str,
) -> list[str]:
    """Format the page; `results` by dictionary and encoder."""
    published = [
        ("trained on English names", "11.5"),
        ("trained on the names of all languages", "20.6"),
        ("with translations", "30.9"),
    ]
    lines = [
        "# Numbers: languages",
        "",
        *format_call("benchmarks.languages", "docs/numbers-languages.md", options),
        "",
        f"{machine}. An open vocabulary in eleven languages, Spanish among them, "
        "Russian not. The word lists lead from English to seven languages, Russian "
        "among them, Spanish not. Each encoder has wordpieces of its own on the body "
        "of an English one ([how](training.md#a-small-encoder-for-several-languages)): "
        "it was not trained on text. Precision of the first answers by concepts, "
        "ties expected, of the mentions that the vocabulary covers; one seed.",
        "",
    ]
    for dictionary, title in DICTIONARIES.items():
        lines += [f"## {title}", "", *format_dictionary(results[dictionary])]
    return [
        *lines,
        "## Published",
        "",
        "XL-BEL, Precision@1 in percent, with all of UMLS and XLM-R (Liu et al., "
        "XL-BEL, 2021). For orientation, not to be subtracted.",
        "",
        *markdown_table(("Thai", "P@1"), published),
        "",
        "## The command of each row",
        "",
        *format_commands(steps),
        "",
    ]


def main(
    data: Path = typer.Argument(..., help="Folder of vocabularies and corpora."),
    base: str = typer.Option(..., help="Encoder with the body: folder or hub id."),
    out: Path = typer.Option(..., help="Folder for all outputs."),
    page: Path = typer.Option(..., help="Markdown to write."),
    train: str = typer.Option("", help="More options of `python -m training train`."),
) -> None:
    """folder of vocabularies and corpora -> docs/numbers-languages.md

    Example: python -m benchmarks.languages $SPACY_SAPBERT_DATA --base models/minilm
    --out results/languages --page docs/numbers-languages.md --train "--training.steps
    600"
    """
    steps = list_steps(train)
    run_steps(steps, data, base, out)
    results = {
        dictionary: {
            encoder: read_run(out / f"kb-{dictionary}-{encoder}.json", "covered")
            for encoder in ENCODERS
        }
        for dictionary in DICTIONARIES
    }
    write_page(page, format_page(results, steps, {"train": train}, machine_line()))


if __name__ == "__main__":
    run_cli(main)
