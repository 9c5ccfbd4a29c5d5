"""How often the right concept comes first, by one protocol: names, then annotations.

BioSyn's preprocessing, the first answer, ties in the linker's own order, each knowledge
base taught with the train documents and asked for the mentions of dev. Beside it the
documents as they are, through the pipeline, with every mention answered.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from unittest.mock import patch

import numpy as np
import spacy
import typer

from benchmarks.harness import machine_line, print_table, run_cli
from spacy_sapbert.errors import check_choice
from spacy_sapbert.evaluation.gold_mentions import (
    Resolve,
    fold_text,
    make_resolver,
)
from spacy_sapbert.evaluation.rankers import kb_lookup
from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.formats.gold import GoldDocument, GoldMention
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.kb.building.build import build_kb
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.learned_order import names as order_of_names
from spacy_sapbert.kb.teaching.teach import teach_documents
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts, write_concepts
from spacy_sapbert.vocabularies.reader_table import read_vocabulary
from training.corpora.biosyn import (
    KnownConcepts,
    preprocess_concepts,
    preprocess_documents,
    read_dictionary_file,
)

GOLD = "gold"  # the span group of annotated mentions
BATCH = 256

Documents = Sequence[GoldDocument]


class GoldSet(NamedTuple):
    """Annotated documents and their vocabulary, in the folder of the data."""

    vocabulary: str
    format: str
    train: str
    dev: str
    label: str = ""  # mentions of other types are left out; "" = none are
    prefix: str = ""
    ids: str = ""  # the pattern of the ids, if they are not those of UMLS


BIOSYN = "biosyn"  # lines `id||name`
MEDIC = ("medic/medic_06Jul2012.txt.gz", BIOSYN)
NCBI = (
    "eval-text/NCBItrainset_corpus.txt.gz",
    "eval-text/NCBIdevelopset_corpus.txt.gz",
)
BC5CDR = (
    "eval-text/CDR_TrainingSet.PubTator.txt.gz",
    "eval-text/CDR_DevelopmentSet.PubTator.txt.gz",
)
SETS = {
    "ncbi": GoldSet(*MEDIC, *NCBI),
    "bc5cdr-disease": GoldSet(*MEDIC, *BC5CDR, "Disease"),
    "bc5cdr-chemical": GoldSet(
        "mesh-rrf", "rrf", *BC5CDR, "Chemical", "MESH:", r"\w+:\w+"
    ),
}


class Answered(NamedTuple):
    """Whether each mention of a set is answered rightly, and what it is."""

    right: np.ndarray
    seen: np.ndarray


def read_names(data: Path, gold: GoldSet) -> Iterator[Concept]:
    """Yield the concepts of a vocabulary."""
    if gold.format == BIOSYN:
        return read_dictionary_file(data / gold.vocabulary)
    options: dict[str, Any] = {"cui_pattern": gold.ids} if gold.ids else {}
    return read_vocabulary(data / gold.vocabulary, gold.format, **options)


def read_documents(path: Path, gold: GoldSet) -> Iterator[GoldDocument]:
    """Yield annotated documents with the mentions of a type."""
    drop = "" if gold.prefix else "OMIM:"
    for document in read_corpus(path, "pubtator", prefix=gold.prefix, drop_prefix=drop):
        kept = [m for m in document.mentions if gold.label in ("", m.type)]
        yield document._replace(mentions=kept)


def leave_out_composites(document: GoldDocument) -> GoldDocument:
    kept = [m for m in document.mentions if len(m.parts) < 2]
    return document._replace(mentions=kept)


def link_preprocessed(kb: KnowledgeBase, documents: Documents) -> list[list[str]]:
    """Return the first answer to each mention of preprocessed documents, if any."""
    texts = [m.mention for document in documents for m in document.mentions]
    distinct = sorted({*texts})
    first: dict[str, list[str]] = {}
    for start in range(0, len(distinct), BATCH):
        batch = distinct[start : start + BATCH]
        for text, linked in zip(batch, kb.link(batch, threshold=0.0), strict=True):
            first[text] = [c["cui"] for c in linked.candidates[:1]]
    return [first[text] for text in texts]


def link_raw(kb: Path, documents: Documents) -> list[list[str]]:
    """Return the first answer to each mention as it is, through the pipeline."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_abbreviations")
    nlp.add_pipe("sapbert_linker", config={"kb": str(kb), "spans_key": GOLD})

    def make_docs() -> Iterator[spacy.tokens.Doc]:
        for document in documents:
            doc = nlp.make_doc(document.text)
            places = [(m.start, m.end) for m in document.mentions]
            spans = [doc.char_span(*p, alignment_mode="expand") for p in places]
            doc.spans[GOLD] = [span for span in spans if span is not None]
            yield doc

    return [
        [candidate["cui"] for candidate in span._.candidates[:1]]
        for doc in nlp.pipe(make_docs())
        for span in doc.spans[GOLD]
    ]


def judge(
    documents: Documents,
    answers: Sequence[Sequence[str]],
    resolve: Resolve,
    seen: set[tuple[str, str]],
) -> Answered:
    """Compare answers with the annotations; each part of a composite must be right."""
    golds = [m for document in documents for m in document.mentions]
    parts = [resolve(gold) for gold in golds]
    known = [bool(some) and all(some) for some in parts]
    right = [
        all(bool(part.intersection(found)) for part in some)
        for some, found in zip(parts, answers, strict=True)
    ]
    pairs = [
        list_pairs(gold, some) <= seen for gold, some in zip(golds, parts, strict=True)
    ]
    return Answered(np.array(right)[known], np.array(pairs)[known])


def list_pairs(
    gold: GoldMention, parts: Sequence[frozenset[str]]
) -> set[tuple[str, str]]:
    """Return a folded mention with each concept of its parts."""
    return {(fold_text(gold.mention), cui) for part in parts for cui in part}


def build(
    gold: GoldSet, data: Path, folder: Path, encoder: str, seed: int, *, raw: bool
) -> Path:
    """Build a knowledge base with the order of a seed; what is there is used."""
    folder = folder / gold.vocabulary.split("/")[0] / ("raw" if raw else "names")
    folder.mkdir(parents=True, exist_ok=True)
    concepts, kb = folder / "concepts.jsonl", folder / f"kb-{seed}"
    if not concepts.exists():
        read = read_names(data, gold)
        names = read if raw else preprocess_concepts(read)
        write_concepts(concepts, names)
    if not kb.exists():
        reuse = next(iter(sorted(folder.glob("kb-*"))), None)
        with patch.object(order_of_names, "SEED", seed):
            build_kb(concepts, kb, encoder, backend="exact", reuse=reuse, progress=True)
    return kb


def measure_names(path: Path, train: Documents, dev: Documents) -> dict[str, float]:
    """Compute the shares of right answers to preprocessed mentions, taught or not."""
    kb = load_kb(path)
    resolve = make_resolver(kb_lookup(kb), {})
    known = KnownConcepts(read_concepts(path.parent / "concepts.jsonl"))
    train, dev = ([*preprocess_documents(each, known)] for each in (train, dev))
    mentions = [m for document in train for m in document.mentions]
    seen = set().union(*(list_pairs(m, resolve(m)) for m in mentions))
    before = judge(dev, link_preprocessed(kb, dev), resolve, seen)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        taught, _ = teach_documents(kb, train, output=Path(folder) / "kb", force=True)
        after = judge(dev, link_preprocessed(taught, dev), resolve, seen)
    return {
        "mentions": len(before.right),
        "not taught": share(before.right),
        "unseen": share(before.right[~before.seen]),
        "taught": share(after.right),
        "unseen, taught": share(after.right[~after.seen]),
    }


def measure_raw(path: Path, train: Documents, dev: Documents) -> dict[str, float]:
    """Compute the share of right answers in documents as they are, taught."""
    kb = load_kb(path)
    resolve = make_resolver(kb_lookup(kb), {})
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        teach_documents(kb, train, output=Path(folder) / "kb", force=True)
        answered = judge(dev, link_raw(Path(folder) / "kb", dev), resolve, set())
    return {"raw documents, taught": share(answered.right)}


def share(right: np.ndarray) -> float:
    return round(float(right.mean()), 4) if len(right) else float("nan")


def main(
    data: Annotated[Path, typer.Argument(help="Folder with vocabularies and corpora.")],
    folder: Annotated[Path, typer.Argument(help="For what is built.")],
    encoder: Annotated[str, typer.Option(help="Folder or hub id.")],
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="Of `SETS`; repeatable. [all]")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Orders from names.")] = 5,
) -> None:
    """Print the mean over the seeds, and the spread of each figure."""
    for name in sets or ():
        check_choice("set", [*SETS], name)
    rows: list[list[str]] = []
    for name in sets or SETS:
        gold = SETS[name]
        train = [*read_documents(data / gold.train, gold)]
        dev = [*read_documents(data / gold.dev, gold)]
        single = [leave_out_composites(document) for document in dev]
        figures: list[dict[str, float]] = []
        for seed in range(1, seeds + 1):
            names = build(gold, data, folder, encoder, seed, raw=False)
            raw = build(gold, data, folder, encoder, seed, raw=True)
            measured = measure_names(names, train, dev)
            figures.append(measured | measure_raw(raw, train, single))
            msg.text(f"{name}, seed {seed}: {figures[-1]}")
        cells = [f"{figures[0].pop('mentions'):,}"]
        for key in figures[0]:
            values = np.array([figure[key] for figure in figures])
            cells.append(f"{values.mean():.4f} ± {values.std():.4f}")
        rows.append([name, *cells])
    msg.text(machine_line())
    print_table(["", "mentions", *figures[0]], rows)


if __name__ == "__main__":
    run_cli(main)
