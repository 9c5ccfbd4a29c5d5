"""Pipeline with an `entity_linker` → how often it is right, and what it is against.

The other answers are those of the linker alone, with its default threshold and without
any, and the concept that the training documents have most often for the mention.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc

from experiments.annotated.split_documents import read_docs, run
from experiments.context.short_forms import SHORT
from spacy_sapbert.cli.app import make_app
from spacy_sapbert.evaluation.compare import mcnemar_test
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.io.writing import check_outputs, write_json

app = make_app(add_completion=False)
CONTEXT, NAMES, FORCED, FREQUENT = ANSWERS = (
    *("entity_linker", "names alone", "names alone, no threshold"),
    "most frequent in training",
)
DIGITS = 4


def predict(nlp: Language, docs: Iterable[Doc]) -> list[list[str]]:
    """Return the ids that a pipeline gives to the entities of Docs."""
    found = []
    for gold in docs:
        doc = nlp.make_doc(gold.text)
        doc.ents = [
            doc.char_span(ent.start_char, ent.end_char, ent.label_) for ent in gold.ents
        ]
        found.append([ent.kb_id_ for ent in nlp(doc).ents])
    return found


def count_meanings(docs: Iterable[Doc]) -> dict[str, Counter[str]]:
    """Count the concepts of each mention."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for doc in docs:
        for ent in doc.ents:
            counts[ent.text][ent.kb_id_] += 1
    return counts


def describe(rights: Sequence[dict[str, bool]]) -> dict[str, Any]:
    """Return the share of right answers, and p-values of McNemar's exact test."""
    count = max(len(rights), 1)
    result: dict[str, Any] = {"mentions": len(rights)}
    for name in ANSWERS:
        better = sum(right[CONTEXT] > right[name] for right in rights)
        worse = sum(right[CONTEXT] < right[name] for right in rights)
        result[name] = {"right": round(sum(r[name] for r in rights) / count, DIGITS)}
        if name != CONTEXT:
            p = mcnemar_test(better, worse)
            result[name] |= {"better": better, "worse": worse, "p": float(f"{p:.2g}")}
    return result


@app.command()
def main(
    pipeline: Path = typer.Argument(..., help="Trained pipeline."),
    train: Path = typer.Argument(..., help="train.spacy"),
    held_out: Path = typer.Argument(..., help="held_out.spacy"),
    output: Path = typer.Argument(..., help="results.json"),
    force: bool = typer.Option(False, "--force", help="Replace existing outputs."),
) -> None:
    """pipeline + documents -> results.json"""
    check_outputs(output, force=force)
    nlp = spacy.load(pipeline)
    docs = read_docs(held_out)
    counts = count_meanings(read_docs(train))
    predicted = predict(nlp, docs)
    kb = nlp.get_pipe("entity_linker").kb.concepts  # type: ignore[attr-defined]
    rights: dict[str, list[dict[str, bool]]] = defaultdict(list)
    for doc, ids in zip(docs, predicted, strict=True):
        texts = [ent.text for ent in doc.ents]
        plain = kb.link(texts)
        forced = kb.link(texts, threshold=0)
        once: set[tuple[str, str]] = set()
        for ent, cui, link, first in zip(doc.ents, ids, plain, forced, strict=True):
            gold, known = ent.kb_id_, counts[ent.text].most_common(1)
            right = {
                CONTEXT: cui == gold,
                NAMES: link.cui == gold,
                FORCED: first.cui == gold,
                FREQUENT: bool(known) and known[0][0] == gold,
            }
            rights[ent.label_].append(right)
            if ent.label_ == SHORT and (ent.text, gold) not in once:
                once.add((ent.text, gold))
                rights["first of each document"].append(right)
    result = {name: describe(rights[name]) for name in sorted(rights)}
    write_json(output, result)
    rows = [
        (kind, scores["mentions"], name, scores[name]["right"], scores[name].get("p"))
        for kind, scores in result.items()
        for name in ANSWERS
    ]
    msg.table(rows, header=("Mentions", "Number", "Answer", "Right", "p"), divider=True)


if __name__ == "__main__":
    run(app)
