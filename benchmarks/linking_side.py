"""One side of `benchmarks.linking`: links documents in a process of its own.

The interpreter is that of another environment, which has spaCy and one linker, and no
other module of this project's checkout:

    python linking_side.py KIND SETTINGS.json RESULT.json STARTED
"""

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span

OURS, SCISPACY = "ours", "scispaCy"
DOCUMENTS, TEXTS = "documents.spacy", "texts.json"
SINGLES = {"other": "others.spacy", "name": "names.spacy"}  # mentions one by one
WARM_UP = 20  # further ones before them, not measured


class Side(NamedTuple):
    """A pipeline that only links.

    Attributes:
        list_answers: Ids for an entity, the first candidate first, and whether the
            linker gives it as its answer.
        forget: Empties what is kept of mentions that were linked.
        detect: Adds the pipe that finds mentions.
    """

    nlp: Language
    list_answers: Callable[[Span], tuple[str | None, bool]]
    forget: Callable[[], None]
    detect: Callable[[], Any]


def import_ours() -> None:
    import spacy_sapbert  # noqa: F401


def open_ours(kb: str) -> Side:
    """Open the linker as by default."""
    nlp = spacy.blank("en")
    linker: Any = nlp.add_pipe("sapbert_linker", config={"kb": kb})
    linker.kb.load()

    def list_answers(ent: Span) -> tuple[str | None, bool]:
        first = ent._.candidates[0]["cui"] if ent._.candidates else None
        return first, ent._.cui is not None

    def detect() -> None:
        nlp.add_pipe("sapbert_mentions", config={"kb": kb}, first=True)

    return Side(nlp, list_answers, linker.kb.clear_cache, detect)


def import_scispacy() -> None:
    import scispacy.linking  # noqa: F401


def open_scispacy(entities: str, index: str) -> Side:
    """Open the linker as by default, but for definitions, which few vocabularies have.

    An index that is missing is built.
    """
    from scispacy.linking import EntityLinker
    from scispacy.linking_utils import KnowledgeBase

    linker = EntityLinker.from_kb(
        KnowledgeBase(entities),
        ann_index_out_dir=index,
        filter_for_definitions=False,
        resolve_abbreviations=False,
    )
    nlp = spacy.blank("en")
    Language.component("linker", func=linker)
    nlp.add_pipe("linker")

    def list_answers(ent: Span) -> tuple[str | None, bool]:
        first = ent._.kb_ents[0][0] if ent._.kb_ents else None
        return first, first is not None

    def detect() -> None:
        names = linker.kb.alias_to_cuis
        ruler: Any = nlp.add_pipe(
            "entity_ruler", config={"phrase_matcher_attr": "LOWER"}, first=True
        )
        ruler.add_patterns([{"label": "Disease", "pattern": name} for name in names])

    return Side(nlp, list_answers, lambda: None, detect)


IMPORTS = {OURS: import_ours, SCISPACY: import_scispacy}
OPEN: dict[str, Callable[..., Side]] = {OURS: open_ours, SCISPACY: open_scispacy}


def peak_megabytes() -> float:
    """Return the peak memory of this process (Linux)."""
    # In a child process, `ru_maxrss` is at least that of its parent.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(ln.split()[1]) / 1024 for ln in lines if ln.startswith("VmHWM:"))


def time_pass(nlp: Language, docs: Iterable[Doc | str]) -> float:
    """Process documents as one stream; return the seconds."""
    start = time.perf_counter()
    for _ in nlp.pipe(docs):
        pass
    return time.perf_counter() - start


def time_singles(nlp: Language, docs: Sequence[Doc]) -> list[float]:
    """Process documents one by one; return the milliseconds of most."""
    milliseconds = [1000 * time_pass(nlp, [doc]) for doc in docs]
    return milliseconds[min(WARM_UP, len(docs) // 2) :]


def measure(kind: str, settings: dict[str, str], started: float) -> dict[str, Any]:
    """Link the documents of the folder in which this process runs.

    Args:
        kind: A key of `OPEN`.
        settings: Its arguments.
        started: Start of this process, by `time.monotonic`.

    Returns:
        `figures` by the keys of `linking.FIGURES`, and `answers`, those of
        `Side.list_answers` for all entities.
    """
    IMPORTS[kind]()
    spacy.blank("en")  # imports the pipes of all installed packages
    figures = {"imports": time.monotonic() - started}
    opened = time.monotonic()
    side = OPEN[kind](**settings)
    nlp = side.nlp
    figures["load"] = time.monotonic() - opened

    def read(name: str) -> list[Doc]:
        return list(DocBin().from_disk(name).get_docs(nlp.vocab))

    first, *others = docs = read(DOCUMENTS)
    mentions = sum(len(doc.ents) for doc in others)
    figures["first"] = 1000 * time_pass(nlp, [first])
    figures["cold"] = mentions / time_pass(nlp, others)
    figures["warm"] = mentions / time_pass(nlp, read(DOCUMENTS)[1:])
    answers = [side.list_answers(ent) for doc in docs for ent in doc.ents]
    for key, name in SINGLES.items():
        side.forget()
        if singles := time_singles(nlp, read(name)):
            figures[f"{key}_median"] = statistics.median(singles)
            figures[f"{key}_95"] = sorted(singles)[int(0.95 * len(singles))]
    figures["megabytes"] = peak_megabytes()
    side.forget()
    side.detect()
    texts = json.loads(Path(TEXTS).read_text("utf8"))
    figures["documents"] = len(texts) / time_pass(nlp, texts)
    return {"figures": figures, "answers": answers}


if __name__ == "__main__":
    kind, settings, result, started = sys.argv[1:]
    measured = measure(kind, json.loads(settings), float(started))
    Path(result).write_text(json.dumps(measured), "utf8")
