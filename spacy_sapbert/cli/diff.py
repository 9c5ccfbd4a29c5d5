"""`spacy sapbert concepts diff` and `kb diff`: what a new release changes."""

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..io.terminal import msg, printable
from ..io.writing import write_atomically
from .app import check_outputs
from .concepts import concepts_app
from .kb.app import kb_app
from .options import Force

if TYPE_CHECKING:
    from ..vocabularies.compare import Difference

EXAMPLES = 3  # of each kind of difference
OUTPUT = typer.Option(None, "--output", "-o", help="JSONL with every difference.")


@concepts_app.command("diff")
def diff_concepts(
    old: Path = typer.Argument(..., help="concepts.jsonl"),
    new: Path = typer.Argument(..., help="Another one, e.g. of the next release."),
    output: Path | None = OUTPUT,
    force: Force = False,
) -> None:
    """two concepts.jsonl -> what was added, removed, retired …

    Prints how many concepts there are of each kind, and three examples. Nothing is
    embedded, so that a release can be looked at before a knowledge base is built.

    Example: spacy sapbert concepts diff 2024AA.jsonl 2024AB.jsonl -o changes.jsonl
    """
    from ..vocabularies.compare import compare_vocabularies

    check_outputs(output, force=force)
    write_differences(compare_vocabularies(old, new), output)


@kb_app.command("diff")
def diff_kbs(
    old: str = typer.Argument(..., help="Folder or name of a knowledge base."),
    new: str = typer.Argument(..., help="Another one, e.g. of the next release."),
    output: Path | None = OUTPUT,
    force: Force = False,
) -> None:
    """kb/ + kb/ -> what was added, removed, retired, renamed …

    Prints how many concepts there are of each kind, and three examples. The knowledge
    bases may have different encoders.

    Example: spacy sapbert kb diff models/umls-2024AA models/umls-2024AB -o
    changes.jsonl
    """
    from ..kb.edits.diff import compare_kbs
    from ..kb.knowledge_base import load_kb

    check_outputs(output, force=force)
    write_differences(compare_kbs(load_kb(old), load_kb(new)), output)


def write_differences(differences: Iterable["Difference"], output: Path | None) -> None:
    """Write differences as lines of JSON, and print their counts and examples."""
    from ..vocabularies.compare import MEANINGS, describe_difference

    counts: Counter[str] = Counter()
    examples: dict[str, list[str]] = {change: [] for change in MEANINGS}
    with nullcontext() if output is None else write_atomically(output) as file:
        for difference in differences:
            change = difference.change
            counts[change] += 1
            if counts[change] <= EXAMPLES:
                examples[change].append(describe_difference(difference))
            if file is not None:
                line = json.dumps(difference._asdict(), ensure_ascii=False)
                file.write(line.encode("utf8", "replace") + b"\n")
    rows = [(each, f"{counts[each]:,}", meaning) for each, meaning in MEANINGS.items()]
    msg.table(rows, aligns=("l", "r", "l"))
    for line in chain.from_iterable(examples.values()):
        typer.echo(printable(line))
    if output is not None:
        msg.good(f"Wrote {output}")
