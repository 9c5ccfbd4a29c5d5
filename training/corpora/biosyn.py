"""BioSyn's preprocessing: concepts.jsonl → concepts.jsonl, corpus → mentions.tsv."""

import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from spacy_sapbert.cli.options import (
    ANNOTATED_FORMAT,
    BARS_JOIN_PARTS,
    Corpus,
    DropPrefix,
    Prefix,
)
from spacy_sapbert.errors import SapbertError, no_known_mentions
from spacy_sapbert.evaluation.gold_mentions import (
    find_concepts,
    group_aliases,
    read_aliases,
)
from spacy_sapbert.formats.convert import TABLE_SUFFIXES, write_table
from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.formats.gold import GoldDocument, GoldMention
from spacy_sapbert.io.progress import show_progress
from spacy_sapbert.io.writing import check_outputs, write_atomically
from spacy_sapbert.pipeline.schwartz_hearst import find_long_forms
from spacy_sapbert.vocabularies.concepts import (
    Concept,
    change_names,
    read_concepts,
    write_concepts,
)
from training.corpora.mention_text import expand_abbreviations, split_composite
from training.data.dictionary import read_dictionary
from training.data.options import (
    AliasFile,
    Force,
    Quiet,
    print_counts,
)

BETWEEN_WORDS = re.compile(rf"[\s{re.escape(string.punctuation)}]+")
Parts = list[list[str]]


def preprocess_name(name: str) -> str:
    """Return a name or mention in lower case, with blanks for ASCII punctuation."""
    return " ".join(filter(None, BETWEEN_WORDS.split(name.lower())))


def preprocess_concepts(
    concepts: Iterable[Concept], counts: Counter[str]
) -> Iterator[Concept]:
    """Yield each concept that has names left, with distinct names in order."""
    for concept in concepts:
        names = list(map(preprocess_name, concept.aliases))
        empty = names.count("")
        changed = replace(concept)
        change_names(changed, names)
        distinct = len(changed.aliases)
        counts["concepts"] += 1
        counts["names"] += len(names)
        counts["of punctuation only, dropped"] += empty
        equal = len(names) - empty - distinct
        counts["equal to another of the concept, dropped"] += equal
        counts["names written"] += distinct
        if distinct:
            counts["concepts written"] += 1
            yield changed
    if not counts["concepts written"]:
        raise SapbertError(
            "E106",
            "Expected at least one name with more than punctuation, but got none in "
            f"{counts['concepts']} concepts. Name the concepts.jsonl of a vocabulary.",
        )


class KnownConcepts:
    """Looks up the ids and preprocessed names of a dictionary."""

    def __init__(self, concepts: Iterable[Concept], aliases: dict[str, str]) -> None:
        self.dictionary = read_dictionary(preprocess_concepts(concepts, Counter()))
        self.aliases, self.groups = aliases, group_aliases(aliases)

    def by_id(self, cui: str) -> frozenset[str]:
        """Return the concepts of an id, a retired id or an alias."""
        return find_concepts(cui, self.dictionary.lookup, self.aliases, self.groups)

    def by_name(self, name: str) -> frozenset[str]:
        """Return the concepts with a name."""
        row = self.dictionary.names.get(preprocess_name(name))
        cuis = [] if row is None else self.dictionary.cuis[row]
        return frozenset(self.aliases.get(cui, cui) for cui in cuis)


def order_parts(names: list[str], parts: Parts, known: KnownConcepts) -> Parts:
    """Return the ids of each part of a composite, which may have another order.

    A name of a concept gets the ids of that concept; the other names get the remaining
    ids in order.
    """
    left = list(parts)
    found: list[list[str] | None] = []
    for name in names:
        named = known.by_name(name)
        own = (part for part in left if any(named & known.by_id(c) for c in part))
        found.append(next(own, None))
        if found[-1] is not None:
            left.remove(found[-1])
    return [left.pop(0) if part is None else part for part in found]


def split_span(
    span: GoldMention, known: KnownConcepts | None, counts: Counter[str]
) -> list[GoldMention]:
    """Split a composite if it has as many parts as concepts.

    Each part is a mention with the offsets of the whole.
    """
    if len(span.parts) < 2:
        return [span]
    names = split_composite(span.mention, len(span.parts))
    if len(names) == 1:
        counts["composites left whole"] += 1
        return [span]
    counts["composites split"] += 1
    parts = order_parts(names, span.parts, known) if known else span.parts
    return [
        span._replace(mention=name, parts=[part])
        for name, part in zip(names, parts, strict=True)
    ]


def is_kept(
    span: GoldMention, known: KnownConcepts | None, counts: Counter[str]
) -> bool:
    """Return whether a preprocessed mention has text, and ids that are known."""
    if not span.mention:
        counts["of punctuation only, dropped"] += 1
    elif known and not span.parts:
        counts["without an id, dropped"] += 1
    elif known and not all(any(map(known.by_id, part)) for part in span.parts):
        counts["not in the dictionary, dropped"] += 1
    else:
        return True
    return False


def preprocess_documents(
    documents: Iterable[GoldDocument],
    counts: Counter[str],
    known: KnownConcepts | None = None,
) -> Iterator[GoldDocument]:
    """Preprocess the mentions of a corpus; their offsets stay those of the text.

    Args:
        known: The dictionary; None = no mention is dropped for its ids.

    Source:
        Sung et al. (2020).
    """
    for document in documents:
        counts["documents"] += 1
        counts["documents without text"] += not document.text
        counts["mentions"] += len(document.mentions)
        long_forms = find_long_forms(document.text)
        spans: list[GoldMention] = []
        for span in document.mentions:
            mention = expand_abbreviations(span.mention, long_forms)
            counts["abbreviations expanded"] += mention.split() != span.mention.split()
            parts = split_span(span._replace(mention=mention), known, counts)
            spans += [
                part._replace(mention=preprocess_name(part.mention)) for part in parts
            ]
        kept = [span for span in spans if is_kept(span, known, counts)]
        yield document._replace(mentions=kept)


def biosyn_names_command(
    concepts: Path = typer.Argument(..., help="concepts.jsonl"),
    output: Path = typer.Argument(..., help="concepts.jsonl to write."),
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write the names of a vocabulary in lower case, without punctuation.

    Example: python -m training biosyn-names assets/medic.jsonl
    corpus/ncbi/concepts.jsonl
    """
    check_outputs(output, force=force)
    counts: Counter[str] = Counter()
    bar = show_progress(read_concepts(concepts), unit="concepts", quiet=quiet)
    write_concepts(output, preprocess_concepts(bar, counts))
    print_counts(counts, output, quiet=quiet)


def biosyn_mentions_command(
    corpus: Corpus,
    format: str = ANNOTATED_FORMAT,
    output: Path = typer.Option(..., help="mentions.tsv or mentions.tsv.gz to write."),
    dictionary: Path | None = typer.Option(
        None, help="concepts.jsonl: drop mentions whose ids it does not have."
    ),
    aliases: AliasFile = None,
    prefix: Prefix = "",
    drop_prefix: DropPrefix = "",
    bars_join_parts: bool | None = BARS_JOIN_PARTS,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write mentions with abbreviations expanded and composites split, as BioSyn does.

    Example: python -m training biosyn-mentions corpus/NCBIdevelopset_corpus.txt
    --format pubtator --dictionary corpus/ncbi/concepts.jsonl --output
    corpus/ncbi/dev.tsv
    """
    check_outputs(output, force=force)
    options: dict[str, Any] = {}
    if bars_join_parts is not None:
        options["bars_join_parts"] = bars_join_parts
    counts: Counter[str] = Counter()
    if not output.name.endswith(TABLE_SUFFIXES):
        raise SapbertError(
            "E110",
            f"Expected an output that ends with one of {', '.join(TABLE_SUFFIXES)}, "
            f"but got {output}. Correct `--output`.",
        )
    ids = read_aliases(aliases) if aliases else {}
    known = KnownConcepts(read_concepts(dictionary), ids) if dictionary else None
    documents = read_corpus(
        corpus, format, prefix=prefix, drop_prefix=drop_prefix, **options
    )
    bar = show_progress(documents, unit="docs", quiet=quiet)
    with write_atomically(output) as file:
        write_table(preprocess_documents(bar, counts, known), file, counts)
        if not counts["written"]:
            raise no_known_mentions(mentions=counts["mentions"])
    print_counts(counts, output, quiet=quiet)
