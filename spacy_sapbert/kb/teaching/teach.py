"""Annotated documents → a new version of a knowledge base, which learned from them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from ...formats.gold import GoldDocument
from ...io.version import __version__
from ...io.writing import check_folder_output
from ...linking.chance import Chance, Taught
from ...linking.decisions import Decision, Votes, find_decision, list_keys
from ...linking.groups import Groups
from ...linking.probability import DEFAULT_THRESHOLD, TopScores
from ...linking.ranker import OF_TREES, Ranker
from ..edits.change import Edits, count_votes, read_edits, write_overlay
from ..folder.layout import KB_FOLDER
from ..folder.publication import draft_version, lock_kb, lock_version, open_target
from ..folder.records import AtThreshold, Manifest, TaughtFile, Teaching
from ..folder.versions import Version
from ..knowledge_base import KnowledgeBase, load_kb, open_version
from ..learned_order.boost import fit_trees, join_candidates
from ..learned_order.fit import (
    check_right,
    compute_chances,
    fit_taught,
    measure_thresholds,
)
from .documents import (
    AnnotationCounts,
    Contradiction,
    Learned,
    Places,
    describe_sources,
    find_contradictions,
    resolve_documents,
)
from .examples import FOLDS, TaughtExample, make_examples

MOST_EXAMPLES = 20_000  # mentions that the order is learned from: bounds the memory
FEWEST = 50  # mentions with candidates, from which an order is learned
LEFT_OUT_COUNT = 0.4  # times another example: mentions whose concept is left out
DIGITS = 4  # of a share


@dataclass
class Accuracy:
    """The share of right first answers; None without such mentions."""

    all: float | None
    seen: float | None  # of mentions that other documents have with this concept
    unseen: float | None  # of the others


@dataclass
class LostMention:
    """A mention that was right before and is wrong now."""

    text: str  # what the linker searches for
    cui: str  # the right concept
    now: str  # the first answer now
    mentions: int  # how often annotated with this concept, and wrong now


@dataclass
class TeachingReport:
    """What was learned, and what it changes for documents that were not learned from.

    All accuracies are by cross-validation: each document is linked with names, counts
    and ranker of the others.
    """

    counts: AnnotationCounts
    sources: list[TaughtFile]  # all that the knowledge base learned from
    examples: int
    changed: bool
    before: Accuracy  # with the vocabulary alone, in the order of its names
    names: Accuracy  # with annotated mentions as names
    after: Accuracy | None = None  # with the learned order too
    as_names: bool = True  # they are used for other mentions too
    learned: list[Learned] = field(default_factory=list)
    lost: list[LostMention] = field(default_factory=list)
    contradictions: list[Contradiction] = field(default_factory=list)
    threshold: float = DEFAULT_THRESHOLD  # least probability of a link
    # What it does, and others, to links of the learned order.
    thresholds: list[AtThreshold] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = TypeAdapter(TeachingReport).dump_python(self)
        return data


def teach_documents(
    kb: KnowledgeBase,
    documents: Iterable[GoldDocument],
    *,
    output: Path | None = None,
    add: bool = True,
    instead_of: str | None = None,
    force: bool = False,
    progress: bool = False,
) -> tuple[KnowledgeBase, TeachingReport]:
    """Teach a knowledge base with annotated documents.

    What people decided for a mention holds for it at once. Their mentions are names of
    their concepts, and so change answers to others, if that brings no fewer right
    answers by cross-validation, or with `force`, which also replaces `output`.

    What was learned before counts further on, except documents of the source
    `instead_of`; without `add` nothing does. The result does not depend on the order in
    which documents were taught. Without a change, `kb` itself is returned.
    """
    if output is not None:
        check_folder_output(output, KB_FOLDER, force=force)
    edits = read_edits(kb)

    @cache
    def find(cui: str) -> str | None:
        concept = kb.concept(cui)
        return None if concept is None else concept.cui

    earlier = (d for d in edits.taught if d.source != instead_of)
    places: Places = {}
    taught, counts = resolve_documents(documents, find, earlier, add=add, places=places)
    known = count_votes(edits.taught)
    teaching = Teaching(
        files=describe_sources(taught),
        concepts=len({cui for d in taught for _, cui in d.mentions if cui}),
        before=0.0,  # not measured yet
        names=0.0,
        date=datetime.now(UTC).date().isoformat(),
        package_version=__version__,
    )
    threshold = keep_threshold(kb.manifest)
    # Of its own names alone: the shipped trees have learned from public documents, with
    # which people may teach, and would be right too often.
    prior = kb.manifest.order.ranker if kb.manifest.order is not None else Ranker()
    prior = prior.model_copy(update={"general": None})
    with (
        lock_place(kb, output) as root,
        draft_version(root) as first,
        draft_version(root) as draft,
        draft_version(root) as last,
    ):
        untaught = kb
        if edits.teaching is not None:
            plain = Edits(edits.added, edits.removed)
            untaught = open_draft(kb, write_overlay(first, kb, plain))
        # Its names are searched for before it is published. Vectors of what was
        # taught before are not used, so that teaching in parts gives the same
        # bytes.
        edits = Edits(edits.added, edits.removed, taught, teaching)
        version = write_overlay(draft, untaught, edits)
        examples = make_examples(
            open_draft(kb, version),
            taught,
            before=untaught,
            prior=prior,
            most=MOST_EXAMPLES,
            progress=progress,
        )
        learned, report = evaluate(
            examples,
            prior,
            kb.manifest.chance,
            counts,
            teaching.files,
            threshold=threshold,
            force=force,
        )
        # of other probabilities, unless neither had a learned order
        calibrated = learned is None and not kb.manifest.has_ranker
        if calibrated:
            report.threshold = kb.manifest.threshold
        if not report.as_names:
            edits = replace(
                edits, teaching=teaching.model_copy(update={"as_names": False})
            )
            draft, version = last, write_overlay(last, untaught, edits)
        report.contradictions = find_contradictions(taught)
        report.learned = list_learned(kb, known, count_votes(taught), places)
        manifest = describe_teaching(version, report, learned)
        if not calibrated:
            manifest = manifest.model_copy(update={"calibration": None})
        report.changed = output is not None or not is_same(kb.manifest, manifest)
        if not report.changed:
            return kb, report
        draft.write(manifest)
        version = draft.publish()
    if output is None:
        return open_version(version, encoder=kb.encoder_config, old=kb), report
    return load_kb(output, encoder=kb.encoder_config), report


@contextmanager
def lock_place(kb: KnowledgeBase, output: Path | None) -> Iterator[Path]:
    """Lock and yield the folder to publish in: of the knowledge base, or another."""
    if output is None:
        with lock_version(kb.version):
            yield kb.folder
    else:
        with open_target(output) as root, lock_kb(root):
            yield root


def open_draft(kb: KnowledgeBase, version: Version) -> KnowledgeBase:
    return KnowledgeBase(version, encoder=kb.encoder_config, old=kb)


def is_same(old: Manifest, new: Manifest) -> bool:
    """Return whether a version has what another one has; only the dates may differ."""
    if old.overlay is None or old.taught is None or new.taught is None:
        return False
    made = {"date": new.taught.date, "package_version": new.taught.package_version}
    taught = old.taught.model_copy(update=made)
    overlay = old.overlay.model_copy(update={"taught": taught})
    old = old.model_copy(update={"overlay": overlay})
    one, other = (
        manifest.model_copy(update={"files": {}, "digest": ""})
        for manifest in (old, new)
    )
    return one == other and list_files(old) == list_files(new)


def list_files(manifest: Manifest) -> dict[str, str]:
    return {name: record.sha256 for name, record in manifest.files.items()}


def list_learned(
    kb: KnowledgeBase,
    known: Mapping[str, Votes],
    votes: Mapping[str, Votes],
    places: Places,
) -> list[Learned]:
    """Return what people decided for mentions in other ways than before.

    Mentions whose answers change come first.
    """
    decided: dict[str, tuple[str, Decision]] = {}
    for text, _ in places:
        decision = find_decision(text, votes)
        earlier = find_decision(text, known)
        if decision and (earlier is None or earlier.cui != decision.cui):
            decided.setdefault(list_keys(text)[0], (text, decision))
    texts = [text for text, _ in decided.values()]
    names = kb.store.names_of_cuis(decision.cui for _, decision in decided.values())
    learned = [
        Learned(
            text,
            cui,
            names.get(cui, ""),
            linked.cui or "",
            documents,
            total,
            places.get((text, cui), ""),
        )
        for (text, (cui, documents, total)), linked in zip(
            decided.values(), kb.link(texts), strict=True
        )
    ]
    return sorted(learned, key=lambda one: (one.before == one.cui, one.text, one.cui))


def describe_teaching(
    version: Version, report: TeachingReport, learned: tuple[Ranker, Taught] | None
) -> Manifest:
    overlay, teaching = version.manifest.overlay, version.manifest.taught
    assert overlay is not None
    assert teaching is not None
    measured = {
        "before": report.before.all or 0.0,
        "names": report.names.all or 0.0,
        "after": report.after.all if report.after else None,
        "thresholds": report.thresholds,
        "as_names": report.as_names,
    }
    changes: dict[str, Any] = {"taught": teaching.model_copy(update=measured)}
    if learned is not None:
        ranker, taught = learned
        changes |= {"ranker": ranker.correction, "chance": taught}
    update = {
        "overlay": overlay.model_copy(update=changes),
        "threshold": report.threshold,
    }
    return version.manifest.model_copy(update=update)


def keep_threshold(manifest: Manifest) -> float:
    """Return the threshold after teaching; one that `calibrate` chose is not kept."""
    calibration = manifest.calibration
    if calibration is not None and calibration.threshold == manifest.threshold:
        return DEFAULT_THRESHOLD
    return manifest.threshold


def evaluate(
    examples: Sequence[TaughtExample],
    prior: Ranker,
    chance: Chance,
    counts: AnnotationCounts,
    sources: list[TaughtFile],
    *,
    threshold: float = DEFAULT_THRESHOLD,
    force: bool = False,
) -> tuple[tuple[Ranker, Taught] | None, TeachingReport]:
    """Learn and measure an order that corrects `prior`, and what corrects `chance`.

    None if the order brings nothing. `threshold` is the least probability of a link.
    If fewer answers are right with names and order, neither is used; `force` uses them.
    """
    plain = np.array([example.plain for example in examples])
    decisions = [example.decision for example in examples]
    decided = np.array([decision is not None for decision in decisions])
    right = named = np.array([example.named for example in examples])
    nil = np.array([example.nil for example in examples])
    seen = np.array([example.seen for example in examples])

    def measure(answers: np.ndarray) -> Accuracy:
        return Accuracy(
            share(answers, ~nil),
            share(answers, seen & ~nil),
            share(answers, ~seen & ~nil),
        )

    report = TeachingReport(
        counts,
        sources,
        len(examples),
        changed=False,
        before=measure(plain),
        names=measure(right),
        threshold=threshold,
    )
    first = [example.first for example in examples]
    learned: tuple[Ranker, Taught] | None = None
    if count_usable(examples) >= FEWEST:
        scores = rank_unseen(examples, prior)
        ordered = np.where(decided, right, check_right(examples, scores))
        if ordered.sum() > right.sum():
            taught = calibrate(chance, examples, scores)
            learned = fit_ranker(examples, prior), taught
            right, report.after = ordered, measure(ordered)
            chance = chance.model_copy(update={"taught": taught})
            chances = compute_chances(chance, examples, scores)
            for number, decision in enumerate(decisions):
                if decision is not None:
                    chances[number] = decision.probability
            top = TopScores.sorted(chances, ordered, ~nil)
            report.thresholds = measure_thresholds(top, threshold)
            first = [
                example.first
                if example.decision is not None or not len(s)
                else example.cuis[int(s.argmax())]
                for example, s in zip(examples, scores, strict=True)
            ]
    without = np.where(decided, named, plain)  # what people decided holds all the same
    report.as_names = force or bool(right.sum() >= without.sum())
    if not report.as_names:
        learned, report.thresholds = None, []
        right = without
    report.lost = list_lost(examples, plain & ~right, first)
    return learned, report


def share(right: np.ndarray, chosen: np.ndarray) -> float | None:
    """Return the share that is right of what is chosen, None of nothing."""
    return round(float(right[chosen].mean()), DIGITS) if chosen.any() else None


def list_lost(
    examples: Sequence[TaughtExample], lost: np.ndarray, first: Sequence[str | None]
) -> list[LostMention]:
    counts: Counter[tuple[str, str, str]] = Counter()
    for number in np.flatnonzero(lost).tolist():
        example = examples[number]
        if example.right is not None:
            right = example.cuis[example.right]
            counts[example.text, right, first[number] or ""] += 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [LostMention(*key, mentions) for key, mentions in ordered]


def count_usable(examples: Sequence[TaughtExample]) -> int:
    return sum(example.right is not None for example in examples)


def fit_ranker(examples: Sequence[TaughtExample], prior: Ranker) -> Ranker:
    """Fit trees that correct an order; its probability is not calibrated yet."""
    counts = Counter(id(example) for example in examples)  # one for equal mentions
    usable = [*{id(e): e for e in examples if e.right is not None}.values()]
    candidates = join_candidates(
        [prior.with_order(e.features, Groups([len(e.cuis)])) for e in usable],
        [example.right for example in usable if example.right is not None],
        [counts[id(example)] for example in usable],
        OF_TREES,
    )
    return prior.model_copy(update={"taught": fit_trees(candidates, OF_TREES)})


def rank_unseen(examples: Sequence[TaughtExample], prior: Ranker) -> list[np.ndarray]:
    """Return the scores of the candidates of each example. Shape: (candidates,) each.

    The ranker of a fold is fitted to the others; without examples their order stays.
    """
    rankers: list[Ranker | None] = []
    for fold in range(FOLDS):
        others = [example for example in examples if example.fold != fold]
        rankers.append(fit_ranker(others, prior) if count_usable(others) else None)
    scores: list[np.ndarray] = []
    for example in examples:
        ranker = rankers[example.fold]
        if ranker is None:
            scores.append(-np.arange(len(example.cuis), dtype=np.float64))
        else:
            scores.append(ranker.scores(example.features))
    return scores


def calibrate(
    chance: Chance, examples: Sequence[TaughtExample], scores: Sequence[np.ndarray]
) -> Taught:
    """Fit what annotations add to a probability.

    `scores` are from `rank_unseen`, so that no mention was part of what ranks it.
    """
    left_out = [leave_out_right(*pair) for pair in zip(examples, scores, strict=True)]
    others = [pair for pair in left_out if pair is not None]
    return fit_taught(
        chance,
        [*examples, *(example for example, _ in others)],
        [*scores, *(some for _, some in others)],
        counts=[1.0] * len(examples) + [LEFT_OUT_COUNT] * len(others),
    )


def leave_out_right(
    example: TaughtExample, scores: np.ndarray
) -> tuple[TaughtExample, np.ndarray] | None:
    """Return a mention as if its concept were not there; None if nothing is left.

    People annotate what has a concept, and mentions that have none are to be known too.
    """
    if example.right is None or len(scores) < 2:
        return None
    kept = np.arange(len(scores)) != example.right
    features = {name: values[kept] for name, values in example.features.items()}
    left = replace(example, right=None, features=features, is_name=False)
    return left, scores[kept]
