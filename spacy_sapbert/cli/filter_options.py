"""Options of commands that limit concepts and names."""

from pathlib import Path

import typer

from ..errors import SapbertError
from ..io.reading import read_lines
from .concepts import split_values

TYPES = typer.Option(
    None, help="Allowed semantic types or groups: T047,T191 or DISO. [all]"
)
SOURCES = typer.Option(
    None, help="Vocabularies of the names, e.g. MSH,SNOMEDCT_US. [all]"
)
LANGUAGES = typer.Option(
    None, help="Languages of the names, e.g. ENG,SPA. [of the document, ENG; or all]"
)
ALLOW = typer.Option(
    None, help="File with the ids of the only allowed concepts, one a line."
)
DENY = typer.Option(None, help="File with ids that are not allowed, one a line.")


def read_ids(path: Path) -> list[str]:
    """Read ids of concepts, one a line; text after a tab is a remark.

    Blank lines and lines that begin with `#` are skipped.

    Returns:
        Each id once.

    Raises:
        SapbertError: If the file cannot be read, or an id contains a blank.
    """
    ids: dict[str, None] = {}
    for number, line in read_lines(path):
        cui = line.partition("\t")[0].strip()
        if not line.strip() or cui.startswith("#"):
            continue
        if len(cui.split()) != 1:
            raise SapbertError(
                "E117",
                f"{path}:{number}: Expected one id, optionally followed by a tab and "
                "a comment, but got a blank in the id. Correct the line.",
            )
        ids[cui] = None
    return list(ids)


def gather_filter(
    types: str | None = None,
    sources: str | None = None,
    languages: str | None = None,
    allow: Path | None = None,
    deny: Path | None = None,
) -> dict[str, list[str]] | None:
    """Return the filter of the options.

    Args:
        types: Comma-separated, like `sources` and `languages`.
        allow: See `read_ids`; also `deny`.

    Returns:
        Values by name of the option; None if no option was given, `{}` if all are
        "all".

    Raises:
        SapbertError: If a file cannot be read, or `allow` has no id.
    """
    given = {
        "types": split_values(types),
        "sources": split_values(sources),
        "languages": split_values(languages),
        "allow": None if allow is None else read_ids(allow),
        "deny": None if deny is None else read_ids(deny),
    }
    if allow is not None and not given["allow"]:
        raise SapbertError(
            "E106",
            f"Expected at least one id in {allow}, but got none. Add one, or remove "
            "`--allow` to allow every concept.",
        )
    if all(values is None for values in given.values()):
        return None
    return {name: values for name, values in given.items() if values}
