"""Are mentions linked as the people who maintain a vocabulary expect?"""

from collections.abc import Callable, Iterable, Iterator
from typing import (
    TYPE_CHECKING,
    Any,
)

from ..errors import Errors, SapbertError
from ..formats.documents import Document
from ..formats.entities import NIL, AttributeNames, describe_entities
from ..pipeline.running import link_documents
from .regression_cases import Case

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

    from ..vocabularies.concepts import Concept

LABEL = "CONCEPT"  # of a case without one
BATCH_SIZE = 64
Outcome = dict[str, Any]


def make_doc(nlp: "Language", case: Case, *, spans_key: str | None) -> "Doc":
    """Make a Doc with the mention of a case, also where no token begins or ends.

    nlp (Language): Has the tokenizer.
    case (Case): The case.
    spans_key (str | None): A span group for it; None = the entities.
    RETURNS (Doc): The Doc.
    RAISES (SapbertError): If the context is too long for the pipeline.
    """
    from spacy.tokens import Doc, Span

    text, start, end = case.text, case.start, case.start + len(case.mention)
    label = case.label or LABEL
    if len(text) > nlp.max_length:
        raise SapbertError(
            Errors.E506.format(path=case.path, line=case.line, limit=nlp.max_length)
        )
    doc = nlp.make_doc(text)
    span = doc.char_span(start, end, label=label)
    if span is None:
        before, inside, after = (
            list(nlp.make_doc(part))
            for part in (text[:start], text[start:end], text[end:])
        )
        tokens = [*before, *inside, *after]
        words = [token.text for token in tokens]
        doc = Doc(nlp.vocab, words, [bool(token.whitespace_) for token in tokens])
        span = Span(doc, len(before), len(before) + len(inside), label=label)
    if spans_key is None:
        doc.ents = [span]
    else:
        doc.spans[spans_key] = [span]
    return doc


def judge(
    case: Case,
    entity: dict[str, Any],
    find_concept: "Callable[[str], Concept | None]",
) -> Outcome:
    """Hold what was found against what was expected.

    case (Case): The case.
    entity (dict[str, Any]): From `describe_entities`.
    find_concept (Callable[[str], Concept | None]): Of the knowledge base, by id,
        also by a retired one.
    RETURNS (Outcome): Plain JSON types: the case, `passed`, `cui`, `name`, `score`
        and `link_note` as found, `rank` of the first candidate that was expected,
        `remarks`, `candidates`.
    """
    right, remarks = set(), []
    for cui in case.expected:
        concept = None if cui == NIL else find_concept(cui)
        if concept is not None:
            right.add(concept.cui)
            if concept.cui != cui:
                remarks.append(f"{cui} is {concept.cui} now")
        elif cui != NIL:
            remarks.append(f"{cui} is unknown")
    passed = entity["cui"] in right
    if entity["cui"] is None:
        passed = NIL in case.expected
    found = [candidate["cui"] for candidate in entity["candidates"]]
    rank = next((i for i, cui in enumerate(found, 1) if cui in right), None)
    if not passed and right:
        place = "no candidate" if rank is None else f"rank {rank}"
        remarks.append(f"the expected is {place}")
    return {
        "file": case.path.name,
        "line": case.line,
        "mention": case.mention,
        "context": case.text,
        "start": case.start,
        "label": case.label,
        "note": case.note,
        "expected": list(case.expected),
        "passed": passed,
        "cui": entity["cui"],
        "name": entity["name"],
        "score": entity["score"],
        "link_note": entity["note"],
        "rank": rank,
        "remarks": remarks,
        "candidates": entity["candidates"],
    }


def run_cases(nlp: "Language", linker: Any, cases: Iterable[Case]) -> Iterator[Outcome]:
    """Link the mentions of cases.

    nlp (Language): The pipeline; what detects entities is left out.
    linker (SapbertLinker): Its linker.
    cases (Iterable[Case]): The cases.
    YIELDS (Outcome): See `judge`, in order.
    RAISES (SapbertError): If the pipeline fails; the error names file and line.
    """
    key, names = linker.spans_key, AttributeNames(*linker.attrs)
    pending: list[Case] = []

    def documents() -> Iterator[Document]:
        for case in cases:
            pending.append(case)
            place = f"{case.path.name}:{case.line}"
            yield Document(place, case.text, make_doc(nlp, case, spans_key=key))

    for _, doc in link_documents(nlp, documents(), batch_size=BATCH_SIZE):
        case = pending.pop(0)
        end = case.start + len(case.mention)
        entity = next(
            entity
            for entity in describe_entities(doc, spans_key=key, names=names)
            if (entity["start"], entity["end"]) == (case.start, end)
        )
        yield judge(case, entity, linker.kb.concept)
