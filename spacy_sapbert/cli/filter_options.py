"""The options of a command that say what may be found."""

from pathlib import Path

import typer

from ..errors import Errors, SapbertError
from ..system.reading import read_lines
from .concepts import split_values

TYPES = typer.Option(
    None, help="Semantic types or groups that may be found: T047,T191 or DISO. [all]"
)
SOURCES = typer.Option(
    None, help="Vocabularies whose names are looked at, e.g. MSH,SNOMEDCT_US. [all]"
)
LANGUAGES = typer.Option(
    None, help="Languages whose names are looked at, e.g. ENG,SPA. [all]"
)
ALLOW = typer.Option(
    None, help="File of the only concepts that may be found: an id a line."
)
DENY = typer.Option(None, help="File of concepts that are never found: an id a line.")


def read_ids(path: Path) -> list[str]:
    """Read a list of concepts.

    path (Path): A line for each: its id, and maybe a tab and what people should read.
        Blank lines and those that begin with `#` are passed over.
    RETURNS (list[str]): The ids, each once.
    RAISES (SapbertError): If the file cannot be read, or an id has a blank in it.
    """
    ids: dict[str, None] = {}
    for number, line in read_lines(path):
        cui = line.partition("\t")[0].strip()
        if not line.strip() or cui.startswith("#"):
            continue
        if len(cui.split()) != 1:
            raise SapbertError(Errors.E516.format(path=path, line=number))
        ids[cui] = None
    return list(ids)


def gather_filter(
    types: str | None = None,
    sources: str | None = None,
    languages: str | None = None,
    allow: Path | None = None,
    deny: Path | None = None,
) -> dict[str, list[str]] | None:
    """Put the options together to a filter.

    types (str | None): Semantic types or groups, with commas; so also the next two.
    sources (str | None): Vocabularies.
    languages (str | None): Languages.
    allow (Path | None): See `read_ids`; so also `deny`.
    deny (Path | None): The ids that are never found.
    RETURNS (dict[str, list[str]] | None): Values by name of the option; None if no
        option was given, `{}` if all of them say "all".
    RAISES (SapbertError): If a file cannot be read, or allows nothing.
    """
    given = {
        "types": split_values(types),
        "sources": split_values(sources),
        "languages": split_values(languages),
        "allow": None if allow is None else read_ids(allow),
        "deny": None if deny is None else read_ids(deny),
    }
    if allow is not None and not given["allow"]:
        raise SapbertError(Errors.E517.format(path=allow))
    if all(values is None for values in given.values()):
        return None
    return {name: values for name, values in given.items() if values}
