"""What `link` wrote and left out, in one line."""

from collections import Counter
from pathlib import Path

from ...errors import SapbertError
from ...formats.parts import read_state
from ...io.progress import format_count, format_time
from ...io.terminal import msg, printable
from ...pipeline.link_files import LinkResult

MOST_PRINTED = 20  # errors of documents that are skipped


class SkippedPrinter:
    """Prints the first errors of documents that are left out."""

    def __init__(self) -> None:
        self.count = 0

    def print(self, error: SapbertError) -> None:
        self.count += 1
        if self.count <= MOST_PRINTED:
            msg.warn(f"Skipped: {error}")
        if self.count == MOST_PRINTED:
            msg.warn("Further documents that are skipped are only counted.")


def describe_interrupted(output: Path, *, in_parts: bool) -> str:
    """Return what a stopped run has written."""
    if not in_parts:
        return f"Interrupted: {output} was not written."
    state = read_state(output) if output.is_dir() else None
    parts = state["parts"] if state is not None else []
    written = format_count(sum(part["documents"] for part in parts), "document")
    return f"Interrupted: {written} in {output}. The same command continues."


def summary_line(counts: Counter[str]) -> str:
    """Format counts: "2 documents, 9 entities, 8 linked, 1 NIL (1 empty)"."""
    totals = [
        format_count(counts["documents"], "document"),
        format_count(counts["entities"], "entity"),
        f"{counts['linked']:,} linked",
    ]
    reasons = {k[5:]: n for k, n in sorted(counts.items()) if k.startswith("NIL: ")}
    line = f"{', '.join(totals)}, {sum(reasons.values())} NIL"
    if reasons:
        line += f" ({', '.join(f'{n} {reason}' for reason, n in reasons.items())})"
    return line


def describe_result(result: LinkResult, output: Path | None) -> str:
    """Return what was written and left out, the time and the throughput."""
    line = summary_line(result.counts)
    if result.parts is not None:
        line += f"; {format_count(result.parts, 'part')} in {output}"
    notes = [f"{count:,} {what}" for what, count in result.left_out.items() if count]
    unread = [f"{count:,} {what}" for what, count in result.not_read.items() if count]
    if unread:
        notes.append(f"not read: {', '.join(unread)}")
    if result.unmarked:
        ids = ", ".join(printable(str(id)) for id in result.unmarked)
        notes.append(f"not marked in the output: {ids}")
    time = format_time(result.seconds)
    if result.documents:  # all parts may have been finished before
        speed = result.documents / max(result.seconds, 1e-9)
        time += f", {speed:,.1f} documents/s"
    return "; ".join((line, *notes, time))
