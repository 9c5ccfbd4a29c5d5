"""kb/ + mentions.tsv → errors.html: which mentions get a wrong concept, and why."""

import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import typer
from wasabi import msg

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.error_groups import (
    Limits,
    Sources,
    group_by_cause,
    group_by_concept,
)
from spacy_sapbert.evaluation.error_page import NOTICE, render_page
from spacy_sapbert.evaluation.evaluate import (
    describe_kb,
    describe_settings,
    describe_versions,
)
from spacy_sapbert.evaluation.gold_mentions import (
    check_names,
    make_resolver,
    read_aliases,
)
from spacy_sapbert.evaluation.kb_ranker import make_kb_lookup, make_kb_search
from spacy_sapbert.evaluation.linking_errors import (
    find_missed_concepts,
    find_mistakes,
    make_concept_finder,
    make_facts,
)
from spacy_sapbert.evaluation.score_mentions import (
    EvaluationSettings,
    answer_mentions,
    choose_mentions,
    judge_mentions,
    make_evaluation_settings,
)
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.system.reading import file_digest
from spacy_sapbert.system.writing import write_atomically, write_json

SHOWN = Limits()


def report_errors(
    kb: KnowledgeBase,
    paths: Sequence[Path],
    settings: EvaluationSettings,
    *,
    aliases: dict[str, str] | None = None,
    steps: int = 3,
    limits: Limits = SHOWN,
    progress: bool = False,
) -> dict[str, Any]:
    """Find out why answers to gold mentions are wrong.

    kb (KnowledgeBase): The knowledge base.
    paths (Sequence[Path]): Files of gold mentions.
    settings (EvaluationSettings): How answers are judged.
    aliases (dict[str, str] | None): From `read_aliases`.
    steps (int): How far up or down the hierarchy an answer counts as too general or
        too specific.
    limits (Limits): How much is shown.
    progress (bool): Show a bar.
    RETURNS (dict[str, Any]): What the JSON file says and the page shows.
    RAISES (SapbertError): If a file of mentions is not usable.
    """
    check_names(paths)
    aliases = aliases or {}
    k = max(settings.ks)
    chosen = [choose_mentions(path, settings) for path in paths]
    texts = [gold.mention for golds, _ in chosen for gold in golds]
    rank = make_kb_search(kb, aliases, k=k)
    answers = answer_mentions(rank, texts, progress=progress)
    lookup = make_kb_lookup(kb)
    find = make_concept_finder(kb, aliases)
    facts = make_facts(find, lookup, aliases)
    resolve = make_resolver(lookup, aliases)
    search = partial(find_missed_concepts, kb, aliases=aliases)
    named = (
        (path.name, gold)
        for path, (golds, _) in zip(paths, chosen, strict=True)
        for gold in golds
    )
    mistakes, meanings = find_mistakes(
        named, answers, resolve, facts, search, aliases, settings, steps=steps
    )
    wrong = Counter(mistake.file for mistake in mistakes)
    files: list[dict[str, Any]] = []
    for path, (golds, counts) in zip(paths, chosen, strict=True):
        judged = judge_mentions(golds, answers, lookup, aliases, settings)
        files.append(
            {
                "file": path.name,
                "sha256": file_digest(path),
                **counts,
                "judged": judged["judged"],
                "coverage": judged["coverage"],
                "acc@1": judged["accuracy"]["all"]["concepts"]["acc@1"],
                "wrong": wrong[path.name],
            }
        )
    sources = Sources(kb, find, facts, answers, aliases)
    shown = {"steps": steps, "shown": limits._asdict()}
    return {
        "notice": NOTICE,
        "settings": {**describe_settings(settings), **shown},
        "kb": describe_kb(kb),
        "versions": describe_versions(),
        "files": files,
        "wrong": len(mistakes),
        "causes": group_by_cause(mistakes, k, sources, limits),
        **group_by_concept(mistakes, meanings, sources, limits),
    }


def print_causes(data: dict[str, Any]) -> None:
    """Print how many mentions have which cause, and no text.

    data (dict[str, Any]): From `report_errors`.
    """
    for file in data["files"]:
        ties = ", ".join(f"{tie} {value:.4f}" for tie, value in file["acc@1"].items())
        msg.text(
            f"{file['file']}: {file['wrong']:,} of {file['judged']:,} judged mentions "
            f"are wrong. Acc@1 by concepts: {ties}."
        )
    rows = [
        (cause["cause"], f"{cause['count']:,}", f"{cause['share']:.1%}")
        for cause in data["causes"]
    ]
    header = ("Cause", "Mentions", "Share")
    msg.table(rows, header=header, divider=True, aligns=("l", "r", "r"))


def main(
    kb: str = typer.Argument(..., help="Folder or name of a knowledge base."),
    mentions: list[Path] = typer.Argument(..., help="mentions.tsv, or mention||id."),
    output: Path = typer.Option(..., help="errors.html to write."),
    json_output: Path | None = typer.Option(
        None, "--json", help="The same as JSON to write."
    ),
    k: int = typer.Option(5, min=1, help="Answers that are shown, and a near miss."),
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
    limit: int = typer.Option(0, min=0, help="First mentions of each file; 0 = all."),
    steps: int = typer.Option(3, min=0, help="How far up or down is still related."),
    most: int = typer.Option(
        200, min=0, help="Gold concepts shown of each cause; 0 = all."
    ),
    most_mentions: int = typer.Option(
        20, min=0, help="Different mentions shown of each gold concept; 0 = all."
    ),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """kb/ + mentions.tsv -> errors.html, errors.json

    Both files hold texts of mentions; nothing that is printed does.

    Example: python -m spacy_sapbert.evaluation.error_report models/kb corpus/dev.tsv.gz --output
    errors.html --json errors.json
    """
    try:
        settings = make_evaluation_settings(
            k,
            composite=composite,
            bars_join_parts=bars_join_parts,
            distinct=distinct,
            limit=limit,
        )
        data = report_errors(
            load_kb(kb),
            mentions,
            settings,
            aliases=read_aliases(aliases) if aliases else {},
            steps=steps,
            limits=Limits(most, most_mentions),
            progress=sys.stderr.isatty() and not quiet,
        )
        with write_atomically(output) as file:
            file.write(render_page(data).encode("utf8", "replace"))
        if json_output:
            write_json(json_output, data)
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    if quiet:
        return
    print_causes(data)
    for written in filter(None, (output, json_output)):
        msg.good(f"Wrote {written}")


if __name__ == "__main__":
    typer.run(main)
