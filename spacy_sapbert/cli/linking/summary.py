"""Count what `link` wrote and left out, and format the counts."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ...errors import SapbertError
from ...system.progress import format_count, format_time
from ...system.terminal import msg

if TYPE_CHECKING:
    from ...formats.entities import LinkedDoc

MOST_PRINTED = 20  # errors of documents that are skipped


def count_links(
    docs: "Iterable[LinkedDoc]", counts: Counter[str]
) -> "Iterator[LinkedDoc]":
    """Yield documents unchanged and count their links.

    Args:
        counts: Updated: "documents", "entities", "linked", "broader" (linked to a
            broader concept), and the reasons of mentions without a concept.
    """
    from ...linking.link import BROADER

    for doc in docs:
        counts["documents"] += 1
        for entity in doc.entities:
            counts["entities"] += 1
            if entity["cui"] is not None:
                counts["linked"] += 1
                if entity["note"] == BROADER:
                    counts["broader"] += 1
            else:
                counts[f"NIL: {entity['note'] or 'no candidate'}"] += 1
        yield doc


class SkippedDocuments:
    """Counts and prints the errors of documents that are left out.

    Args:
        skip: False = raise the first error.
    """

    def __init__(self, skip: bool) -> None:
        self.skip = skip
        self.count = 0
        self.first: SapbertError | None = None

    def handle_error(self, error: SapbertError) -> None:
        """Count an error of a document; the first ones are printed."""
        if not self.skip:
            raise error
        self.count += 1
        self.first = self.first or error
        if self.count <= MOST_PRINTED:
            msg.warn(f"Skipped: {error}")
        if self.count == MOST_PRINTED:
            msg.warn("Further documents that are skipped are only counted.")

    def check_written(self, documents: int) -> None:
        """Raise the first error if all documents were skipped."""
        if not documents and self.first is not None:
            raise self.first


def summary_line(counts: Counter[str]) -> str:
    """Format counts: "2 documents, 9 entities, 8 linked, 1 NIL (1 empty)"."""
    totals = [
        format_count(counts["documents"], "document"),
        format_count(counts["entities"], "entity"),
        f"{counts['linked']:,} linked",
    ]
    reasons = {k[5:]: n for k, n in sorted(counts.items()) if k.startswith("NIL: ")}
    if counts["broader"]:
        totals[-1] += f" ({counts['broader']} to a broader concept)"
    line = f"{', '.join(totals)}, {sum(reasons.values())} NIL"
    if reasons:
        line += f" ({', '.join(f'{n} {reason}' for reason, n in reasons.items())})"
    return line


def finish_line(
    line: str,
    counts: Counter[str],
    left_out: Counter[str],
    *,
    documents: int,
    seconds: float,
) -> str:
    """Add to a summary what else was counted, the time and the throughput.

    Args:
        counts: Numbers of documents, e.g. skipped ones; zeros are not shown.
        left_out: Numbers of files and folders that were not read.
        documents: How many were linked in this run.
    """
    notes = [f"{count:,} {what}" for what, count in counts.items() if count]
    unread = [f"{count:,} {what}" for what, count in left_out.items() if count]
    if unread:
        notes.append(f"not read: {', '.join(unread)}")
    time = format_time(seconds)
    if documents:  # all parts may have been finished before
        time += f", {documents / max(seconds, 1e-9):,.1f} documents/s"
    return "; ".join((line, *notes, time))
