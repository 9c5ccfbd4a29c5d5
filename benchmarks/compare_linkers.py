"""Mentions + a dictionary + knowledge bases → one table of who finds the concept."""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import (
    Any,
    NamedTuple,
)

import typer
from wasabi import msg

from benchmarks.machine import describe_machine
from spacy_sapbert.errors import Errors, SapbertError
from spacy_sapbert.evaluation.accuracy import LEVELS, TIES, Ranker, format_mean
from spacy_sapbert.evaluation.evaluate import (
    LIBRARIES,
    describe_settings,
    describe_versions,
)
from spacy_sapbert.evaluation.gold_mentions import (
    GoldMention,
    Lookup,
    Pair,
    read_aliases,
    read_pairs,
)
from spacy_sapbert.evaluation.rankers import (
    exact_lookup,
    kb_lookup,
    kb_ranker,
    read_dictionary,
    tfidf_ranker,
)
from spacy_sapbert.evaluation.score_mentions import (
    EvaluationSettings,
    make_evaluation_settings,
    rank_mentions,
    score_mentions,
    select_mentions,
)
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.system.reading import file_digest
from spacy_sapbert.system.writing import write_json
from spacy_sapbert.vocabularies.concepts import read_concepts


class Linker(NamedTuple):
    """One of those that are compared.

    rank (Ranker): Mentions to answers.
    lookup (Lookup): An id to the concept that has it.
    about (dict[str, Any]): What it is, and the concepts and distinct names that it has.
    """

    rank: Ranker
    lookup: Lookup
    about: dict[str, Any]


def describe_linker(what: str, concepts: int, names: int) -> dict[str, Any]:
    """RETURNS (dict[str, Any]): As in comparison.json."""
    return {"about": what, "concepts": concepts, "names": names}


def make_linkers(
    dictionary_path: Path,
    kbs: dict[str, list[str]],
    aliases: dict[str, str],
    *,
    k: int,
) -> Iterator[tuple[str, Linker]]:
    """Make those that are compared, one after the other: memory holds one of them.

    dictionary_path (Path): concepts.jsonl, for the two without an encoder.
    kbs (dict[str, list[str]]): Knowledge bases by name; those of one name are seeds.
    aliases (dict[str, str]): Ids that another one stands for.
    k (int): Concepts for each mention.
    YIELDS (tuple[str, Linker]): Each with its name.
    """
    dictionary = read_dictionary(read_concepts(dictionary_path))
    counts = len(set(dictionary.ids.values())), len(dictionary.names)
    exact = exact_lookup(dictionary, aliases)
    about = describe_linker("equal but for case", *counts)
    yield "exact look-up", Linker(exact, dictionary.lookup, about)
    ngrams = tfidf_ranker(dictionary, aliases, k=k)
    about = describe_linker("character 3-grams as scispaCy, exact search", *counts)
    yield "TF-IDF", Linker(ngrams, dictionary.lookup, about)
    for name, folders in kbs.items():
        for folder in folders:
            kb = load_kb(folder)
            kb.embed(["fever"])  # loads the encoder before the time is measured
            encoder, index = kb.manifest.encoder, kb.manifest.index
            counts = kb.manifest.counts.concepts, kb.manifest.counts.rows
            about = describe_linker(
                f"{encoder.base}, {encoder.pooling}, {index.backend}", *counts
            )
            rank = kb_ranker(kb, aliases, k=k)
            yield name, Linker(rank, kb_lookup(kb), about)


def compare_linkers(
    linkers: Iterable[tuple[str, Linker]],
    paths: Sequence[Path],
    settings: EvaluationSettings,
    aliases: dict[str, str],
    *,
    seen: set[Pair] | None = None,
    progress: bool = False,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Judge all linkers on the same mentions.

    linkers (Iterable[tuple[str, Linker]]): With their names.
    paths (Sequence[Path]): Files of gold mentions.
    settings (EvaluationSettings): How answers are judged.
    aliases (dict[str, str]): Ids that another one stands for.
    seen (set[Pair] | None): What training mentions say; None = not asked.
    progress (bool): Show bars.
    RETURNS (tuple[dict[str, Any], list[dict[str, Any]]]): What the linkers are; and for
        each file its counts and, by linker, for each seed coverage, accuracy and
        distinct mentions a second.
    RAISES (SapbertError): If a file of mentions is not usable.
    """
    about: dict[str, Any] = {}
    golds: list[list[GoldMention]] = []
    results: list[dict[str, Any]] = []
    for path in paths:
        chosen, counts = select_mentions(path, settings)
        golds.append(chosen)
        file = {"file": path.name, "sha256": file_digest(path), **counts}
        results.append({**file, "judged": len(chosen), "linkers": {}})
    for name, linker in linkers:
        about[name] = linker.about
        for chosen, result in zip(golds, results, strict=True):
            start = time.perf_counter()
            texts = (gold.mention for gold in chosen)
            answers = rank_mentions(linker.rank, texts, progress=progress)
            seconds = time.perf_counter() - start
            judged = score_mentions(
                chosen, answers, linker.lookup, aliases, settings, seen=seen
            )
            speed = {"mentions_per_second": round(len(answers) / seconds, 1)}
            result["linkers"].setdefault(name, []).append({**judged, **speed})
    return about, results


def group_kbs(values: Sequence[str]) -> dict[str, list[str]]:
    """Read names and knowledge bases from the command line.

    values (Sequence[str]): Each `NAME=FOLDER`; those of one name are seeds.
    RETURNS (dict[str, list[str]]): Folders by name.
    RAISES (SapbertError): If one has another form.
    """
    kbs: dict[str, list[str]] = {}
    for value in values:
        name, _, folder = value.partition("=")
        if not name or not folder:
            raise SapbertError(Errors.E709.format(setting="--kb", value=value))
        kbs.setdefault(name, []).append(folder)
    return kbs


def render_row(cells: Sequence[Any]) -> str:
    """Write one line of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def render_comparison(data: dict[str, Any]) -> str:
    """Write the comparison down.

    data (dict[str, Any]): What the JSON file says.
    RETURNS (str): Markdown.
    """
    machine = data["machine"]
    versions = ", ".join(f"{name} {v}" for name, v in machine["versions"].items())
    lines = [
        f"{machine['cpu']}, {machine['cores']} cores, {machine['platform']}; "
        f"{versions}.",
        "",
        render_row(["Linker", "What it is", "Concepts", "Distinct names"]),
        render_row(["---", "---", "---:", "---:"]),
    ]
    for name, about in data["linkers"].items():
        counts = f"{about['concepts']:,}", f"{about['names']:,}"
        lines.append(render_row([name, about["about"], *counts]))
    ks = data["settings"]["ks"]
    columns = [(level, f"acc@{k}") for level in LEVELS for k in ks]
    titles = [f"{key.capitalize()} by {level}" for level, key in columns]
    lines += [
        "",
        f"Ties: {' / '.join(TIES)}. All judged mentions, covered or not. Of several "
        "seeds mean and standard deviation.",
    ]
    for result in data["files"]:
        lines += [
            "",
            f"**{result['file']}**: {result['judged']:,} of {result['mentions']:,} "
            f"mentions judged, {result['without_id']:,} without an id",
            "",
            render_row(["Linker", "Coverage", *titles, "Mentions/s"]),
            render_row(["---", *["---:"] * (len(titles) + 2)]),
        ]
        for name, seeds in result["linkers"].items():
            found = [judged["accuracy"]["all"] for judged in seeds]
            cells = [
                " / ".join(
                    format_mean([each[level][key][tie] for each in found])
                    for tie in TIES
                )
                for level, key in columns
            ]
            coverage = f"{seeds[0]['coverage']:.3f}"
            speed = f"{fmean(each['mentions_per_second'] for each in seeds):,.0f}"
            lines.append(render_row([name, coverage, *cells, speed]))
    return "\n".join(lines)


def main(
    mentions: list[Path] = typer.Argument(..., help="mentions.tsv, or mention||id."),
    dictionary: Path = typer.Option(..., help="concepts.jsonl"),
    kb: list[str] = typer.Option(
        [], help="NAME=FOLDER; may be repeated, with one name for several seeds."
    ),
    seen: list[Path] = typer.Option(
        [], help="Mentions of the training; may be repeated."
    ),
    k: int = typer.Option(5, min=1, help="Answers that count, besides the first."),
    bars_join_parts: bool = typer.Option(
        False, "--bars-join-parts", help="A|B means A+B, as in NCBI disease and BC5CDR."
    ),
    aliases: Path | None = typer.Option(
        None, help="Lines: an id, a tab, the id that it is an alias of."
    ),
    limit: int = typer.Option(0, min=0, help="First mentions of each file; 0 = all."),
    output: Path | None = typer.Option(None, help="comparison.json to write."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """mentions.tsv + concepts.jsonl + kb/ … -> table, comparison.json

    Example: python -m benchmarks.compare_linkers corpus/dev.tsv --dictionary
    assets/concepts.jsonl --kb base=models/kb-base --kb trained=models/kb
    """
    try:
        known = read_aliases(aliases) if aliases else {}
        settings = make_evaluation_settings(
            k, bars_join_parts=bars_join_parts, limit=limit
        )
        bars = bars_join_parts
        pairs = read_pairs(seen, known, bars_join_parts=bars) if seen else None
        about, files = compare_linkers(
            make_linkers(dictionary, group_kbs(kb), known, k=k),
            mentions,
            settings,
            known,
            seen=pairs,
            progress=sys.stderr.isatty() and not quiet,
        )
        data = {
            "machine": {
                **describe_machine(),
                "versions": describe_versions([*LIBRARIES, "scikit-learn"]),
            },
            "settings": describe_settings(settings),
            "dictionary": {"file": dictionary.name, "sha256": file_digest(dictionary)},
            "linkers": about,
            "files": files,
        }
        if output:
            write_json(output, data)
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    if not quiet:
        typer.echo(render_comparison(data))
        if output:
            msg.good(f"Wrote {output}")


if __name__ == "__main__":
    typer.run(main)
