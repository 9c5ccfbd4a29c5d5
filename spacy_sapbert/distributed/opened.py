"""The pipelines that a process of an engine has opened."""

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ..kb.folder.installed import find_kb
from ..pipeline.running import NAMES, complete_pipeline, load_pipeline
from ..system.forks import ProcessLock
from .local_copy import copy_kb

if TYPE_CHECKING:
    from spacy.language import Language

    from ..pipeline.linker import SapbertLinker

MOST_OPENED = 2  # in a process, which may work for several jobs
OPENING = ProcessLock()


class OpenedPipeline(NamedTuple):
    """A pipeline that links.

    digest (str): Of its knowledge base.
    lock (ProcessLock): Held while it runs: memory zones are not for several threads.
    """

    nlp: "Language"
    linker: "SapbertLinker"
    digest: str
    lock: ProcessLock


def open_once(settings: str) -> OpenedPipeline:
    """Return the pipeline of some settings, opened when this process needs it first.

    settings (str): `LinkBatches.settings`, JSON.
    RAISES (SapbertError): If the pipeline or its knowledge base cannot be opened.
    """
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
    return OpenedPipeline(nlp, linker, linker.kb.manifest.digest, ProcessLock())
