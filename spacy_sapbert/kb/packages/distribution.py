"""Which vocabularies the names of a knowledge base come from, and who may have them."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...errors import Errors, SapbertError
from ...vocabularies.licences import UMLS, Licence, find_licence
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

    releases (Mapping[str, SourceRelease]): By source; see `read_releases`. "UMLS" is
        listed though it is the source of no name.
    """
    counts = store.count_sources()
    counts |= {source: 0 for source in ("UMLS",) if source in releases}
    found = []
    for source, names in counts.items():
        known = releases.get(source, SourceRelease())
        licence = known.licence or getattr(find_licence(source), "name", "")
        found.append(
            Vocabulary(
                source=source, names=names, release=known.release, licence=licence
            )
        )
    return found


def find_vocabularies(store: Store, concepts: Path) -> list[Vocabulary]:
    """Return the sources of names of a concepts.db that is built.

    Args:
        concepts: The concepts.jsonl that it is built of.
    """
    return list_vocabularies(store, read_releases(concepts))


def current_vocabularies(kb: KnowledgeBase) -> list[Vocabulary]:
    """Return the sources of all names that a knowledge base has, also of edits."""
    known = kb.manifest.vocabularies or ()
    releases = {
        each.source: SourceRelease(release=each.release, licence=each.licence)
        for each in known
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
        return Licence(vocabulary.licence, UMLS.address, limit)
    return None


def list_unknown(kb: KnowledgeBase) -> list[str]:
    """Return the sources of names whose licence is unknown."""
    return [each.source for each in current_vocabularies(kb) if not each.licence]


def check_distribution(
    vocabularies: Sequence[Vocabulary], permitted: Sequence[str]
) -> None:
    """Check that a knowledge base may be given to others.

    permitted (Sequence[str]): Sources that the user has the right to distribute.
    RAISES (SapbertError): If another source has a licence that limits this.
    """
    limits = {each.source: find_limit(each) for each in vocabularies}
    refused = {s: found for s, found in limits.items() if found and s not in permitted}
    if refused:
        reasons = "; ".join(
            f"{source} ({found.name}: {found.limit}, {found.address})"
            for source, found in refused.items()
        )
        names = ",".join(dict.fromkeys([*permitted, *refused]))
        raise SapbertError(Errors.E424.format(reasons=reasons, names=names))
