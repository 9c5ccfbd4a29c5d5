"""Learn the probability that the package ships, from annotated mentions.

    python -m benchmarks.general_chance DATA KB

`KB` is a knowledge base of MEDIC. The train documents of NCBI disease and BC5CDR are
linked with it: diseases have a concept, chemicals have none. Other mentions without one
are names of MeSH that are no diseases, annotated mentions whose concept is left out,
and names in which a word is replaced. Mentions made of names (typing errors, left-out
names) count too. The dev documents are only measured.
"""

import gzip
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated
from unittest.mock import patch

import numpy as np
import typer

from benchmarks.harness import print_table, run_cli
from benchmarks.order import BC5CDR, NCBI
from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.io.writing import write_json
from spacy_sapbert.kb.agreement import Without
from spacy_sapbert.kb.contradiction import find_contradiction
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.learned_order import names as order_of_names
from spacy_sapbert.kb.learned_order.boost import fit_chances
from spacy_sapbert.kb.parts import MENTIONS_AT_ONCE
from spacy_sapbert.kb.search import VOCABULARY_NAME
from spacy_sapbert.linking.chance import (
    FOLDER,
    OF_MODEL,
    ORDERED,
    PLAIN,
    Chance,
    describe_first,
)
from spacy_sapbert.linking.features import (
    EXCLUDED,
    POOL_ROWS,
    FoundName,
    Surroundings,
    pool_concepts,
)
from spacy_sapbert.linking.filters import Filter
from spacy_sapbert.linking.groups import Groups
from spacy_sapbert.linking.probability import fit_logistics, log_odds, squash
from spacy_sapbert.linking.ranker import Ranker
from spacy_sapbert.linking.schwartz_hearst import find_long_forms
from spacy_sapbert.linking.text import is_abbreviation, is_acronym, read_mention
from spacy_sapbert.linking.trees import Trees

ENGLISH = Filter(document_language="en")
SEED = 7  # other names than an order is learned from
MOST_OTHERS = 4_000  # names of MeSH
MOST_MADE = 2_000  # names with another word
MOST_COUNT = 20  # of equal mentions
# How often an example of each kind counts
ANNOTATED, LEFT_OUT, OTHER, MADE, REPLACED = range(5)
WEIGHTS = {ANNOTATED: 1.0, LEFT_OUT: 0.2, OTHER: 0.5, MADE: 0.3, REPLACED: 1.0}
# The same, where it is measured how much the trees say
CALIBRATED = {ANNOTATED: 1.0, LEFT_OUT: 0.1, OTHER: 0.2, MADE: 0.1, REPLACED: 0.3}
FOLDS = 3
WITHOUT_ORDER = Ranker()


@dataclass(frozen=True)
class Mention:
    """A text, the concepts that it means, and how often it counts."""

    text: str
    cuis: frozenset[str]
    kind: int
    count: int = 1


@dataclass(frozen=True)
class ChanceExample:
    """The first candidate of a mention, in a learned order and by cosine alone."""

    kind: int
    count: int
    named: bool
    short: bool
    known: bool  # whether it has a concept
    first: dict[str, dict[str, float]]  # by model
    right: dict[str, bool | None]  # by model; None = it is excluded


def read_annotated(kb: KnowledgeBase, paths: Iterable[Path]) -> list[Mention]:
    """Read the mentions of documents, abbreviations as their long forms."""
    counts: Counter[tuple[str, frozenset[str]]] = Counter()
    for path in paths:
        for document in read_corpus(path, "pubtator", prefix="", drop_prefix="OMIM:"):
            long_forms = find_long_forms(document.text)
            for mention in document.mentions:
                if len(mention.parts) < 2:
                    found = {find_cui(kb, id) for part in mention.parts for id in part}
                    text = long_forms.get(mention.mention, mention.mention)
                    counts[read_mention(text), frozenset(found - {""})] += 1
    return [Mention(*key, ANNOTATED, count) for key, count in counts.items()]


def find_cui(kb: KnowledgeBase, id: str) -> str:
    concept = kb.concept(id)
    return "" if concept is None else concept.cui


def read_others(kb: KnowledgeBase, path: Path, random: Random) -> list[Mention]:
    """Read a name of each of some concepts of MeSH that are no diseases."""
    names: dict[str, list[str]] = {}
    with gzip.open(path, "rt", encoding="utf8") as lines:
        for fields in (line.split("|") for line in lines):
            id = fields[0].partition(":")[2]
            if not find_cui(kb, id):
                names.setdefault(id, []).append(fields[14])
    ids = random.sample(sorted(names), min(MOST_OTHERS, len(names)))
    return [Mention(random.choice(names[id]), frozenset(), OTHER) for id in ids]


def replace_words(kb: KnowledgeBase, random: Random) -> Iterator[Mention]:
    """Yield names in which a word is replaced by one of another name."""
    names = order_of_names.choose_names(kb, 2 * MOST_MADE)
    words = [w for name in names for w in name.alias.split() if len(w) > 3]
    for name in names:
        parts = name.alias.split()
        if 1 < len(parts) < 6:
            parts[random.randrange(len(parts))] = random.choice(words)
            yield Mention(" ".join(parts), frozenset(), REPLACED)


def make_examples(
    kb: KnowledgeBase, mentions: Sequence[Mention]
) -> Iterator[ChanceExample]:
    searcher = kb.searcher
    for start in range(0, len(mentions), MENTIONS_AT_ONCE):
        batch = mentions[start : start + MENTIONS_AT_ONCE]
        texts = [mention.text for mention in batch]
        embedded = kb.embed(texts)
        named = searcher.nearest.name(texts, embedded.vectors, ENGLISH)
        usable = np.flatnonzero(embedded.usable).tolist()
        searched = named.take(usable)
        found = searcher.nearest.find_names(searched, ENGLISH, rows=2 * POOL_ROWS)
        around = searcher.nearest.surround(searched.vectors)
        for number, names, near in zip(usable, found, around, strict=True):
            mention, is_name = batch[number], bool(named.named[number])
            if mention.kind in (OTHER, REPLACED) and is_name:
                continue
            yield from compare(kb, mention, names, near, named=is_name)
            if mention.cuis and mention.kind == ANNOTATED:
                left = [name for name in names if name.entry.cui not in mention.cuis]
                numbers = kb.store.numbers_of_cuis(mention.cuis).values()
                without = [Without(number, None) for number in numbers]
                nil = Mention(mention.text, frozenset(), LEFT_OUT, mention.count)
                yield from compare(kb, nil, left, near, named=False, without=without)


def compare(
    kb: KnowledgeBase,
    mention: Mention,
    names: Sequence[FoundName],
    around: Surroundings,
    *,
    named: bool,
    without: Sequence[Without] = (),
) -> Iterator[ChanceExample]:
    """Yield the first candidate of a mention, if it has one."""
    by_cosine = sorted(names, key=lambda name: -name.cosine)
    rows = [*dict.fromkeys(name.entry.row for name in by_cosine)][:POOL_ROWS]
    plain = [n._replace(similarity=0.0) for n in by_cosine if n.entry.row in {*rows}]
    first: dict[str, dict[str, float]] = {}
    right: dict[str, bool | None] = {}
    for model, some, ranker in (
        (ORDERED, names, kb.ranker),
        (PLAIN, plain, WITHOUT_ORDER),
    ):
        pool = pool_concepts(some, lambda _: VOCABULARY_NAME)
        if not pool.near or ranker is None:
            return
        features = kb.searcher.agreement.features(
            [mention.text], [pool], ENGLISH, around=[around], without=without
        )
        scores = features["cosine"] if named else ranker.scores(features)
        number = int(scores.argmax())
        groups = Groups([len(scores)])
        described = describe_first(features, scores, groups, np.array([number]))
        first[model] = {name: float(value[0]) for name, value in described.items()}
        right[model] = pool.cuis[number] in mention.cuis
        if not named and (
            features[EXCLUDED][number]
            or find_contradiction(
                kb.searcher.agreement,
                mention.text,
                [*pool.near.values()][number].nearest.concept,
                ENGLISH,
                without=without,
            )
        ):
            right[model] = None
    short = is_abbreviation(mention.text) or is_acronym(mention.text)
    yield ChanceExample(
        mention.kind, mention.count, named, short, bool(mention.cuis), first, right
    )


def make_of_names(kb: KnowledgeBase) -> Iterator[ChanceExample]:
    """Yield examples of words, and of names with typing errors or other noise."""
    with patch.object(order_of_names, "SEED", SEED):
        made = order_of_names.make_mentions(kb)
    mentions = [
        Mention(m.text, frozenset([m.cui] if m.cui else []), MADE)
        for m in made
        if m.concept < 0 and not m.types
    ]
    yield from make_examples(kb, mentions)


def fit(examples: Sequence[ChanceExample], model: str) -> Chance:
    """Fit a model to examples of train.

    Trees that are added in small parts say too little: what the trees of the other
    folds say of annotated mentions shows how much.
    """
    used = [e for e in examples if not e.named and e.right[model] is not None]
    log_odds_of = np.zeros(len(used))
    for fold in range(FOLDS):
        others = [e for n, e in enumerate(used) if n % FOLDS != fold]
        trees, start = grow(others, model)
        of_fold = used[fold::FOLDS]
        log_odds_of[fold::FOLDS] = trees.scores(list_columns(of_fold, model)) + start
    counts = np.array([CALIBRATED[e.kind] * min(e.count, MOST_COUNT) for e in used])
    right = np.array([bool(e.right[model]) for e in used])
    slopes, intercept = fit_logistics(log_odds_of[:, None], right, counts)
    trees, start = grow(used, model)
    scaled = [
        str(tree._replace(values=tuple(slopes[0] * value for value in tree.values)))
        for tree in trees.read
    ]
    start = round(float(slopes[0] * start + intercept), 6)
    of_names: list[float] = []
    for short in (False, True):
        some = [e for e in examples if e.named and e.short == short and not e.kind]
        hits = sum(min(e.count, MOST_COUNT) for e in some if e.right[model])
        all_of_them = sum(min(e.count, MOST_COUNT) for e in some)
        of_names.append(round(math.log((hits + 1) / (all_of_them - hits + 1)), 6))
    return Chance(trees=Trees(trees=scaled), intercept=start, names=of_names)


def grow(examples: Sequence[ChanceExample], model: str) -> tuple[Trees, float]:
    """Return trees, and the log-odds that they start from."""
    right = np.array([float(bool(e.right[model])) for e in examples])
    counts = np.array([WEIGHTS[e.kind] * min(e.count, MOST_COUNT) for e in examples])
    start = round(log_odds(float(np.average(right, weights=counts))), 6)
    columns = list_columns(examples, model)
    return fit_chances(columns, right, counts, OF_MODEL[model], start=start), start


def list_columns(
    examples: Sequence[ChanceExample], model: str
) -> dict[str, np.ndarray]:
    names = OF_MODEL[model]
    return {name: np.array([e.first[model][name] for e in examples]) for name in names}


def compute_chances(
    chance: Chance, examples: Sequence[ChanceExample], model: str
) -> np.ndarray:
    values: list[float] = []
    for e in examples:
        if e.named:
            values.append(chance.of_name(short=e.short))
        elif e.right[model] is None:
            values.append(0.0)
        else:
            columns = {n: np.array([e.first[model][n]]) for n in chance.trees.names}
            values.append(squash(chance.trees.scores(columns)[0] + chance.intercept))
    return np.array(values)


def measure(
    chances: np.ndarray, examples: Sequence[ChanceExample], model: str
) -> list[list[str]]:
    """Return what thresholds do to annotated mentions, and the bins of probability."""
    some = [n for n, e in enumerate(examples) if e.kind == ANNOTATED]
    p = chances[some]
    right = np.array([bool(examples[n].right[model]) for n in some])
    known = np.array([examples[n].known for n in some])
    counts = np.array([examples[n].count for n in some], dtype=float)
    rows: list[list[str]] = []
    for threshold in (0.3, 0.5, 0.8):
        linked = p >= threshold
        hits = counts[linked & right].sum()
        nil = counts[~known].sum()
        rows.append(
            [
                f"p >= {threshold}",
                f"{hits / counts[linked].sum():.3f}",
                f"{hits / counts[known].sum():.3f}",
                f"{counts[~linked & ~known].sum() / max(nil, 1):.3f}",
            ]
        )
    bins = np.minimum((p * 10).astype(int), 9)
    for number in range(10):
        of_bin = bins == number
        if of_bin.any():
            rows.append(
                [
                    f"bin {number}: {counts[of_bin].sum():.0f}",
                    f"{np.average(p[of_bin], weights=counts[of_bin]):.3f}",
                    f"{np.average(right[of_bin], weights=counts[of_bin]):.3f}",
                    "",
                ]
            )
    return rows


def main(
    data: Annotated[Path, typer.Argument(help="Folder with vocabularies and corpora.")],
    path: Annotated[Path, typer.Argument(help="A knowledge base of MEDIC.")],
) -> None:
    """Write the probability that the package ships."""
    kb, random = load_kb(path), Random(SEED)
    train = read_annotated(kb, [data / NCBI[0], data / BC5CDR[0]])
    others = read_others(kb, data / "mesh-rrf/MRCONSO.RRF.gz", random)
    replaced = [*replace_words(kb, random)][:MOST_MADE]
    examples = [*make_examples(kb, [*train, *others, *replaced]), *make_of_names(kb)]
    msg.text(f"{len(examples):,} examples: {Counter(e.kind for e in examples)}")
    dev = {
        name: [*make_examples(kb, read_annotated(kb, [data / paths[1]]))]
        for name, paths in (("bc5cdr", BC5CDR), ("ncbi", NCBI))
    }
    for model in OF_MODEL:
        chance = fit(examples, model)
        for name, some in dev.items():
            rows = measure(compute_chances(chance, some, model), some, model)
            print_table([f"{model}, {name} dev", "precision", "recall", "NIL"], rows)
        write_json(FOLDER / f"chance_{model}.json", chance.model_dump(mode="json"))


if __name__ == "__main__":
    run_cli(main)
