"""What a new knowledge base finds of its own names: checks, recall and threshold."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..errors import Errors, SapbertError, check_range
from ..linking.probability import fit_logistic
from .folder.files import open_files
from .folder.manifest import check_writable, lock_kb, read_manifest, write_manifest
from .folder.records import Estimate, Manifest, Recall
from .indexes.exact import search_rows
from .indexes.registry import change_settings
from .knowledge_base import KnowledgeBase

PROBED_ROWS = 1000
PROBED_NAMES = 200  # fewer, since the encoder runs
NEAREST = 10  # rows among which the concept of a name must be …
SAME_NAME = 0.02  # … with a cosine this close to 1: precisions and engines differ
SHARE = 0.9  # must be found: the search is approximate
PRECISION = 1e-4  # of the cosine of equal vectors
RECALL_NAMES = 500
FEWEST_RECALL_NAMES = 50
COMPARED = 200_000_000  # pairs of vectors compared to measure recall, at most
ESTIMATED_ROWS = 3000
FEWEST_ANSWERS = 20  # right and wrong ones, to estimate a threshold
# At the threshold, that what is found is right. F1 is highest at half of the F1 that
# is reached (Lipton, Elkan and Naryanaswamy, 2014), which is often about two thirds.
PROBABILITY = 1 / 3


class ProbeResult(NamedTuple):
    """What was found, as shares of what was searched for.

    rows (float): Rows that find an equal vector first.
    names (float): Names that find their concept, embedded anew.
    """

    rows: float
    names: float


def choose_rows(kb: KnowledgeBase, most: int) -> np.ndarray:
    """Return row numbers, spread over all rows, int64. Shape: (up to most,)."""
    numbers = np.linspace(0, kb.rows - 1, min(most, kb.rows))
    return np.unique(numbers.astype(np.int64))


def probe_kb(kb: KnowledgeBase) -> ProbeResult:
    """Search rows by their own vectors, and names by what the encoder makes of them.

    RAISES (SapbertError): If fewer than `SHARE` of the rows find themselves, or of the
        names find their concept: then the index is damaged, or is of other names.
    """
    rows = choose_rows(kb, PROBED_ROWS)
    _, scores = kb.search(kb.vectors(rows), 1)
    found = int((scores[:, 0] > 1 - PRECISION).sum())
    if found < SHARE * len(rows):
        raise SapbertError(Errors.E319.format(found=found, total=len(rows)))
    entries = kb.entries(choose_rows(kb, PROBED_NAMES))
    probed = [of_row[0] for of_row in entries.values()]
    token_ids, _ = kb.encoder.tokenize([entry.alias for entry in probed])
    nearest, scores = kb.search(kb.encoder.encode(token_ids), NEAREST)
    nearest = np.where(scores > 1 - SAME_NAME, nearest, -1)
    near = kb.entries(np.unique(nearest[nearest >= 0]))
    having = [
        {entry.cui for row in own.tolist() for entry in near.get(row, ())}
        for own in nearest
    ]
    right = sum(e.cui in cuis for e, cuis in zip(probed, having, strict=True))
    if right < SHARE * len(probed):
        raise SapbertError(Errors.E353.format(found=right, total=len(probed)))
    return ProbeResult(found / len(rows), right / max(len(probed), 1))


def drop_letter(name: str) -> str:
    """Return a name without the middle character of its longest word."""
    words = name.split(" ")
    place = max(range(len(words)), key=lambda number: len(words[number]))
    word = words[place]
    words[place] = word[: len(word) // 2] + word[len(word) // 2 + 1 :]
    return " ".join(words)


def measure_recall(kb: KnowledgeBase) -> Recall | None:
    """Compare the index with exact search, for names with a letter left out.

    The vectors of the rows themselves would be found more easily than those of
    mentions.

    RETURNS (Recall | None): None if the search is exact.
    """
    if kb.manifest.index.backend == "exact" or kb.rows <= NEAREST:
        return None
    most = min(RECALL_NAMES, max(FEWEST_RECALL_NAMES, COMPARED // kb.rows))
    entries = kb.entries(choose_rows(kb, most)).values()
    names = [drop_letter(of_row[0].alias) for of_row in entries]
    token_ids = [ids for ids in kb.encoder.tokenize(names)[0] if ids]
    if not token_ids:
        return None
    queries = kb.encoder.encode(token_ids)
    found = kb.search(queries, NEAREST)[1]
    everything = np.arange(kb.rows)
    nearest = search_rows(kb.index.vectors, everything, queries, NEAREST)[1]
    first = found[:, 0] >= nearest[:, 0] - PRECISION
    near = found >= nearest[:, -1:] - PRECISION
    return Recall(
        queries=len(queries),
        at_1=round(float(first.mean()), 4),
        at_10=round(float(near.sum() / nearest.size), 4),
    )


def estimate_threshold(kb: KnowledgeBase) -> tuple[float, Estimate] | None:
    """Estimate the score at which a third of the answers is right.

    Some names are searched for without their own row: an answer is right if it is
    another name of the same concept.

    RETURNS (tuple[float, Estimate] | None): The threshold and what it is based on; None
        if there are too few right or wrong answers.
    """
    if kb.rows < 2 * FEWEST_ANSWERS:
        return None
    rows = choose_rows(kb, ESTIMATED_ROWS)
    found, scores = kb.search(kb.vectors(rows), 2)
    # The second, unless the row itself was not found or has an equal one.
    other = np.argmax(found != rows[:, None], axis=1)[:, None]
    others = np.take_along_axis(found, other, 1)[:, 0]
    scores = np.take_along_axis(scores, other, 1)[:, 0].astype(np.float64)
    entries = kb.entries(np.unique(np.concatenate([rows, others])))
    cuis = {row: {e.cui for e in of_row} for row, of_row in entries.items()}
    pairs = zip(rows.tolist(), others.tolist(), strict=True)
    right = np.array([not cuis[a].isdisjoint(cuis[b]) for a, b in pairs])
    if not FEWEST_ANSWERS <= right.sum() <= len(rows) - FEWEST_ANSWERS:
        return None
    curve = fit_logistic(scores, right)
    if curve.slope <= 0:
        return None
    threshold = round(min(max(curve.score_at(PROBABILITY), 0.0), 1.0), 3)
    return threshold, Estimate(
        names=len(rows), right=int(right.sum()), probability=PROBABILITY
    )


def change_kb(
    folder: Path, *, index: dict[str, int] | None = None, threshold: float | None = None
) -> Manifest:
    """Change settings that need no new build; only meta.json is written.

    folder (Path): Folder of the knowledge base.
    index (dict[str, int] | None): Settings of the index by name, e.g. `{"ef": 200}`;
        its recall is measured anew.
    threshold (float | None): Cosine below which a mention has no concept, which takes
        the place of an estimate or a calibration; None = no change.
    RETURNS (Manifest): The new meta.json.
    RAISES (SapbertError): If a setting is unknown, out of range or needs a new build,
        the knowledge base has a learned order with a threshold of its own, or is
        damaged, read-only or locked.
    """
    check_writable(folder)
    with lock_kb(folder):
        manifest = read_manifest(folder)
        if threshold is not None:
            check_range("threshold", threshold, -1, 1)
            if manifest.has_ranker:
                raise SapbertError(Errors.E364.format(path=folder))
            manifest.threshold = threshold
            manifest.estimate = manifest.calibration = None
        if index:
            record = manifest.index
            record.settings = change_settings(record.backend, record.settings, index)
            files = open_files(folder, manifest.files)
            manifest.recall = measure_recall(KnowledgeBase(files, manifest))
        return write_manifest(folder, manifest)
