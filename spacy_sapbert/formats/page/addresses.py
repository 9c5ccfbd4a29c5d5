"""Web addresses of concepts."""

import re
from collections.abc import Mapping
from urllib.parse import quote

from ...errors import SapbertError
from ...linking.sources import SOURCES

# Which page shows a concept: pattern of the id → address, {} = the groups in turn,
# or the whole id. The first pattern that matches counts.
ADDRESSES: dict[str, str] = {
    **dict(source.page for source in SOURCES if source.page),
    # all others with a prefix
    r"([A-Za-z]\w*):(\w[\w.-]*)": "https://identifiers.org/{}:{}",
}
WEB = ("https://", "http://")


def merge_addresses(links: Mapping[str, str]) -> dict[str, str]:
    """Return `ADDRESSES` with others before them, which are checked."""
    for pattern, address in links.items():
        try:
            groups = re.compile(pattern).groups or 1
            address.format(*[""] * groups)
        except (re.error, IndexError, KeyError, ValueError):
            groups = 0
        if not groups or not address.startswith(WEB):
            raise SapbertError(
                "E331",
                "Expected `links` as regular expressions with addresses that begin "
                "with `https://` or `http://` and have at most one {} for each "
                f"group, but got {pattern!r}: {address!r}. Correct it.",
            )
    rest = {key: ADDRESSES[key] for key in ADDRESSES if key not in links}
    return {**links, **rest}


class UrlTemplate:
    """The pages of concepts, as displaCy's option `kb_url_template`."""

    @staticmethod
    def format(cui: str) -> str:
        """Return the address of a concept's page; "#" for NIL and unknown ids."""
        return concept_url(cui) or "#"


def concept_url(cui: str, links: Mapping[str, str] = ADDRESSES) -> str | None:
    """Return the address of a concept's page; None if no pattern matches."""
    for pattern, address in links.items():
        if match := re.fullmatch(pattern, cui):
            parts = match.groups(default="") or (cui,)
            return address.format(*(quote(part, safe="") for part in parts))
    return None
