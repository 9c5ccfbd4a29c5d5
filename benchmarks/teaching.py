"""`python -m benchmarks.teaching`: what a knowledge base learns from annotations.

The knowledge base is taught with more and more of the documents of one file, and links
the mentions of others, which it does not learn from.
"""

import random
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import typer

from spacy_sapbert.cli.app import make_app
from spacy_sapbert.corpora.annotated import read_annotated
from spacy_sapbert.evaluation.gold_mentions import (
    GoldMention,
    make_resolver,
    read_aliases,
)
from spacy_sapbert.evaluation.rankers import kb_lookup
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.teaching.documents import AnnotatedDocument
from spacy_sapbert.kb.teaching.teach import teach_documents
from spacy_sapbert.linking.surface_forms import name_form
from spacy_sapbert.system.terminal import msg

app = make_app(add_completion=False)

HEADER = ("documents", "mentions", "all", "seen", "unseen", "linked", "P", "R", "ms")
BINS = 10
Pairs = set[tuple[str, str]]  # form, concept


class Gold(NamedTuple):
    """A mention to link, the right concepts of each part, and whether it is seen."""

    text: str
    parts: list[frozenset[str]]
    seen: bool


def list_golds(
    kb: KnowledgeBase,
    documents: Iterable[AnnotatedDocument],
    aliases: dict[str, str],
    seen: Pairs,
) -> list[Gold]:
    """Return the mentions whose concepts are all in the knowledge base."""
    resolve = make_resolver(kb_lookup(kb), aliases)
    golds: list[Gold] = []
    for document in documents:
        for text, ids in document.mentions:
            parts = resolve(GoldMention(0, "", text, ids))
            if parts and all(parts):
                form = name_form(text)
                known = all(any((form, c) in seen for c in part) for part in parts)
                golds.append(Gold(text, parts, known))
    return golds


def list_pairs(
    kb: KnowledgeBase, documents: Iterable[AnnotatedDocument], aliases: dict[str, str]
) -> Pairs:
    """Return the pairs of text and concept that documents have."""
    golds = list_golds(kb, documents, aliases, set())
    return {(name_form(g.text), c) for g in golds for part in g.parts for c in part}


def measure(
    kb: KnowledgeBase, golds: Sequence[Gold], aliases: dict[str, str]
) -> dict[str, float]:
    """Link mentions, and count the first answers that are right.

    RETURNS (dict[str, float]): Accuracy of all, seen and unseen mentions without a
        threshold; share of linked mentions, precision and recall with that of the
        knowledge base; milliseconds of CPU for each distinct mention.
    """
    texts = [gold.text for gold in golds]
    right = {True: [0, 0], False: [0, 0]}
    for gold, linked in zip(golds, kb.link(texts, threshold=-1), strict=True):
        cui = linked.candidates[0]["cui"] if linked.candidates else ""
        hit = all(aliases.get(cui, cui) in part for part in gold.parts)
        right[gold.seen][0] += hit
        right[gold.seen][1] += 1
    kb.clear_cache()
    start = time.process_time()
    found = kb.link(texts)
    seconds = time.process_time() - start
    links = hits = 0
    for gold, linked in zip(golds, found, strict=True):
        if linked.cui is not None:
            links += 1
            cui = aliases.get(linked.cui, linked.cui)
            hits += all(cui in part for part in gold.parts)
    (seen, n_seen), (unseen, n_unseen) = right[True], right[False]
    return {
        "all": (seen + unseen) / max(len(golds), 1),
        "seen": seen / max(n_seen, 1),
        "unseen": unseen / max(n_unseen, 1),
        "linked": links / max(len(golds), 1),
        "P": hits / max(links, 1),
        "R": hits / max(len(golds), 1),
        "ms": 1000 * seconds / max(len({*texts}), 1),
    }


def read_all(path: Path, prefix: str, drop_prefix: str) -> list[AnnotatedDocument]:
    """Read all annotated documents of a file."""
    return list(read_annotated(path, prefix=prefix, drop_prefix=drop_prefix))


@app.command()
def main(
    kb: Path = typer.Argument(..., help="Folder of the knowledge base."),
    learned: Path = typer.Argument(..., help="Annotated documents to learn from."),
    linked: Path | None = typer.Argument(
        None, help="Annotated documents to link. [every second one to learn from]"
    ),
    sizes: str = typer.Option("25,50,100,200,0", help="Documents; 0 = all."),
    prefix: str = typer.Option("", help="Added to ids without a colon."),
    drop_prefix: str = typer.Option("", help="Removed from ids."),
    aliases: Path | None = typer.Option(None, help="Lines: id, tab, id."),
    seed: int = typer.Option(0, help="Of the choice of documents."),
    figure: Path | None = typer.Option(
        None, help="Learning curve and probabilities, .png or .svg."
    ),
) -> None:
    """kb/ + annotated documents -> first answers that are right, by documents learned

    `seen` and `unseen`: (mention, concept) pairs that all documents to learn from have.
    `linked`, `P`, `R`: with the threshold of the knowledge base. `ms`: of CPU for each
    distinct mention.

    Example: python -m benchmarks.teaching models/kb train.txt dev.txt --prefix MESH:
    """
    known = read_aliases(aliases) if aliases else {}
    documents = read_all(learned, prefix, drop_prefix)
    if linked is None:
        documents, others = documents[::2], documents[1::2]
    else:
        others = read_all(linked, prefix, drop_prefix)
    opened = load_kb(kb)
    golds = list_golds(opened, others, known, list_pairs(opened, documents, known))
    random.Random(seed).shuffle(documents)
    rows: list[tuple[int, int, dict[str, float]]] = [
        (0, 0, measure(opened, golds, known))
    ]
    chances = (np.zeros(0), np.zeros(0, dtype=bool))
    for size in map(int, sizes.split(",")):
        chosen = documents[:size] if size else documents
        if size > len(documents):
            continue
        with tempfile.TemporaryDirectory() as folder:
            taught, report = teach_documents(
                opened, chosen, output=Path(folder) / "kb", force=True
            )
            counts = report.counts
            rows.append((len(chosen), counts.mentions, measure(taught, golds, known)))
            chances = list_chances(taught, golds, known)
    shown = [
        (f"{size:,}", f"{mentions:,}", *(f"{found[key]:.3f}" for key in HEADER[2:]))
        for size, mentions, found in rows
    ]
    msg.table(shown, header=HEADER, divider=True, aligns=["r"] * len(HEADER))
    typer.echo(f"{len(golds):,} mentions of {len(others):,} documents")
    if figure is not None:
        draw_figure(rows, *chances, figure)
        msg.good(f"Wrote {figure}")


def list_chances(
    kb: KnowledgeBase, golds: Sequence[Gold], aliases: dict[str, str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the probability of each first answer, and whether it is right."""
    links = kb.link([gold.text for gold in golds], threshold=-1)
    rows = [
        (
            linked.candidates[0]["probability"],
            all(
                aliases.get(linked.candidates[0]["cui"], linked.candidates[0]["cui"])
                in part
                for part in gold.parts
            ),
        )
        for gold, linked in zip(golds, links, strict=True)
        if linked.candidates and linked.candidates[0]["probability"] is not None
    ]
    chances, right = zip(*rows, strict=True) if rows else ((), ())
    return np.array(chances), np.array(right, dtype=bool)


def draw_figure(
    rows: Sequence[tuple[int, int, dict[str, float]]],
    chances: np.ndarray,
    right: np.ndarray,
    path: Path,
) -> None:
    """Draw accuracy by documents learned, and right answers by probability.

    chances (np.ndarray), right (np.ndarray): With all documents. Shape: (n,) each.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    curve, reliability = figure.subplots(1, 2)
    sizes = [size for size, _, _ in rows]
    for key, label in (("all", "all mentions"), ("unseen", "unseen"), ("seen", "seen")):
        curve.plot(sizes, [found[key] for *_, found in rows], marker="o", label=label)
    curve.set_xlabel("annotated documents")
    curve.set_ylabel("first answers that are right")
    curve.legend()
    order = np.argsort(chances)
    groups = [group for group in np.array_split(order, BINS) if len(group)]
    reliability.plot([0, 1], [0, 1], color="grey", linewidth=1)
    reliability.plot(
        [chances[group].mean() for group in groups],
        [right[group].mean() for group in groups],
        marker="o",
    )
    reliability.set_xlabel("probability")
    reliability.set_ylabel("share of right answers (ten groups)")
    for axes in (curve, reliability):
        axes.grid(alpha=0.3)
    figure.savefig(path)


if __name__ == "__main__":
    app()
