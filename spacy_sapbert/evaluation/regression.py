"""Link a mention in its document: for regression cases and explanations."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import too_long
from ..formats.documents import Document
from ..formats.entities import NIL, LinkedEntity
from ..linking.schwartz_hearst import find_long_forms
from ..pipeline.abbreviation_detector import find_long_form, mention_text
from ..pipeline.running import find_linker, link_documents, run_alone
from .regression_cases import Case

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

    from ..kb.knowledge_base import KnowledgeBase
    from ..linking.candidates import Candidate

LABEL = "CONCEPT"  # of a case without one
BATCH_SIZE = 64


class Outcome(NamedTuple):
    """The result of one case: one line of the output of `spacy sapbert regress`.

    `rank` is that of the first expected candidate.
    """

    file: str
    line: int
    mention: str
    context: str
    start: int
    label: str | None
    note: str | None
    expected: list[str]
    passed: bool
    cui: str | None
    name: str | None
    score: float | None
    link_note: str | None
    rank: int | None
    remarks: list[str]
    candidates: "list[Candidate]"


def make_doc(nlp: "Language", case: Case, *, spans_key: str | None) -> "Doc":
    """Make a Doc with the mention of a case, also if no token begins or ends there."""
    from spacy.tokens import Doc, Span

    text, start, end = case.text, case.start, case.start + len(case.mention)
    label = case.label or LABEL
    if len(text) > nlp.max_length:
        raise too_long(path=case.path, line=case.line, limit=nlp.max_length)
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


def compare_outcome(case: Case, entity: LinkedEntity, kb: "KnowledgeBase") -> Outcome:
    right, remarks = set(), []
    for cui in case.expected:
        concept = None if cui == NIL else kb.concept(cui)
        if concept is not None:
            right.add(concept.cui)
            if concept.cui != cui:
                remarks.append(f"{cui} is {concept.cui} now")
        elif cui != NIL:
            remarks.append(f"{cui} is unknown")
    passed = entity["cui"] in right
    if entity["cui"] is None:
        passed = NIL in case.expected
    cuis = [candidate["cui"] for candidate in entity["candidates"]]
    rank = next((i for i, cui in enumerate(cuis, 1) if cui in right), None)
    if not passed and right:
        rank_text = "no candidate" if rank is None else f"rank {rank}"
        remarks.append(f"the expected is {rank_text}")
    return Outcome(
        file=case.path.name,
        line=case.line,
        mention=case.mention,
        context=case.text,
        start=case.start,
        label=case.label,
        note=case.note,
        expected=list(case.expected),
        passed=passed,
        cui=entity["cui"],
        name=entity["name"],
        score=entity["score"],
        link_note=entity["note"],
        rank=rank,
        remarks=remarks,
        candidates=entity["candidates"],
    )


def run_cases(nlp: "Language", linker: Any, cases: Iterable[Case]) -> Iterator[Outcome]:
    """Link the mentions of cases; the pipeline must not detect entities."""
    key = linker.spans_key
    pending: list[Case] = []

    def documents() -> Iterator[Document]:
        for case in cases:
            pending.append(case)
            place = f"{case.path.name}:{case.line}"
            yield Document(place, case.text, make_doc(nlp, case, spans_key=key))

    for doc in link_documents(nlp, documents(), batch_size=BATCH_SIZE):
        case = pending.pop(0)
        end = case.start + len(case.mention)
        entity = next(
            entity
            for entity in doc.entities
            if (entity["start"], entity["end"]) == (case.start, end)
        )
        yield compare_outcome(case, entity, linker.kb)


class MentionContext(NamedTuple):
    """A mention and what its document adds.

    Attributes:
        long_form: Text to link instead, set by a component.
        defined: Long form that the document defines.
        others: Text to link and label of the other mentions.
    """

    mention: str
    label: str = ""
    long_form: str | None = None
    defined: str | None = None
    others: Sequence[tuple[str, str]] = ()

    @property
    def text(self) -> str:
        return self.long_form or self.mention


def read_context(nlp: "Language", linker: Any, case: Case) -> MentionContext:
    """Run a pipeline over a document up to the linker.

    If the case has no label, an entity of the pipeline at the same place gives it.
    """
    from spacy.tokens import Span

    key = linker.spans_key
    doc = make_doc(nlp, case, spans_key=key)
    (span,) = linker.spans(doc)
    first, last = span.start, span.end
    doc.set_ents([], default="missing")
    doc.spans.clear()
    names = nlp.pipe_names
    skip = names[names.index(find_linker(nlp) or "") :]
    doc = run_alone(nlp, Document("--context", case.text, doc), skip=skip)
    others, label = [], case.label
    for found in linker.spans(doc):
        if (found.start, found.end) == (first, last):
            label = label or found.label_
        elif found.end <= first or found.start >= last:
            text = mention_text(found, linker.long_form_attr, linker.kb)
            others.append((text, found.label_))
    mention = Span(doc, first, last)
    text = mention_text(mention, linker.long_form_attr, linker.kb)
    return MentionContext(
        case.mention,
        label or "",
        text if text != mention.text else None,
        find_long_form(case.mention, find_long_forms(case.text)),
        others,
    )
