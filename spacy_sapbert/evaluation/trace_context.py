"""A mention in its document: what a pipeline makes of it before it is linked."""

from typing import TYPE_CHECKING, Any

from ..formats.documents import Document
from ..pipeline.long_forms import long_form_text, singular
from ..pipeline.running import find_linker, run_alone
from ..pipeline.schwartz_hearst import find_long_forms
from .regression import make_doc
from .regression_cases import Case
from .trace import Question

if TYPE_CHECKING:
    from spacy.language import Language


def read_context(nlp: "Language", linker: Any, case: Case) -> Question:
    """Run a pipeline over a document up to the linker, and see what it would link.

    nlp (Language): The pipeline.
    linker (SapbertLinker): Its linker.
    case (Case): The mention in its document. Without a label, it has the one that the
        pipeline gives to an entity of the same place.
    RETURNS (Question): What is looked up for the mention, and for the other ones that
        the pipeline detects and that do not overlap with it.
    RAISES (SapbertError): If the text is too long, or a component fails.
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
            text = long_form_text(found, linker.long_form_attr) or found.text
            others.append((text, found.label_))
    long_forms = find_long_forms(case.text)
    short = " ".join(case.mention.split())
    return Question(
        mention=case.mention,
        label=label or "",
        long_form=long_form_text(Span(doc, first, last), linker.long_form_attr),
        defined=long_forms.get(short) or long_forms.get(singular(short)),
        others=others,
    )
