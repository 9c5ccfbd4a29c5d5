"""Annotated documents, with the ids that annotators gave to mentions."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from ...errors import SapbertError
from ...formats.gold import GoldDocument, GoldMention
from ...io.tables.headers import show_id
from ...linking.ranking import has_text
from ...linking.text import name_form
from ..edits.change import TaughtDocument, hash_values
from ..folder.records import TaughtFile

# Where each mention was first annotated with a concept, "" = none: "reviewed.csv:12"
Places = dict[tuple[str, str], str]
FEWEST_KNOWN = 0.05  # share of annotated ids that the knowledge base must have


@dataclass
class AnnotationCounts:
    """What was read; `unknown` = ids that the knowledge base lacks."""

    documents: int = 0
    mentions: int = 0
    repeated: int = 0  # came twice, or were taught before with the same annotations
    replaced: int = 0  # were taught before with others, which no longer count
    dropped: int = 0  # others that were taught before and no longer count
    composites: int = 0  # mentions of several concepts, which are not learned
    without_concept: int = 0
    without_text: int = 0  # mentions without a letter or digit
    unknown: Counter[str] = field(default_factory=Counter)


@dataclass
class Meaning:
    """A concept with which a mention was annotated, "" = none, and how often."""

    cui: str
    text: str  # as one annotator wrote it
    mentions: int
    documents: int


@dataclass
class Learned:
    """A mention for which people decided, unlike before.

    Attributes:
        text: As an annotator wrote it.
        cui, name: What they decided; "" = no concept.
        before: Id of the concept to which it was linked; "" = none.
        documents, total: How many documents say so, and how many say anything.
        place: Where it was taught: file and line, or document.
    """

    text: str
    cui: str
    name: str
    before: str
    documents: int
    total: int
    place: str


@dataclass
class Contradiction:
    """A mention, normalised, with different concepts, the commonest first."""

    mention: str
    concepts: list[Meaning]


def resolve_documents(
    documents: Iterable[GoldDocument],
    find: Callable[[str], str | None],
    taught: Iterable[TaughtDocument],
    *,
    add: bool,
    places: Places | None = None,
) -> tuple[list[TaughtDocument], AnnotationCounts]:
    """Find the concepts of annotated documents, beside what was taught before.

    What was taught with the same text before is replaced; without `add`, all is.
    Documents of one text, e.g. of two annotators, all count. The order of the documents
    returned does not depend on when they were taught. `places` is filled.
    """
    counts, places = AnnotationCounts(), {} if places is None else places
    new: dict[str, list[TaughtDocument]] = defaultdict(list)  # by digest
    for document in documents:
        for resolved in resolve_document(document, find, counts, places):
            counts.documents += 1
            same = new[resolved.digest]
            equal = [one for one in same if one.mentions == resolved.mentions]
            counts.repeated += len(equal)
            if equal and equal[0].source > resolved.source:  # whichever comes first
                same[same.index(equal[0])] = resolved
            elif not equal:
                same.append(resolved)
    check_usable(new, counts)
    before: dict[str, list[TaughtDocument]] = defaultdict(list)
    for earlier in taught:
        before[earlier.digest].append(earlier)
    for digest in before.keys() & new.keys():
        if sort_documents(before[digest]) == sort_documents(new[digest]):
            counts.repeated += len(new[digest])
        else:
            counts.replaced += 1
    if not add:
        dropped = before.keys() - new.keys()
        counts.dropped = sum(len(before.pop(digest)) for digest in dropped)
    together = {**before, **new}.values()
    return sort_documents(document for same in together for document in same), counts


def check_usable(
    documents: dict[str, list[TaughtDocument]], counts: AnnotationCounts
) -> None:
    """Raise an error if nearly all ids are unknown, or no mention was annotated."""
    unknown = counts.unknown.total()
    not_learned = counts.composites + counts.without_concept + counts.without_text
    known = counts.mentions - not_learned - unknown
    if known < FEWEST_KNOWN * (known + unknown):
        example = show_id(next(iter(counts.unknown)))
        raise not_usable(
            f"{unknown:,} ids, for example {example}, are not in it, which are nearly "
            "all. Use the vocabulary of the annotations, or change the ids with "
            "`--prefix` or `--drop-prefix`."
        )
    if not any(document.mentions for same in documents.values() for document in same):
        raise not_usable(
            f"got none in {counts.documents} documents. Pass documents whose entities "
            "have ids."
        )


def not_usable(reason: str) -> SapbertError:
    return SapbertError(
        "E362", f"Expected annotations with ids of the knowledge base, but {reason}"
    )


def resolve_document(
    document: GoldDocument,
    find: Callable[[str], str | None],
    counts: AnnotationCounts,
    places: Places,
) -> Iterator[TaughtDocument]:
    """Yield what a knowledge base keeps of a document, and count its mentions.

    Of a table without documents, each term is a document: see `is_term`.
    """
    mentions = [*resolve_mentions(document, find, counts, places)]
    source, id = document.source, str(document.id)
    terms = {text for text, _ in mentions}
    if document.text:
        text = " ".join(document.text.split())
        digest = hash_values("text", text if terms == {text} else document.text)
        note = digest
    elif id:
        note, digest = hash_values("id", id), hash_values("id", id, source)
    else:
        for term in sorted(terms):
            digest = hash_values("text", term)
            said = sorted({pair for pair in mentions if pair[0] == term})
            yield TaughtDocument(
                digest=digest, note=digest, source=source, mentions=said
            )
        return
    yield TaughtDocument(digest=digest, note=note, source=source, mentions=mentions)


def resolve_mentions(
    document: GoldDocument,
    find: Callable[[str], str | None],
    counts: AnnotationCounts,
    places: Places,
) -> Iterator[tuple[str, str]]:
    """Yield mentions and the ids of their concepts, "" = none; count all."""
    for mention in document.mentions:
        text, parts = mention.mention, mention.parts
        counts.mentions += 1
        cui: str | None = None
        if not has_text(text):
            counts.without_text += 1
        elif len(parts) > 1:
            counts.composites += 1
        elif not any(parts):
            counts.without_concept += 1
            cui = ""
        elif (cui := next(filter(None, map(find, parts[0])), None)) is None:
            counts.unknown[parts[0][0]] += 1
        if cui is not None:
            places.setdefault((text, cui), name_place(document, mention))
            yield text, cui


def name_place(document: GoldDocument, mention: GoldMention) -> str:
    """Return where a mention is: file and line, or the document."""
    if mention.line:
        return f"{document.source}:{mention.line}"
    return ", ".join(filter(None, (document.source, str(document.id))))


def sort_documents(documents: Iterable[TaughtDocument]) -> list[TaughtDocument]:
    """Return the documents that have mentions, in an order of their content alone."""
    usable = (document for document in documents if document.mentions)
    return sorted(usable, key=lambda d: (d.digest, d.mentions, d.source))


def find_contradictions(documents: Iterable[TaughtDocument]) -> list[Contradiction]:
    """Return mentions with several concepts, those that differ most often first."""
    meant: dict[str, dict[str, list[tuple[str, str]]]] = {}
    for document in documents:
        for text, cui in document.mentions:
            by_cui = meant.setdefault(name_form(text), {})
            by_cui.setdefault(cui, []).append((text, document.digest))
    differing: list[tuple[int, str, list[Meaning]]] = []
    for form, by_cui in meant.items():
        if len(by_cui) > 1:
            meanings = [
                Meaning(cui, found[0][0], len(found), len({d for _, d in found}))
                for cui, found in by_cui.items()
            ]
            meanings.sort(key=lambda meaning: (-meaning.mentions, meaning.cui))
            minority = sum(meaning.mentions for meaning in meanings[1:])
            differing.append((-minority, form, meanings))
    differing.sort(key=itemgetter(0, 1))
    return [Contradiction(form, meanings) for _, form, meanings in differing]


def describe_sources(documents: Sequence[TaughtDocument]) -> list[TaughtFile]:
    totals = Counter(document.source for document in documents)
    mentions: Counter[str] = Counter()
    for document in documents:
        mentions[document.source] += len(document.mentions)
    return [
        TaughtFile(source=source, documents=total, mentions=mentions[source])
        for source, total in totals.items()
    ]
