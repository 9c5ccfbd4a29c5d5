"""`spacy sapbert teach`: a knowledge base that learns from annotated mentions."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..formats.corpus import read_corpus
from ..formats.gold import NIL, GoldDocument, check_ids
from ..io.progress import format_count, show_progress
from ..io.tables.files import CSV, write_table
from ..io.terminal import format_json, msg
from ..io.writing import check_apart, check_folder_output, write_json
from ..kb.folder.layout import KB_FOLDER
from ..kb.folder.versions import find_kb
from .app import app, check_outputs
from .kb.edit import check_folder
from .options import (
    ANNOTATED_FORMAT,
    AsJson,
    Delimiter,
    Device,
    DropPrefix,
    KbFolder,
    LeastConfidence,
    MentionColumns,
    OnError,
    Prefix,
    Quiet,
    Skipped,
    TableEncoding,
    gather_reading,
    open_kb,
)

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase
    from ..kb.teaching.teach import TeachingReport

MOST_LISTED = 10
LOST_HEADER = ("mention", "concept", "name", "first_now", "first_now_name", "mentions")
CONTRADICTIONS_HEADER = ("mention", "concept", "name", "mentions", "documents")


def get_name(kb: "KnowledgeBase", cui: str) -> str:
    """Return the preferred name of a concept; "" if there is none."""
    concept = kb.concept(cui) if cui else None
    return concept.name if concept else ""


def list_lost(kb: "KnowledgeBase", report: "TeachingReport") -> Iterator[list[str]]:
    """Yield a row for each mention that was right and is wrong now."""
    for lost in report.lost:
        right, now = get_name(kb, lost.cui), get_name(kb, lost.now)
        yield [lost.text, lost.cui, right, lost.now, now, str(lost.mentions)]


def list_contradictions(
    kb: "KnowledgeBase", report: "TeachingReport"
) -> Iterator[list[str]]:
    """Yield a row for each concept of each mention that has several."""
    for contradiction in report.contradictions:
        for meaning in contradiction.concepts:
            counts = [str(meaning.mentions), str(meaning.documents)]
            yield [meaning.text, meaning.cui, get_name(kb, meaning.cui), *counts]


def format_share(share: float | None) -> str:
    """Format a share with three digits."""
    return "–" if share is None else f"{share:.3f}"


@app.command("teach")
def teach(
    kb: KbFolder,
    annotated: list[Path] = typer.Argument(
        ..., metavar="ANNOTATED", help="Annotated files or folders."
    ),
    format: str | None = ANNOTATED_FORMAT,
    output: Path | None = typer.Option(
        None,
        "--output",
        "-o",
        help="Folder for the new version. [the knowledge base itself]",
    ),
    anew: bool = typer.Option(
        False,
        "--anew",
        help="Forget what was taught before. [these are added to it]",
    ),
    columns: MentionColumns = None,
    delimiter: Delimiter = None,
    encoding: TableEncoding = None,
    prefix: Prefix = "",
    drop_prefix: DropPrefix = "",
    least_confidence: LeastConfidence = None,
    report: Path | None = typer.Option(None, help="report.json to write."),
    lost: Path | None = typer.Option(
        None,
        help="CSV to write: mentions that were right before and are wrong now.",
    ),
    contradictions: Path | None = typer.Option(
        None,
        help="CSV to write: mentions with different concepts.",
    ),
    as_json: AsJson = False,
    on_error: OnError = "fail",
    device: Device = "auto",
    force: bool = typer.Option(
        False,
        "--force",
        "-f",
        help="Replace outputs; use mentions as names even if fewer answers to others "
        "are right.",
    ),
    quiet: Quiet = False,
) -> None:
    """kb/ + annotated documents -> kb/ that has learned from them

    What people decided for a mention holds for it at once. Annotated mentions become
    names of their concepts, and an order of candidates is learned, if that does not
    make answers to other mentions worse. All figures are by cross-validation: of
    documents that were not learned from.

    Example: spacy sapbert teach models/kb corpus/train.txt --prefix MESH:

    Example: spacy sapbert teach models/kb reviewed.csv --output models/taught

    Files add to what was taught before; --anew starts over. A later decision for the
    same document, or for the same term of a table, replaces the earlier one.

    `spacy sapbert kb use` goes back to the version before.
    """
    from ..kb.teaching.teach import teach_documents
    from ..mapping.decisions import says_something_else
    from ..pipeline.teaching import annotate
    from .unknown_ids import UnknownIds

    check_apart(output, report, lost, contradictions)
    check_outputs(report, lost, contradictions, force=force)
    if output is not None:
        check_folder_output(output, KB_FOLDER, force=force)
    folder = find_kb(kb) if output is not None else check_folder(kb)

    skipped = Skipped(on_error)
    opened = open_kb(folder, device)
    unknown = UnknownIds(opened)
    reading = gather_reading(
        format=format,
        columns=columns,
        delimiter=delimiter,
        encoding=encoding,
        prefix=prefix,
        drop_prefix=drop_prefix,
        least_confidence=least_confidence,
    )

    def read_all() -> Iterator[GoldDocument]:
        for path in annotated:
            others: list[int | str] = []
            for document in read_corpus(path, on_error=skipped, **reading):
                checked = check_ids(path, document, opened.concept, skipped)
                if says_something_else(opened, checked):
                    others.append(document.mentions[0].line or document.id)
                    continue
                for mention in checked.mentions:
                    unknown.add(mention, path.name)
                yield annotate(checked, path.name)
            if others:
                warn_of_others(path, others)

    documents = [
        *show_progress(
            read_all(), unit="documents", desc="Read", quiet=quiet or as_json
        )
    ]
    new, learned = teach_documents(
        opened,
        documents,
        output=output,
        add=not anew,
        force=force,
        progress=not (quiet or as_json),
    )
    data = learned.to_json()
    if report is not None:
        write_json(report, data)
    for path, header, rows in (
        (lost, LOST_HEADER, list_lost),
        (contradictions, CONTRADICTIONS_HEADER, list_contradictions),
    ):
        if path is not None:
            write_table(path, header, rows(opened, learned), CSV)
    if as_json:
        typer.echo(format_json(data))
    elif not quiet:
        print_report(opened, learned)
        unknown.report()
        skipped.report()
        for path in (report, lost, contradictions):
            if path is not None:
                msg.good(f"Wrote {path}")
        if learned.changed:
            msg.good(f"Wrote {new.folder}")
        else:
            msg.info(f"{new.folder} was not changed: it has learned nothing new.")


def warn_of_others(path: Path, places: Sequence[int | str]) -> None:
    """Warn of terms that say something else than the concept that people chose."""
    more = " …" * (len(places) > MOST_LISTED)
    shown = ", ".join(map(str, places[:MOST_LISTED])) + more
    warnings.warn(
        f"[W538] {path}: Expected terms that mean the chosen concept, but did not "
        f"learn {format_count(len(places), 'term')} because of words like 'h/o' and "
        f"'F/H', which say something else (line {shown}). Choices may stay: `map` "
        "keeps them. To teach the term, choose a concept that says it too.",
        stacklevel=2,
    )


def print_report(kb: "KnowledgeBase", learned: "TeachingReport") -> None:
    """Print what was learned and what it changes: a table, and lists of mentions.

    The lists are of mentions that are decided now, of those of other documents that are
    wrong now, and of those with several concepts.
    """
    counts = learned.counts
    numbers = [
        ("Documents", counts.documents),
        ("Documents that came twice, or were taught before", counts.repeated),
        ("Documents with other annotations than before", counts.replaced),
        ("Taught before, and count no more (--anew)", counts.dropped),
        ("Mentions", counts.mentions),
        ("Composites, not learned", counts.composites),
        ("Annotated with no concept", counts.without_concept),
        ("Without a letter or digit", counts.without_text),
        ("With an unknown id, not learned", counts.unknown.total()),
        ("Mentions learned in all", sum(s.mentions for s in learned.sources)),
    ]
    accuracies = [
        ("Right first answers before", learned.before),
        ("With annotated mentions as names", learned.names),
        ("With the learned order too", learned.after),
    ]
    rows = [(name, f"{number:,}", "", "") for name, number in numbers if number]
    for name, accuracy in accuracies:
        if accuracy is not None:
            every, seen, unseen = map(format_share, astuple(accuracy))
            rows.append((name, every, seen, unseen))
    header = ("", "all", "seen", "unseen")
    msg.table(rows, header=header, divider=True, aligns=("l", "r", "r", "r"))
    if learned.thresholds:
        shares = [
            (
                f"{at.threshold:g}{' (used)' * (at.threshold == learned.threshold)}",
                *map(format_share, (at.precision, at.recall, at.nil_recall)),
            )
            for at in learned.thresholds
        ]
        header = ("Least probability of a link", "precision", "recall", "NIL recall")
        msg.table(shares, header=header, divider=True, aligns=("l", "r", "r", "r"))
    if not learned.as_names:
        msg.warn(
            "Mentions decide for themselves alone: as names, they would make answers "
            "to others worse. `--force` uses them."
        )
    decided = [
        (one.text, get_name(kb, one.before) or NIL, one.name or NIL, one.place)
        for one in learned.learned
    ]
    print_list(decided, "learned", "linked before", "is", "where")
    wrong = [
        (one.text, get_name(kb, one.cui), get_name(kb, one.now), str(one.mentions))
        for one in learned.lost
    ]
    print_list(
        wrong, "right before, wrong now where not taught", "is", "found now", "mentions"
    )
    differing = [
        (
            contradiction.concepts[0].text,
            "; ".join(
                f"{get_name(kb, m.cui) or NIL} ({m.mentions})"
                for m in contradiction.concepts
            ),
        )
        for contradiction in learned.contradictions
    ]
    print_list(differing, "with different concepts", "")


def print_list(rows: Sequence[tuple[str, ...]], what: str, *header: str) -> None:
    """Print the first of some mentions, if there are any."""
    if rows:
        first = f"{format_count(len(rows), 'mention')} {what}"
        msg.table(rows[:MOST_LISTED], header=(first, *header), divider=True)
