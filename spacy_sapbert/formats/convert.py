"""Annotated corpus → mentions.tsv, or DocBin of gold Docs."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ..errors import SapbertError
from ..io.writing import write_atomically
from .documents import ID
from .gold import LABEL, UNSAID, GoldDocument

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

COLUMNS = ("doc", "start", "end", "type", "mention", "ids")
TABLE_SUFFIXES = (".tsv", ".tsv.gz")
DOCS_SUFFIX = ".spacy"
BLANKS = str.maketrans("\t\n\r", "   ")


def count_mentions(
    documents: Iterable[GoldDocument], counts: Counter[str], *, linked_only: bool
) -> Iterator[GoldDocument]:
    """Count documents and mentions, and yield the documents; see `convert_corpus`."""
    for document in documents:
        parts = [span.parts for span in document.mentions]
        counts["documents"] += 1
        counts["mentions"] += len(parts)
        counts["without an id"] += sum(not part for part in parts)
        if unsaid := parts.count(UNSAID):
            counts["of which nobody has said the concept"] += unsaid
        counts["composites"] += sum(len(part) > 1 for part in parts)
        counts["with alternatives"] += sum(
            any(len(ids) > 1 for ids in part) for part in parts
        )
        if linked_only:
            linked = [m for m in document.mentions if len(m.parts) == 1 and m.parts[0]]
            document = document._replace(mentions=linked)
        yield document


def write_table(
    documents: Iterable[GoldDocument], file: IO[bytes], counts: Counter[str]
) -> None:
    """Write mentions.tsv, with blanks for tabs and line ends in a mention."""
    file.write("\t".join(COLUMNS).encode() + b"\n")
    for document in documents:
        for span in document.mentions:
            if span.parts == UNSAID:  # no ids would be NIL
                continue
            offsets = ("", "") if span.start < 0 else (str(span.start), str(span.end))
            ids = "+".join("|".join(part) for part in span.parts)
            fields = (str(document.id), *offsets, span.type, span.mention, ids)
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

    from .gold_docs import cover_mention

    nlp.max_length = max(nlp.max_length, len(document.text))
    doc = nlp.make_doc(document.text)
    golds = [gold for gold in document.mentions if gold.start >= 0]
    spans = [cover_mention(doc, gold, label=label) for gold in golds]
    kept = filter_spans(spans)
    doc.set_ents(kept)
    counts["without offsets, left out"] += len(document.mentions) - len(golds)
    counts["widened to whole tokens"] += sum(
        (span.start_char, span.end_char) != (gold.start, gold.end)
        for span, gold in zip(spans, golds, strict=True)
    )
    counts["overlapping, left out"] += len(spans) - len(kept)
    return doc


def make_blank(lang: str) -> "Language":
    """Build an empty pipeline of a language, for which spaCy may lack a package."""
    import spacy

    try:
        return spacy.blank(lang)
    except ImportError as error:
        reason = str(error).strip().partition("\n")[0]
        raise SapbertError(
            "E331",
            "Expected a language that spaCy can make a pipeline for, but got "
            f"{lang!r}: {reason} Correct `--lang`, or install what it needs; `xx` is "
            "any language.",
        ) from None


def write_docs(
    documents: Iterable[GoldDocument],
    file: IO[bytes],
    counts: Counter[str],
    *,
    lang: str,
    label: str,
) -> None:
    """Write a DocBin, with the ids of documents in `doc.user_data["id"]`."""
    from spacy.tokens import DocBin

    from .gold_docs import split_mentions

    nlp = make_blank(lang)
    docs = DocBin(store_user_data=True)
    for document in documents:
        for part in split_mentions(document):
            doc = make_doc(nlp, part, counts, label=label)
            doc.user_data[ID] = part.id
            docs.add(doc)
            counts["Docs written"] += 1
            counts["entities written"] += len(doc.ents)
    file.write(docs.to_bytes())


def convert_corpus(
    documents: Iterable[GoldDocument],
    output: Path,
    *,
    lang: str | None = None,
    label: str | None = None,
    linked_only: bool = False,
) -> Counter[str]:
    """Write a corpus in the format of the output's ending, and return counts.

    Args:
        output: mentions.tsv, mentions.tsv.gz, or docs.spacy.
        lang: Language of the tokenizer of docs.spacy; None = English.
        label: Of mentions without a type in docs.spacy; None = `LABEL`.
        linked_only: Leave out mentions without an id, and composites.

    Raises:
        SapbertError: If the ending is another, or the language unknown; if a table has
            no use for `lang` or `label`.
    """
    if not output.name.endswith((*TABLE_SUFFIXES, DOCS_SUFFIX)):
        known = ", ".join((*TABLE_SUFFIXES, DOCS_SUFFIX))
        raise SapbertError(
            "E110",
            f"Expected an output that ends with one of {known}, but got {output}. "
            "Correct `--output`.",
        )
    is_docs = output.name.endswith(DOCS_SUFFIX)
    for option, value in (("lang", lang), ("label", label)):
        if value is not None and not is_docs:
            raise SapbertError(
                "E113",
                f"Expected `--{option}` with an output that ends with {DOCS_SUFFIX}, "
                f"but got {output}. Remove the option, or correct `--output`.",
            )
    counts: Counter[str] = Counter()
    counted = count_mentions(documents, counts, linked_only=linked_only)
    with write_atomically(output) as file:
        if is_docs:
            write_docs(counted, file, counts, lang=lang or "en", label=label or LABEL)
        else:
            write_table(counted, file, counts)
    return counts
