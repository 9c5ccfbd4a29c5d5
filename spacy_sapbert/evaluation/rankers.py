"""Rankers to evaluate: exact look-up, TF-IDF, training mentions, a knowledge base."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..io.plugins import require
from ..linking.candidates import Candidate
from ..linking.filters import Filter
from ..linking.ranking import has_text, sort_entries
from ..linking.text import read_mention
from ..vocabularies.concepts import Concept
from .accuracy import SCORE_DIGITS, Answer, Ranker, is_complete, trim_answers
from .gold_mentions import Lookup, Resolve, fold_text, read_mentions

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase

FEWEST_ROWS = 32  # rows to search at first
MOST_ROWS = 4096  # rows of an approximate index
MANY_NAMES = 10_000  # from here on rare 3-grams are dropped, as scispaCy does
BATCH_SIZE = 64  # limits the memory for the cosines with a million names
TRAINING_SCORE = 2.0  # above every cosine


class Dictionary(NamedTuple):
    """The names of a vocabulary, for rankers without a knowledge base.

    Attributes:
        names: The row of each distinct folded name.
        cuis: The concepts of each row.
        ids: The concept of each id, also of retired ids.
    """

    names: dict[str, int]
    cuis: list[list[str]]
    ids: dict[str, str]
    lowercase: bool = True

    def fold(self, text: str) -> str:
        return fold_text(text) if self.lowercase else " ".join(text.split())

    def lookup(self, cui: str) -> str | None:
        """Return the concept that has an id now."""
        return self.ids.get(cui)


def read_dictionary(
    concepts: Iterable[Concept], *, lowercase: bool = True
) -> Dictionary:
    dictionary = Dictionary({}, [], {}, lowercase)
    rows: dict[str, list[str]] = defaultdict(list)
    live: dict[str, str] = {}
    retired: dict[str, str] = {}
    for concept in concepts:
        live[concept.cui] = concept.cui
        for cui in concept.retired:
            retired.setdefault(cui, concept.cui)
        for name in dict.fromkeys(map(dictionary.fold, concept.aliases)):
            rows[name].append(concept.cui)
    numbers = {name: row for row, name in enumerate(rows)}
    return Dictionary(numbers, list(rows.values()), {**retired, **live}, lowercase)


def list_answers(
    rows: Iterable[int],
    scores: Iterable[float],
    dictionary: Dictionary,
    aliases: dict[str, str],
) -> list[Answer]:
    """Return the answers of some rows by score, then by concept."""
    answers = [
        Answer(row, aliases.get(cui, cui), round(float(score), SCORE_DIGITS))
        for row, score in zip(rows, scores, strict=True)
        for cui in dictionary.cuis[row]
    ]
    return sorted(answers, key=lambda answer: (-answer.score, answer.cui, answer.row))


def best_answers(
    rows: np.ndarray,
    scores: np.ndarray,
    dictionary: Dictionary,
    aliases: dict[str, str],
    *,
    k: int,
) -> list[Answer]:
    """Return the answers to the k best concepts, and all that tie with the k-th."""
    count = FEWEST_ROWS * k
    while True:
        count = min(count, len(rows))
        best = np.argpartition(-scores, count - 1)[:count] if count else slice(0)
        answers = list_answers(
            rows[best].tolist(), scores[best].tolist(), dictionary, aliases
        )
        if count == len(rows) or is_complete(answers, k):
            return trim_answers(answers, k)
        count *= 4


def exact_lookup(dictionary: Dictionary, aliases: dict[str, str]) -> Ranker:
    """Return a ranker that finds mentions that equal a name, with score 1."""

    def rank(mentions: Sequence[str]) -> list[list[Answer]]:
        rows = [dictionary.names.get(dictionary.fold(text)) for text in mentions]
        return [
            [] if row is None else list_answers([row], [1.0], dictionary, aliases)
            for row in rows
        ]

    return rank


def tfidf_ranker(
    dictionary: Dictionary,
    aliases: dict[str, str],
    *,
    k: int,
    min_df: int | None = None,
) -> Ranker:
    """Return a ranker by cosines of character 3-grams above 0, as in scispaCy.

    scispaCy searches with an approximate index and drops scores below 0.7. This search
    is exact and drops nothing, so its accuracy is an upper bound. 3-grams of fewer
    names than `min_df` are ignored; None = 10 as in scispaCy, or 1 for fewer than
    `MANY_NAMES` names.

    Source: scispacy/candidate_generation.py, create_tfidf_ann_index.
    """
    text = require("sklearn.feature_extraction.text", "scikit-learn")
    if min_df is None:
        min_df = 10 if len(dictionary.names) >= MANY_NAMES else 1
    vectorizer = text.TfidfVectorizer(
        analyzer="char_wb", ngram_range=(3, 3), min_df=min_df, dtype=np.float32
    )
    matrix = vectorizer.fit_transform(dictionary.names)  # (rows, 3-grams)
    transposed = matrix.T.tocsr()

    def rank(mentions: Sequence[str]) -> list[list[Answer]]:
        results: list[list[Answer]] = []
        for start in range(0, len(mentions), BATCH_SIZE):
            texts = mentions[start : start + BATCH_SIZE]
            cosines = (vectorizer.transform(texts) @ transposed).tocsr()
            for number in range(len(texts)):
                begin, end = cosines.indptr[number : number + 2]
                rows, scores = cosines.indices[begin:end], cosines.data[begin:end]
                results.append(best_answers(rows, scores, dictionary, aliases, k=k))
        return results

    return rank


def read_training_mentions(
    paths: Iterable[Path], resolve: Resolve, *, bars_join_parts: bool = False
) -> dict[str, list[str]]:
    """Return the sorted concepts of each folded mention, without composites."""
    known: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        for gold in read_mentions(path, bars_join_parts=bars_join_parts):
            if len(gold.parts) == 1 and (concepts := resolve(gold)[0]):
                known[fold_text(gold.mention)] |= concepts
    return {text: sorted(concepts) for text, concepts in known.items()}


def back_off_ranker(rank: Ranker, known: dict[str, list[str]]) -> Ranker:
    """Return a ranker that looks mentions up in the training mentions first.

    Several concepts of one text tie. The answers of `rank` follow.

    Source: Basaldella et al. (2020), COMETA: dictionary back-off.
    """
    rows = {text: -number for number, text in enumerate(known, start=1)}

    def rank_known(mentions: Sequence[str]) -> list[list[Answer]]:
        results: list[list[Answer]] = []
        for mention, answers in zip(mentions, rank(mentions), strict=True):
            text = fold_text(mention)
            first = [
                Answer(rows[text], cui, TRAINING_SCORE) for cui in known.get(text, ())
            ]
            results.append([*first, *answers])
        return results

    return rank_known


def embed_mentions(
    kb: "KnowledgeBase", mentions: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the mentions that are searched for, and unit vectors.

    Shape: (n,) and (n, width).
    """
    numbers = [i for i, text in enumerate(mentions) if has_text(text)]
    texts = [read_mention(mentions[i]) for i in numbers]
    embedded = kb.embed(texts)
    named = kb.searcher.nearest.name(texts, embedded.vectors, Filter())
    usable = embedded.usable
    return np.array(numbers, dtype=np.int64)[usable], named.vectors[usable]


def exact_search(
    kb: "KnowledgeBase", vectors: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest rows by comparing with every vector; see `kb.search`."""
    from ..kb.indexes.exact import search_rows

    return search_rows(kb.vectors, np.arange(kb.rows), vectors, k)


def kb_ranker(kb: "KnowledgeBase", aliases: dict[str, str], *, k: int) -> Ranker:
    """Return a ranker by the scores of a knowledge base, without its threshold."""
    if kb.ranker is not None:
        return learned_ranker(kb, aliases, k=k)
    total = kb.rows

    def rank(mentions: Sequence[str]) -> list[list[Answer]]:
        results: list[list[Answer]] = [[] for _ in mentions]
        numbers, vectors = embed_mentions(kb, mentions)
        count = min(max(FEWEST_ROWS, 4 * k), total)
        while len(numbers):
            rows, scores = kb.search(vectors, count)
            entries = kb.entries(np.unique(rows).tolist())
            for row, number in enumerate(numbers):
                ordered = sort_entries(
                    rows[row].tolist(), scores[row].tolist(), entries
                )
                results[number] = [
                    Answer(entry.row, aliases.get(entry.cui, entry.cui), score)
                    for score, entry, _ in ordered
                ]
            if count >= min(total, MOST_ROWS) or rows.shape[1] < count:
                break
            count = min(count * 4, total, MOST_ROWS)
            pending = [not is_complete(results[number], k) for number in numbers]
            numbers, vectors = numbers[pending], vectors[pending]
        return [trim_answers(answers, k) for answers in results]

    return rank


def learned_ranker(kb: "KnowledgeBase", aliases: dict[str, str], *, k: int) -> Ranker:
    """Return a ranker by the order that a knowledge base has learned.

    The scores are reciprocal ranks. Candidates that only evidence tells apart are
    equal, unless the order was taught: counts of annotations are evidence too.
    """
    taught = kb.manifest.taught is not None

    def rank(mentions: Sequence[str]) -> list[list[Answer]]:
        results: list[list[Answer]] = []
        for linked in kb.link(mentions, k=k, threshold=-1):
            answers: list[Answer] = []
            before: Candidate | None = None
            for number, candidate in enumerate(linked.candidates):
                score = 1 / candidate["rank"]
                if before and not taught and candidate["tie"] and before["tie"]:
                    equal = candidate["score"] == before["score"]
                    score = answers[-1].score if equal else score
                cui = aliases.get(candidate["cui"], candidate["cui"])
                answers.append(Answer(number, cui, score))
                before = candidate
            results.append(answers)
        return results

    return rank


def kb_lookup(kb: "KnowledgeBase") -> Lookup:
    def lookup(cui: str) -> str | None:
        concept = kb.concept(cui)
        return None if concept is None else concept.cui

    return lookup
