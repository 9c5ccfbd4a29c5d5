"""Documents that nobody taught → how many first answers of knowledge bases are right.

spacy sapbert teach kb train.txt --output taught
python -m benchmarks.teaching dev.txt kb taught --seen train.txt
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import typer

from benchmarks.harness import machine_line, markdown_table, run_cli
from spacy_sapbert.corpora.annotated import read_annotated
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.linking.surface_forms import name_form


def read_mentions(
    kb: KnowledgeBase, path: Path, drop_prefix: str
) -> Iterator[tuple[str, str]]:
    """Yield the mentions of one known concept, as `teach` reads them, and its id."""
    for document in read_annotated(path, drop_prefix=drop_prefix):
        for text, parts, _ in document.mentions:
            if len(parts) == 1:
                found = (kb.concept(cui) for cui in parts[0])
                if concept := next(filter(None, found), None):
                    yield text, concept.cui


def measure(
    kb: KnowledgeBase, mentions: Sequence[tuple[str, str]], seen: np.ndarray
) -> list[float]:
    """Return the share of right first answers; precision and recall of links."""
    texts = [text for text, _ in mentions]
    cuis = [cui for _, cui in mentions]
    firsts = [
        linked.candidates[0]["cui"] if linked.candidates else None
        for linked in kb.link(texts, threshold=-1, k=1)
    ]
    right = np.array([f == cui for f, cui in zip(firsts, cuis, strict=True)])
    links = [linked.cui for linked in kb.link(texts)]
    linked = np.array([cui is not None for cui in links])
    hits = np.array([link == cui for link, cui in zip(links, cuis, strict=True)])
    shares = (right, right[seen], right[~seen], hits[linked], hits)
    return [float(share.mean()) for share in shares]


def main(
    dev: Path = typer.Argument(..., help="Annotated documents."),
    kbs: list[Path] = typer.Argument(..., help="Knowledge bases of one vocabulary."),
    seen: list[Path] = typer.Option(
        [], help="Documents that were taught; may be repeated."
    ),
    drop_prefix: str = typer.Option("", help="Remove from ids, e.g. OMIM:"),
) -> None:
    """annotated documents + kb/ … -> right first answers, precision and recall

    Abbreviations are their long forms, as `teach` reads them. Composites and mentions
    without a known concept are left out.

    Example: python -m benchmarks.teaching dev.txt kb taught --seen train.txt
    """
    opened = [load_kb(path) for path in kbs]
    mentions = list(read_mentions(opened[0], dev, drop_prefix))
    taught = {
        (name_form(text), cui)
        for path in seen
        for text, cui in read_mentions(opened[0], path, drop_prefix)
    }
    known = np.array([(name_form(text), cui) in taught for text, cui in mentions])
    rows = [
        [path.name, *(f"{share:.4f}" for share in measure(kb, mentions, known))]
        for path, kb in zip(kbs, opened, strict=True)
    ]
    msg.text(f"{machine_line()}; {len(mentions):,} mentions, {known.sum():,} seen")
    header = ["Knowledge base", "First", "Seen", "Unseen", "Precision", "Recall"]
    typer.echo("\n".join(markdown_table(header, rows)))


if __name__ == "__main__":
    run_cli(main)
