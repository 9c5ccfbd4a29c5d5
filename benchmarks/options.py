"""What the options of the linker bring: the table of experiments/linker."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc
from tqdm import tqdm

from benchmarks.gold_docs import GOLD, read_gold_docs
from benchmarks.harness import machine_line, print_table, run_cli
from spacy_sapbert.errors import no_known_mentions
from spacy_sapbert.evaluation.accuracy import combine_parts, score_ranking
from spacy_sapbert.evaluation.compare import mcnemar_test
from spacy_sapbert.evaluation.gold_mentions import (
    make_resolver,
    read_aliases,
)
from spacy_sapbert.evaluation.rankers import kb_lookup

KS = (1, 5)
DISEASES = ("Disease", "SpecificDisease", "DiseaseClass", "CompositeMention")
LABEL_TYPES = {  # the labels of NCBI disease and BC5CDR
    **dict.fromkeys((*DISEASES, "Modifier"), ("DISO",)),
    "Chemical": ("CHEM",),
}


class Row(NamedTuple):
    """One line of the table: settings of the linker."""

    settings: dict[str, Any]
    abbreviations: bool = False  # whether they are expanded
    base: str | None = "plain"  # the line that it is compared with


NONE: dict[str, Any] = {"tie_evidence": ()}
LABELS = {"label_types": LABEL_TYPES, "label_types_use": "evidence"}
# What helps alone on the training documents of both corpora, the most helpful first
TIES = {
    **LABELS,
    "tie_evidence": ("source", "preferred", "label", "coherence"),
    "source_rank": ("CTD", "MSH"),
}
ROWS = {
    "plain": Row(NONE, base=None),
    "preferred": Row({"tie_evidence": ("preferred",)}),
    "label": Row({**LABELS, "tie_evidence": ("label",)}),
    "label as filter": Row({**NONE, **LABELS, "label_types_use": "filter"}),
    "source: MSH > CTD": Row(
        {"tie_evidence": ("source",), "source_rank": ("MSH", "CTD")}
    ),
    "source: CTD > MSH": Row(
        {"tie_evidence": ("source",), "source_rank": ("CTD", "MSH")}
    ),
    "coherence": Row({"tie_evidence": ("coherence",)}),
    "abbreviations": Row(NONE, abbreviations=True),
    "**ties: source, preferred, label, coherence**": Row(TIES),
    "**+ abbreviations**": Row(
        TIES, True, "**ties: source, preferred, label, coherence**"
    ),
}


class GoldFile(NamedTuple):
    """Documents, and the right concepts of each mention of each; empty = not scored."""

    docs: list[Doc]
    golds: list[list[Any]]
    summary: str


def read_gold_file(
    path: Path, nlp: Language, aliases: dict[str, str], prefix: str, limit: int
) -> GoldFile:
    """Read documents, and select the mentions whose ids are all in the vocabulary."""
    linker: Any = nlp.get_pipe("sapbert_linker")
    resolve = make_resolver(kb_lookup(linker.kb), aliases)
    docs: list[Doc] = []
    golds: list[list[Any]] = []
    mentions = without_id = 0
    for doc, found in read_gold_docs(path, nlp, prefix=prefix, limit=limit):
        parts = [resolve(gold) for gold in found]
        docs.append(doc)
        golds.append([combine_parts(p, "parts") if all(p) else [] for p in parts])
        mentions += len(parts)
        without_id += sum(not part for part in parts)
    judged = sum(bool(part) for gold in golds for part in gold)
    if not judged:
        raise no_known_mentions(mentions=mentions)
    summary = (
        f"{len(docs):,} documents, {judged:,} of {mentions:,} mentions scored, "
        f"{without_id:,} without an id, coverage {judged / (mentions - without_id):.3f}"
    )
    return GoldFile(docs, golds, summary)


def score_mention(
    candidates: Sequence[dict[str, Any]], parts: Sequence[Any], aliases: dict[str, str]
) -> list[bool]:
    """Return whether all parts of a mention are among the first k, in linker's order.

    Args:
        parts: The right concepts of each part.
    """
    cuis = [aliases.get(found["cui"], found["cui"]) for found in candidates]
    ranking = [(-float(rank), cui) for rank, cui in enumerate(dict.fromkeys(cuis))]
    return [bool(score_ranking(ranking, parts, k)[0]) for k in KS]


def score_row(
    nlp: Language, file: GoldFile, row: Row, aliases: dict[str, str], title: str
) -> np.ndarray:
    """Link copies of the documents with the settings of a line.

    Returns:
        Whether all parts of each mention are among the first k. Shape: (n, KS).
    """
    disabled = [] if row.abbreviations else ["sapbert_abbreviations"]
    settings = {"sapbert_linker": row.settings}
    scores: list[list[bool]] = []
    with nlp.select_pipes(disable=disabled):
        linked = nlp.pipe((doc.copy() for doc in file.docs), component_cfg=settings)
        bar = tqdm(linked, title, len(file.docs), disable=None, unit=" docs")
        for doc, gold in zip(bar, file.golds, strict=True):
            found = doc.spans[GOLD].attrs.get("candidates", [])
            scores += [
                score_mention(candidates, parts, aliases)
                for candidates, parts in zip(found, gold, strict=True)
                if parts
            ]
    return np.array(scores)


def format_change(right: np.ndarray, base: np.ndarray | None) -> str:
    """Format the difference in Acc@1 from another line, in points."""
    if base is None:
        return "–"
    change = right[:, 0].astype(int) - base[:, 0]
    better, worse = int((change > 0).sum()), int((change < 0).sum())
    if not better and not worse:
        return "0"
    p = mcnemar_test(worse, better)
    shown = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    return f"{100 * change.mean():+.2f} (+{better:,} −{worse:,}), {shown}"


def print_accuracy(outcomes: dict[str, dict[str, np.ndarray]]) -> None:
    """Print the accuracies of all files; `outcomes` by file and line."""
    rows = {line: [line] for found in outcomes.values() for line in found}
    for found in outcomes.values():
        for line, right in found.items():
            first, fifth = (f"{mean:.4f}" for mean in right.mean(axis=0))
            base = found.get(ROWS[line].base or "")
            rows[line] += [first, format_change(right, base), fifth]
    titles = [title for name in outcomes for title in (name, "change", "Acc@5")]
    print_table(["Options", *titles], rows.values())


def main(
    documents: list[Path] = typer.Argument(..., help="Annotated documents, PubTator."),
    kb: Path = typer.Option(..., help="Folder of the knowledge base, with 3-grams."),
    prefix: str = typer.Option("", help="Added to ids without a colon, e.g. MESH:"),
    aliases: Path | None = typer.Option(None, help="Ids and the ids they alias."),
    limit: int = typer.Option(0, min=0, help="First documents of each file; 0 = all."),
) -> None:
    """annotated documents + kb/ -> table of every option

    Example: python -m benchmarks.options CDR_DevelopmentSet.PubTator.txt.gz --kb
    models/kb --prefix MESH: --aliases aliases.tsv
    """
    known = read_aliases(aliases) if aliases else {}
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_abbreviations")
    nlp.add_pipe("sapbert_linker", config={"kb": str(kb), "spans_key": GOLD})
    typer.echo(f"{machine_line()}.")
    outcomes: dict[str, dict[str, np.ndarray]] = {}
    for path in documents:
        file = read_gold_file(path, nlp, known, prefix, limit)
        typer.echo(f"{path.name}: {file.summary}.")
        outcomes[path.name] = {
            line: score_row(nlp, file, row, known, f"{path.name}: {line}")
            for line, row in ROWS.items()
        }
    print_accuracy(outcomes)


if __name__ == "__main__":
    run_cli(main)
