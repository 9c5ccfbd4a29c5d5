"""Pipeline + annotated documents → how many mentions it finds, and links rightly.

The pipeline reads the texts alone: neither detector nor linker see an annotation.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer
from spacy.language import Language
from spacy.tokens import Doc
from split_documents import no_annotated_mentions, read_docs, run

from spacy_sapbert.cli.app import make_app
from spacy_sapbert.formats.gold import NIL
from spacy_sapbert.io.progress import show_progress
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.io.writing import check_outputs, write_json
from spacy_sapbert.pipeline.running import load_pipeline

app = make_app(add_completion=False)
RESAMPLES = 2_000
INTERVAL = (2.5, 97.5)  # percentiles
FOUND, LINKED = "mentions found", "mentions found and linked"
PLACED = "mentions found, any label"
BATCH_SIZE = 32

Offsets = tuple[int, int]


class Counts(NamedTuple):
    """Of one document: what is in both, in the prediction, and in the annotations."""

    right: int
    predicted: int
    gold: int


def count_same(predicted: set[Any], gold: set[Any]) -> Counts:
    """Count the members of two sets, and of both."""
    return Counts(len(predicted & gold), len(predicted), len(gold))


def read_entities(doc: Doc) -> dict[Offsets, tuple[str, str]]:
    """Return label and id of the entities, by offsets in characters."""
    return {(e.start_char, e.end_char): (e.label_, e.kb_id_) for e in doc.ents}


def count_mentions(predicted: Doc, gold: Doc) -> dict[str, Counts]:
    """Count for one document the mentions of all labels, and of each.

    A mention is found if its offsets and label are equal, and linked rightly if offsets
    and id are. One whose annotation has no id, or several, does not count there.
    """
    ours, theirs = read_entities(predicted), read_entities(gold)
    counts = {
        FOUND: count_labels(ours, theirs),
        PLACED: count_same({*ours}, {*theirs}),
    }
    for label in {label for label, _ in (*ours.values(), *theirs.values())}:
        counts[f"{FOUND}: {label}"] = count_labels(ours, theirs, label)
    unknown = {place for place, (_, cui) in theirs.items() if cui in ("", NIL)}
    links = [
        {(place, cui) for place, (_, cui) in mentions.items() if place not in unknown}
        for mentions in (ours, theirs)
    ]
    linked = {(place, cui) for place, cui in links[0] if cui not in ("", NIL)}
    counts[LINKED] = count_same(linked, links[1])
    return counts


def count_labels(
    ours: dict[Offsets, tuple[str, str]],
    theirs: dict[Offsets, tuple[str, str]],
    label: str | None = None,
) -> Counts:
    """Count mentions with a label, or with any."""
    sides = [
        {(place, name) for place, (name, _) in side.items() if label in (None, name)}
        for side in (ours, theirs)
    ]
    return count_same(*sides)


def score(counts: np.ndarray) -> np.ndarray:
    """Return precision, recall and F. Shapes: (n, 3) → (n, 3)."""
    right, predicted, gold = counts.T
    values = [(right, predicted), (right, gold), (2 * right, predicted + gold)]
    return np.stack([a / np.maximum(b, 1) for a, b in values], axis=1)


def describe_counts(counts: Sequence[Counts], *, seed: int = 0) -> dict[str, Any]:
    """Return precision, recall and F with intervals.

    The 95 % intervals are percentiles of a bootstrap over documents, because mentions
    of one document are alike.
    """
    table = np.array(counts, dtype=np.int64)  # (documents, 3)
    chosen = np.random.default_rng(seed).multinomial(
        len(table), np.full(len(table), 1 / len(table)), size=RESAMPLES
    )  # (resamples, documents)
    (values,) = score(table.sum(axis=0, keepdims=True))
    lows, highs = np.percentile(score(chosen @ table), INTERVAL, axis=0)
    names = ("precision", "recall", "f")
    scores = {
        name: {"value": round(v, 4), "interval": [round(low, 4), round(high, 4)]}
        for name, v, low, high in zip(
            names, values.tolist(), lows.tolist(), highs.tolist(), strict=True
        )
    }
    right, predicted, gold = table.sum(axis=0).tolist()
    return {"gold": gold, "predicted": predicted, "right": right, **scores}


def current_ids(nlp: Language, docs: Iterable[Doc]) -> int:
    """Replace ids of annotations that the knowledge base has under another id.

    Returns:
        The number of mentions whose id it does not have.
    """
    linkers = [
        pipe
        for name, pipe in nlp.pipeline
        if nlp.get_pipe_meta(name).factory == "sapbert_linker"
    ]
    missing = 0
    for doc in docs if linkers else ():
        for ent in doc.ents:
            if ent.kb_id_ in ("", NIL):
                continue
            concept = linkers[0].kb.concept(ent.kb_id_)  # type: ignore[attr-defined]
            missing += concept is None
            if concept is not None and concept.cui != ent.kb_id_:
                for token in ent:
                    token.ent_kb_id_ = concept.cui
    return missing


def evaluate_docs(
    nlp: Language, gold_docs: Sequence[Doc], *, quiet: bool = False
) -> dict[str, Any]:
    """Run a pipeline on the texts of annotated documents, and compare."""
    missing = current_ids(nlp, gold_docs)
    predicted = nlp.pipe((doc.text for doc in gold_docs), batch_size=BATCH_SIZE)
    of_kind: dict[str, list[Counts]] = defaultdict(list)
    with show_progress(predicted, unit="documents", quiet=quiet) as shown:
        per_doc = [
            count_mentions(ours, theirs)
            for ours, theirs in zip(shown, gold_docs, strict=True)
        ]
    for kind in sorted({kind for counts in per_doc for kind in counts}):
        of_kind[kind] = [counts.get(kind, Counts(0, 0, 0)) for counts in per_doc]
    scores = {kind: describe_counts(counts) for kind, counts in of_kind.items()}
    return {"documents": len(gold_docs), "ids_missing": missing, "scores": scores}


@app.command()
def evaluate_pipeline(
    pipeline: str = typer.Argument(..., help="Folder or package of the pipeline."),
    documents: Path = typer.Argument(..., help="held_out.spacy of split_documents.py."),
    output: Path = typer.Argument(..., help="results.json to write."),
    force: bool = typer.Option(False, "--force", help="Replace existing outputs."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """pipeline + held_out.spacy -> mentions found and linked, results.json

    Precision, recall and F, with 95 % intervals over documents.

    Example: python experiments/annotated/evaluate_pipeline.py models/annotated/pipeline
    corpus/annotated/held_out.spacy results/annotated/evaluation.json
    """
    check_outputs(output, force=force)
    docs = read_docs(documents)
    if not any(doc.ents for doc in docs):
        raise no_annotated_mentions(part=documents, documents=len(docs))
    results = evaluate_docs(load_pipeline(pipeline), docs, quiet=quiet)
    write_json(output, results)
    if quiet:
        return
    rows = [
        (kind, f"{values['gold']:,}", *map(format_score, list(values.values())[3:]))
        for kind, values in results["scores"].items()
    ]
    header = (f"{results['documents']:,} documents", "Number", "P", "R", "F")
    msg.table(rows, header=header, divider=True, aligns=("l", "r", "r", "r", "r"))
    if missing := results["ids_missing"]:
        msg.warn(
            f"{missing:,} mentions have an id that the knowledge base does not have, "
            "and so cannot be linked rightly."
        )
    msg.good(f"Wrote {output}")


def format_score(score: dict[str, Any]) -> str:
    """Return a score and its interval: ".852 (.843–.861)"."""
    value, low, high = (
        f"{number:.3f}".lstrip("0") for number in (score["value"], *score["interval"])
    )
    return f"{value} ({low}–{high})"


if __name__ == "__main__":
    run(app)
