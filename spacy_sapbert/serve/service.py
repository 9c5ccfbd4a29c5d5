"""What a service does, without HTTP: one pipeline, one knowledge base, one thread."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..errors import SapbertError
from ..formats.documents import Document
from ..formats.entities import LinkedEntity, describe_entities
from ..formats.inputs.reading import MOST_RUN, measure_run, too_many_signs
from ..kb.filters import check_sources_of_codes
from ..kb.knowledge_base import KnowledgeBase
from ..linking.link import Linked
from ..linking.options import change_options
from ..pipeline.linker import SapbertLinker, fit_language
from ..pipeline.running import run_batch
from ..verification.verdicts import Verifier
from .linking_thread import Job, LinkingThread
from .metrics import Metrics
from .settings import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from spacy.language import Language

TEXTS, MENTIONS = "texts", "mentions"  # kinds of jobs
CHARACTERS_TOGETHER = 100_000  # of texts that are in memory as Docs at once
LONG = 20_000  # characters of a job, from which it gives way to others
T = TypeVar("T")


class TextResult(NamedTuple):
    """What was found in a text.

    Attributes:
        error: Why it could not be linked.
        kb: Digest of the knowledge base that it was linked to.
    """

    entities: list[LinkedEntity]
    error: SapbertError | None
    kb: str


class MentionResult(NamedTuple):
    """What was found for a mention; see `TextResult`."""

    linked: Linked
    kb: str


class Service:
    """One pipeline that links for many clients.

    Args:
        nlp: The pipeline, completed by `complete_pipeline`.
    """

    def __init__(
        self,
        nlp: "Language",
        linker: SapbertLinker,
        *,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.nlp = nlp
        self.linker = linker
        linker.opened.reload_seconds = None  # `Watcher` opens new versions
        self.options = linker.options
        self.limits = limits
        self.metrics = Metrics()
        self.verifier: Verifier | None = None  # made when first used
        self.thread = LinkingThread(
            self.link, waiting=limits.waiting, on_batch=self.metrics.batch_jobs.observe
        )
        self.metrics.waiting.set_function(self.thread.count_waiting)

    @property
    def kb(self) -> KnowledgeBase:
        """The knowledge base in use; a request reads this once."""
        return self.linker.kb

    def use_verifier(self) -> Verifier:
        """Return what verifies ids by the knowledge base in use."""
        if self.verifier is None or self.verifier.kb is not self.kb:
            self.verifier = Verifier(self.kb)
        return self.verifier

    def start(self) -> None:
        """Load what is loaded when first used, and start the linking thread."""
        self.kb.load()
        self.thread.start()

    def close(self) -> None:
        """Finish the requests that were accepted."""
        self.thread.close()

    async def wait(self, kind: str, settings: dict[str, Any], items: list[Any]) -> Any:
        """Link items in the linking thread, and return the results."""
        text = json.dumps(settings, sort_keys=True)
        long = kind == TEXTS and sum(len(item[1]) for item in items) > LONG
        job = Job(kind, text, items, alone=long)
        try:
            return await asyncio.wrap_future(self.thread.submit(job))
        except asyncio.CancelledError:
            job.given_up = True
            raise

    async def link_texts(
        self, texts: Sequence[str], settings: dict[str, Any]
    ) -> list[TextResult]:
        """Detect and link the mentions of texts.

        Args:
            settings: See `change_options`.

        Returns:
            One for each text.

        Raises:
            SapbertError: If a setting is not possible, or the queue is full.
        """
        results: list[TextResult] = await self.wait(
            TEXTS, settings, list(enumerate(texts))
        )
        return results

    async def link_mentions(
        self,
        mentions: Sequence[str],
        settings: dict[str, Any],
        labels: Sequence[str] | None = None,
    ) -> list[MentionResult]:
        """Link mentions, each on its own; see `link_texts`."""
        items = list(zip(mentions, labels or [""] * len(mentions), strict=True))
        results: list[MentionResult] = await self.wait(MENTIONS, settings, items)
        return results

    async def call(self, function: Callable[[], T]) -> T:
        """Run a function between two batches, when nothing else uses the pipeline."""
        return await asyncio.wrap_future(self.thread.call(function))

    def check_kb(self, kb: KnowledgeBase) -> None:
        """Check that the options of the pipeline fit a knowledge base."""
        kb.check_options(self.options)

    def switch(
        self, kb: KnowledgeBase, *, instead_of: KnowledgeBase | None = None
    ) -> bool:
        """Use another knowledge base from the next batch on, and wait until it is so.

        Args:
            kb: Opened; its index and encoder are loaded here, beside those in use.
            instead_of: What must still be in use then, else nothing is changed; None =
                anything.

        Returns:
            Whether it is in use.

        Raises:
            SapbertError: If the options of the pipeline do not fit it.
        """
        self.check_kb(kb)
        kb.load()

        def replace() -> bool:
            if instead_of not in (None, self.linker.kb):
                return False
            self.linker.kb = kb
            return True

        replaced: bool = self.thread.call(replace, alone=True).result()
        return replaced

    def link(self, kind: str, settings: str, items: list[Any]) -> list[Any]:
        """Link the items of a batch; runs in the linking thread."""
        options = change_options(self.options, json.loads(settings))
        if options.filter:  # also if no mention is found
            self.kb.resolve_filter(options.filter)
        if options.codes:
            check_sources_of_codes(self.kb.store, options.codes)
        self.metrics.linked.labels(kind).inc(len(items))
        if kind == MENTIONS:
            kb = self.kb
            links = kb.link(
                [text for text, _ in items],
                labels=[label for _, label in items],
                options=fit_language(options, self.nlp.vocab.lang),
            )
            return [MentionResult(link, kb.manifest.digest) for link in links]
        # A long job gives way to this one, and goes on with its own options.
        before, self.linker.options = self.linker.options, options
        try:
            return [
                result
                for part in split_texts(items)
                for result in self.link_documents(part)
            ]
        finally:
            self.linker.options = before

    def link_documents(self, texts: list[tuple[int, str]]) -> list[TextResult]:
        """Run the pipeline over some texts.

        Args:
            texts: With their places in their requests.
        """
        names = self.linker.attrs
        digest = self.kb.manifest.digest
        results: dict[int, TextResult] = {}
        documents: dict[int, Document] = {}
        for number, (place, text) in enumerate(texts):
            if (run := measure_run(text)) > MOST_RUN:
                error = too_many_signs(limit=MOST_RUN, id=place, run=run)
                results[number] = TextResult([], error, digest)
            else:
                documents[number] = Document(place, text)
        # New words of the texts are forgotten at the end of the zone. There is one if a
        # long text gives way to these.
        inside = getattr(self.nlp.vocab, "in_memory_zone", True)
        with nullcontext() if inside else self.nlp.memory_zone():
            docs = run_batch(self.nlp, [*documents.values()], skip=[])
            for number, doc in zip(documents, docs, strict=True):
                if isinstance(doc, SapbertError):
                    results[number] = TextResult([], doc, digest)
                else:
                    found = describe_entities(
                        doc, spans_key=self.linker.spans_key, names=names
                    )
                    results[number] = TextResult(found, None, digest)
        return [results[number] for number in range(len(texts))]


def split_texts(items: list[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """Yield parts of texts that are in memory as Docs at once."""
    part: list[tuple[int, str]] = []
    length = 0
    for item in items:
        if part and length + len(item[1]) > CHARACTERS_TOGETHER:
            yield part
            part, length = [], 0
        part.append(item)
        length += len(item[1])
    if part:
        yield part
