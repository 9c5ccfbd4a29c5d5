"""A vocabulary in many languages → docs/numbers-languages.md: what each step gives.

The folder of data has `open-rrf/` (RRF in many languages), `crosslingual/` (word lists
from English) and `eval/` (mention tables); see `docs/evaluation.md`. What a step has
made is not made again, so that the command can be stopped and given once more.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import typer
from wasabi import msg

from benchmarks.compare_linkers import render_row
from benchmarks.machine import machine_line
from benchmarks.steps import Step, render_call, render_commands, run_steps
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.accuracy import format_mean
from spacy_sapbert.system.writing import write_atomically
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
    """Return the steps from a vocabulary to the encoders."""
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
    """Return all steps in order.

    options (str): Of `python -m training train`.
    RETURNS (list[Step]): From vocabulary to results.
    """
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


def render_dictionary(runs: dict[str, Run]) -> list[str]:
    """Write the results of one dictionary down.

    runs (dict[str, Run]): From `read_run`, by encoder.
    RETURNS (list[str]): Lines of Markdown.
    """
    coverages = next(iter(runs.values())).coverages
    covered = ", ".join(
        f"{coverages[file]:.1%} of {title}" for file, title in CORPORA.items()
    )
    titles = [f"{title} P@{k}" for title in CORPORA.values() for k in KS]
    lines = [
        f"Covered, and judged here: {covered}.",
        "",
        render_row(["Encoder", *titles]),
        render_row(["---", *["---:"] * len(titles)]),
    ]
    keys = [Key(file, "concepts", k) for file in CORPORA for k in KS]
    for name, run in runs.items():
        cells = [format_mean([run.accuracies[key]["expected"]]) for key in keys]
        lines.append(render_row([ENCODERS[name], *cells]))
    return [*lines, ""]


def render_page(
    results: dict[str, dict[str, Run]],
    steps: Sequence[Step],
    options: dict[str, str],
    machine: str,
) -> str:
    """Write the page.

    results (dict[str, dict[str, Run]]): From `read_run`, by dictionary and encoder.
    steps (Sequence[Step]): The commands.
    options (dict[str, str]): Of the command that writes this page.
    machine (str): What it ran on.
    RETURNS (str): Markdown.
    """
    lines = [
        "# Numbers: languages",
        "",
        *render_call("benchmarks.languages", "docs/numbers-languages.md", options),
        "",
        f"{machine}. An open vocabulary in eleven languages, Spanish among them, "
        "Russian not. The word lists lead from English to seven languages, Russian "
        "among them, Spanish not. Each encoder has wordpieces of its own on the body "
        "of an English one ([how](training.md#a-small-encoder-for-several-languages)): "
        "nobody has trained it on text. Precision of the first answers by concepts, "
        "ties expected, of the mentions that the vocabulary covers; one seed.",
        "",
    ]
    for dictionary, title in DICTIONARIES.items():
        lines += [f"## {title}", "", *render_dictionary(results[dictionary])]
    lines += [
        "## Published",
        "",
        "XL-BEL, Precision@1 in percent, with all of UMLS and XLM-R (Liu et al., "
        "XL-BEL, 2021). For orientation, not to be subtracted.",
        "",
        render_row(["Thai", "P@1"]),
        render_row(["---", "---:"]),
        render_row(["trained on English names", "11.5"]),
        render_row(["trained on the names of all languages", "20.6"]),
        render_row(["with translations", "30.9"]),
        "",
        "## The command of each row",
        "",
        *render_commands(steps),
        "",
    ]
    return "\n".join(lines)


def read_results(out: Path) -> dict[str, dict[str, Run]]:
    """Read what all steps made, of covered mentions."""
    return {
        dictionary: {
            encoder: read_run(out / f"kb-{dictionary}-{encoder}.json", "covered")
            for encoder in ENCODERS
        }
        for dictionary in DICTIONARIES
    }


def main(
    data: Path = typer.Argument(..., help="Folder of vocabularies and corpora."),
    base: str = typer.Option(..., help="Encoder whose body is taken: folder or id."),
    out: Path = typer.Option(..., help="Folder for all that is made."),
    page: Path = typer.Option(..., help="Markdown to write."),
    train: str = typer.Option(
        "", help="More options of `python -m training train`."
    ),
) -> None:
    """folder of vocabularies and corpora -> docs/numbers-languages.md

    Example: python -m benchmarks.languages $SPACY_SAPBERT_DATA --base models/minilm
    --out results/languages --page docs/numbers-languages.md --train "--training.steps
    600"
    """
    steps = list_steps(train)
    try:
        run_steps(steps, data, base, out)
        options = {"train": train}
        text = render_page(read_results(out), steps, options, machine_line())
        with write_atomically(page) as file:
            file.write(text.encode("utf8"))
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    msg.good(f"Wrote {page}")


if __name__ == "__main__":
    typer.run(main)
