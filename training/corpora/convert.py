"""Annotated corpus → mentions.tsv, or DocBin of gold Docs."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import typer

from spacy_sapbert.formats.gold import choose_kb_id
from spacy_sapbert.system.writing import write_atomically
from training.corpora.registry import FORMATS, GoldDocument, read_corpus
from training.data.reporting import print_counts, show_progress
from training.errors import Errors, SapbertError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Span

COLUMNS = ("doc", "start", "end", "type", "mention", "ids")
TABLE_SUFFIXES = (".tsv", ".tsv.gz")
DOCS_SUFFIX = ".spacy"
LABEL = "ENTITY"
BLANKS = str.maketrans("\t\n\r", "   ")


CORPUS = typer.Argument(..., help="File or folder, as the format has it.")
FORMAT = typer.Option(..., help=f"One of {', '.join(FORMATS)}.")
PREFIX = typer.Option(
    "", help="Add to ids without a colon, e.g. MESH:", show_default=False
)
DROP_PREFIX = typer.Option("", help="Remove from ids, e.g. UMLS:", show_default=False)
BARS_JOIN_PARTS = typer.Option(
    None,
    "--bars-join-parts/--bars-are-alternatives",
    help="A|B means A and B, or A or B. [as the format]",
)


def keep_linked(document: GoldDocument) -> GoldDocument:
    """Return a document with only the mentions of exactly one concept."""
    spans = [span for span in document.spans if len(span.parts) == 1]
    return document._replace(spans=spans)


def count_mentions(
    documents: Iterable[GoldDocument], counts: Counter[str], *, linked_only: bool
) -> Iterator[GoldDocument]:
    """Count documents and mentions, and yield the documents.

    linked_only (bool): Leave out mentions without an id, and composites.
    """
    for document in documents:
        parts = [span.parts for span in document.spans]
        counts["documents"] += 1
        counts["mentions"] += len(parts)
        counts["without an id"] += sum(not each for each in parts)
        counts["composites"] += sum(len(each) > 1 for each in parts)
        counts["with alternatives"] += sum(
            any(len(ids) > 1 for ids in each) for each in parts
        )
        yield keep_linked(document) if linked_only else document


def format_ids(parts: list[list[str]]) -> str:
    """Format ids for mentions.tsv: `A|B+C` = A or B, and C."""
    return "+".join("|".join(part) for part in parts)


def write_table(
    documents: Iterable[GoldDocument], file: IO[bytes], counts: Counter[str]
) -> None:
    """Write mentions.tsv, with blanks for tabs and line ends in a mention."""
    file.write("\t".join(COLUMNS).encode() + b"\n")
    for document in documents:
        for span in document.spans:
            place = ("", "") if span.start < 0 else (str(span.start), str(span.end))
            ids = format_ids(span.parts)
            fields = (str(document.id), *place, span.type, span.mention, ids)
            row = "\t".join(field.translate(BLANKS) for field in fields)
            file.write(row.encode("utf8") + b"\n")
            counts["written"] += 1


def make_doc(
    nlp: "Language", document: GoldDocument, counts: Counter[str], *, label: str
) -> "Doc":
    """Make a Doc with the mentions of a text as entities.

    Mentions are widened to whole tokens; of overlapping ones the longest is kept.
    """
    from spacy.util import filter_spans

    nlp.max_length = max(nlp.max_length, len(document.text))
    doc = nlp.make_doc(document.text)
    spans: list[Span] = []
    for gold in document.spans:
        span = doc.char_span(
            gold.start,
            gold.end,
            label=gold.type or label,
            kb_id=choose_kb_id(gold),
            alignment_mode="expand",
        )
        if gold.start < 0 or span is None:
            counts["without offsets, left out"] += 1
            continue
        wide = (span.start_char, span.end_char) != (gold.start, gold.end)
        counts["widened to whole tokens"] += wide
        spans.append(span)
    kept = filter_spans(spans)
    counts["overlapping, left out"] += len(spans) - len(kept)
    doc.set_ents(kept)
    return doc


def make_mention_docs(
    nlp: "Language", document: GoldDocument, *, label: str
) -> "Iterator[Doc]":
    """Yield a Doc of each mention of a document without text, with it as entity."""
    from spacy.tokens import Span

    for gold in document.spans:
        doc = nlp.make_doc(gold.mention.strip())
        kb_id = choose_kb_id(gold)
        doc.set_ents([Span(doc, 0, len(doc), label=gold.type or label, kb_id=kb_id)])
        yield doc


def make_docs(
    nlp: "Language",
    documents: Iterable[GoldDocument],
    counts: Counter[str],
    *,
    label: str = LABEL,
) -> "Iterator[Doc]":
    """Yield the Docs of all documents; see `make_doc` and `make_mention_docs`."""
    for document in documents:
        if document.text:
            yield make_doc(nlp, document, counts, label=label)
        else:
            yield from make_mention_docs(nlp, document, label=label)


def write_docs(
    documents: Iterable[GoldDocument],
    file: IO[bytes],
    counts: Counter[str],
    *,
    lang: str = "en",
    label: str = LABEL,
) -> None:
    """Write a DocBin, e.g. for `spacy benchmark accuracy`.

    RAISES (SapbertError): If spaCy has no such language, or needs a package for it.
    """
    import spacy
    from spacy.tokens import DocBin

    try:
        nlp = spacy.blank(lang)
    except ImportError as error:
        reason = str(error).strip().partition("\n")[0]
        raise SapbertError(Errors.E723.format(lang=lang, reason=reason)) from None
    docs = DocBin()
    for doc in make_docs(nlp, documents, counts, label=label):
        docs.add(doc)
        counts["Docs written"] += 1
        counts["entities written"] += len(doc.ents)
    file.write(docs.to_bytes())


def convert_corpus(
    documents: Iterable[GoldDocument],
    output: Path,
    *,
    lang: str = "en",
    label: str = LABEL,
    linked_only: bool = False,
) -> Counter[str]:
    """Write a corpus in the format of the output's ending.

    output (Path): mentions.tsv, mentions.tsv.gz, or docs.spacy.
    linked_only (bool): Leave out mentions without an id, and composites.
    RETURNS (Counter[str]): Counts, in order.
    RAISES (SapbertError): If the ending is another; if a document cannot be read.
    """
    if not output.name.endswith((*TABLE_SUFFIXES, DOCS_SUFFIX)):
        known = ", ".join((*TABLE_SUFFIXES, DOCS_SUFFIX))
        raise SapbertError(Errors.E722.format(known=known, path=output))
    counts: Counter[str] = Counter()
    counted = count_mentions(documents, counts, linked_only=linked_only)
    with write_atomically(output) as file:
        if output.name.endswith(DOCS_SUFFIX):
            write_docs(counted, file, counts, lang=lang, label=label)
        else:
            write_table(counted, file, counts)
    return counts


def convert_command(
    corpus: Path = CORPUS,
    format: str = FORMAT,
    output: Path = typer.Option(
        ..., help="mentions.tsv, mentions.tsv.gz or docs.spacy to write."
    ),
    prefix: str = PREFIX,
    drop_prefix: str = DROP_PREFIX,
    bars_join_parts: bool | None = BARS_JOIN_PARTS,
    split_composites: bool | None = typer.Option(
        None,
        "--split-composites/--whole-composites",
        help="Parts of a composite are mentions of their own. [as the format]",
    ),
    language: str | None = typer.Option(
        None, help="TSV: only mentions with this `lang`. [all]"
    ),
    level: str | None = typer.Option(
        None, help="COMETA: general or specific. [general]"
    ),
    fold: int | None = typer.Option(None, help="AskAPatient: 0 to 9. [0]"),
    split: str | None = typer.Option(
        None, help="AskAPatient: train, validation or test. [test]"
    ),
    linked_only: bool = typer.Option(
        False, "--linked-only", help="Leave out composites and mentions without an id."
    ),
    lang: str = typer.Option("en", help="docs.spacy: language of the tokenizer."),
    label: str = typer.Option(LABEL, help="docs.spacy: of mentions without a type."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """Example: python -m training convert corpus/NCBIdevelopset_corpus.txt --format
    pubtator --prefix MESH: --output corpus/ncbi/dev.tsv

    Example: python -m training convert corpus/medmentions.txt.gz --format pubtator
    --drop-prefix UMLS: --linked-only --output corpus/medmentions.spacy
    """
    given = {
        "bars_join_parts": bars_join_parts,
        "split_composites": split_composites,
        "language": language,
        "level": level,
        "fold": fold,
        "split": split,
    }
    options = {name: value for name, value in given.items() if value is not None}
    documents = read_corpus(
        corpus, format, prefix=prefix, drop_prefix=drop_prefix, **options
    )
    bar = show_progress(documents, "docs", quiet=quiet)
    counts = convert_corpus(
        bar, output, lang=lang, label=label, linked_only=linked_only
    )
    print_counts(counts, output, quiet=quiet)
