"""One mention, looked up as a linker does, with all that the search knows kept."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..kb.cache import Remembered
from ..kb.indexes.registry import best_first
from ..kb.layers import EXACT_BLOCK
from ..linking.filters import Filter
from ..linking.link import Linked, mention_filter
from ..linking.options import LinkOptions
from ..linking.ranking import find_concepts

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase
    from ..kb.store import Entry
    from ..linking.candidates import Candidate, Hit


class Question(NamedTuple):
    """A mention, and what its document says about it.

    mention (str): As the text has it.
    label (str): Of the entity; empty if it has none.
    long_form (str | None): What is looked up in its place, if it is an abbreviation.
    defined (str | None): The long form that the text gives it.
    others (Sequence[tuple[str, str]]): What is looked up for the other mentions of the
        document, and their labels.
    """

    mention: str
    label: str = ""
    long_form: str | None = None
    defined: str | None = None
    others: Sequence[tuple[str, str]] = ()

    @property
    def text(self) -> str:
        """What is looked up."""
        return self.long_form or self.mention


class Lookup(NamedTuple):
    """A question and its answer.

    kb (KnowledgeBase): Where it was looked up.
    question (Question): The question.
    options (LinkOptions): How it was looked up.
    wanted (Filter): What it may find, the types of the label counted in.
    wordpieces (tuple[int, ...]): What the encoder gets.
    cut (bool): The mention is longer than that.
    vector (np.ndarray | None): Its unit vector, if it has one.
        Shape: (width,).
    hits (list[Hit]): Concepts, the best first, ties not settled.
    linked (Linked): What the linker says.
    others (list[Linked]): What it says of the other mentions.
    """

    kb: "KnowledgeBase"
    question: Question
    options: LinkOptions
    wanted: Filter
    wordpieces: tuple[int, ...]
    cut: bool
    vector: np.ndarray | None
    hits: "list[Hit]"
    linked: Linked
    others: list[Linked]

    @property
    def best(self) -> "Candidate | None":
        """The best candidate, also where it does not count."""
        return self.linked.candidates[0] if self.linked.candidates else None

    @property
    def cui(self) -> str | None:
        """The concept of the mention, if it has one."""
        return self.linked.cui

    @property
    def threshold(self) -> float | None:
        """The cosine under which nothing counts, if there is one."""
        given = self.options.threshold
        least: float | None = self.kb.meta["threshold"] if given is None else given
        return least

    def search(self, wanted: Filter, kb: Any = None) -> "list[Hit]":
        """Look the text up by cosine alone; see `search.find_concepts`.

        wanted (Filter): What may be found.
        kb (Searched | None): What is searched; None = the knowledge base.
        RETURNS (list[Hit]): The best first.
        """
        key = (self.question.text, wanted)
        options = replace(self.options, fusion=None)
        return find_concepts(kb or self.kb.contents, [key], options)[key].hits


def ask_linker(
    kb: "KnowledgeBase", question: Question, options: LinkOptions
) -> list[Linked]:
    """Link a mention and the others of its document.

    kb (KnowledgeBase): The knowledge base.
    question (Question): The mention.
    options (LinkOptions): How.
    RETURNS (list[Linked]): The mention's first.
    """
    asked = [(question.text, question.label), *question.others]
    return kb.link(
        [text for text, _ in asked],
        labels=[label for _, label in asked],
        documents=[0] * len(asked),
        options=options,
    )


def look_up(kb: "KnowledgeBase", question: Question, options: LinkOptions) -> Lookup:
    """Look a mention up.

    kb (KnowledgeBase): The knowledge base.
    question (Question): The mention.
    options (LinkOptions): How.
    RETURNS (Lookup): The answer.
    """
    from ..encoder.name_encoder import tokenize_names

    linked, *others = ask_linker(kb, question, options)
    key = (question.text, mention_filter(question.label, options))
    (pieces,), (cut,) = tokenize_names(kb.encoder, [question.text])
    vector: np.ndarray | None = None
    if pieces and linked.note not in ("empty", "no_vector"):
        vector = kb.embed([pieces])[0]
    return Lookup(
        kb=kb,
        question=question,
        options=options,
        wanted=key[1],
        wordpieces=pieces,
        cut=cut,
        vector=vector,
        hits=find_concepts(kb.contents, [key], options)[key].hits,
        linked=linked,
        others=others,
    )


def named_fields(wanted: Filter) -> list[str]:
    """List the fields of a filter that leave something out."""
    return [field.name for field in fields(wanted) if getattr(wanted, field.name)]


def rejecting_fields(kb: "KnowledgeBase", wanted: Filter, entry: "Entry") -> list[str]:
    """Tell which fields of a filter leave a name out.

    kb (KnowledgeBase): The knowledge base.
    wanted (Filter): The filter.
    entry (Entry): The name.
    RETURNS (list[str]): Names of fields; empty if it may be found.
    """
    return [
        name
        for name in named_fields(wanted)
        if not kb.contents.admitted(Filter(**{name: getattr(wanted, name)})).keep(
            {entry.row: [entry]}
        )
    ]


class ExactSearch:
    """A knowledge base, all of whose rows are compared; else as it is.

    kb (KnowledgeBase): The knowledge base.
    """

    def __init__(self, kb: "KnowledgeBase") -> None:
        self.kb = kb
        self.compared: dict[bytes, np.ndarray] = {}
        # What the index has found is not what is asked for here.
        self.found: Remembered[Any, Any] = Remembered(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kb.contents, name)

    def cosines(self, vector: np.ndarray) -> np.ndarray:
        """Compare a vector with all rows.

        vector (np.ndarray): A unit vector in float32. Shape: (width,).
        RETURNS (np.ndarray): Cosines in float32. Shape: (rows,).
        """
        key = vector.tobytes()
        if key not in self.compared:
            blocks = [
                self.kb.vectors(
                    np.arange(start, min(start + EXACT_BLOCK, self.kb.rows))
                )
                @ vector
                for start in range(0, self.kb.rows, EXACT_BLOCK)
            ]
            self.compared[key] = np.concatenate([*blocks, np.zeros(0, np.float32)])
        return self.compared[key]

    def search(self, vectors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """See `KnowledgeBase.search`."""
        scores = np.stack([self.cosines(vector) for vector in vectors])
        k = min(k, scores.shape[1])
        rows = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return best_first(rows, np.take_along_axis(scores, rows, 1))
