"""Write linked documents to one file, or to parts in a folder, and count links."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..formats.documents import Document
from ..formats.parts import WritePart, lock_folder, open_state, write_parts
from ..pipeline.running import link_documents
from ..system.terminal import msg

if TYPE_CHECKING:
    from spacy.language import Language

    from ..formats.entities import LinkedDoc, NamedDoc
    from ..formats.registry import Writer


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


def summary_line(counts: Counter[str]) -> str:
    """Format counts: "2 documents, 9 entities, 8 linked, 1 NIL (1 empty)"."""
    totals = [f"{counts[key]} {key}" for key in ("documents", "entities", "linked")]
    reasons = {k[5:]: n for k, n in sorted(counts.items()) if k.startswith("NIL: ")}
    if counts["broader"]:
        totals[-1] += f" ({counts['broader']} to a broader concept)"
    line = f"{', '.join(totals)}, {sum(reasons.values())} NIL"
    if reasons:
        line += f" ({', '.join(f'{n} {reason}' for reason, n in reasons.items())})"
    return line


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
    include_text: bool,
    on_doc: Callable[[], Any],
    run: Callable[..., Any] | None = None,
) -> WritePart:
    """Return a function that links documents and writes them.

    nlp (Language): The pipeline.
    linker (SapbertLinker): Its linker.
    writer (Writer): Writer of the format.
    batch_size (int): Documents in memory at once.
    include_text (bool): Write the texts.
    on_doc (Callable[[], Any]): Called after each document.
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

        linked = link_documents(nlp, documents, batch_size=batch_size, run=run)
        docs = describe_docs(watch(linked), spans_key=key, names=names)
        writer(count_links(docs, counts), file, include_text=include_text)
        return counts

    return write_part


def write_whole(
    output: Path | None,
    documents: Iterable[Document],
    write_part: WritePart,
    *,
    format: str,
) -> str:
    """Write all documents to one file or, for some formats, one folder.

    output (Path | None): The file or folder; None = the standard output.
    documents (Iterable[Document]): The documents.
    write_part (WritePart): Links and writes them.
    format (str): The format.
    RETURNS (str): A summary in one line.
    """
    from ..formats.registry import open_target

    try:
        with open_target(output, format) as target:
            return summary_line(Counter(write_part(iter(documents), target)))
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
) -> str:
    """Write documents in parts, or the parts that are missing.

    output (Path): The folder.
    documents (Iterable[Document]): All documents.
    write_part (WritePart): Links and writes one part.
    command (dict[str, Any]): Everything that decides the output, with `format` and
        `shard_size`.
    force (bool): Remove existing parts first.
    RETURNS (str): A summary in one line.
    RAISES (SapbertError): See `open_state` and `write_parts`.
    """
    with lock_folder(output):
        state = open_state(output, command, force=force)
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
            line = f"Interrupted: {done} documents are written to {output}. "
            msg.warn(f"{line}The same command continues after them.")
            raise
    total: Counter[str] = Counter()
    for part in state["parts"]:
        total.update(part["counts"])
    return f"{summary_line(total)}; {len(state['parts'])} parts in {output}"
