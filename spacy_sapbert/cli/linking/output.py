"""Write linked documents to one file, or to parts in a folder, and count links."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import SapbertError
from ...formats.documents import Document, OnError
from ...formats.parts import FAILED, WritePart, lock_folder, open_state, write_parts
from ...pipeline.running import link_documents
from ...system.progress import format_count
from ...system.terminal import msg
from .summary import SkippedDocuments, count_links, summary_line

if TYPE_CHECKING:
    from spacy.language import Language

    from ...formats.entities import NamedDoc
    from ...formats.registry import Writer


def choose_suffix(format: str) -> str:
    """Return the file suffix of a format."""
    from ...formats.registry import OTHER_SUFFIXES, SUFFIXES

    suffixes = {name: suffix for suffix, name in reversed(SUFFIXES.items())}
    return (suffixes | OTHER_SUFFIXES)[format]


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

    Args:
        batch_size: Documents in memory at once.
        on_doc: Called after each document.
        on_error: Called with the error of a component on a document.
        run: See `link_documents`.

    Returns:
        Documents and a file → the counts.
    """
    from ...formats.entities import describe_docs

    names = linker.attrs
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
        continue_ids(options, counts)
        return counts

    return write_part


def continue_ids(options: dict[str, Any], counts: Mapping[str, int]) -> None:
    """Let the rows of the next part have other ids than those of a written one."""
    if "first_id" in options:
        options["first_id"] += counts.get("entities", 0)


def write_whole(
    output: Path | None,
    documents: Iterable[Document],
    write_part: WritePart,
    *,
    format: str,
    skipped: SkippedDocuments,
) -> str:
    """Write all documents to one file or, for some formats, one folder.

    Args:
        output: The file or folder; None = the standard output.
        skipped: If all documents are, it is an error.

    Returns:
        A summary in one line.
    """
    from ...formats.registry import open_target

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
    options: dict[str, Any],
    force: bool,
    bar: Any,
    skipped: SkippedDocuments,
) -> str:
    """Write documents in parts, or the parts that are missing.

    Args:
        command: Everything that decides the output, with `format` and `shard_size`.
        options: Of the writer of `write_part`; see `continue_ids`.
        force: Remove existing parts first.
        bar: Shows how many documents are written; here those of existing parts.
        skipped: If all documents are, it is an error.

    Returns:
        A summary in one line.

    Raises:
        SapbertError: See `open_state` and `write_parts`.
    """
    with lock_folder(output):
        state = open_state(output, command, force=force)
        bar.initial = bar.n = sum(part["documents"] for part in state["parts"])
        for part in state["parts"]:
            continue_ids(options, part["counts"])
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
            line = f"Interrupted: {written} in {output}. "
            msg.warn(f"{line}The same command continues.")
            raise
    total: Counter[str] = Counter()
    for part in state["parts"]:
        total.update(part["counts"])
    skipped.check_written(total["documents"])
    parts = format_count(len(state["parts"]), "part")
    return f"{summary_line(total)}; {parts} in {output}"
