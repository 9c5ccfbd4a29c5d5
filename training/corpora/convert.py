"""Annotated corpus → mentions.tsv, or DocBin of gold Docs."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import typer

from spacy_sapbert.formats.documents import ID
from spacy_sapbert.system.writing import check_outputs, write_atomically
from training.corpora.registry import FORMATS, GoldDocument, read_corpus
from training.data.reporting import Force, Quiet, print_counts, show_progress
from training.errors import Errors, SapbertError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

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
        if linked_only:
            linked = [span for span in document.spans if len(span.parts) == 1]
            document = document._replace(spans=linked)
        yield document


def write_table(
    documents: Iterable[GoldDocument], file: IO[bytes], counts: Counter[str]
) -> None:
    """Write mentions.tsv, with blanks for tabs and line ends in a mention."""
    file.write("\t".join(COLUMNS).encode() + b"\n")
    for document in documents:
        for span in document.spans:
            place = ("", "") if span.start < 0 else (str(span.start), str(span.end))
            ids = "+".join("|".join(part) for part in span.parts)
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

    from spacy_sapbert.formats.gold_docs import cover_mention

    nlp.max_length = max(nlp.max_length, len(document.text))
    doc = nlp.make_doc(document.text)
    golds = [gold for gold in document.spans if gold.start >= 0]
    spans = [cover_mention(doc, gold, label=label) for gold in golds]
    kept = filter_spans(spans)
    doc.set_ents(kept)
    counts["without offsets, left out"] += len(document.spans) - len(golds)
    counts["widened to whole tokens"] += sum(
        (span.start_char, span.end_char) != (gold.start, gold.end)
        for span, gold in zip(spans, golds, strict=True)
    )
    counts["overlapping, left out"] += len(spans) - len(kept)
    return doc


def split_mentions(document: GoldDocument) -> Iterator[GoldDocument]:
    """Yield a document, or if it has no text each mention as a text of its own.

    The id of such a text is that of the document and the line of the mention.
    """
    if document.text:
        yield document
        return
    for gold in document.spans:
        text = gold.mention.strip()
        span = gold._replace(start=0, end=len(text))
        id = f"{document.id}:{gold.line}"
        yield document._replace(id=id, text=text, spans=[span])


def write_docs(
    documents: Iterable[GoldDocument],
    file: IO[bytes],
    counts: Counter[str],
    *,
    lang: str,
    label: str,
) -> None:
    """Write a DocBin, with the ids of documents in `doc.user_data["id"]`.

    RAISES (SapbertError): If spaCy does not have the language.
    """
    import spacy
    from spacy.tokens import DocBin

    try:
        nlp = spacy.blank(lang)
    except ImportError as error:
        reason = str(error).strip().partition("\n")[0]
        raise SapbertError(Errors.E723.format(lang=lang, reason=reason)) from None
    docs = DocBin(store_user_data=True)
    for document in documents:
        for each in split_mentions(document):
            doc = make_doc(nlp, each, counts, label=label)
            doc.user_data[ID] = each.id
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
    """Write a corpus in the format of the output's ending, and return counts.

    output (Path): mentions.tsv, mentions.tsv.gz, or docs.spacy.
    linked_only (bool): Leave out mentions without an id, and composites.
    RAISES (SapbertError): If the ending is another, or the language unknown.
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
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Convert a corpus to the format of the output's ending.

    Example: python -m training convert corpus/NCBIdevelopset_corpus.txt --format
    pubtator --prefix MESH: --output corpus/ncbi/dev.tsv

    Example: python -m training convert corpus/medmentions.txt.gz --format pubtator
    --drop-prefix UMLS: --linked-only --output corpus/medmentions.spacy
    """
    check_outputs(output, force=force)
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
