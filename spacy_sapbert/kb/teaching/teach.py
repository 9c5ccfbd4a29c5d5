"""Annotated documents → a new version of a knowledge base, which learned from them."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ... import __version__
from ...errors import Errors, SapbertError
from ...linking.ranker import Ranker
from ...system.writing import check_folder_output, remove_path, write_json
from ..edits.edits import Edits, read_edits
from ..edits.overlay import write_overlay
from ..edits.taught import TaughtDocument, taught_concepts
from ..folder.publication import (
    copy_version,
    draft_version,
    lock_kb,
    lock_version,
    open_target,
)
from ..folder.records import (
    CURRENT,
    KB_FOLDER,
    OVERLAY,
    RANKER_FILE,
    TaughtFile,
    Teaching,
)
from ..folder.versions import Version, read_current
from ..knowledge_base import KnowledgeBase, load_kb, open_version
from .curve import CurvePoint, measure_curve
from .documents import (
    AnnotatedDocument,
    AnnotationCounts,
    describe_sources,
    resolve_documents,
)
from .examples import AnnotatedMentions, Example
from .learning import (
    FEWEST,
    calibrate_ranker,
    fit_folds,
    fit_ranker,
    is_right,
    measure_groups,
    rank_unseen,
)

MOST_EXAMPLES = 20_000  # mentions that the order is learned from: bounds the memory
DIGITS = 4


@dataclass
class Accuracy:
    """The share of right first answers; None without such mentions.

    seen (float | None), unseen (float | None): Of mentions that other documents have,
        and do not have, with the same concept.
    """

    all: float | None
    seen: float | None
    unseen: float | None


@dataclass
class TeachingReport:
    """What was learned, and what it changes for documents that were not learned from.

    All accuracies are by cross-validation: each document is linked with names, counts
    and ranker of the others.

    counts (AnnotationCounts): What was read.
    sources (list[TaughtFile]): All sources that the knowledge base has learned from.
    changed (bool): Whether the knowledge base was changed.
    before (Accuracy), names (Accuracy), after (Accuracy | None): With the vocabulary
        alone, with annotated mentions as names, and with the learned order too; None =
        no order was learned.
    groups (dict[str, float]): Accuracy that is lost without a group of features.
    curve (list[CurvePoint]): The accuracies by number of documents, from none on.
    lost (list[tuple[str, int]]): Concepts of mentions that were right with the
        vocabulary alone and are wrong now, with their number.
    threshold (float | None): Probability below which a mention has no concept.
    precision (float | None), recall (float | None): Of links at this threshold.
    nil_precision (float | None), nil_recall (float | None): Of mentions without a
        concept, if there are any.
    """

    counts: AnnotationCounts
    sources: list[TaughtFile]
    examples: int
    changed: bool
    before: Accuracy
    names: Accuracy
    after: Accuracy | None = None
    groups: dict[str, float] = field(default_factory=dict)
    curve: list[CurvePoint] = field(default_factory=list)
    lost: list[tuple[str, int]] = field(default_factory=list)
    threshold: float | None = None
    precision: float | None = None
    recall: float | None = None
    nil_precision: float | None = None
    nil_recall: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the report as values of JSON."""
        # `asdict` makes a Counter of tuples of a Counter, and keeps pydantic's models.
        data = asdict(replace(self, counts=AnnotationCounts(), sources=[]))
        counts = {**vars(self.counts), "unknown": {**self.counts.unknown}}
        sources = [source.model_dump() for source in self.sources]
        return {**data, "counts": counts, "sources": sources}


class NothingBetterError(Exception):
    """Ends the writing of an output that would bring nothing."""


def teach_documents(
    kb: KnowledgeBase,
    documents: Iterable[AnnotatedDocument],
    *,
    output: Path | None = None,
    instead_of: str | None = None,
    curve: bool = False,
    force: bool = False,
    progress: bool = False,
) -> tuple[KnowledgeBase, TeachingReport]:
    """Teach a knowledge base with annotated documents.

    The result does not depend on how often or in which parts documents are taught.

    Args:
        kb: The knowledge base; the object itself does not change.
        documents: They replace what it has learned from the same documents before; see
            `resolve_documents`.
        output: A folder for the new version; None = the folder of `kb`.
        instead_of: A source of which no earlier document counts any more.
        curve: Measure a learning curve too, which takes as long again.
        force: Replace `output`, and change the knowledge base even if nothing gets
            better.
        progress: Show progress bars.

    Returns:
        The new version, or `kb` if it was not changed; and the report.

    Raises:
        SapbertError: If the documents have no mention or ids of another vocabulary, or
            the folder has changed, is locked or cannot be written.
    """
    if output is not None:
        check_folder_output(output, KB_FOLDER, force=force)
    edits = read_edits(kb)
    known: dict[str, str | None] = {}

    def find(cui: str) -> str | None:
        if cui not in known:
            concept = kb.concept(cui)
            known[cui] = None if concept is None else concept.cui
        return known[cui]

    kept = [one for one in edits.taught if one.source != instead_of]
    taught, counts = resolve_documents(documents, find, kept)
    lesson = Lesson(edits, taught, counts, curve=curve, force=force, progress=progress)
    if output is None:
        with lock_version(kb.version):
            version, report = learn(kb, lesson)
        if version is None:
            return kb, report
        return open_version(version, encoder=kb.encoder_config, old=kb), report
    try:
        with open_target(output) as root, lock_kb(root):
            copy = copy_version(kb.version, root, current=False)
            try:
                opened = open_version(copy, encoder=kb.encoder_config)
                version, report = learn(opened, lesson)
                if version is None:
                    raise NothingBetterError
            except BaseException:
                discard_copy(copy)
                raise
    except NothingBetterError:
        return kb, report
    return load_kb(output, encoder=kb.encoder_config), report


def discard_copy(copy: Version) -> None:
    """Remove a version unless it is the one that is used."""
    if not (copy.folder / CURRENT).exists() or read_current(copy.folder) != copy.name:
        remove_path(copy.folder / copy.name)


class Lesson(NamedTuple):
    """What is taught.

    Attributes:
        edits: The edits of the knowledge base before.
        taught: All documents that count now.
        counts: Of the documents that were read.
        curve: See `teach_documents`.
        force: See `teach_documents`.
        progress: See `teach_documents`.
    """

    edits: Edits
    taught: Sequence[TaughtDocument]
    counts: AnnotationCounts
    curve: bool
    force: bool
    progress: bool


def learn(kb: KnowledgeBase, lesson: Lesson) -> tuple[Version | None, TeachingReport]:
    """Write a new overlay, learn an order with it, and publish it if it helps.

    Returns:
        The version that was published, None if nothing gets better; and the report.
    """
    sources = describe_sources(lesson.taught)
    teaching = Teaching(
        files=sources,
        concepts=len(taught_concepts(lesson.taught)),
        before=0.0,
        names=0.0,
        after=None,
        date=datetime.now(UTC).date().isoformat(),
        package_version=__version__,
    )
    old = lesson.edits
    with draft_version(kb.folder) as first, draft_version(kb.folder) as draft:
        untaught, plain = kb, old
        if old.teaching is not None:
            plain = Edits(old.added, old.removed)
            untaught = open_draft(kb, write_overlay(first, kb, old, plain))
        edits = Edits(old.added, old.removed, [*lesson.taught], teaching)
        # Its names are searched for before it is published. Vectors of what was taught
        # before are not used, so that teaching in parts gives the same bytes.
        version = write_overlay(draft, untaught, plain, edits)
        opened = open_draft(kb, version)
        mentions = AnnotatedMentions(
            opened,
            lesson.taught,
            before=untaught,
            most=MOST_EXAMPLES,
            progress=lesson.progress,
        )
        ranker, report = evaluate(mentions.examples(), lesson.counts, sources)
        if lesson.curve:
            report.curve = measure_curve(
                mentions,
                before=report.before.all,
                names=report.names.all,
                after=report.after.all if report.after else None,
            )
        ours = report.after or report.names
        if (ours.all or 0) <= (report.before.all or 0) and not lesson.force:
            return None, report
        if ranker is not None:
            write_json(draft.path / OVERLAY / RANKER_FILE, ranker.model_dump())
        teaching = teaching.model_copy(
            update={
                "before": report.before.all or 0.0,
                "names": report.names.all or 0.0,
                "after": report.after.all if report.after else None,
            }
        )
        assert version.manifest.overlay is not None
        overlay = version.manifest.overlay.model_copy(update={"taught": teaching})
        manifest = version.manifest.model_copy(update={"overlay": overlay})
        draft.describe(manifest, kb.version.keep(overlay=False))
        report.changed = True
        return draft.publish(), report


def open_draft(kb: KnowledgeBase, version: Version) -> KnowledgeBase:
    """Open a draft in the folder of a knowledge base, whose parts it shares."""
    return KnowledgeBase(version, encoder=kb.encoder_config, old=kb)


def evaluate(
    examples: Sequence[Example], counts: AnnotationCounts, sources: list[TaughtFile]
) -> tuple[Ranker | None, TeachingReport]:
    """Learn an order, and measure by cross-validation what it brings.

    RETURNS (tuple[Ranker | None, TeachingReport]): None if it brings nothing.
    """
    if not examples:
        raise SapbertError(Errors.E363.format(documents=counts.documents))
    plain = np.array([one.plain for one in examples])
    named = np.array([one.named for one in examples])
    report = TeachingReport(
        counts,
        sources,
        len(examples),
        changed=False,
        before=measure(examples, plain),
        names=measure(examples, named),
    )
    usable = sum(one.right is not None for one in examples)
    ranker: Ranker | None = None
    best = named
    if usable >= FEWEST:
        rankers = fit_folds(examples)
        scores = rank_unseen(examples, rankers)
        right = check_right(examples, scores)
        if right.sum() > named.sum():
            ranker = calibrate_ranker(fit_ranker(examples), examples, scores)
            best = right
            report.after = measure(examples, right)
            report.groups = measure_groups(examples, rankers)
            measure_links(report, ranker, examples, scores)
    lost: dict[str, int] = {}
    for one, was, now in zip(examples, plain, best, strict=True):
        if was and not now and one.right is not None:
            lost[one.cuis[one.right]] = lost.get(one.cuis[one.right], 0) + 1
    report.lost = sorted(lost.items(), key=lambda item: (-item[1], item[0]))
    return ranker, report


def measure(examples: Sequence[Example], right: np.ndarray) -> Accuracy:
    """Compute the accuracy of answers, for mentions that have a concept."""
    nil = np.array([one.nil for one in examples])
    seen = np.array([one.seen for one in examples])

    def share(chosen: np.ndarray) -> float | None:
        return round(float(right[chosen].mean()), DIGITS) if chosen.any() else None

    return Accuracy(share(~nil), share(seen & ~nil), share(~seen & ~nil))


def measure_links(
    report: TeachingReport,
    ranker: Ranker,
    examples: Sequence[Example],
    scores: Sequence[np.ndarray],
) -> None:
    """Add to a report what the threshold of a ranker does."""
    chances = np.array(
        [
            ranker.probability(e.features, s) if len(s) else 0.0
            for e, s in zip(examples, scores, strict=True)
        ]
    )
    right = check_right(examples, scores)
    nil = np.array([one.nil for one in examples])
    linked = chances >= ranker.threshold
    report.threshold = ranker.threshold
    report.precision = ratio(right & linked, linked)
    report.recall = ratio(right & linked, ~nil)
    if nil.any():
        report.nil_precision = ratio(nil & ~linked, ~linked)
        report.nil_recall = ratio(nil & ~linked, nil)


def check_right(
    examples: Sequence[Example], scores: Sequence[np.ndarray]
) -> np.ndarray:
    """Return whether the first candidate of each example is right. Shape: (n,)."""
    pairs = zip(examples, scores, strict=True)
    return np.array([is_right(one, own) for one, own in pairs], dtype=bool)


def ratio(part: np.ndarray, whole: np.ndarray) -> float | None:
    """Return the share of a part, None of nothing."""
    return round(float(part.sum() / whole.sum()), DIGITS) if whole.any() else None
