"""Annotated documents → a new version of a knowledge base, which learned from them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

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
from .examples import make_examples
from .learning import TeachingReport, evaluate

MOST_EXAMPLES = 20_000  # mentions that the order is learned from: bounds the memory


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
    """
    if output is not None:
        check_folder_output(output, KB_FOLDER, force=force)
    edits = read_edits(kb)

    @cache
    def find(cui: str) -> str | None:
        concept = kb.concept(cui)
        return None if concept is None else concept.cui

    earlier = [d for d in edits.taught if d.source != instead_of]
    taught, counts = resolve_documents(documents, find, earlier, add=add)
    try:
        with open_place(kb, output) as place:
            version, report = learn_order(
                place, edits, taught, counts, force=force, progress=progress
            )
    except NothingBetterError as error:
        new, report = kb, error.report
    else:
        if output is None:
            new = open_version(version, encoder=kb.encoder_config, old=kb)
        else:
            new = load_kb(output, encoder=kb.encoder_config)
    report.contradictions = find_contradictions(taught)
    return new, report


@contextmanager
def open_place(kb: KnowledgeBase, output: Path | None) -> Iterator[KnowledgeBase]:
    """Lock a knowledge base, or its copy in another folder, and yield it opened.

    The copy has links to the files, which are large and never change. It is removed
    after an error.
    """
    if output is None:
        with lock_version(kb.version):
            yield kb
        return
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


def learn_order(
    kb: KnowledgeBase,
    edits: Edits,
    taught: list[TaughtDocument],
    counts: AnnotationCounts,
    *,
    force: bool,
    progress: bool,
) -> tuple[Version, TeachingReport]:
    """Write a new overlay, learn an order with it, and publish it if it helps.

    If it does not help and is not forced, a NothingBetterError has the report.
    """
    sources = describe_sources(taught)
    teaching = Teaching(
        files=sources,
        concepts=len({cui for d in taught for _, cui in d.mentions if cui}),
        before=0.0,  # not measured yet
        names=0.0,
        date=datetime.now(UTC).date().isoformat(),
        package_version=__version__,
    )
    plain = Edits(edits.added, edits.removed)
    order = kb.manifest.order
    prior = order.ranker if order is not None else Ranker()
    with draft_version(kb.folder) as first, draft_version(kb.folder) as draft:
        untaught = kb
        if edits.teaching is not None:
            untaught = open_draft(kb, write_overlay(first, kb, plain))
        # Its names are searched for before it is published. Vectors of what was taught
        # before are not used, so that teaching in parts gives the same bytes.
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
        ranker, report = evaluate(examples, prior, counts, sources)
        before, names = report.before.all or 0.0, report.names.all or 0.0
        after = report.after.all if report.after else None
        best = names if report.after is None else after or 0.0
        if best <= before and not force:
            raise NothingBetterError(report)
        measured = {"before": before, "names": names, "after": after}
        assert version.manifest.overlay is not None
        overlay = version.manifest.overlay.model_copy(
            update={
                "taught": teaching.model_copy(update=measured),
                "ranker": ranker and ranker.correction,
            }
        )
        draft.write(version.manifest.model_copy(update={"overlay": overlay}))
        report.changed = True
        return draft.publish(), report


def open_draft(kb: KnowledgeBase, version: Version) -> KnowledgeBase:
    """Open a draft in the folder of a knowledge base, whose parts it shares."""
    return KnowledgeBase(version, encoder=kb.encoder_config, old=kb)
