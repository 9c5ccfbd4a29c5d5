"""Annotated documents → a new version of a knowledge base, which learned from them."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from ...io.version import __version__
from ...io.writing import check_folder_output, remove_path
from ...linking.ranker import Ranker
from ..edits.edits import Edits, TaughtDocument, read_edits
from ..edits.overlay import write_overlay
from ..folder.copies import copy_version
from ..folder.layout import CURRENT, KB_FOLDER
from ..folder.publication import draft_version, lock_kb, lock_version, open_target
from ..folder.records import Teaching
from ..folder.versions import Version, read_current
from ..knowledge_base import KnowledgeBase, load_kb, open_version
from .documents import (
    AnnotatedDocument,
    AnnotationCounts,
    describe_sources,
    find_contradictions,
    resolve_documents,
)
from .examples import AnnotatedMentions
from .report import TeachingReport, evaluate

MOST_EXAMPLES = 20_000  # mentions that the order is learned from: bounds the memory


class Lesson(NamedTuple):
    """What is taught; see `teach_documents`.

    Attributes:
        edits: The edits of the knowledge base before.
        taught: All documents that count now.
        counts: What was read.
    """

    edits: Edits
    taught: Sequence[TaughtDocument]
    counts: AnnotationCounts
    force: bool
    progress: bool


class NothingBetterError(Exception):
    """Ends the writing of a version that would bring nothing."""

    def __init__(self, report: TeachingReport) -> None:
        super().__init__()
        self.report = report


def teach_documents(
    kb: KnowledgeBase,
    documents: Iterable[AnnotatedDocument],
    *,
    output: Path | None = None,
    add: bool = False,
    instead_of: str | None = None,
    force: bool = False,
    progress: bool = False,
) -> tuple[KnowledgeBase, TeachingReport]:
    """Teach a knowledge base with annotated documents.

    The result depends on the knowledge base as it was built and edited, and on the
    documents that count, but not on the order in which they were taught.

    Args:
        kb: The knowledge base; the object itself does not change.
        documents: They replace what it has learned before; see `add`.
        output: A folder for the new version; None = the folder of `kb`.
        add: What it has learned from other documents counts further on.
        instead_of: A source of which no earlier document counts any more.
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

    documents = [*documents]
    earlier = [d for d in edits.taught if d.source != instead_of]
    taught, counts = resolve_documents(documents, find, earlier, add=add)
    lesson = Lesson(edits, taught, counts, force, progress)
    try:
        if output is None:
            with lock_version(kb.version):
                version, report = learn(kb, lesson)
            new = open_version(version, encoder=kb.encoder_config, old=kb)
        else:
            with open_copy(kb, output) as copy:
                _, report = learn(copy, lesson)
            new = load_kb(output, encoder=kb.encoder_config)
    except NothingBetterError as error:
        new, report = kb, error.report
    report.contradictions = find_contradictions(taught)
    return new, report


@contextmanager
def open_copy(kb: KnowledgeBase, output: Path) -> Iterator[KnowledgeBase]:
    """Open a version as that of another folder, which is removed after an error.

    Its files are linked: they are large, and never change.
    """
    with open_target(output) as root, lock_kb(root):
        used = read_current(root) if (root / CURRENT).exists() else None
        copy = copy_version(kb.version, root, current=False, link=True)
        try:
            yield open_version(copy, encoder=kb.encoder_config)
        except BaseException:
            now = read_current(root) if (root / CURRENT).exists() else None
            # A version that was published meanwhile uses the files of the copy.
            if now == used and used != copy.name:
                remove_path(root / copy.name)
            raise


def learn(kb: KnowledgeBase, lesson: Lesson) -> tuple[Version, TeachingReport]:
    """Write a new overlay, learn an order with it, and publish it if it helps.

    Raises:
        NothingBetterError: If it does not help, unless it is forced.
    """
    sources = describe_sources(lesson.taught)
    teaching = Teaching(
        files=sources,
        concepts=len({cui for d in lesson.taught for _, cui in d.mentions if cui}),
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
            untaught = open_draft(kb, write_overlay(first, kb, plain))
        edits = Edits(old.added, old.removed, [*lesson.taught], teaching)
        # Its names are searched for before it is published. Vectors of what was taught
        # before are not used, so that teaching in parts gives the same bytes.
        version = write_overlay(draft, untaught, edits)
        order = kb.manifest.order
        prior = order.ranker if order is not None else Ranker()
        mentions = AnnotatedMentions(
            open_draft(kb, version),
            lesson.taught,
            before=untaught,
            prior=prior,
            most=MOST_EXAMPLES,
            progress=lesson.progress,
        )
        ranker, report = evaluate(mentions, lesson.counts, sources)
        before, names = report.before.all or 0.0, report.names.all or 0.0
        after = report.after.all if report.after else None
        best = names if report.after is None else after or 0.0
        if best <= before and not lesson.force:
            raise NothingBetterError(report)
        measured = {"before": before, "names": names, "after": after}
        assert version.manifest.overlay is not None
        overlay = version.manifest.overlay.model_copy(
            update={
                "taught": teaching.model_copy(update=measured),
                "ranker": ranker and ranker.correction,
            }
        )
        manifest = version.manifest.model_copy(update={"overlay": overlay})
        draft.describe(manifest, kb.version.keep(overlay=False))
        report.changed = True
        return draft.publish(), report


def open_draft(kb: KnowledgeBase, version: Version) -> KnowledgeBase:
    """Open a draft in the folder of a knowledge base, whose parts it shares."""
    return KnowledgeBase(version, encoder=kb.encoder_config, old=kb)
