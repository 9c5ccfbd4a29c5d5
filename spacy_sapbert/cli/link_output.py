"""Write linked documents to one file, or to parts in a folder, and count links."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Errors, SapbertError
from ..formats.documents import Document, OnError
from ..formats.inputs.reading import ENTITIES
from ..formats.parts import FAILED, WritePart, lock_folder, open_state, write_parts
from ..pipeline.running import link_documents
from ..system.progress import format_count, format_time
from ..system.terminal import msg
from ..system.writing import check_replaceable

if TYPE_CHECKING:
    from spacy.language import Language

    from ..formats.entities import LinkedDoc, NamedDoc
    from ..formats.registry import Writer

MOST_PRINTED = 20  # errors of documents that are skipped


def choose_format(
    format: str | None, output: Path | None, shard_size: int | None
) -> str:
    """Return the format: as given, JSONL for parts, else by the ending of the output.

    RAISES (SapbertError): If the ending is unknown.
    """
    from ..formats.registry import guess_format

    if format is not None:
        return format
    if shard_size is not None:
        return "jsonl"
    return "table" if output is None else guess_format(output)


def check_output(
    output: Path | None, format: str, *, shard_size: int | None, force: bool
) -> None:
    """Raise an error if the output cannot be written, before anything is loaded."""
    from ..formats.registry import FOLDERS

    if output is not None:
        check_replaceable(output)
    if shard_size is not None:
        if format in FOLDERS:
            raise SapbertError(Errors.E518.format(format=format))
        if output is None:
            raise SapbertError(Errors.E514)
    elif output is not None and output.is_dir() and format not in FOLDERS:
        raise SapbertError(Errors.E515.format(path=output))
    elif output is not None and output.exists() and not force:
        raise SapbertError(Errors.E003.format(path=output))


def check_keep(keep: str | None, format: str) -> tuple[str, ...]:
    """Return the fields to repeat.

    keep (str | None): Names with commas between.
    format (str): The output format.
    RAISES (SapbertError): If the format cannot, or has a field of that name itself.
    """
    from ..formats.entities import COLUMNS as OUTPUT_COLUMNS
    from ..formats.registry import KEEPING

    names = tuple(filter(None, map(str.strip, (keep or "").split(","))))
    if names and format not in KEEPING:
        expected = f"a `--format` of {', '.join(KEEPING)}"
        raise SapbertError(Errors.E600.format(expected=expected, got=format))
    for name in names:
        if name in (*OUTPUT_COLUMNS, ENTITIES) or names.count(name) > 1:
            expected = "fields once, which the output has not of its own"
            raise SapbertError(Errors.E600.format(expected=expected, got=repr(name)))
    return names


def count_links(
    docs: "Iterable[LinkedDoc]", counts: Counter[str]
) -> "Iterator[LinkedDoc]":
    """Yield documents unchanged and count their links.

    counts (Counter[str]): Updated: "documents", "entities", "linked", "broader" (linked
        to a broader concept), and the reasons of mentions without a concept.
    """
    from ..linking.link import BROADER

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

    skip (bool): False = raise the first error.
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
        """Raise the first error if all documents were skipped.

        documents (int): How many were not.
        """
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

    counts (Counter[str]): Numbers of documents, e.g. skipped ones; zeros are not shown.
    left_out (Counter[str]): Numbers of files and folders that were not read.
    documents (int): How many were linked in this run.
    seconds (float): How long it took.
    """
    notes = [f"{count:,} {what}" for what, count in counts.items() if count]
    unread = [f"{count:,} {what}" for what, count in left_out.items() if count]
    if unread:
        notes.append(f"not read: {', '.join(unread)}")
    rate = f"{documents / max(seconds, 1e-9):,.1f} documents/s"
    return "; ".join((line, *notes, f"{format_time(seconds)}, {rate}"))


def choose_suffix(format: str) -> str:
    """Return the file suffix of a format."""
    from ..formats.registry import SUFFIXES

    return next((s for s, name in SUFFIXES.items() if name == format), f".{format}")


def make_part_writer(
    nlp: "Language",
    linker: Any,
    writer: "Writer",
    *,
    batch_size: int,
    options: dict[str, Any],
    on_doc: Callable[[], Any],
    on_error: OnError,
    run: Callable[..., Any] | None = None,
) -> WritePart:
    """Return a function that links documents and writes them.

    nlp (Language): The pipeline.
    linker (SapbertLinker): Its linker.
    writer (Writer): Writer of the format.
    batch_size (int): Documents in memory at once.
    options (dict[str, Any]): Of the writer.
    on_doc (Callable[[], Any]): Called after each document.
    on_error (OnError): Called with the error of a component on a document.
    run (Callable | None): See `link_documents`.
    RETURNS (WritePart): Documents and a file → the counts.
    """
    from ..formats.entities import AttributeNames, describe_docs

    names = AttributeNames(*linker.attrs)
    key = linker.spans_key

    def write_part(documents: Iterable[Document], file: Any) -> Counter[str]:
        counts: Counter[str] = Counter()

        def watch(docs: "Iterable[NamedDoc]") -> "Iterator[NamedDoc]":
            for doc in docs:
                on_doc()
                yield doc

        def count_failed(error: SapbertError) -> None:
            on_error(error)
            counts[FAILED] += 1

        linked = link_documents(
            nlp, documents, batch_size=batch_size, run=run, on_error=count_failed
        )
        docs = describe_docs(watch(linked), spans_key=key, names=names)
        writer(count_links(docs, counts), file, **options)
        return counts

    return write_part


def write_whole(
    output: Path | None,
    documents: Iterable[Document],
    write_part: WritePart,
    *,
    format: str,
    skipped: SkippedDocuments,
) -> str:
    """Write all documents to one file or, for some formats, one folder.

    output (Path | None): The file or folder; None = the standard output.
    documents (Iterable[Document]): The documents.
    write_part (WritePart): Links and writes them.
    format (str): The format.
    skipped (SkippedDocuments): If all documents are, it is an error.
    RETURNS (str): A summary in one line.
    """
    from ..formats.registry import open_target

    try:
        with open_target(output, format) as target:
            counts = Counter(write_part(iter(documents), target))
            skipped.check_written(counts["documents"])
            return summary_line(counts)
    except KeyboardInterrupt:
        if output is not None:
            msg.warn(f"Interrupted: {output} was not written.")
        raise


def write_folder(
    output: Path,
    documents: Iterable[Document],
    write_part: WritePart,
    *,
    command: dict[str, Any],
    force: bool,
    bar: Any,
    skipped: SkippedDocuments,
) -> str:
    """Write documents in parts, or the parts that are missing.

    output (Path): The folder.
    documents (Iterable[Document]): All documents.
    write_part (WritePart): Links and writes one part.
    command (dict[str, Any]): Everything that decides the output, with `format` and
        `shard_size`.
    force (bool): Remove existing parts first.
    bar (tqdm): Shows how many documents are written; here those of existing parts.
    skipped (SkippedDocuments): If all documents are, it is an error.
    RETURNS (str): A summary in one line.
    RAISES (SapbertError): See `open_state` and `write_parts`.
    """
    with lock_folder(output):
        state = open_state(output, command, force=force)
        bar.initial = bar.n = sum(part["documents"] for part in state["parts"])
        try:
            write_parts(
                output,
                state,
                documents,
                size=command["shard_size"],
                suffix=choose_suffix(command["format"]),
                write_part=write_part,
            )
        except KeyboardInterrupt:
            done = sum(part["documents"] for part in state["parts"])
            written = format_count(done, "document")
            line = f"Interrupted: {written} written to {output}. "
            msg.warn(f"{line}The same command continues after them.")
            raise
    total: Counter[str] = Counter()
    for part in state["parts"]:
        total.update(part["counts"])
    skipped.check_written(total["documents"])
    parts = format_count(len(state["parts"]), "part")
    return f"{summary_line(total)}; {parts} in {output}"
