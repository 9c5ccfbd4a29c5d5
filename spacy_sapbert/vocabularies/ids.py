"""Ids of concepts as files write them, and the form that equal ones have."""

import re

from ..linking.sources import SOURCES, normalize_prefix

BARE = {
    source.prefix or source.name: re.compile(source.bare)
    for source in SOURCES
    if source.bare
}
CUI = BARE["UMLS"].pattern  # of the ids of UMLS
IRI = re.compile(r"\w+://(.+)[/#]([^/#\s]+)")
# the end of an IRI that has a prefix: DOID_1816, not c_12
CURIE = re.compile(r"((?:[A-Z]|[A-Za-z]\w+?))[_:](.+)")


def split_id(id: str) -> tuple[str, str]:
    """Split an id into its prefix, as it is written, and the rest.

    Returns:
        The prefix is empty if there is none, and known from the form of the id for UMLS
        and MeSH.
    """
    if match := IRI.fullmatch(id):
        # …/obo/DOID_1816, …/mesh/D003924, …/umls/id/C0011849
        path, id = match[1], match[2]
        if curie := CURIE.fullmatch(id):
            return curie[1], curie[2]
        folder = path.removesuffix("/id").removesuffix("/entry").rpartition("/")[2]
        return folder.removeprefix("www.").partition(".")[0], id
    prefix, colon, local = id.partition(":")
    if colon and local:
        return prefix, local
    for vocabulary, form in BARE.items():
        if form.fullmatch(id):
            return vocabulary, id
    return "", id


def id_key(id: str, source: str = "") -> str:
    """Return the form of an id that is equal for equal ids.

    Args:
        id: E.g. "MESH:D003924", "MSH:D003924", "D003924", or an IRI.
        source: The vocabulary, if `id` is a code of it.

    Returns:
        E.g. "MESH:D003924".
    """
    prefix, local = split_id(id)
    if source and normalize_prefix(prefix) != normalize_prefix(source):
        prefix, local = source, id
    return f"{normalize_prefix(prefix)}:{local}" if prefix else local


def rewrite_id(id: str, like: str) -> str:
    """Return an id in the way in which another of the same vocabulary is written.

    Args:
        id, like: E.g. "C026098" and "MESH:D000077287" → "MESH:C026098".
    """
    (prefix, local), (other, rest) = split_id(id), split_id(like)
    if normalize_prefix(prefix) == normalize_prefix(other) and like.endswith(rest):
        return like[: len(like) - len(rest)] + local
    return id
