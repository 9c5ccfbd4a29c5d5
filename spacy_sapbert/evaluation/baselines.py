"""Linkers without an encoder, to compare with: exact look-up and character n-grams."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import (
    Any,
    NamedTuple,
)

import numpy as np

from spacy_sapbert.evaluation.accuracy import (
    SCORE_DIGITS,
    Answer,
    Rank,
    is_complete,
    keep_needed,
)
from spacy_sapbert.evaluation.gold_mentions import fold_text
from spacy_sapbert.vocabularies.concepts import Concept

FEWEST_ROWS = 64  # names looked at first, for each concept that is wanted
MANY_NAMES = 10_000  # from here on rare 3-grams are dropped as scispaCy drops them
MENTIONS_AT_ONCE = 64  # so that the cosines with a million names fit into memory


class Dictionary(NamedTuple):
    """What a linker without an encoder knows.

    names (dict[str, int]): The row of each distinct folded alias.
    cuis (list[list[str]]): The concepts of each row.
    ids (dict[str, str]): For each id, also a retired one, the concept that has it.
    lowercase (bool): Whether folding takes the case away: not for a cased encoder.
    """

    names: dict[str, int]
    cuis: list[list[str]]
    ids: dict[str, str]
    lowercase: bool = True

    def fold(self, text: str) -> str:
        """Write a mention as the names are written."""
        return fold_text(text) if self.lowercase else " ".join(text.split())

    def lookup(self, cui: str) -> str | None:
        """Return the concept that has an id now."""
        return self.ids.get(cui)


def read_dictionary(
    concepts: Iterable[Concept], *, lowercase: bool = True
) -> Dictionary:
    """Take the names and ids out of a vocabulary.

    concepts (Iterable[Concept]): All concepts.
    lowercase (bool): See `Dictionary`.
    RETURNS (Dictionary): Their names, folded.
    """
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
    """Fan rows out to the concepts that bear their names.

    rows (Iterable[int]): The best first.
    scores (Iterable[float]): Of each row.
    dictionary (Dictionary): The names.
    aliases (dict[str, str]): Ids that another one stands for.
    RETURNS (list[Answer]): By score, then by concept.
    """
    answers = [
        Answer(row, aliases.get(cui, cui), round(float(score), SCORE_DIGITS))
        for row, score in zip(rows, scores, strict=True)
        for cui in dictionary.cuis[row]
    ]
    return sorted(answers, key=lambda answer: (-answer.score, answer.cui, answer.row))


def make_exact_lookup(dictionary: Dictionary, aliases: dict[str, str]) -> Rank:
    """Make a linker that knows mentions that equal an alias, and no others.

    dictionary (Dictionary): The names.
    aliases (dict[str, str]): Ids that another one stands for.
    RETURNS (Rank): Gives score 1 to every concept of that alias.
    """

    def rank(mentions: Sequence[str]) -> list[list[Answer]]:
        rows = [dictionary.names.get(dictionary.fold(text)) for text in mentions]
        return [
            [] if row is None else list_answers([row], [1.0], dictionary, aliases)
            for row in rows
        ]

    return rank


def make_tfidf_search(
    dictionary: Dictionary,
    aliases: dict[str, str],
    *,
    k: int,
    min_df: int | None = None,
) -> Rank:
    """Make a linker that compares character 3-grams as scispaCy's does.

    scispaCy finds neighbours with an approximate index and drops those under 0.7; here
    the search is exact and nothing is dropped, which bounds its accuracy from above.

    dictionary (Dictionary): The names.
    aliases (dict[str, str]): Ids that another one stands for.
    k (int): Concepts for each mention; more where they tie.
    min_df (int | None): 3-grams of fewer names do not count; None = 10 as in
        scispaCy, or 1 for a dictionary of fewer than `MANY_NAMES`.
    RETURNS (Rank): Gives cosines above 0.
    SOURCE: scispacy/candidate_generation.py, create_tfidf_ann_index.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    if min_df is None:
        min_df = 10 if len(dictionary.names) >= MANY_NAMES else 1
    vectorizer = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(3, 3), min_df=min_df, dtype=np.float32
    )
    matrix = vectorizer.fit_transform(dictionary.names)  # (rows, 3-grams)
    transposed = matrix.T.tocsr()

    def rank(mentions: Sequence[str]) -> list[list[Answer]]:
        results: list[list[Answer]] = []
        for start in range(0, len(mentions), MENTIONS_AT_ONCE):
            texts = mentions[start : start + MENTIONS_AT_ONCE]
            cosines = (vectorizer.transform(texts) @ transposed).tocsr()
            for number in range(len(texts)):
                begin, end = cosines.indptr[number : number + 2]
                rows, scores = cosines.indices[begin:end], cosines.data[begin:end]
                results.append(best_answers(rows, scores, dictionary, aliases, k=k))
        return results

    return rank


def best_answers(
    rows: np.ndarray,
    scores: np.ndarray,
    dictionary: Dictionary,
    aliases: dict[str, str],
    *,
    k: int,
) -> list[Answer]:
    """Return the k best concepts of one mention, and those that tie with the last.

    rows (np.ndarray): In any order. Shape: (n,).
    scores (np.ndarray): Shape: (n,).
    dictionary (Dictionary): The names.
    aliases (dict[str, str]): Ids that another one stands for.
    k (int): Concepts.
    RETURNS (list[Answer]): The best first.
    """
    count = FEWEST_ROWS * k
    while True:
        count = min(count, len(rows))
        best = np.argpartition(-scores, count - 1)[:count] if count else slice(0)
        found: tuple[Any, Any] = rows[best].tolist(), scores[best].tolist()
        answers = list_answers(*found, dictionary, aliases)
        if count == len(rows) or is_complete(answers, k):
            return keep_needed(answers, k)
        count *= 4
