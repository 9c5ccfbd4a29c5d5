"""A knowledge base for spaCy's trainable `entity_linker`, which reads the sentence.

The linker of this package compares names. If one name belongs to several concepts, the
`entity_linker` can learn to choose among them. A config:
https://spacy-sapbert.github.io/spacy-sapbert/context.html
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import srsly
from spacy import util
from spacy.kb import Candidate, KnowledgeBase
from spacy.tokens import Span
from spacy.vocab import Vocab

from ..io.writing import write_json
from ..linking.certainty import AMBIGUOUS
from ..linking.link import Linked, find_share
from ..linking.options import DEFAULT_OPTIONS, LinkOptions, change_options
from .abbreviation_detector import mention_text
from .linker import fit_language
from .linker_config import DEFAULTS

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase as Concepts

FILE, FOLDER = "kb.json", "kb"
LONG_FORM = DEFAULTS["long_form_attr"]


def make_spacy_kb(kb: str | Path | None = None) -> Callable[..., "SpacyKB"]:
    """Return what makes a `KnowledgeBase` of spaCy, as `kb_loader` and as empty one.

    Args:
        kb: A folder, or the name of an installed knowledge base; None = none yet: a
            saved pipeline brings one.
    """

    def make(vocab: Vocab, entity_vector_length: int = 0) -> SpacyKB:
        made = SpacyKB(vocab, entity_vector_length)
        if kb is not None:
            made.open(kb)
        return made

    return make


def make_candidate_generator(
    options: Mapping[str, Any] | None = None,
) -> Callable[["SpacyKB", Span], list[Candidate]]:
    """Return what finds the candidates of a mention; see `SpacyKB.find`.

    Args:
        options: Options of linking, as in the config of `sapbert_linker`.
    """
    find = make_candidate_batch_generator(options)
    return lambda kb, mention: find(kb, [mention])[0]


def make_candidate_batch_generator(
    options: Mapping[str, Any] | None = None,
) -> Callable[["SpacyKB", Iterable[Span]], list[list[Candidate]]]:
    """Return what finds the candidates of many mentions; see above."""
    chosen = change_options(DEFAULT_OPTIONS, options or {})
    return lambda kb, mentions: kb.find([*mentions], chosen)


class SpacyKB(KnowledgeBase):
    """A knowledge base of this package as a `KnowledgeBase` of spaCy.

    Attributes:
        concepts: The knowledge base; None = none yet.
    """

    def __init__(self, vocab: Vocab, entity_vector_length: int = 0) -> None:
        super().__init__(vocab, entity_vector_length)
        self.concepts: Concepts | None = None
        self.name: str | None = None  # if it is installed

    def open(self, source: str | Path) -> None:
        """Use the knowledge base in a folder, or an installed one."""
        from ..kb.folder.versions import installed_name
        from ..kb.knowledge_base import load_kb

        self.use(load_kb(source), installed_name(source))

    def use(self, concepts: "Concepts", name: str | None = None) -> None:
        super().__init__(self.vocab, concepts.manifest.encoder.width)
        self.concepts, self.name = concepts, name

    def is_empty(self) -> bool:
        return self.concepts is None

    def find(
        self, mentions: Sequence[Span], options: LinkOptions = DEFAULT_OPTIONS
    ) -> list[list[Candidate]]:
        """Find the concepts among which the sentences of mentions have to choose.

        If names decide, this is the concept that `sapbert_linker` links, or none. Else
        these are the concepts that share the best score, each with its part of the
        probability as the prior one.
        """
        assert self.concepts is not None, "see `validate_kb` of spaCy's component"
        numbers = {id(span.doc): number for number, span in enumerate(mentions)}
        links = self.concepts.link(
            [mention_text(span, LONG_FORM, self.concepts) for span in mentions],
            labels=[span.label_ for span in mentions],
            documents=[numbers[id(span.doc)] for span in mentions],
            options=fit_language(options, self.vocab.lang),
        )
        priors = [share_probability(link) for link in links]
        cuis = [*dict.fromkeys(cui for prior in priors for cui in prior)]
        vectors = dict(zip(cuis, self.get_vectors(cuis), strict=True))
        add = self.vocab.strings.add
        return [
            [
                Candidate(self, add(cui), 0.0, vectors[cui], add(span.text), part)
                for cui, part in prior.items()
            ]
            for span, prior in zip(mentions, priors, strict=True)
        ]

    def get_candidates(self, mention: Span) -> list[Candidate]:
        return self.find([mention])[0]

    def get_candidates_batch(self, mentions: Iterable[Span]) -> list[list[Candidate]]:
        return self.find([*mentions])

    def get_vector(self, entity: str) -> np.ndarray:
        """Return the vector of the preferred name of a concept. Shape: (width,)."""
        return self.get_vectors([entity])[0]

    def get_vectors(self, entities: Iterable[str]) -> np.ndarray:
        """Return the vectors of the preferred names of concepts, float32.

        An id may be retired. An unknown one has zeros, as in spaCy: nothing is learned.
        Shape: (n, width).
        """
        assert self.concepts is not None
        ids, store = [*entities], self.concepts.store
        current = store.current_cuis(ids)
        names = store.names_of_cuis({current.get(id, id) for id in ids})
        texts = [names.get(current.get(id, id), "") for id in ids]
        vectors: np.ndarray = self.concepts.embed(texts).vectors
        return vectors

    def to_disk(self, path: str | Path, exclude: Iterable[str] = ()) -> None:
        """Copy the knowledge base; an installed one is referred to by its name."""
        from ..kb.folder.publication import save_copy

        serialize: dict[str, Callable[[Path], Any]] = {
            FILE: lambda file: write_json(file, {"name": self.name})
        }
        if self.concepts is not None and self.name is None:
            version = self.concepts.version
            serialize[FOLDER] = lambda folder: save_copy(version, folder)
        Path(path).mkdir(parents=True, exist_ok=True)
        util.to_disk(path, serialize, exclude)

    def from_disk(self, path: str | Path, exclude: Iterable[str] = ()) -> None:
        name = srsly.read_json(Path(path) / FILE)["name"]
        if name is not None or (Path(path) / FOLDER).is_dir():
            self.open(name or Path(path) / FOLDER)

    def to_bytes(self, **_: Any) -> bytes:
        from ..kb.folder.publication import version_to_files

        content: dict[str, Any] = {"name": self.name}
        if self.concepts is not None and self.name is None:
            content["files"] = version_to_files(self.concepts.version)
        packed: bytes = srsly.msgpack_dumps(content)
        return packed

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> None:
        """Use a serialised knowledge base, in a temporary folder."""
        from ..kb.knowledge_base import open_files

        content = srsly.msgpack_loads(bytes_data)
        if content["name"] is not None:
            self.open(content["name"])
        elif "files" in content:
            self.use(open_files(content["files"]))


def share_probability(link: Linked) -> dict[str, float]:
    """Return the prior probability of each concept among which a sentence can choose.

    Evidence that says which of equal names is meant leaves no choice, and the order of
    ids, or whose preferred name it is, says it only with a probability.
    """
    if link.cui is None and link.note != AMBIGUOUS:
        return {}
    first, *others = link.candidates
    tied = [c for c in others if c["tie"] and c["score"] == first["score"]]
    share = find_share(first["tie"], 1 + len(tied))
    probability = first["probability"] or 0.0
    if share == 1 or not tied:
        return {first["cui"]: probability}
    rest = probability / share * (1 - share) / len(tied)
    return {first["cui"]: probability, **{c["cui"]: rest for c in tied}}
