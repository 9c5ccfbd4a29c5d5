"""ssslm's `Matcher`, so that what uses ssslm links by a knowledge base."""

from pathlib import Path
from typing import Any

from ..errors import SapbertError
from ..io.plugins import require
from ..linking.options import LinkOptions
from .knowledge_base import KnowledgeBase, load_kb

require("ssslm", "ssslm")

from curies import NamableReference  # noqa: E402
from ssslm import Match, Matcher  # noqa: E402


class SapbertMatcher(Matcher[NamableReference]):
    """Matches texts with the concepts of a knowledge base.

    Args:
        kb: A knowledge base, its folder, or the name of an installed one; None = the
            only one that is installed.
        prefix: That of ids without one: "umls".
        settings: Fields of `LinkOptions`.
    """

    def __init__(
        self,
        kb: KnowledgeBase | str | Path | None = None,
        *,
        prefix: str | None = None,
        **settings: Any,
    ) -> None:
        self.kb = kb if isinstance(kb, KnowledgeBase) else load_kb(kb)
        self.options = LinkOptions(**settings)
        self.kb.check_options(self.options)
        self.prefix = prefix
        first = next(iter(self.kb), ":")
        if prefix is None and ":" not in first:
            raise SapbertError(
                "E331",
                f"Expected ids with a prefix, but got {first!r}. Pass `prefix`, the "
                'name of the vocabulary, e.g. "umls".',
            )

    def get_matches(self, text: str, **settings: Any) -> list[Match[NamableReference]]:
        """Return the concept that a text is linked to; empty if there is none.

        Its score is the probability that it is right. `settings` are as in `kb.link`.
        """
        (linked,) = self.kb.link([text], options=self.options, **settings)
        if linked.cui is None:
            return []
        best = linked.candidates[0]
        curie = linked.cui if ":" in linked.cui else f"{self.prefix}:{linked.cui}"
        reference = NamableReference.from_curie(curie, name=best["name"])
        return [Match(reference=reference, score=best["probability"])]

    def not_empty(self) -> bool:
        return len(self.kb) > 0
