"""What all readers share: they clean names, and count what they keep and drop."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ..errors import SapbertError, may_skip, unexpected_line
from ..io.reading import decode_line, read_line_blocks
from ..io.terminal import msg
from .concepts import Concept, clean_name, list_related_codes

SHOWN = 30


def new_counts() -> dict[str, int]:
    return defaultdict(int)  # a Counter is many times slower


@dataclass
class Report:
    """Filled by a reader while it reads.

    Attributes:
        path: What is read.
        format: A key of `READERS`.
        rows: Rows (lines, terms) read, by file.
        names: Names of the concepts.
        concepts: Concepts.
        dropped: What was dropped, by rule.
        counts: What else was found, e.g. definitions.
        notes: What is missing because a file does not exist.
        languages: Those of the names that were read.
        progress: Called with the name of a file and how many more of its rows were
            read.
        on_error: "fail", or "skip" to count invalid records and continue.
        releases: By source, the release and the licence that the file has; "" =
            unknown.
        conflict: Called with a rule, the id of a concept of this file, the ids of the
            concepts that it conflicts with, with a bar between them, and the name, if
            it is a name that does.

    Examples:
        >>> report = Report()
        >>> concepts = [*read_vocabulary(Path("assets/sample"), report=report)]
        >>> report.concepts == len(concepts)
        True
    """

    path: str = ""
    format: str = ""
    rows: dict[str, int] = field(default_factory=new_counts)
    names: int = 0
    concepts: int = 0
    dropped: dict[str, int] = field(default_factory=new_counts)
    counts: dict[str, int] = field(default_factory=new_counts)
    notes: list[str] = field(default_factory=list)
    languages: set[str] = field(default_factory=set)
    releases: dict[str, tuple[str, str]] = field(default_factory=dict)
    progress: Callable[[str, int], None] | None = None
    on_error: str = "fail"
    conflict: Callable[[str, str, str, str], None] | None = None

    def drop(self, rule: str, id: str, others: Iterable[str], name: str = "") -> None:
        """Count what conflicts with other concepts under a rule, and list it."""
        self.dropped[rule] += 1
        if self.conflict is not None:
            self.conflict(rule, id, "|".join(sorted(others)), name)

    def add_release(self, source: str, release: str, licence: str = "") -> None:
        """Keep what a file says of a vocabulary; what is known already stays."""
        if source:
            known = self.releases.get(source, ("", ""))
            new = clean_name(release), clean_name(licence)
            self.releases[source] = known[0] or new[0], known[1] or new[1]

    def read(self, file: str, rows: int) -> None:
        """Count rows of a file as read."""
        self.rows[file] += rows
        if self.progress is not None:
            self.progress(file, rows)

    def leave_header(self, file: str) -> None:
        """Count one row less of a file: the names of its columns are not a row."""
        self.rows[file] -= 1

    def skip(self, rule: str, error: SapbertError) -> None:
        """Count an invalid record under a rule, or raise its error."""
        if self.on_error == "fail":
            raise may_skip(error) from None
        self.dropped[rule] += 1

    def bad_line(
        self, path: Path, line: int, expected: Any, rule: str = "bad lines"
    ) -> None:
        """Count an invalid line, or raise an error with what was expected."""
        self.skip(rule, unexpected_line(path=path, line=line, expected=expected))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types, in a fixed order."""
        return {
            "path": self.path,
            "format": self.format,
            "rows": dict(self.rows),
            "names": self.names,
            "concepts": self.concepts,
            "dropped": {rule: n for rule, n in sorted(self.dropped.items()) if n},
            "counts": {what: n for what, n in sorted(self.counts.items()) if n},
            "notes": self.notes,
            "releases": {s: [*release] for s, release in sorted(self.releases.items())},
        }


def read_good_lines(
    path: Path,
    report: Report,
    *,
    blank: bool = False,
    blocks: Iterable[bytes] | None = None,
) -> Iterator[tuple[int, str]]:
    """Read the lines of a file, plain or `.gz`, that are UTF-8, and count the others.

    Args:
        blank: Yield blank lines too; else they are counted as dropped.
        blocks: See `read_line_blocks`.

    Yields:
        Number of the line, from 1, and the line.

    Raises:
        SapbertError: If the file is missing or truncated, or a line not UTF-8.
    """
    for first, lines in read_line_blocks(path, blocks=blocks):
        report.read(path.name, len(lines))
        for number, line in enumerate(lines, first):
            try:
                text = decode_line(line, path, number)
            except SapbertError as error:
                report.skip("lines that are not UTF-8", error)
                continue
            if blank or text.strip():
                yield number, text
            else:
                report.dropped["blank lines"] += 1


def count_concepts(concepts: Iterable[Concept], report: Report) -> Iterator[Concept]:
    """Count the concepts that a reader yields."""
    for concept in concepts:
        report.concepts += 1
        report.names += len(concept.aliases)
        if concept.definition is not None:
            report.counts["concepts with a definition"] += 1
        if concept.parents:
            report.counts["parents"] += len(concept.parents)
        if concept.retired:
            report.counts["retired ids"] += len(concept.retired)
        for relation, _, _ in list_related_codes(concept):
            report.counts[f"{relation} codes"] += 1
        yield concept
    if not report.concepts:
        dropped = ", ".join(f"{n:,} {rule}" for rule, n in report.dropped.items() if n)
        if dropped:
            reason = f"none is left. Dropped: {dropped}. Use fewer filters, if any"
            reason += ", or check that the file is whole"
            if report.languages:
                reason += f"; it has names in {', '.join(sorted(report.languages))}"
        elif sum(report.rows.values()):
            reason = "it has none, only e.g. a header. Correct the file or `--format`"
        else:
            reason = "the file is empty. Choose another one"
        raise SapbertError(
            "E106", f"Expected at least one concept in {report.path}, but {reason}."
        )


def check_known(
    what: str, values: Iterable[str], known: Sequence[str], path: Path
) -> None:
    """Check that the values of a filter occur in the file.

    Args:
        what: What is filtered, e.g. "sources".

    Raises:
        SapbertError: With the nearest values in the file.
    """
    unknown = sorted(set(values) - set(known))
    if not unknown:
        return
    near = get_close_matches(unknown[0].upper(), known, 3, 0.5)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    shown = ", ".join(sorted(known)[:SHOWN]) + " …" * (len(known) > SHOWN)
    raise SapbertError(
        "E105",
        f"Expected {what} that are in {path}, but got {', '.join(unknown)}.{hint} The "
        f"file has: {shown}.",
    )


def report_rows(report: Report) -> list[tuple[str, str]]:
    """Return a report as rows of a table: what, and how many."""
    data = report.to_json()
    rows = [(f"read: {file}", n) for file, n in data["rows"].items()]
    rows += [(f"dropped: {rule}", n) for rule, n in data["dropped"].items()]
    rows += [("kept: names", report.names)]
    rows += [(f"found: {what}", n) for what, n in data["counts"].items()]
    rows += [("concepts", report.concepts)]
    return [(what, f"{n:,}") for what, n in rows]


def source_of_file(file: str) -> str:
    """Return the vocabulary of a file of its own: "hp-2026.json" → "HP"."""
    return re.split(r"[^a-z]", file.lower(), maxsplit=1)[0].upper()


def print_report(report: Report) -> None:
    """Print a report as a table, and its notes."""
    msg.divider(f"{report.path} ({report.format})")
    msg.table(report_rows(report), aligns=("l", "r"))
    for note in report.notes:
        msg.info(note)


def nested_too_deep(*, path: object, line: object, limit: object) -> SapbertError:
    return SapbertError(
        "E007",
        f"{path}:{line}: Expected elements that are nested at most {limit} deep, but "
        "got a deeper one. Check that this is the right file.",
    )
