"""Mentions + a dictionary + knowledge bases → one table of who finds the concept."""

import sys
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import typer
from wasabi import msg

from benchmarks.machine import describe_machine
from spacy_sapbert.concepts import read_concepts
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.files import file_digest, write_json
from spacy_sapbert.kb import load_kb
from training.accuracy import LEVELS, TIES, Rank
from training.baselines import (
    make_exact_lookup,
    make_tfidf_search,
    read_dictionary,
)
from training.evaluate import LIBRARIES, describe_settings, describe_versions
from training.judging import (
    EvaluationSettings,
    answer_mentions,
    choose_mentions,
    judge_mentions,
    make_evaluation_settings,
)
from training.kb_search import make_kb_lookup, make_kb_search, parse_kbs
from training.mentions import Lookup, read_aliases


class Linker(NamedTuple):
    """One of those that are compared.

    rank (Rank): Mentions to answers.
    lookup (Lookup): An id to the concept that has it.
    about (str): What it is.
    concepts (int): In its dictionary.
    names (int): Distinct ones in its dictionary.
    """

    rank: Rank
    lookup: Lookup
    about: str
    concepts: int
    names: int


def make_linkers(
    dictionary_path: Path, kbs: Dict[str, str], aliases: Dict[str, str], *, k: int
) -> Dict[str, Linker]:
    """Make those that are compared.

    dictionary_path (Path): concepts.jsonl, for the two without an encoder.
    kbs (Dict[str, str]): Knowledge bases by name.
    aliases (Dict[str, str]): Ids that another one stands for.
    k (int): Concepts for each mention.
    RETURNS (Dict[str, Linker]): By name.
    """
    dictionary = read_dictionary(read_concepts(dictionary_path))
    counts = len(set(dictionary.ids.values())), len(dictionary.names)
    baselines = {
        "exact look-up": (make_exact_lookup(dictionary, aliases), "equal but for case"),
        "TF-IDF": (
            make_tfidf_search(dictionary, aliases, k=k),
            "character 3-grams as scispaCy, exact search",
        ),
    }
    linkers = {
        name: Linker(rank, dictionary.lookup, about, *counts)
        for name, (rank, about) in baselines.items()
    }
    for name, folder in kbs.items():
        kb = load_kb(folder)
        kb.encode(["fever"])  # so that loading does not count as linking
        meta = kb.meta
        encoder, index = meta["encoder"], meta["index"]
        linkers[name] = Linker(
            make_kb_search(kb, aliases, k=k),
            make_kb_lookup(kb),
            f"{encoder['base']}, {encoder['pooling']}, {index['backend']}",
            meta["counts"]["concepts"],
            meta["counts"]["rows"],
        )
    return linkers


def compare_linkers(
    linkers: Dict[str, Linker],
    paths: Sequence[Path],
    settings: EvaluationSettings,
    aliases: Dict[str, str],
    *,
    progress: bool = False,
) -> List[Dict[str, Any]]:
    """Judge all linkers on the same mentions.

    linkers (Dict[str, Linker]): By name.
    paths (Sequence[Path]): Files of gold mentions.
    settings (EvaluationSettings): How answers are judged.
    aliases (Dict[str, str]): Ids that another one stands for.
    progress (bool): Show bars.
    RETURNS (List[Dict[str, Any]]): For each file its counts and, by linker, coverage,
        accuracy and distinct mentions a second.
    RAISES (SapbertError): If a file of mentions is not usable.
    """
    results: List[Dict[str, Any]] = []
    for path in paths:
        golds, counts = choose_mentions(path, settings)
        judged: Dict[str, Any] = {}
        for name, linker in linkers.items():
            start = time.perf_counter()
            texts = (gold.mention for gold in golds)
            answers = answer_mentions(linker.rank, texts, progress=progress)
            seconds = time.perf_counter() - start
            judged[name] = {
                **judge_mentions(golds, answers, linker.lookup, aliases, settings),
                "mentions_per_second": round(len(answers) / seconds, 1),
            }
        file = {"file": path.name, "sha256": file_digest(path)}
        results.append({**file, **counts, "judged": len(golds), "linkers": judged})
    return results


def render_row(cells: Sequence[Any]) -> str:
    """Write one line of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def render_comparison(data: Dict[str, Any]) -> str:
    """Write the comparison down.

    data (Dict[str, Any]): What the JSON file says.
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
    lines += ["", f"Ties: {' / '.join(TIES)}. All judged mentions, covered or not."]
    for result in data["files"]:
        lines += [
            "",
            f"**{result['file']}**: {result['judged']:,} of {result['mentions']:,} "
            f"mentions judged, {result['without_id']:,} without an id",
            "",
            render_row(["Linker", "Coverage", *titles, "Mentions/s"]),
            render_row(["---", *["---:"] * (len(titles) + 2)]),
        ]
        for name, judged in result["linkers"].items():
            accuracy = judged["accuracy"]["all"]
            cells = [
                " / ".join(f"{accuracy[level][key][tie]:.3f}" for tie in TIES)
                for level, key in columns
            ]
            speed = f"{judged['mentions_per_second']:,.0f}"
            lines.append(render_row([name, f"{judged['coverage']:.3f}", *cells, speed]))
    return "\n".join(lines)


def main(
    mentions: List[Path] = typer.Argument(..., help="mentions.tsv, or mention||id."),
    dictionary: Path = typer.Option(..., help="concepts.jsonl"),
    kb: List[str] = typer.Option([], help="NAME=FOLDER; may be repeated."),
    k: int = typer.Option(5, min=1, help="Answers that count, besides the first."),
    bars_join_parts: bool = typer.Option(
        False, "--bars-join-parts", help="A|B means A+B, as in NCBI disease and BC5CDR."
    ),
    aliases: Optional[Path] = typer.Option(
        None, help="Lines: an id, a tab, the id that it is an alias of."
    ),
    limit: int = typer.Option(0, min=0, help="First mentions of each file; 0 = all."),
    output: Optional[Path] = typer.Option(None, help="comparison.json to write."),
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
        linkers = make_linkers(dictionary, parse_kbs(kb), known, k=k)
        progress = sys.stderr.isatty() and not quiet
        files = compare_linkers(linkers, mentions, settings, known, progress=progress)
        data = {
            "machine": {
                **describe_machine(),
                "versions": describe_versions([*LIBRARIES, "scikit-learn"]),
            },
            "settings": describe_settings(settings),
            "dictionary": {"file": dictionary.name, "sha256": file_digest(dictionary)},
            "linkers": {
                name: {
                    "about": linker.about,
                    "concepts": linker.concepts,
                    "names": linker.names,
                }
                for name, linker in linkers.items()
            },
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
