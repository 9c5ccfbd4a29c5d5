"""Vectors → ranked concepts, as if the index held only what may be found."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..kb.layers import search_rows
from .candidates import Hit, has_text, iterate_hits, rank_concepts
from .filters import Filter
from .options import LinkOptions
from .searched import Searched

ROWS_PER_CONCEPT = 4  # rows asked for at first, for each concept that is wanted
FEWEST_ROWS = 32
MOST_ROWS = 4096
MENTIONS_AT_ONCE = 256  # compared with the index together: memory, not results
EXACT_ROWS = 20_000  # a filter that leaves fewer rows is searched exactly

Asked = tuple[str, Filter]  # mention, and what it may find


class Found(NamedTuple):
    """The concepts of one text, before ties are settled.

    hits (list[Hit]): The best first, with all that equal the last.
    note (str | None): None, or why there is none, or that the mention was cut.
    """

    hits: list[Hit]
    note: str | None


def find_concepts(
    kb: Searched, asked: Sequence[Asked], options: LinkOptions
) -> dict[Asked, Found]:
    """Look mentions up, equal ones once, and none that was looked up a while ago.

    kb (Searched): Where.
    asked (Sequence[Asked]): Mentions, and what each may find.
    options (LinkOptions): How.
    RETURNS (dict[Asked, Found]): What was found.
    """
    # All that what is found depends on, besides the knowledge base.
    how = (options.k, options.threshold, options.fusion, options.ngram_weight)
    known = kb.found.recall((*key, *how) for key in dict.fromkeys(asked))
    found = {(text, wanted): value for (text, wanted, *_), value in known.items()}
    new = [key for key in dict.fromkeys(asked) if key not in found]
    if new:
        searched = search_concepts(kb, new, options)
        kb.found.keep({(*key, *how): value for key, value in searched.items()})
        found.update(searched)
    return found


def search_concepts(
    kb: Searched, asked: Sequence[Asked], options: LinkOptions
) -> dict[Asked, Found]:
    """Search for mentions; see `find_concepts`."""
    from ..encoder.name_encoder import tokenize_names

    found = {key: Found([], "empty") for key in asked}
    texts = [
        text for text in dict.fromkeys(text for text, _ in asked) if has_text(text)
    ]
    if not texts:
        return found
    pieces, cut = tokenize_names(kb.encoder, texts)
    vectors = kb.embed(pieces)
    usable = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
    place = {text: number for number, text in enumerate(texts)}
    by_filter: dict[Filter, list[int]] = {}
    for text, wanted in found:
        if text in place and pieces[place[text]]:
            found[text, wanted] = Found([], "no_vector")
            if usable[place[text]]:
                by_filter.setdefault(wanted, []).append(place[text])
    threshold = kb.meta["threshold"] if options.threshold is None else options.threshold
    parts = [
        (wanted, numbers[start : start + MENTIONS_AT_ONCE])
        for wanted, numbers in by_filter.items()
        for start in range(0, len(numbers), MENTIONS_AT_ONCE)
    ]
    for wanted, numbers in parts:
        some = [texts[number] for number in numbers]
        ranked = rank_vectors(kb, some, vectors[numbers], options, wanted)
        missed: list[int] = []
        for number, text, hits in zip(numbers, some, ranked, strict=True):
            note = "cut" if cut[number] else None
            if is_below(hits, threshold):
                note = "below_threshold"
                missed.append(number)
            found[text, wanted] = Found(hits, note)
        if wanted and missed:
            missing = [texts[number] for number in missed]
            free = rank_vectors(
                kb, missing, vectors[missed], replace(options, k=1), Filter()
            )
            for text, hits in zip(missing, free, strict=True):
                # It would have a concept but for the filter.
                if not is_below(hits, threshold):
                    found[text, wanted] = found[text, wanted]._replace(note="filtered")
    return found


def is_below(hits: Sequence[Hit], threshold: float | None) -> bool:
    """Return whether hits are too far from the mention, or none at all."""
    return not hits or (threshold is not None and hits[0].score < threshold)


def rank_vectors(
    kb: Searched,
    texts: Sequence[str],
    vectors: np.ndarray,
    options: LinkOptions,
    wanted: Filter,
) -> list[list[Hit]]:
    """Find the k best concepts of each vector, as if the index held only what it may.

    Several rows may belong to one concept, and names may be filtered out, so that more
    rows are asked for, and more again for those vectors that still lack concepts. Where
    a filter leaves little, what it leaves is searched exactly.

    kb (Searched): Where.
    texts (Sequence[str]): The mentions, for the likeness of characters.
    vectors (np.ndarray): Unit vectors in float32. Shape: (n, width).
    options (LinkOptions): How many, and how they are ordered.
    wanted (Filter): What they may find.
    RETURNS (list[list[Hit]]): See `rank_concepts`.
    """
    admitted = kb.admitted(wanted) if wanted else None

    left = kb.rows if admitted is None else len(admitted.rows)
    exact = admitted is not None and left <= EXACT_ROWS
    most = left if exact else min(kb.rows, MOST_ROWS)
    results: list[list[Hit]] = [[] for _ in vectors]
    pending = np.arange(len(vectors))
    count = max(FEWEST_ROWS, ROWS_PER_CONCEPT * options.k)
    if not exact:
        # So that about as many are left as without a filter.
        count = count * kb.rows // left
    count = min(count, most)
    while len(pending) and left:
        if exact:
            assert admitted is not None
            rows, scores = search_rows(
                kb.vectors, admitted.rows, vectors[pending], count
            )
        else:
            rows, scores = kb.search(vectors[pending], count)
        ended = count >= most or (not exact and rows.shape[1] < count)
        orders = scores
        if options.fusion is not None:
            some = [texts[int(number)] for number in pending]
            rows, scores, orders = kb.fuse(
                some, vectors[pending], rows, scores, admitted, options
            )
        distinct = np.unique(rows)
        if admitted is not None:
            distinct = np.intersect1d(distinct, admitted.rows, assume_unique=True)
        entries = kb.entries(distinct)
        if admitted is not None:
            entries = admitted.keep(entries)
        for place, number in enumerate(pending):
            ranked = iterate_hits(
                rows[place].tolist(),
                scores[place].tolist(),
                entries,
                orders=orders[place].tolist(),
            )
            results[number] = rank_concepts(ranked, k=options.k)
        pending = np.array(
            [i for i in pending if len(results[i]) < options.k], dtype=int
        )
        if ended:
            if admitted is None or exact:
                break
            # The graph cannot be asked for more.
            exact, most = True, left
        count = min(count * 4, most)
    return results
