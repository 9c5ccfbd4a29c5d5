"""The files of BioSyn, and its preprocessing of names and of annotated mentions.

Source: Sung et al. (2020), `preprocess.py` and the data released with it.
"""

import re
import string
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from spacy_sapbert.errors import (
    SapbertError,
    blank_mention,
    missing_in_folder,
    unexpected_line,
)
from spacy_sapbert.formats.gold import (
    NOWHERE,
    GoldDocument,
    GoldMention,
    check_count,
    parse_offsets,
    split_ids,
)
from spacy_sapbert.io.reading import read_lines
from spacy_sapbert.io.tables.delimited import BARS
from spacy_sapbert.linking.schwartz_hearst import find_long_forms
from spacy_sapbert.vocabularies.concepts import Concept, change_names
from spacy_sapbert.vocabularies.facts import NAME, RETIRED, Fact, build_concepts
from spacy_sapbert.vocabularies.report import Report, count_concepts, read_good_lines
from training.corpora.mention_text import expand_abbreviations, split_composite
from training.data.dictionary import read_dictionary

BETWEEN_WORDS = re.compile(rf"[\s{re.escape(string.punctuation)}]+")
FIELDS = 5  # of a line of a `.concept` file
Parts = list[list[str]]


def read_dictionary_file(path: Path) -> Iterator[Concept]:
    """Read lines `id||name`, or `id||name|name|…`; the first name is preferred."""
    report = Report()
    report.path = str(path)
    facts = build_concepts(read_facts(path, report), report, "")
    yield from count_concepts(facts, report)


def read_facts(path: Path, report: Report) -> Iterator[Fact]:
    """Read the names and retired ids of a dictionary.

    The ids `A|B` of a line are those of one concept, A, and B is retired. But BioSyn's
    preprocessing writes each name once, with the ids of all concepts that have it.
    There an id begins several lines, and the name is that of A and of B.
    """
    preprocessed = has_repeated_ids(path)
    for number, line in read_good_lines(path, report):
        ids, separator, names = line.partition(BARS)
        cui, *others = (cui_part.strip() for cui_part in ids.split("|"))
        if not separator or not all([cui, *others]) or BARS in names:
            raise SapbertError(
                "E117",
                f"{path}:{number}: Expected an id, `||` and names, but got something "
                "else. Correct the line.",
            )
        for own in (cui, *others) if preprocessed else (cui,):
            for name in names.split("|"):
                yield Fact(own, NAME, name)
        if not preprocessed:
            for id in others:
                yield Fact(cui, RETIRED, id, source="ids of one line")


def has_repeated_ids(path: Path) -> bool:
    """Return whether two lines begin with the same id."""
    known: set[str] = set()
    for _, line in read_good_lines(path, Report(on_error="skip")):
        id = line.partition(BARS)[0].partition("|")[0].strip()
        if id in known:
            return True
        known.add(id)
    return False


def read_concept_files(path: Path) -> Iterator[GoldDocument]:
    """Read lines `pmid||start|end||type||mention||ids` of preprocessed mentions.

    The mentions are in lower case, without punctuation, with expanded abbreviations;
    the offsets are those in the original text. If `breast cancer|ovarian cancer` has
    as many ids, each part is a mention without offsets.

    Args:
        path: A folder of `.concept` files, or one file.

    Yields:
        Each file, even without a mention, with its name as id.
    """
    files = sorted(path.glob("*.concept")) if path.is_dir() else [path]
    if not files:
        raise missing_in_folder(file="`.concept` files", folder=path)
    for file in files:
        mentions: list[GoldMention] = []
        for number, line in read_lines(file):
            if line.strip():
                check_count(file, number, mentions)
                mentions += split_line(file, number, line)
        name = file.name.removesuffix(".gz").removesuffix(".concept")
        yield GoldDocument(name, "", mentions)


def split_line(path: Path, number: int, line: str) -> list[GoldMention]:
    """Return the mention of a line of a `.concept` file, or those of its parts."""
    fields = [field.strip() for field in line.split(BARS)]
    if len(fields) != FIELDS:
        expected = f"{FIELDS} fields with `{BARS}` between them"
        raise unexpected_line(path=path, line=number, expected=expected)
    _, place, type, mention, ids = fields
    start, _, end = place.partition("|")
    offsets = parse_offsets(path, number, start, end)
    names = [name.strip() for name in mention.split("|")]
    if not all(names):
        raise blank_mention(path=path, line=number)
    parts = split_ids(ids, bars_join_parts=True)
    if 1 < len(names) == len(parts):
        return [
            GoldMention(*NOWHERE, type, name, [part], number)
            for name, part in zip(names, parts, strict=True)
        ]
    return [GoldMention(*offsets, type, mention, split_ids(ids), number)]


def preprocess_name(name: str) -> str:
    """Return a name or mention in lower case, with blanks for ASCII punctuation."""
    return " ".join(filter(None, BETWEEN_WORDS.split(name.lower())))


def preprocess_concepts(concepts: Iterable[Concept]) -> Iterator[Concept]:
    """Yield each concept that has names left, with distinct names in order."""
    for concept in concepts:
        changed = replace(concept)
        change_names(changed, [*map(preprocess_name, concept.aliases)])
        if changed.aliases:
            yield changed


class KnownConcepts:
    """Looks up the ids and preprocessed names of a dictionary."""

    def __init__(self, concepts: Iterable[Concept]) -> None:
        self.dictionary = read_dictionary(preprocess_concepts(concepts))

    def by_id(self, cui: str) -> str | None:
        """Return the concept of an id or a retired id."""
        return self.dictionary.lookup(cui)

    def by_name(self, name: str) -> list[str]:
        """Return the concepts with a name."""
        row = self.dictionary.names.get(preprocess_name(name))
        return [] if row is None else self.dictionary.cuis[row]


def order_parts(names: list[str], parts: Parts, known: KnownConcepts) -> Parts:
    """Return the ids of each part of a composite, which may have another order.

    A name of a concept gets the ids of that concept; the other names get the remaining
    ids in order.
    """
    left = list(parts)
    found: list[list[str] | None] = []
    for name in names:
        named = known.by_name(name)
        own = (part for part in left if any(known.by_id(c) in named for c in part))
        found.append(next(own, None))
        if found[-1] is not None:
            left.remove(found[-1])
    return [left.pop(0) if part is None else part for part in found]


def split_span(span: GoldMention, known: KnownConcepts) -> list[GoldMention]:
    """Split a composite if it has as many parts as concepts.

    Each part is a mention with the offsets of the whole.
    """
    if len(span.parts) < 2:
        return [span]
    names = split_composite(span.mention, len(span.parts))
    if len(names) == 1:
        return [span]
    parts = order_parts(names, span.parts, known)
    return [
        span._replace(mention=name, parts=[part])
        for name, part in zip(names, parts, strict=True)
    ]


def preprocess_documents(
    documents: Iterable[GoldDocument], known: KnownConcepts
) -> Iterator[GoldDocument]:
    """Preprocess the mentions of a corpus; their offsets stay those of the text.

    Mentions of punctuation only and mentions without an id of the dictionary are
    dropped.
    """
    for document in documents:
        long_forms = find_long_forms(document.text)
        spans: list[GoldMention] = []
        for span in document.mentions:
            mention = expand_abbreviations(span.mention, long_forms)
            parts = split_span(span._replace(mention=mention), known)
            spans += [
                part._replace(mention=preprocess_name(part.mention)) for part in parts
            ]
        kept = [
            span
            for span in spans
            if span.mention
            and span.parts
            and all(any(map(known.by_id, part)) for part in span.parts)
        ]
        yield document._replace(mentions=kept)
