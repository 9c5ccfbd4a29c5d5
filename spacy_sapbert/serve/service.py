"""What a service does, without HTTP: one pipeline, one knowledge base, one thread."""

import asyncio
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..errors import SapbertError
from ..formats.documents import Document
from ..formats.entities import CONTEXTS, Context, LinkedEntity, describe_entities
from ..formats.inputs.reading import MOST_RUN, measure_run, too_many_signs
from ..kb.knowledge_base import KnowledgeBase
from ..linking.link import Linked
from ..linking.options import LinkOptions, change_options
from ..pipeline.linker import SapbertLinker, fit_language
from ..pipeline.running import run_batch
from ..verification.verdicts import Verifier
from .linking_thread import Job, LinkingThread, split_items
from .metrics import Metrics
from .settings import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from spacy.language import Language

TEXTS, MENTIONS = "texts", "mentions"  # that are counted
Item = TypeVar("Item", bound=tuple[Any, ...])
Result = TypeVar("Result")


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
        contexts: Attributes of entities, and what they say if they are true.

    Attributes:
        kb: The knowledge base in use; a request reads this once.
    """

    def __init__(
        self,
        nlp: "Language",
        linker: SapbertLinker,
        *,
        limits: Limits = DEFAULT_LIMITS,
        contexts: Mapping[str, Context] = CONTEXTS,
    ) -> None:
        self.nlp = nlp
        self.linker = linker
        linker.reload_seconds = None  # `Watcher` opens new versions
        self.kb = linker.kb
        self.options = linker.options
        self.limits = limits
        self.contexts = contexts
        self.metrics = Metrics()
        self.verifier: Verifier | None = None  # made when first used
        self.thread = LinkingThread(
            waiting=limits.waiting, on_batch=self.metrics.batch_jobs.observe
        )
        self.metrics.waiting.set_function(self.thread.count_waiting)

    def use_verifier(self, kb: KnowledgeBase) -> Verifier:
        """Return what verifies ids by a knowledge base; in the linking thread."""
        if self.verifier is None or self.verifier.kb is not kb:
            self.verifier = Verifier(kb)
        return self.verifier

    def start(self) -> None:
        """Load what is loaded when first used, and start the linking thread."""
        self.kb.load()
        self.thread.start()

    def close(self) -> None:
        """Finish the jobs that were accepted."""
        self.thread.close()

    async def work(
        self,
        function: Callable[[Sequence[Item]], Sequence[Result]],
        items: Sequence[Item],
        key: Hashable = None,
    ) -> list[Result]:
        """Do work in the linking thread, some items at a time.

        The jobs of other requests are done between them.

        Args:
            function: Returns a result for each item.
            key: See `Job`.

        Raises:
            RequestError: If the queue is full.
        """
        results: list[Result] = []
        for number, part in enumerate(split_items(items)):
            job = Job(function, part, key)
            done = self.thread.submit(job, begun=number > 0)
            results += await asyncio.wrap_future(done)
        return results

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
        kb, options = self.kb, change_options(self.options, settings)

        def link(items: Sequence[tuple[int, str]]) -> list[TextResult]:
            kb.check_options(options)
            self.metrics.linked.labels(TEXTS).inc(len(items))
            self.set_linker(kb, options)
            try:
                return self.link_documents(items)
            finally:
                self.set_linker(self.kb, self.options)

        return await self.work(link, [*enumerate(texts)], make_key(TEXTS, settings, kb))

    async def link_mentions(
        self,
        mentions: Sequence[str],
        settings: dict[str, Any],
        labels: Sequence[str] | None = None,
    ) -> list[MentionResult]:
        """Link mentions, each on its own; see `link_texts`."""
        kb, options = self.kb, change_options(self.options, settings)
        fitting = fit_language(options, self.nlp.vocab.lang)

        def link(items: Sequence[tuple[str, str]]) -> list[MentionResult]:
            kb.check_options(options)
            self.metrics.linked.labels(MENTIONS).inc(len(items))
            texts, labels = [text for text, _ in items], [label for _, label in items]
            links = kb.link(texts, labels=labels, options=fitting)
            return [MentionResult(one, kb.manifest.digest) for one in links]

        items = [*zip(mentions, labels or [""] * len(mentions), strict=True)]
        return await self.work(link, items, make_key(MENTIONS, settings, kb))

    def set_linker(self, kb: KnowledgeBase, options: LinkOptions) -> None:
        """Set the options of the linker, and its knowledge base, maybe an older one."""
        self.linker.options = options
        if self.linker.kb is not kb:
            self.linker.kb = kb

    def check_kb(self, kb: KnowledgeBase) -> None:
        """Check that the options of the pipeline fit a knowledge base."""
        kb.check_options(self.options)

    def switch(
        self, kb: KnowledgeBase, *, instead_of: KnowledgeBase | None = None
    ) -> bool:
        """Use another knowledge base for later requests, and wait until it is so.

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

        def replace(_: Sequence[Any]) -> list[bool]:
            if instead_of not in (None, self.kb):
                return [False]
            self.kb = self.linker.kb = kb
            self.verifier = None  # or the old one would stay in memory
            return [True]

        (replaced,) = self.thread.submit(Job(replace, [()])).result()
        return bool(replaced)

    def link_documents(self, texts: Sequence[tuple[int, str]]) -> list[TextResult]:
        """Run the pipeline over some texts.

        Args:
            texts: With their places in their requests.
        """
        linker, digest = self.linker, self.linker.kb.manifest.digest
        results: dict[int, TextResult] = {}
        documents: dict[int, Document] = {}
        for number, (place, text) in enumerate(texts):
            if (run := measure_run(text)) > MOST_RUN:
                error = too_many_signs(limit=MOST_RUN, id=place, run=run)
                results[number] = TextResult([], error, digest)
            else:
                documents[number] = Document(place, text)
        # New words of the texts are forgotten at the end of the zone.
        with getattr(self.nlp, "memory_zone", nullcontext)():
            docs = run_batch(self.nlp, [*documents.values()], skip=[])
            for number, doc in zip(documents, docs, strict=True):
                if isinstance(doc, SapbertError):
                    results[number] = TextResult([], doc, digest)
                else:
                    found = describe_entities(
                        doc,
                        spans_key=linker.spans_key,
                        names=linker.attrs,
                        contexts=self.contexts,
                    )
                    results[number] = TextResult(found, None, digest)
        return [results[number] for number in range(len(texts))]


def make_key(kind: str, settings: dict[str, Any], kb: KnowledgeBase) -> Hashable:
    """Return the key of jobs that link in the same way."""
    return kind, json.dumps(settings, sort_keys=True), kb
