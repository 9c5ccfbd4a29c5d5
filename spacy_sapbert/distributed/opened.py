"""The pipelines that a process of an engine has opened."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..io.forks import ProcessLock
from ..kb.folder.installed import find_kb
from ..pipeline.running import NAMES, complete_pipeline, load_pipeline
from .local_copy import copy_kb

if TYPE_CHECKING:
    from spacy.language import Language

    from ..pipeline.linker import SapbertLinker

MOST_OPENED = 2  # in a process, which may work for several jobs
CACHED_STRINGS = 50_000  # of the first documents: one to four for a word
OPENING = ProcessLock()


class OpenedPipeline:
    """A pipeline that links, in spaCy's memory zones once it has read many words.

    Without zones a worker keeps each new word until it ends. But in a zone the
    tokenizer caches no word, and takes 20 times as long for those that are not cached.
    So the first words of the documents are cached; later ones are freed with a batch.
    """

    def __init__(self, nlp: "Language", linker: "SapbertLinker") -> None:
        self.nlp, self.linker = nlp, linker
        self.lock = ProcessLock()  # memory zones are not for several threads
        self.strings = len(nlp.vocab.strings)  # when opened

    @property
    def digest(self) -> str:
        """The digest of the version of the knowledge base that the linker uses."""
        return self.linker.kb.manifest.digest

    @contextmanager
    def use(self) -> Iterator[None]:
        """Keep other threads out while Docs are made and read; then free new words."""
        with self.lock:
            cached = len(self.nlp.vocab.strings) - self.strings
            if cached < CACHED_STRINGS or not hasattr(self.nlp, "memory_zone"):
                yield
            else:
                with self.nlp.memory_zone():
                    yield


def open_once(settings: str) -> OpenedPipeline:
    """Return the pipeline of `LinkBatches.settings`, opened when first needed."""
    with OPENING:
        return open_settings(settings)


@lru_cache(maxsize=MOST_OPENED)
def open_settings(settings: str) -> OpenedPipeline:
    """Open a pipeline and its knowledge base; see `open_once`."""
    values: dict[str, Any] = json.loads(settings)
    name, lang = values.pop("pipeline"), values.pop("lang")
    if (folder := values.pop("copy_to")) is not None:
        copied = copy_kb(values.get("kb"), folder, digest=values.get("kb_digest"))
        values["kb"] = str(copied)
    if values.get("kb") is not None:
        find_kb(values["kb"])  # an error here costs nothing; the imports take seconds
    if name is None:
        values["mentions"] = values.get("mentions") or NAMES
    nlp = load_pipeline(name, lang=lang)
    linker = complete_pipeline(nlp, **values)
    linker.kb  # noqa: B018 (an error shows before the first document)
    return OpenedPipeline(nlp, linker)
