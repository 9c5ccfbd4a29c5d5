"""Which vocabularies the names of a knowledge base come from, and who may have them."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...errors import SapbertError
from ...linking.sources import UMLS_LICENCE, Licence, find_licence
from ...vocabularies.releases import SourceRelease, read_releases
from ..folder.records import Vocabulary
from ..knowledge_base import KnowledgeBase
from ..store import Store

# as MRSAB has it; 0 = no additional restriction
CATEGORY = re.compile(r"UMLS restriction category [1-9]")


def list_vocabularies(
    store: Store, releases: Mapping[str, SourceRelease]
) -> list[Vocabulary]:
    """Return the sources of the names, the largest first, with what is known of them.

    Args:
        releases: By source; see `read_releases`. "UMLS" is listed even if it is the
            source of no name.
    """
    counts = store.count_sources()
    if "UMLS" in releases:
        counts["UMLS"] = 0
    vocabularies = []
    for source, names in counts.items():
        known = releases.get(source, SourceRelease())
        licence = known.licence or getattr(find_licence(source), "name", "")
        values = {"source": source, "release": known.release, "licence": licence}
        vocabularies.append(Vocabulary(names=names, **values))
    return vocabularies


def find_vocabularies(store: Store, concepts: Path) -> list[Vocabulary]:
    """Return the sources of names of a concepts.db that is built of concepts.jsonl."""
    return list_vocabularies(store, read_releases(concepts))


def current_vocabularies(kb: KnowledgeBase) -> list[Vocabulary]:
    """Return the sources of all names that a knowledge base has, also of edits."""
    releases = {
        known.source: SourceRelease(release=known.release, licence=known.licence)
        for known in kb.manifest.vocabularies or ()
    }
    return list_vocabularies(kb.store, releases)


def describe_vocabulary(vocabulary: Vocabulary) -> str:
    """Return a vocabulary in words: "MSH 2026 (1,234 names; licence)"."""
    release = f" {vocabulary.release}" if vocabulary.release else ""
    names = [f"{vocabulary.names:,} names"] if vocabulary.names else []
    words = "; ".join([*names, vocabulary.licence or "licence unknown"])
    return f"{vocabulary.source}{release} ({words})"


def find_limit(vocabulary: Vocabulary) -> Licence | None:
    """Return the licence that limits who may have a vocabulary; None = unknown."""
    known = find_licence(vocabulary.source)
    if known is not None and known.limit:
        return known
    if CATEGORY.match(vocabulary.licence):
        limit = "the UMLS restricts this source"
        return Licence(vocabulary.licence, UMLS_LICENCE.address, limit)
    return None


def list_unknown(kb: KnowledgeBase) -> list[str]:
    """Return the sources of names whose licence is unknown."""
    return [known.source for known in current_vocabularies(kb) if not known.licence]


def check_distribution(
    vocabularies: Sequence[Vocabulary], permitted: Sequence[str]
) -> None:
    """Raise an error if a licence limits who may have a source, unless permitted."""
    limits = {known.source: find_limit(known) for known in vocabularies}
    refused = {s: terms for s, terms in limits.items() if terms and s not in permitted}
    if refused:
        reasons = "; ".join(
            f"{source} ({terms.name}: {terms.limit}, {terms.address})"
            for source, terms in refused.items()
        )
        names = ",".join(dict.fromkeys([*permitted, *refused]))
        raise SapbertError(
            "E424",
            "Expected a knowledge base that may be distributed, but it has names of "
            f"{reasons}. Read the terms; if they permit a wheel for all who can get "
            f"it, pass `--may-distribute {names}`.",
        )
