"""Mentions + kb/ → what 3-grams beside the encoder bring, one table.

    python -m benchmarks.hybrid corpus/dev.tsv.gz --kb models/kb --train
    corpus/train.tsv.gz

Each file is judged as it is, and with one misspelling in each mention: two letters
swapped, one left out or one doubled. The weight is chosen on the files of `--train`,
as they are; the other files only show what it brings.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import typer
from wasabi import msg

from benchmarks.compare_linkers import render_row
from benchmarks.machine import describe_machine, machine_line
from benchmarks.misspellings import misspell_mentions
from spacy_sapbert.errors import Errors, SapbertError
from spacy_sapbert.evaluation.accuracy import Answer, Ranker, trim_answers
from spacy_sapbert.evaluation.evaluate import (
    describe_kb,
    describe_settings,
    describe_versions,
)
from spacy_sapbert.evaluation.gold_mentions import GoldMention, read_aliases
from spacy_sapbert.evaluation.rankers import (
    embed_mentions,
    kb_lookup,
    kb_ranker,
)
from spacy_sapbert.evaluation.score_mentions import (
    EvaluationSettings,
    make_evaluation_settings,
    rank_mentions,
    score_mentions,
    select_mentions,
)
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.ngrams.build import build_ngrams, iter_names
from spacy_sapbert.kb.ngrams.index import NgramIndex, load_ngrams
from spacy_sapbert.linking.candidates import iterate_hits
from spacy_sapbert.linking.fusion import Found, fuse_scores, unite_searches
from spacy_sapbert.system.reading import file_digest
from spacy_sapbert.system.writing import write_json

WEIGHTS = (0.1, 0.2, 0.3, 0.4, 0.5)
TIMED_MENTIONS = 512  # the first ones

Search = Callable[[Sequence[str]], list[Found]]


def make_search(kb: KnowledgeBase, ngrams: NgramIndex, rows: int) -> Search:
    """Make the search of both kinds.

    kb (KnowledgeBase): The knowledge base.
    ngrams (NgramIndex): Of its names.
    rows (int): How many rows each of the two searches finds.
    RETURNS (Search): Mentions to what was found; nothing for those without a vector.
    """

    def search(mentions: Sequence[str]) -> list[Found]:
        numbers, vectors = embed_mentions(kb, mentions)
        texts = [mentions[number] for number in numbers]
        near = kb.search(vectors, rows)
        found = unite_searches(texts, vectors, near, kb.index, ngrams, k=rows)
        nothing = Found(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
        by_number = dict(zip(numbers.tolist(), found, strict=True))
        return [by_number.get(number, nothing) for number in range(len(mentions))]

    return search


def make_ranks(
    kb: KnowledgeBase, search: Search, aliases: dict[str, str], *, k: int
) -> dict[str, Ranker]:
    """Make a linker of each kind of fusion, all of the same search.

    kb (KnowledgeBase): The knowledge base.
    search (Search): What it searches with; each text is searched for once.
    aliases (dict[str, str]): Ids that another one stands for.
    k (int): Concepts for each mention.
    RETURNS (dict[str, Ranker]): By the name of the row in the table.
    """
    known: dict[str, Found] = {}

    def make_rank(**settings: Any) -> Ranker:
        def rank(mentions: Sequence[str]) -> list[list[Answer]]:
            new = [text for text in mentions if text not in known]
            known.update(zip(new, search(new) if new else [], strict=True))
            results: list[list[Answer]] = []
            for found in map(known.__getitem__, mentions):
                fused = fuse_scores(found.cosines, found.similarities, **settings)
                ranked = iterate_hits(
                    found.rows.tolist(), fused.tolist(), kb.entries(found.rows)
                )
                answers = [
                    Answer(entry.row, aliases.get(entry.cui, entry.cui), score)
                    for score, entry, _ in ranked
                ]
                results.append(trim_answers(answers, k))
            return results

        return rank

    return {
        "3-grams alone": make_rank(weight=1),
        **{f"weighted, {weight}": make_rank(weight=weight) for weight in WEIGHTS},
        "rrf": make_rank(fusion="rrf"),
    }


def judge_file(
    golds: Sequence[GoldMention],
    ranks: dict[str, Ranker],
    kb: KnowledgeBase,
    aliases: dict[str, str],
    settings: EvaluationSettings,
) -> dict[str, Any]:
    """Judge all linkers on the same mentions.

    golds (Sequence[GoldMention]): Each with an id.
    ranks (dict[str, Ranker]): The linkers.
    kb (KnowledgeBase): Knows the ids.
    aliases (dict[str, str]): Ids that another one stands for.
    settings (EvaluationSettings): How answers are judged.
    RETURNS (dict[str, Any]): By linker, accuracy by concepts.
    """
    lookup = kb_lookup(kb)
    results: dict[str, Any] = {}
    for name, rank in ranks.items():
        answers = rank_mentions(rank, (gold.mention for gold in golds))
        judged = score_mentions(golds, answers, lookup, aliases, settings)
        results[name] = judged["accuracy"]["all"]["concepts"]
    return results


def check_names(paths: Sequence[Path]) -> None:
    """RAISES (SapbertError): If two files have the same name."""
    names = [path.name for path in paths]
    for name in names:
        if names.count(name) > 1:
            raise SapbertError(Errors.E740.format(name=name))


def read_files(
    paths: Sequence[Path], settings: EvaluationSettings, seed: int
) -> Iterator[tuple[str, list[GoldMention]]]:
    """Read gold mentions, and make mistakes in them.

    paths (Sequence[Path]): The files.
    settings (EvaluationSettings): Which mentions are taken.
    seed (int): Of the mistakes.
    YIELDS (tuple[str, list[GoldMention]]): Each file under its name as it is, and
        again misspelled.
    """
    for path in paths:
        golds, _ = select_mentions(path, settings)
        yield path.name, golds
        yield f"{path.name}, misspelled", misspell_mentions(golds, seed)


def measure_time(kb: KnowledgeBase, search: Search, texts: Sequence[str]) -> float:
    """Compare the time of both searches with that of the encoder and its search.

    kb (KnowledgeBase): The knowledge base.
    search (Search): Both searches.
    texts (Sequence[str]): Mentions.
    RETURNS (float): The median ratio of three rounds, taken in turns.
    """
    ratios: list[float] = []
    for _ in range(3):
        start = time.perf_counter()
        kb.search(embed_mentions(kb, texts)[1], 32)
        middle = time.perf_counter()
        search(texts)
        ratios.append((time.perf_counter() - middle) / (middle - start))
    return sorted(ratios)[1]


def choose_weight(results: Sequence[dict[str, Any]]) -> str:
    """Choose the weight with the best mean Acc@1, ties left to chance.

    results (Sequence[dict[str, Any]]): From `judge_file`, of the mentions as they are.
    RETURNS (str): The linker.
    """
    means = {
        f"weighted, {weight}": fmean(
            linkers[f"weighted, {weight}"]["acc@1"]["expected"] for linkers in results
        )
        for weight in WEIGHTS
    }
    return max(means, key=lambda name: means[name])


def compare_fusions(
    kb: KnowledgeBase,
    train: Sequence[Path],
    mentions: Sequence[Path],
    aliases: dict[str, str],
    settings: EvaluationSettings,
    *,
    rows: int,
    seed: int,
) -> dict[str, Any]:
    """Judge every fusion on all files, and choose a weight.

    kb (KnowledgeBase): The knowledge base; its 3-grams are made anew.
    train (Sequence[Path]): Gold mentions to choose the weight on.
    mentions (Sequence[Path]): Other gold mentions.
    aliases (dict[str, str]): Ids that another one stands for.
    settings (EvaluationSettings): How answers are judged.
    rows (int): How many rows each of the two searches finds.
    seed (int): Of the mistakes.
    RETURNS (dict[str, Any]): What hybrid.json says, but for the machine.
    RAISES (SapbertError): If a file is not usable, or two have the same name.
    """
    check_names([*train, *mentions])
    total = kb.meta["counts"]["rows"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.perf_counter()
        counts = build_ngrams(iter_names(kb.layers[0].store, total), folder)
        seconds = time.perf_counter() - start
        size = sum(path.stat().st_size for path in folder.iterdir())
        search = make_search(kb, load_ngrams(folder, rows=total), rows)
        ranks = {
            "cosine alone": kb_ranker(kb, aliases, k=max(settings.ks)),
            **make_ranks(kb, search, aliases, k=max(settings.ks)),
        }
        files: dict[str, Any] = {}
        texts: dict[str, None] = {}
        for file, golds in read_files([*train, *mentions], settings, seed):
            linkers = judge_file(golds, ranks, kb, aliases, settings)
            files[file] = {"judged": len(golds), "linkers": linkers}
            texts.update(dict.fromkeys(gold.mention for gold in golds))
        ratio = measure_time(kb, search, list(texts)[:TIMED_MENTIONS])
    chosen = [files[path.name]["linkers"] for path in train]
    return {
        "settings": {**describe_settings(settings), "rows": rows, "seed": seed},
        "kb": describe_kb(kb),
        "inputs": {path.name: file_digest(path) for path in [*train, *mentions]},
        "chosen": choose_weight(chosen) if chosen else None,
        "ngrams": {**counts, "bytes": size, "seconds_to_build": round(seconds, 1)},
        "time_ratio": round(ratio, 2),
        "files": files,
    }


def render_results(data: dict[str, Any]) -> str:
    """Write the accuracies down.

    data (dict[str, Any]): From `compare_fusions`.
    RETURNS (str): Markdown.
    """
    ngrams, ks = data["ngrams"], data["settings"]["ks"]
    lines = [
        f"{ngrams['names']:,} names, {ngrams['distinct']:,} distinct 3-grams, "
        f"{ngrams['bytes'] / 1e6:,.1f} MB, built in {ngrams['seconds_to_build']} s.",
        f"Both searches take {data['time_ratio']} times as long as encoding and "
        "searching by cosine.",
        "By concepts; ties: lenient / expected.",
    ]
    for name, result in data["files"].items():
        lines += ["", f"**{name}**: {result['judged']:,} mentions", ""]
        lines += [render_row(["Search", *(f"Acc@{k}" for k in ks)])]
        lines += [render_row(["---", *["---:"] * len(ks)])]
        for linker, accuracy in result["linkers"].items():
            each = [accuracy[f"acc@{k}"] for k in ks]
            cells = [f"{a['lenient']:.3f} / {a['expected']:.3f}" for a in each]
            lines.append(render_row([linker, *cells]))
    if data["chosen"]:
        lines += ["", f"Chosen on the files of `--train`: {data['chosen']}."]
    return "\n".join(lines)


def main(
    mentions: list[Path] = typer.Argument(..., help="mentions.tsv, or mention||id."),
    kb: Path = typer.Option(..., help="Folder of the knowledge base."),
    train: list[Path] = typer.Option(
        [], help="Mentions to choose the weight on; may be repeated."
    ),
    k: int = typer.Option(5, min=1, help="Answers that count, besides the first."),
    rows: int = typer.Option(32, min=1, help="Rows that each search finds."),
    aliases: Path | None = typer.Option(
        None, help="Lines: an id, a tab, the id that it is an alias of."
    ),
    limit: int = typer.Option(0, min=0, help="First mentions of each file; 0 = all."),
    seed: int = typer.Option(0, help="Of the misspellings."),
    output: Path | None = typer.Option(None, help="hybrid.json to write."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """mentions.tsv + kb/ -> table, hybrid.json

    Example: python -m benchmarks.hybrid corpus/dev.tsv.gz --kb models/kb --train
    corpus/train.tsv.gz
    """
    try:
        known = read_aliases(aliases) if aliases else {}
        settings = make_evaluation_settings(k, limit=limit)
        result = compare_fusions(
            load_kb(kb), train, mentions, known, settings, rows=rows, seed=seed
        )
        machine = {**describe_machine(), "versions": describe_versions()}
        if output:
            write_json(output, {"machine": machine, **result})
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    if not quiet:
        typer.echo(f"{machine_line()}.\n{render_results(result)}")
        if output:
            msg.good(f"Wrote {output}")


if __name__ == "__main__":
    typer.run(main)
